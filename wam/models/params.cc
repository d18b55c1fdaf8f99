#include "wam/models/params.h"

#include <algorithm>
#include <cmath>

#include "wam/base/check.h"
#include "wam/base/hash.h"
#include "wam/base/philox.h"

namespace wam {
namespace {

int64_t align(int64_t elements) {
  return (elements + kParamAlignment - 1) / kParamAlignment * kParamAlignment;
}

bool same_parts(const std::vector<ParamPart>& a, const std::vector<ParamPart>& b) {
  return std::ranges::equal(a, b, [](const ParamPart& x, const ParamPart& y) {
    return x.name == y.name && x.shape == y.shape;
  });
}

}  // namespace

const Param* ParamSet::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &params_[found->second];
}

int64_t ParamSet::num_elements() const {
  int64_t total = 0;
  for (const Param& param : params_) total += param.shape.num_elements();
  return total;
}

int64_t ParamSet::num_padded_elements() const {
  int64_t total = 0;
  for (const FlatBuffer& buffer : buffers_) total += buffer.num_elements;
  return total;
}

const Param& ParamSet::define(std::string_view name, const Shape& shape, std::vector<ParamPart> parts,
                              int block) {
  if (const Param* known = find(name)) {
    if (known->shape == shape && same_parts(known->parts, parts)) return *known;
    throw GraphError({.where = std::string(name),
                      .what = "parameter is defined twice with different shapes",
                      .got = shape.to_string(),
                      .expected = known->shape.to_string()});
  }
  Param param{.name = std::string(name), .shape = shape, .parts = std::move(parts), .block = block};
  param.region = name_ + (block < 0 ? ".root" : ".block." + std::to_string(block));
  auto buffer = std::ranges::find(buffers_, param.region, &FlatBuffer::region);
  if (buffer == buffers_.end()) {
    buffers_.push_back({param.region, 0, block});
    buffer = buffers_.end() - 1;
  }
  param.offset_elements = buffer->num_elements;
  buffer->num_elements += align(shape.num_elements());
  index_[param.name] = params_.size();
  params_.push_back(std::move(param));
  return params_.back();
}

ValueId ParamUser::use(const Param& param) {
  const auto known = values_.find(param.name);
  if (known != values_.end()) return known->second;
  const StateRole role = set_.trainable() ? StateRole::kWeight : StateRole::kFrozen;
  const ValueId value = builder_.graph().add_state(
      set_.name() + "/" + param.name, {dtype_, param.shape},
      {param.region, param.offset_elements * size_bytes(dtype_), role});
  values_[param.name] = value;
  return value;
}

ValueId ParamUser::param(const std::string& name, const Shape& shape, const ParamInit& init, int block) {
  return param(name, shape, shape, init, block);
}

ValueId ParamUser::param(const std::string& name, const Shape& shape, const Shape& stored,
                         const ParamInit& init, int block) {
  WAM_CHECK(shape.num_elements() == stored.num_elements()) << name;
  return use(set_.define(name, shape, {{name, stored, 0, init}}, block));
}

ValueId ParamUser::stacked(const std::string& name, std::span<const std::string> part_names,
                           const Shape& part, const ParamInit& init, int block) {
  std::vector<int64_t> dims(part.dims().begin(), part.dims().end());
  dims[0] *= static_cast<int64_t>(part_names.size());
  std::vector<ParamPart> parts;
  for (const std::string& part_name : part_names) {
    parts.push_back({part_name, part, static_cast<int64_t>(parts.size()) * part.num_elements(), init});
  }
  return use(set_.define(name, Shape(dims), std::move(parts), block));
}

std::vector<std::pair<const Param*, ValueId>> ParamUser::used() const {
  std::vector<std::pair<const Param*, ValueId>> used;
  for (const Param& param : set_.params()) {
    const auto found = values_.find(param.name);
    if (found != values_.end()) used.push_back({&param, found->second});
  }
  return used;
}

std::string gradient_region(const std::string& region) { return region + ":grad"; }
std::string moment_region(const std::string& region, int which) {
  return region + (which == 0 ? ":m" : ":v");
}

std::string low_region(const std::string& region) { return region + ":low"; }

double uniform_bound(const ParamPart& part) {
  const ParamInit& init = part.init;
  const Shape& shape = part.shape;
  const int64_t rows = shape.ndim() ? shape[0] : 1;
  const int64_t fan_in = init.fan_in != 0 ? init.fan_in : shape.num_elements() / std::max<int64_t>(1, rows);
  const int64_t fan_out = init.fan_out != 0 ? init.fan_out : rows;
  switch (init.kind) {
    case InitKind::kZeros:
    case InitKind::kOnes: return 0;
    case InitKind::kNormal: return init.scale * std::sqrt(3.0);
    case InitKind::kXavierUniform: return init.scale * std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
    case InitKind::kUniformFanIn: return init.scale / std::sqrt(static_cast<double>(fan_in));
  }
  return 0;
}

bool is_uniform(const ParamPart& part) {
  return part.init.kind == InitKind::kXavierUniform || part.init.kind == InitKind::kUniformFanIn;
}

RandomStream init_stream(const ParamPart& part, uint64_t seed) {
  return {seed, RandomUse::kWeightInit, 0, hash64(part.name)};
}

namespace {

// Standard normals number 2 * block and 2 * block + 1, as Random::normal() gives them.
std::array<double, 2> normal_pair(const PhiloxBlock& words) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - RandomStream::uniform(words, 0)));
  const double angle = 2.0 * std::numbers::pi * RandomStream::uniform(words, 1);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

void initialise(const ParamPart& part, uint64_t seed, std::span<float> values) {
  if (part.init.kind == InitKind::kZeros || part.init.kind == InitKind::kOnes) {
    std::ranges::fill(values, part.init.kind == InitKind::kOnes ? 1.0f : 0.0f);
    return;
  }
  const RandomStream stream = init_stream(part, seed);
  const double high = uniform_bound(part), low = -high;
  const bool uniform = is_uniform(part);
  const auto count = static_cast<int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < (count + 1) / 2; ++block) {
    const PhiloxBlock words = stream.block(static_cast<uint64_t>(block));
    const std::array<double, 2> normals = uniform ? std::array<double, 2>{} : normal_pair(words);
    for (int64_t e = 2 * block; e < std::min(count, 2 * block + 2); ++e) {
      const auto half = static_cast<size_t>(e % 2);
      const double value = uniform ? low + (high - low) * RandomStream::uniform(words, static_cast<int>(half))
                                   : part.init.scale * normals[half];
      values[static_cast<size_t>(e)] = static_cast<float>(value);
    }
  }
}

}  // namespace wam
