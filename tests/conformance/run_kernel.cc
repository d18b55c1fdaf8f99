#include "tests/conformance/run_kernel.h"

#include <algorithm>
#include <cstring>

#include "tests/conformance/evaluate.h"
#include "wam/base/check.h"
#include "wam/graph/builder.h"
#include "wam/kernels/kernel.h"

namespace wam::conformance {
namespace {

// Bytes between two guard zones, 256-byte aligned as planners align.
class GuardedBuffer {
 public:
  GuardedBuffer(int64_t bytes, uint8_t fill) : bytes_(static_cast<size_t>(bytes)) {
    storage_ = HostTensor(DType::kU8, Shape{bytes + 3 * kZone});
    auto address = reinterpret_cast<uintptr_t>(storage_.data());
    begin_ = reinterpret_cast<uint8_t*>((address + 255) / 256 * 256);
    std::memset(begin_, kGuard, static_cast<size_t>(2 * kZone) + bytes_);
    std::memset(data(), fill, bytes_);
  }
  uint8_t* data() const { return begin_ + kZone; }
  void check(const std::string& what) const {
    const auto intact = [](const uint8_t* zone) {
      return std::all_of(zone, zone + kZone, [](uint8_t byte) { return byte == kGuard; });
    };
    WAM_CHECK(intact(begin_)) << "bytes before " << what << " were written";
    WAM_CHECK(intact(data() + bytes_)) << "bytes after " << what << " were written";
  }

 private:
  static constexpr int64_t kZone = 256;
  static constexpr uint8_t kGuard = 0xA5;
  HostTensor storage_;
  size_t bytes_;
  uint8_t* begin_;
};

std::vector<HostTensor> run_view(const OpDef& op, const OpArgs& args, const TensorType& type,
                                 const HostTensor& input) {
  HostTensor output(type);
  const int64_t offset = op.view_offset(args);
  WAM_CHECK(offset >= 0 && offset + type.size_bytes() <= input.size_bytes())
      << "view leaves its base";
  std::memcpy(output.data(), static_cast<const std::byte*>(input.data()) + offset,
              static_cast<size_t>(type.size_bytes()));
  return {output};
}

std::vector<HostTensor> run_decomposed(const OpDef& op, const Attrs& attrs,
                                       std::span<const HostTensor> inputs) {
  WAM_CHECK(op.decompose != nullptr) << op.name << " has neither kernel nor decomposition";
  return decomposed(op, attrs, inputs);
}

const GuardedBuffer* shared_with(const RunOptions& options, size_t output,
                                 std::span<const GuardedBuffer> inputs) {
  for (const InPlace& pair : options.in_place) {
    if (pair.output == static_cast<int>(output)) return &inputs[static_cast<size_t>(pair.input)];
  }
  return nullptr;
}

bool overwritten(const RunOptions& options, size_t input) {
  return std::ranges::any_of(
      options.in_place, [&](const InPlace& pair) { return pair.input == static_cast<int>(input); });
}

}  // namespace

std::vector<HostTensor> run_cpu(const OpDef& op, const Attrs& attrs,
                                std::span<const HostTensor> inputs, const RunOptions& options) {
  std::vector<TensorType> types;
  for (const HostTensor& input : inputs) types.push_back(input.type());
  const OpArgs args{types, attrs};
  const std::vector<TensorType> output_types = op.infer(args);
  if (op.has(kView)) return run_view(op, args, output_types[0], inputs[0]);
  const KernelDef* def = find_cpu_kernel(op.name);
  if (def == nullptr) return run_decomposed(op, attrs, inputs);

  std::vector<GuardedBuffer> in, out;
  std::vector<const void*> in_addresses;
  std::vector<void*> out_addresses;
  for (const HostTensor& input : inputs) {
    in.emplace_back(input.size_bytes(), uint8_t{0});
    std::memcpy(in.back().data(), input.data(), static_cast<size_t>(input.size_bytes()));
    in_addresses.push_back(in.back().data());
  }
  for (size_t i = 0; i < output_types.size(); ++i) {
    const GuardedBuffer* shared = shared_with(options, i, in);
    out.push_back(shared == nullptr ? GuardedBuffer(output_types[i].size_bytes(), options.poison)
                                    : *shared);
    out_addresses.push_back(out.back().data());
  }
  const KernelSignature signature{types, output_types, attrs};
  const int64_t workspace_bytes =
      def->workspace_bytes == nullptr ? 0 : def->workspace_bytes(signature);
  const GuardedBuffer workspace(workspace_bytes, options.poison);
  const std::unique_ptr<Kernel> kernel = def->create(signature);
  kernel->run({in_addresses, out_addresses, workspace.data(), nullptr});

  workspace.check(std::string(op.name) + "'s workspace");
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i].check(std::string(op.name) + "'s input " + std::to_string(i));
    const bool same = std::memcmp(in[i].data(), inputs[i].data(),
                                  static_cast<size_t>(inputs[i].size_bytes())) == 0;
    WAM_CHECK(same || overwritten(options, i)) << op.name << " wrote to its input " << i;
  }
  std::vector<HostTensor> results;
  for (size_t i = 0; i < output_types.size(); ++i) {
    out[i].check(std::string(op.name) + "'s output " + std::to_string(i));
    results.emplace_back(output_types[i]);
    std::memcpy(results.back().data(), out[i].data(),
                static_cast<size_t>(output_types[i].size_bytes()));
  }
  return results;
}

bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

}  // namespace wam::conformance
