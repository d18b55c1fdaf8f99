#include "wam/ops/adamw_split.h"

#include <bit>

#include "tests/conformance/cases.h"
#include "tests/conformance/run_kernel.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

HostTensor to_f32(const Wide& wide) {
  HostTensor tensor(DType::kF32, wide.shape);
  for (size_t i = 0; i < wide.data.size(); ++i) {
    tensor.as<float>()[i] = static_cast<float>(wide.data[i]);
  }
  return tensor;
}

// adamw() on the joined weight, split again: the same bits, on any device.
std::vector<Wide> reference(const RefArgs& args) {
  HostTensor master(DType::kF32, args.inputs[0].shape);
  for (size_t i = 0; i < args.inputs[0].data.size(); ++i) {
    const auto high = std::bit_cast<uint32_t>(static_cast<float>(args.inputs[0].data[i]));
    const auto low = static_cast<uint32_t>(static_cast<int32_t>(args.inputs[1].data[i]));
    master.as<float>()[i] = std::bit_cast<float>(high + low);
  }
  const HostTensor inputs[] = {master, to_f32(args.inputs[2]), to_f32(args.inputs[3]),
                               to_f32(args.inputs[4]), to_f32(args.inputs[5])};
  const std::vector<HostTensor> whole = run_cpu(adamw_op, args.attrs, inputs);
  Wide high = args.output(0), low = args.output(1);
  for (size_t i = 0; i < high.data.size(); ++i) {
    const float p = whole[0].as<float>()[i];
    const auto bits = std::bit_cast<uint32_t>(p);
    const uint32_t upper = (bits + 0x8000u) & 0xffff0000u;
    high.data[i] = std::bit_cast<float>(upper);
    low.data[i] = static_cast<double>(static_cast<int32_t>(bits - upper));
  }
  return {high, low, to_wide(whole[1]), to_wide(whole[2])};
}

// Low halves from the smallest to the largest.
Input low_halves(const Shape& shape) {
  std::vector<double> list;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    list.push_back(i % 7 == 0   ? -32768
                   : i % 7 == 1 ? 32767
                                : static_cast<double>(i * 7919 % 65536 - 32768));
  }
  return values(shape, list, Role::kI16);
}

}  // namespace

void adamw_split_cases(Tables& tables) {
  const Attrs attrs{{"beta1", 0.95}, {"beta2", 0.999}, {"eps", 1e-8}};
  const auto with = [&](const std::string& label, Shape shape, Role gradient,
                        std::vector<double> scalars) {
    tables.add({.op = &adamw_split_op,
                .label = label + "_" + std::to_string(shape.num_elements()),
                .attrs = attrs,
                .inputs = {uniform(shape, -2, 2, Role::kBF16), low_halves(shape),
                           uniform(shape, -1, 1, Role::kF32), uniform(shape, 0, 2, Role::kF32),
                           uniform(shape, -1, 1, gradient),
                           values(Shape{kAdamwNumScalars}, std::move(scalars), Role::kF32)},
                .errors = {exact()},
                .reference = reference});
  };
  const std::vector<double> step = {1e-3, 0.05, 0.001, 0.5, 0, 0.01, 0, 0};
  const std::vector<double> skip = {1e-2, 0.9, 0.1, 0.25, 1, 0.1, 0, 0};
  for (const Shape& shape : {Shape{1}, Shape{33}, Shape{0}, Shape{20001}, Shape{4096}}) {
    with("step", shape, Role::kF32, step);
    with("bf16_gradient", shape, Role::kBF16, step);
    with("skip", shape, Role::kF32, skip);
  }
  const TensorType high{DType::kBF16, Shape{4}}, low{DType::kI16, Shape{4}},
      m{DType::kF32, Shape{4}};
  const TensorType scalars{DType::kF32, Shape{8}};
  const auto refuse = [&](const char* label, std::vector<TensorType> types) {
    tables.refuse(
        {.op = &adamw_split_op, .label = label, .attrs = attrs, .inputs = std::move(types)});
  };
  refuse("whole_master", {m, low, m, m, m, scalars});
  refuse("unsigned_low", {high, {DType::kI32, Shape{4}}, m, m, m, scalars});
  refuse("other_moment", {high, low, {DType::kF32, Shape{3}}, m, m, scalars});
  refuse("f64_gradient", {high, low, m, m, {DType::kF64, Shape{4}}, scalars});
  refuse("few_scalars", {high, low, m, m, m, {DType::kF32, Shape{4}}});
}

}  // namespace wam::conformance
