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

std::vector<TensorType> types_of(std::span<const HostTensor> tensors) {
  std::vector<TensorType> types;
  for (const HostTensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

// Everything one run needs, in guarded memory.
class GuardedRun {
 public:
  GuardedRun(const OpDef& op, std::span<const HostTensor> inputs,
             std::vector<TensorType> output_types, int64_t workspace_bytes,
             const RunOptions& options)
      : op_(op),
        inputs_(inputs),
        output_types_(std::move(output_types)),
        options_(options),
        workspace_(workspace_bytes, options.poison) {
    for (const HostTensor& input : inputs) {
      in_.emplace_back(input.size_bytes(), uint8_t{0});
      std::memcpy(in_.back().data(), input.data(), static_cast<size_t>(input.size_bytes()));
    }
    for (size_t i = 0; i < output_types_.size(); ++i) {
      const GuardedBuffer* shared = shared_with(options, i, in_);
      out_.push_back(shared == nullptr
                         ? GuardedBuffer(output_types_[i].size_bytes(), options.poison)
                         : *shared);
    }
  }

  void run(Kernel& kernel) const {
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const GuardedBuffer& buffer : in_) in.push_back(buffer.data());
    for (const GuardedBuffer& buffer : out_) out.push_back(buffer.data());
    kernel.run({in, out, workspace_.data(), nullptr});
  }

  void check() const {
    const std::string whose = std::string(op_.name) + "'s ";
    workspace_.check(whose + "workspace");
    for (size_t i = 0; i < in_.size(); ++i) {
      in_[i].check(whose + "input " + std::to_string(i));
      const bool same = std::memcmp(in_[i].data(), inputs_[i].data(),
                                    static_cast<size_t>(inputs_[i].size_bytes())) == 0;
      WAM_CHECK(same || overwritten(options_, i)) << op_.name << " wrote to its input " << i;
    }
    for (size_t i = 0; i < out_.size(); ++i) out_[i].check(whose + "output " + std::to_string(i));
  }

  std::vector<HostTensor> outputs() const {
    std::vector<HostTensor> results;
    for (size_t i = 0; i < out_.size(); ++i) {
      results.emplace_back(output_types_[i]);
      std::memcpy(results.back().data(), out_[i].data(),
                  static_cast<size_t>(output_types_[i].size_bytes()));
    }
    return results;
  }

 private:
  const OpDef& op_;
  std::span<const HostTensor> inputs_;
  std::vector<TensorType> output_types_;
  const RunOptions& options_;
  std::vector<GuardedBuffer> in_, out_;
  GuardedBuffer workspace_;
};

}  // namespace

std::vector<HostTensor> run_kernel(const OpDef& op, const KernelDef& kernel, const Attrs& attrs,
                                   std::span<const HostTensor> inputs, const RunOptions& options) {
  const std::vector<TensorType> types = types_of(inputs);
  const std::vector<TensorType> output_types = op.infer({types, attrs});
  const KernelSignature signature{types, output_types, attrs};
  const int64_t bytes = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(signature);
  const GuardedRun run(op, inputs, output_types, bytes, options);
  run.run(*kernel.create(signature));
  run.check();
  return run.outputs();
}

std::vector<HostTensor> run_cpu(const OpDef& op, const Attrs& attrs,
                                std::span<const HostTensor> inputs, const RunOptions& options) {
  if (op.has(kView)) {
    const std::vector<TensorType> types = types_of(inputs);
    const OpArgs args{types, attrs};
    return run_view(op, args, op.infer(args)[0], inputs[0]);
  }
  const KernelDef* kernel = find_cpu_kernel(op.name);
  return kernel == nullptr ? run_decomposed(op, attrs, inputs)
                           : run_kernel(op, *kernel, attrs, inputs, options);
}

bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

}  // namespace wam::conformance
