// Every conformance case on the CUDA kernels, in f32 and in bf16: against its reference, twice with
// other poison (the same bits), in place, with guard zones around every buffer. Skips aloud without
// a GPU. usage: cuda_conformance [substring of case names]
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "tests/conformance/cases.h"
#include "tests/conformance/run_kernel.h"
#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/kernels/cuda/support.h"
#include "wam/kernels/cuda/workspace.h"

namespace wam::conformance {
namespace {

using cuda::check;

// Device bytes between guard zones.
class GuardedBuffer {
 public:
  GuardedBuffer(int64_t bytes, uint8_t fill) : bytes_(static_cast<size_t>(bytes)) {
    check(cudaMalloc(&base_, bytes_ + 2 * kZone), "cudaMalloc");
    check(cudaMemset(base_, kGuard, bytes_ + 2 * kZone), "cudaMemset");
    check(cudaMemset(data(), fill, bytes_), "cudaMemset");
  }
  ~GuardedBuffer() { cudaFree(base_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(base_) + kZone; }
  void check_zones(const std::string& what) const {
    std::vector<uint8_t> zone(kZone);
    for (const std::byte* at :
         {static_cast<const std::byte*>(base_), static_cast<const std::byte*>(data()) + bytes_}) {
      check(cudaMemcpy(zone.data(), at, kZone, cudaMemcpyDeviceToHost), "reading a guard zone");
      WAM_CHECK(std::ranges::all_of(zone, [](uint8_t byte) { return byte == kGuard; }))
          << "bytes around " << what << " were written";
    }
  }

 private:
  static constexpr size_t kZone = 4096;
  static constexpr uint8_t kGuard = 0xA5;
  size_t bytes_;
  void* base_ = nullptr;
};

std::vector<HostTensor> run_cuda(const Case& c, const Instance& in, uint8_t poison,
                                 const std::vector<InPlace>& in_place) {
  const std::vector<TensorType> types = in.types();
  const std::vector<TensorType> out_types = c.op->infer({types, in.attrs});
  const KernelSignature signature{types, out_types, in.attrs};
  std::vector<std::shared_ptr<GuardedBuffer>> inputs, outputs;
  for (const HostTensor& tensor : in.inputs) {
    inputs.push_back(std::make_shared<GuardedBuffer>(tensor.size_bytes(), uint8_t{0}));
    check(cudaMemcpy(inputs.back()->data(), tensor.data(), static_cast<size_t>(tensor.size_bytes()),
                     cudaMemcpyHostToDevice),
          "copying an input");
  }
  for (size_t i = 0; i < out_types.size(); ++i) {
    const auto shared = std::ranges::find(in_place, static_cast<int>(i), &InPlace::output);
    outputs.push_back(shared != in_place.end()
                          ? inputs[static_cast<size_t>(shared->input)]
                          : std::make_shared<GuardedBuffer>(out_types[i].size_bytes(), poison));
  }
  const GuardedBuffer workspace(cuda_workspace_bytes(c.op->name, signature), poison);
  std::vector<const void*> in_pointers;
  std::vector<void*> out_pointers;
  for (const auto& buffer : inputs) in_pointers.push_back(buffer->data());
  for (const auto& buffer : outputs) out_pointers.push_back(buffer->data());
  find_cuda_kernel(c.op->name)
      ->create(signature)
      ->run({in_pointers, out_pointers, workspace.data(), nullptr});
  check(cudaDeviceSynchronize(), "running the kernel");
  workspace.check_zones("the workspace");
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i]->check_zones("input " + std::to_string(i));
    if (std::ranges::count(in_place, static_cast<int>(i), &InPlace::input) > 0) continue;
    HostTensor after(types[i]);
    check(cudaMemcpy(after.data(), inputs[i]->data(), static_cast<size_t>(after.size_bytes()),
                     cudaMemcpyDeviceToHost),
          "reading an input back");
    WAM_CHECK(same_bits(after, in.inputs[i])) << "input " << i << " was written to";
  }
  std::vector<HostTensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i]->check_zones("output " + std::to_string(i));
    results.emplace_back(out_types[i]);
    check(cudaMemcpy(results.back().data(), outputs[i]->data(),
                     static_cast<size_t>(out_types[i].size_bytes()), cudaMemcpyDeviceToHost),
          "reading an output");
  }
  return results;
}

// Roundings to bf16 inside an op, which the case's own bound does not know: the residual stream
// before its norm, probabilities and score gradients before the second product. In units of eps of
// bf16 times the magnitude.
double inner_roundings(std::string_view op, DType dtype) {
  if (dtype != DType::kBF16) return 0;
  // Also the product before its activation, where no epilogue of cuBLASLt takes the shape.
  // cuBLASLt adds the bias to a product already rounded where rows are not multiples of 16 bytes.
  if (op == "linear") return 1;
  if (op == "residual_norm" || op == "linear_gelu" || op == "linear_dgrad_gelu") return 2;
  if (op.find("attention") != std::string_view::npos) return 4;
  return 0;
}

