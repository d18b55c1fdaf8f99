#include "wam/train/state_access.h"

#include "wam/base/check.h"
#include "wam/tensor/split_float.h"

namespace wam::train {
namespace {

int64_t byte_offset(const Param& param, const ParamPart& part, DType dtype) {
  return (param.offset_elements + part.offset_elements) * size_bytes(dtype);
}

std::string region_of(StateKind kind, const Param& param) {
  if (kind == StateKind::kWeight) return param.region;
  return moment_region(param.region, kind == StateKind::kFirstMoment ? 0 : 1);
}

void join(const HostTensor& high, const HostTensor& low, HostTensor& value) {
  const auto h = high.as<uint16_t>();
  const auto l = low.as<int16_t>();
  const auto out = value.as<float>();
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < out.size(); ++i) out[i] = join_float(h[i], l[i]);
}

void split(const HostTensor& value, HostTensor& high, HostTensor& low) {
  const auto in = value.as<float>();
  const auto h = high.as<uint16_t>();
  const auto l = low.as<int16_t>();
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < in.size(); ++i) {
    const SplitFloat halves = split_float(in[i]);
    h[i] = halves.high;
    l[i] = halves.low;
  }
}

}  // namespace

HostTensor StateAccess::read(StateKind kind, const Param& param, const ParamPart& part) const {
  HostTensor value(DType::kF32, part.shape);
  if (!is_split(kind)) {
    memory_->read_region(region_of(kind, param), byte_offset(param, part, DType::kF32), value.data(),
                         value.size_bytes());
    return value;
  }
  HostTensor high(DType::kBF16, part.shape), low(DType::kI16, part.shape);
  const int64_t offset = byte_offset(param, part, DType::kBF16);
  memory_->read_region(param.region, offset, high.data(), high.size_bytes());
  memory_->read_region(low_region(param.region), offset, low.data(), low.size_bytes());
  join(high, low, value);
  return value;
}

void StateAccess::write(StateKind kind, const Param& param, const ParamPart& part, const HostTensor& value) {
  WAM_CHECK(value.type() == (TensorType{DType::kF32, part.shape})) << part.name;
  if (!is_split(kind)) {
    memory_->write_region(region_of(kind, param), byte_offset(param, part, DType::kF32), value.data(),
                          value.size_bytes());
    return;
  }
  HostTensor high(DType::kBF16, part.shape), low(DType::kI16, part.shape);
  split(value, high, low);
  const int64_t offset = byte_offset(param, part, DType::kBF16);
  memory_->write_region(param.region, offset, high.data(), high.size_bytes());
  memory_->write_region(low_region(param.region), offset, low.data(), low.size_bytes());
}

}  // namespace wam::train
