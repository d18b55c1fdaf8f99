#include "wam/exec/cpu_bf16.h"

#include <algorithm>
#include <vector>

namespace wam {
namespace {

constexpr int64_t kAlignment = 256;
int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// These know bf16 themselves.
bool knows_bf16(std::string_view op) {
  constexpr std::string_view kKnowing[] = {"adamw_split", "all_gather", "all_reduce",
                                           "cast",        "pack",       "reduce_scatter"};
  return std::ranges::count(kKnowing, op) != 0;
}

struct Types {
  std::vector<TensorType> in, out;
};

Types types_of(const Step& step) {
  Types types;
  for (const Operand& operand : step.inputs) types.in.push_back(operand.type);
  for (const Operand& operand : step.outputs) types.out.push_back(operand.type);
  return types;
}

bool has_bf16(const Types& types) {
  const auto is_bf16 = [](const TensorType& type) { return type.dtype == DType::kBF16; };
  return std::ranges::any_of(types.in, is_bf16) || std::ranges::any_of(types.out, is_bf16);
}

bool must_widen(const Step& step, const Types& types) {
  return has_bf16(types) && !knows_bf16(step.op);
}

TensorType widened(TensorType type) {
  if (type.dtype == DType::kBF16) type.dtype = DType::kF32;
  return type;
}

Types widened(const Types& types) {
  Types wide;
  for (const TensorType& type : types.in) wide.in.push_back(widened(type));
  for (const TensorType& type : types.out) wide.out.push_back(widened(type));
  return wide;
}

Attrs widened(Attrs attrs) {
  if (attrs.has("dtype") && attrs.text("dtype") == name(DType::kBF16)) {
    attrs.set("dtype", std::string(name(DType::kF32)));
  }
  return attrs;
}

int64_t copies_bytes(const Types& types) {
  int64_t total = 0;
  for (const auto* list : {&types.in, &types.out}) {
    for (const TensorType& type : *list) {
      if (type.dtype == DType::kBF16) total += align(widened(type).size_bytes());
    }
  }
  return total;
}

void widen(const void* from, void* to, int64_t count) {
  const auto* in = static_cast<const uint16_t*>(from);
  auto* out = static_cast<float*>(to);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(in[i]);
}

void narrow(const void* from, void* to, int64_t count) {
  const auto* in = static_cast<const float*>(from);
  auto* out = static_cast<uint16_t*>(to);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) out[i] = float_to_bf16(in[i]);
}

class WideningKernel final : public Kernel {
 public:
  WideningKernel(const KernelDef& def, const Step& step, Types types) : types_(std::move(types)) {
    const Types wide = widened(types_);
    const Attrs attrs = widened(step.attrs);
    inner_ = def.create({wide.in, wide.out, attrs});
    inputs_.resize(types_.in.size());
    outputs_.resize(types_.out.size());
  }

  void run(const KernelIo& io) override {
    auto* at = static_cast<std::byte*>(io.workspace);
    const auto take = [&at](const TensorType& type) {
      void* copy = at;
      at += align(widened(type).size_bytes());
      return copy;
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] = io.inputs[i];
      if (types_.in[i].dtype != DType::kBF16) continue;
      void* copy = take(types_.in[i]);
      widen(io.inputs[i], copy, types_.in[i].shape.num_elements());
      inputs_[i] = copy;
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i] = types_.out[i].dtype == DType::kBF16 ? take(types_.out[i]) : io.outputs[i];
    }
    inner_->run({inputs_, outputs_, at, io.stream, io.groups});
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (types_.out[i].dtype != DType::kBF16) continue;
      narrow(outputs_[i], io.outputs[i], types_.out[i].shape.num_elements());
    }
  }

 private:
  Types types_;
  std::unique_ptr<Kernel> inner_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

}  // namespace

std::unique_ptr<Kernel> create_cpu_kernel(const Step& step) {
  const KernelDef* def = find_cpu_kernel(step.op);
  if (def == nullptr) return nullptr;
  const Types types = types_of(step);
  if (must_widen(step, types)) return std::make_unique<WideningKernel>(*def, step, types);
  return def->create({types.in, types.out, step.attrs});
}

int64_t cpu_workspace_bytes(const Step& step) {
  const KernelDef* def = find_cpu_kernel(step.op);
  if (def == nullptr) return 0;
  const Types types = types_of(step);
  const bool widens = must_widen(step, types);
  const Types seen = widens ? widened(types) : types;
  const Attrs attrs = widens ? widened(step.attrs) : step.attrs;
  const int64_t own =
      def->workspace_bytes == nullptr ? 0 : def->workspace_bytes({seen.in, seen.out, attrs});
  return own + (widens ? copies_bytes(types) : 0);
}

}  // namespace wam