// The worst element relative to its bound.
Comparison compare_cuda(const Case& c, DType dtype, const HostTensor& got, const Wide& want,
                        const ErrorModel& model) {
  const double inner = inner_roundings(c.op->name, dtype);
  const Wide result = to_wide(got);
  Comparison worst;
  for (size_t i = 0; i < result.data.size(); ++i) {
    const double a = result.data[i], b = want.data[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double size = std::max(std::fabs(b), want.magnitude.empty() ? 0 : want.magnitude[i]);
    // A device's exp, erf and sine may be off by two units in the last place. Score gradients are
    // differences of numbers of order one: where they should be zero, that is what remains.
    const double left = c.op->name.find("attention_grad") != std::string_view::npos ? 0x1p-20 : 0;
    const double limit =
        bound(model, got.dtype(), b, size) + inner * 0x1p-8 * size + 0x1p-22 * size + left;
    const double ratio =
        model.kind == ErrorModel::Kind::kExact ? HUGE_VAL : std::fabs(a - b) / limit;
    if (!(ratio <= worst.ratio)) {
      worst = {std::isnan(ratio) ? HUGE_VAL : ratio,
               fmt::format("element {}: got {}, expected {}, bound {:.3g}, ratio {:.3g}", i, a, b,
                           limit, ratio)};
    }
  }
  return worst;
}

// f64 and f16 have no CUDA kernels: nothing in a model uses them.
bool holds_unused_types(const Case& c, DType dtype) {
  const auto unused = [](const TensorType& t) {
    return t.dtype == DType::kF64 || t.dtype == DType::kF16;
  };
  const Instance in = instantiate(c, dtype);
  const std::vector<TensorType> types = in.types();
  return std::ranges::any_of(types, unused) ||
         std::ranges::any_of(c.op->infer({types, in.attrs}), unused);
}

// Empty: right.
std::string try_case(const Case& c, DType dtype, double& worst_ratio) {
  const Instance in = instantiate(c, dtype);
  const std::vector<HostTensor> got = run_cuda(c, in, 0xFF, {});
  const std::vector<Wide> want = expected(c, in);
  for (size_t i = 0; i < got.size(); ++i) {
    const Comparison worst =
        compare_cuda(c, dtype, got[i], want[i], c.errors[std::min(i, c.errors.size() - 1)]);
    worst_ratio = std::max(worst_ratio, worst.ratio);
    if (worst.ratio > 1) return fmt::format("output {} {}", i, worst.text);
  }
  const std::vector<HostTensor> again = run_cuda(c, in, 0x7B, {});
  for (size_t i = 0; i < got.size(); ++i) {
    if (!same_bits(got[i], again[i]))
      return fmt::format("output {}: other bits in a second run", i);
  }
  const std::vector<TensorType> types = in.types(), out_types = c.op->infer({types, in.attrs});
  for (const InPlace& pair : c.op->in_place) {
    const auto output = static_cast<size_t>(pair.output), input = static_cast<size_t>(pair.input);
    if (output >= got.size() || input >= types.size() || types[input] != out_types[output])
      continue;
    const std::vector<HostTensor> inside = run_cuda(c, in, 0xFF, {pair});
    for (size_t i = 0; i < got.size(); ++i) {
      if (!same_bits(got[i], inside[i])) {
        return fmt::format("output {} in place of input {}: other bits", output, input);
      }
    }
  }
  return {};
}

struct Count {
  int passed = 0, failed = 0;
  double worst = 0;
};

bool chosen(const std::string& name, std::string_view filter) {
  if (!filter.starts_with('-')) return name.find(filter) != std::string::npos;
  return name.find(filter.substr(1)) == std::string::npos;
}

int run_all(std::string_view filter) {
  std::map<std::string, Count> counts;
  std::map<std::string, int> shown;
  int failed = 0, passed = 0, without = 0;
  for (const Case& c : all_cases().cases) {
    if (!chosen(c.name(), filter)) continue;
    if (find_cuda_kernel(c.op->name) == nullptr) {
      ++without;
      continue;
    }
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      if (holds_unused_types(c, dtype)) {
        ++without;
        continue;
      }
      const std::string op = std::string(c.op->name) + " " + std::string(name(dtype));
      Count& count = counts[op];
      std::string fault;
      try {
        fault = try_case(c, dtype, count.worst);
      } catch (const Error& error) {
        fault = error.what();
      }
      ++(fault.empty() ? count.passed : count.failed);
      ++(fault.empty() ? passed : failed);
      if (!fault.empty() && ++shown[op] <= 6)
        fmt::print("FAILED {} {}: {}\n", c.name(), name(dtype), fault);
      if (cudaPeekAtLastError() != cudaSuccess && cudaDeviceSynchronize() != cudaSuccess) {
        fmt::print("the device is lost: {}\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
      }
    }
  }
  for (const auto& [op, count] : counts) {
    fmt::print("{:34} {:3} passed {:3} failed, worst ratio {:.3f}\n", op, count.passed,
               count.failed, count.worst);
  }
  fmt::print("{} passed, {} failed, {} cases without a CUDA kernel\n", passed, failed, without);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace wam::conformance

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    fmt::print("SKIPPED: no GPU, so no CUDA kernel was tried\n");
    return 0;
  }
  return wam::conformance::run_all(argc > 1 ? argv[1] : "");
}
