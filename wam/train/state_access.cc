#include "wam/train/state_access.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "wam/base/check.h"
#include "wam/tensor/split_float.h"

namespace wam::train {
namespace {

std::string region_of(StateKind kind, const Param& param) {
  if (kind == StateKind::kWeight) return param.region;
  return moment_region(param.region, kind == StateKind::kFirstMoment ? 0 : 1);
}

}  // namespace

StateAccess::Range StateAccess::Range::operator&(const Range& other) const {
  const int64_t from = std::max(begin, other.begin);
  return {from, std::max(from, std::min(end, other.end))};
}

bool StateAccess::is_divided(StateKind kind) const {
  const bool master = kind != StateKind::kWeight || is_split(kind);
  return master ? sharding_.divides_optimizer() : sharding_.divides_weights();
}

const FlatBuffer& StateAccess::buffer_of(const Param& param) const {
  const auto found = std::ranges::find(params_.buffers(), param.region, &FlatBuffer::region);
  WAM_CHECK(found != params_.buffers().end()) << param.region;
  return *found;
}

StateAccess::Range StateAccess::kept(const FlatBuffer& buffer, bool divided, int shard) const {
  if (!divided) return {0, buffer.num_elements};
  const int64_t elements = sharding_.part_elements(buffer);
  return {shard * elements, (shard + 1) * elements};
}

void StateAccess::read_piece(const std::string& region, const FlatBuffer& buffer, bool divided,
                             Range range, DType dtype, void* to) const {
  const Range own = kept(buffer, divided, sharding_.mesh.shard());
  WAM_CHECK((range & own).size() == range.size()) << region << " is not kept here";
  const int64_t bytes = size_bytes(dtype);
  memory_->read_region(region, (range.begin - own.begin) * bytes, to, range.size() * bytes);
}

void StateAccess::write_piece(const std::string& region, const FlatBuffer& buffer, bool divided,
                              Range range, DType dtype, const void* from) {
  const Range own = kept(buffer, divided, sharding_.mesh.shard()), piece = range & own;
  if (piece.size() == 0) return;
  const int64_t bytes = size_bytes(dtype);
  memory_->write_region(region, (piece.begin - own.begin) * bytes,
                        static_cast<const std::byte*>(from) + (piece.begin - range.begin) * bytes,
                        piece.size() * bytes);
}

std::vector<float> StateAccess::read_range(StateKind kind, const Param& param, Range range) const {
  const FlatBuffer& buffer = buffer_of(param);
  std::vector<float> values(static_cast<size_t>(range.size()));
  if (!is_split(kind)) {
    read_piece(region_of(kind, param), buffer, is_divided(kind), range, DType::kF32, values.data());
    return values;
  }
  std::vector<uint16_t> high(values.size());
  std::vector<int16_t> low(values.size());
  read_piece(param.region, buffer, sharding_.divides_weights(), range, DType::kBF16, high.data());
  read_piece(low_region(param.region), buffer, is_divided(kind), range, DType::kI16, low.data());
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < values.size(); ++i) values[i] = join_float(high[i], low[i]);
  return values;
}

HostTensor StateAccess::read(StateKind kind, const Param& param, const ParamPart& part) const {
  HostTensor value(DType::kF32, part.shape);
  const int64_t begin = param.offset_elements + part.offset_elements;
  const std::vector<float> values = read_range(kind, param, {begin, begin + value.num_elements()});
  std::memcpy(value.data(), values.data(), static_cast<size_t>(value.size_bytes()));
  return value;
}

HostTensor StateAccess::collect(StateKind kind, const Param& param, const ParamPart& part,
                                int owner, dist::Transport& transport) const {
  const dist::Mesh& mesh = sharding_.mesh;
  if (!is_divided(kind)) return mesh.rank == owner ? read(kind, param, part) : HostTensor();
  const FlatBuffer& buffer = buffer_of(param);
  const int64_t begin = param.offset_elements + part.offset_elements;
  const Range wanted{begin, begin + part.shape.num_elements()};
  HostTensor value;
  if (mesh.rank == owner) value = HostTensor(DType::kF32, part.shape);
  std::vector<float> own;
  std::vector<dist::Outgoing> send;
  std::vector<dist::Incoming> receive;
  // The first replica has everything: its ranks are 0 ... shard_size - 1.
  for (int shard = 0; shard < mesh.shard_size; ++shard) {
    const Range piece = wanted & kept(buffer, true, shard);
    if (piece.size() == 0) continue;
    const int64_t bytes = piece.size() * int64_t{sizeof(float)};
    float* to =
        mesh.rank == owner ? value.as<float>().data() + (piece.begin - wanted.begin) : nullptr;
    if (mesh.rank == shard) own = read_range(kind, param, piece);
    if (mesh.rank == shard && mesh.rank == owner) {
      std::memcpy(to, own.data(), static_cast<size_t>(bytes));
    } else if (mesh.rank == shard) {
      send.push_back({owner, own.data(), bytes});
    } else if (mesh.rank == owner) {
      receive.push_back({shard, to, bytes});
    }
  }
  if (!send.empty() || !receive.empty()) transport.exchange(send, receive);
  return value;
}

std::string StateAccess::first_non_finite() const {
  for (const Param& param : params_.params()) {
    const Range whole{param.offset_elements, param.offset_elements + param.shape.num_elements()};
    for (const StateKind kind : {StateKind::kWeight, StateKind::kFirstMoment, StateKind::kSecondMoment}) {
      const Range own = whole & kept(buffer_of(param), is_divided(kind), sharding_.mesh.shard());
      if (own.begin >= own.end) continue;
      const std::vector<float> values = read_range(kind, param, own);
      if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) return param.name;
    }
  }
  return "";
}

bool StateAccess::draw(const Param& param, const ParamPart& part, uint64_t seed) {
  if (!is_uniform(part) || is_divided(StateKind::kWeight) || sharding_.divides_weights()) return false;
  const double bound = uniform_bound(part);
  const bool split = is_split(StateKind::kWeight);
  memory_->draw_uniform({.region = param.region,
                         .offset = param.offset_elements + part.offset_elements,
                         .dtype = dtype_,
                         .low_region = split ? low_region(param.region) : ""},
                        part.shape.num_elements(), init_stream(part, seed), -bound, bound);
  return true;
}

void StateAccess::write(StateKind kind, const Param& param, const ParamPart& part,
                        const HostTensor& value) {
  WAM_CHECK(value.type() == (TensorType{DType::kF32, part.shape})) << part.name;
  const FlatBuffer& buffer = buffer_of(param);
  const int64_t begin = param.offset_elements + part.offset_elements;
  const Range range{begin, begin + value.num_elements()};
  if (!is_split(kind)) {
    write_piece(region_of(kind, param), buffer, is_divided(kind), range, DType::kF32, value.data());
    return;
  }
  const auto in = value.as<float>();
  std::vector<uint16_t> high(in.size());
  std::vector<int16_t> low(in.size());
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < in.size(); ++i) {
    const SplitFloat halves = split_float(in[i]);
    high[i] = halves.high;
    low[i] = halves.low;
  }
  write_piece(param.region, buffer, sharding_.divides_weights(), range, DType::kBF16, high.data());
  write_piece(low_region(param.region), buffer, is_divided(kind), range, DType::kI16, low.data());
}

}  // namespace wam::train
