#include "wam/train/sharding.h"

namespace wam::train {

std::string_view name(Strategy strategy) {
  switch (strategy) {
    case Strategy::kNone:
      return "none";
    case Strategy::kOptimizer:
      return "optimizer";
    case Strategy::kGradients:
      return "gradients";
    case Strategy::kFull:
      return "full";
  }
  return "";
}

ShardOptions encoder_shard_options(const Sharding& sharding, std::span<const ParamSet* const> sets) {
  ShardOptions options{.group = sharding.group(sharding.encoder_axis()),
                       .buffers = {},
                       .weights = true,
                       .prefetch = sharding.prefetch};
  for (const ParamSet* set : sets) {
    for (const FlatBuffer& buffer : set->buffers())
      options.buffers.push_back({buffer.region, "", buffer.num_elements, buffer.block});
  }
  return options;
}

std::optional<ShardOptions> shard_options(const Sharding& sharding, const ParamSet& params,
                                          bool accumulate, bool last) {
  const bool early = last && sharding.sums_early();
  if (!sharding.divides_gradients() && !early) return std::nullopt;
  ShardOptions options{.group = sharding.group(early ? sharding.early_axis() : dist::Axis::kShard),
                       .buffers = {},
                       .weights = sharding.divides_weights(),
                       .reshard_after_forward = sharding.reshard_after_forward,
                       .prefetch = sharding.prefetch,
                       .gradients = true,
                       .scatter = sharding.divides_optimizer(),
                       .wire = sharding.reduce_dtype,
                       .accumulate = accumulate && !early};
  for (const FlatBuffer& buffer : params.buffers()) {
    options.buffers.push_back(
        {buffer.region, gradient_region(buffer.region), buffer.num_elements, buffer.block});
  }
  return options;
}

}  // namespace wam::train
