#include "wam/train/state_access.h"

#include "wam/base/check.h"

namespace wam::train {
namespace {

int64_t byte_offset(const Param& param, const ParamPart& part) {
  return (param.offset_elements + part.offset_elements) * size_bytes(DType::kF32);
}

}  // namespace

std::string StateAccess::region(StateKind kind, const Param& param) {
  if (kind == StateKind::kWeight) return param.region;
  return moment_region(param.region, kind == StateKind::kFirstMoment ? 0 : 1);
}

HostTensor StateAccess::read(StateKind kind, const Param& param, const ParamPart& part) const {
  HostTensor value(DType::kF32, part.shape);
  memory_->read_region(region(kind, param), byte_offset(param, part), value.data(), value.size_bytes());
  return value;
}

void StateAccess::write(StateKind kind, const Param& param, const ParamPart& part, const HostTensor& value) {
  WAM_CHECK(value.type() == (TensorType{DType::kF32, part.shape})) << part.name;
  memory_->write_region(region(kind, param), byte_offset(param, part), value.data(), value.size_bytes());
}

}  // namespace wam::train
