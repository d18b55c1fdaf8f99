#include "wam/train/run_plan.h"

#include <fmt/format.h>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/data/sampler.h"
#include "wam/ops/cast.h"
#include "wam/ops/reshape.h"
#include "wam/ops/slice.h"
#include "wam/passes/common_subexpressions.h"
#include "wam/passes/dead_code.h"
#include "wam/train/device.h"
#include "wam/train/ranks.h"

namespace wam::train {
namespace {

void override_size(int64_t& size, int64_t given) {
  if (given != 0) size = given;
}

struct Picture {
  int64_t height, width;
};
Picture picture_of(const TrainConfig& c) {
  const data::Embodiment& e = c.dataset.embodiment;
  return {c.picture_height != 0 ? c.picture_height : e.tiled_height(),
          c.picture_width != 0 ? c.picture_width : e.tiled_width()};
}

// Complains in the user's terms, before the encoder does in its own.
void check_picture(const Picture& p, int64_t stride) {
  const bool fits = p.height >= stride && p.width >= stride && p.height % stride == 0 && p.width % stride == 0;
  if (fits) return;
  const auto near = [stride](int64_t side) { return std::max(stride, (side + stride / 2) / stride * stride); };
  throw ConfigError({.where = "picture_height, picture_width",
                     .what = "the model cannot take a picture of this size",
                     .got = fmt::format("{} x {}", p.height, p.width),
                     .expected = fmt::format("multiples of the autoencoder's stride, {}", stride),
                     .remedy = fmt::format("Set picture_height: {} and picture_width: {}, or other "
                                           "view_height and view_width of the embodiment.",
                                           near(p.height), near(p.width))});
}

// Tables of positions and timesteps are made for every token when the graph is built.
void check_length(const DitConfig& m) {
  constexpr int64_t kMaxTokens = 1 << 20;
  if (m.sequence_length() <= kMaxTokens) return;
  throw ConfigError({.where = "model",
                     .what = "a sample has too many tokens",
                     .got = std::to_string(m.sequence_length()),
                     .expected = "at most " + std::to_string(kMaxTokens),
                     .remedy = "Lower num_blocks, the picture's size or the embodiment's action_horizon."});
}

Program lower_encoder(Graph& graph, const Target& target, const TrainConfig& config,
                      std::initializer_list<const ParamSet*> sets) {
  merge_common_subexpressions(graph);
  remove_dead_code(graph);
  const Sharding sharding = encoder_sharding(config);
  if (sharding.divides_encoders()) {
    shard(graph, encoder_shard_options(sharding, std::span(sets.begin(), sets.size())));
  }
  return lower(graph, target, {.input_region = kEncoderInputs});
}

Program picture_program(const TrainConfig& config, const DitConfig& model, const VaeConfig& vae,
                        const ClipConfig& clip, EncoderPrograms& out, const Target& target,
                        const EncoderTypes& types) {
  Graph graph("encode_pictures");
  Builder b(graph);
  const data::Embodiment& e = config.dataset.embodiment;
  const Picture size = picture_of(config);
  const int64_t frames = 4 * (model.num_frames() - 1) + 1, batch = config.vae.sub_batch;
  const ValueId pixels = graph.add_input(
      "frames", {DType::kU8, Shape{batch, frames, e.tiled_height(), e.tiled_width(), 3}});
  ParamUser vae_params(b, *out.vae, types.compute), clip_params(b, *out.clip, types.compute);
  const ValueId video = frames_to_video(b, pixels, size.height, size.width);
  graph.add_output("latents", vae_encode(vae_params, vae, video));
  const ValueId first = slice(b, video, 1, 0, 1);
  if (model.has_y()) {
    graph.add_output("y", vae_first_frame_condition(vae_params, vae, first, frames));
  }
  const ValueId picture = reshape(b, first, Shape{batch, size.height, size.width, 3});
  const ValueId tokens = build_clip(clip_params, clip, clip_preprocess(b, clip, picture));
  graph.add_output("clip", cast(b, tokens, types.out));
  return lower_encoder(graph, target, config, {out.vae.get(), out.clip.get()});
}

Program prompt_program(const TrainConfig& config, const DitConfig& model, const Umt5Config& text, EncoderPrograms& out,
                       const Target& target, const EncoderTypes& types) {
  Graph graph("encode_prompt");
  Builder b(graph);
  ParamUser params(b, *out.text, types.compute);
  const ValueId ids = graph.add_input("ids", {DType::kI32, Shape{1, model.text_len}});
  const ValueId mask = graph.add_input("mask", {DType::kF32, Shape{1, model.text_len}});
  graph.add_output("prompt", cast(b, build_umt5(params, text, ids, mask).prompt, types.out));
  return lower_encoder(graph, target, config, {out.text.get()});
}

}  // namespace

VaeConfig vae_config(const VaeSection& s) {
  const bool wan22 = s.kind == "wan22";
  VaeConfig c = wan22 ? vae_wan22() : vae_wan21();
  const bool published = s.dim == 0 && s.decoder_dim == 0 && s.latent_channels == 0;
  override_size(c.dim, s.dim);
  c.dec_dim = s.decoder_dim != 0 ? s.decoder_dim : (s.dim != 0 ? s.dim : c.dec_dim);
  override_size(c.z_dim, s.latent_channels);
  if (!published || s.standardise) {
    c.mean.clear();
    c.std.clear();
  }
  check(c);
  return c;
}

Umt5Config umt5_config(const TextSection& s) {
  Umt5Config c = umt5_xxl();
  override_size(c.vocab, s.vocab);
  override_size(c.dim, s.dim);
  c.dim_attn = s.attn_dim != 0 ? s.attn_dim : (s.dim != 0 ? s.dim : c.dim_attn);
  override_size(c.dim_ffn, s.ffn_dim);
  override_size(c.heads, s.heads);
  override_size(c.layers, s.layers);
  check(c);
  return c;
}

ClipConfig clip_config(const ClipSection& s) {
  ClipConfig c = clip_vit_h();
  override_size(c.image_size, s.image_size);
  override_size(c.patch_size, s.patch_size);
  override_size(c.dim, s.dim);
  override_size(c.heads, s.heads);
  override_size(c.layers, s.layers);
  check(c);
  return c;
}

DitConfig resolve_model(const TrainConfig& config) {
  if (config.dataset.embodiment.tag.empty()) {
    throw ConfigError({.where = "dataset.embodiment",
                       .what = "no robot is named",
                       .expected = "a built-in robot or a block of keys",
                       .remedy = "Built in: " + join(data::embodiment_preset_names(), ", ") + "."});
  }
  DitConfig m = config.model.dit;
  const VaeConfig vae = vae_config(config.vae);
  const ClipConfig clip = clip_config(config.clip);
  const Picture size = picture_of(config);
  m.actions_per_block = config.dataset.embodiment.action_horizon;
  m.text_dim = umt5_config(config.text_encoder).dim;
  m.clip_dim = clip.dim;
  m.clip_tokens = clip.tokens();
  m.latent_channels = vae.z_dim;
  m.y_channels = m.has_y() ? kConditionMaskChannels + vae.z_dim : 0;
  check_picture(size, vae.spatial_stride());
  check_clip(vae, 4 * (m.num_frames() - 1) + 1, size.height, size.width);
  m.latent_height = size.height / vae.spatial_stride();
  m.latent_width = size.width / vae.spatial_stride();
  check(m);
  check_length(m);
  // K and A must make windows; complains before any file is opened.
  data::WindowSampler(data::window_rules(config.dataset.embodiment,
                                         data::parse_sampling_mode(config.dataset.sampling_mode),
                                         m.num_blocks));
  return m;
}

StepOptions step_options(const TrainConfig& config, const DitConfig& model, int64_t prompt_tokens) {
  StepOptions o;
  o.model = model;
  o.shape.batch = config.micro_batch_size;
  o.shape.text_tokens = prompt_tokens;
  o.shape.timesteps = timestep_layout(config.noise);
  // Which dataset learns how fast is asked of mixtures only.
  o.shape.sample_losses = config.dataset.mixture.size() > 1;
  o.shape.clean_context = !withholds(config, kCleanContext);
  o.accumulate = config.accumulate();
  o.sharding = sharding_of(config);
  o.dtype = config.dtype;
  o.gradient_dtype = config.gradient_dtype;
  o.fuse = config.fuse;
  o.recompute = config.recompute;
  o.passes.disable = config.disable_passes;
  o.adamw = config.optimizer.adamw;
  o.clip_grad = config.optimizer.clip_grad;
  return o;
}

EncoderPrograms build_encoders(const TrainConfig& config, const DitConfig& model, const VaeConfig& vae,
                               const Target& target, const EncoderTypes& types) {
  EncoderPrograms out{.vae = std::make_shared<ParamSet>("vae", false),
                      .clip = std::make_shared<ParamSet>("clip", false),
                      .text = std::make_shared<ParamSet>("text", false)};
  out.pictures = picture_program(config, model, vae, clip_config(config.clip), out, target, types);
  out.prompt = prompt_program(config, model, umt5_config(config.text_encoder), out, target, types);
  return out;
}

std::vector<const Program*> RunPlan::programs() const {
  std::vector<const Program*> all = step.all();
  all.insert(all.end(), {&encoders.pictures, &encoders.prompt});
  return all;
}

EncoderTypes encoder_types(const TrainConfig& config) {
  return {is_cuda(encoder_device(config)) ? config.dtype : DType::kF32, config.dtype};
}

const std::string& encoder_device(const TrainConfig& config) {
  return config.encoder_device.empty() ? config.device : config.encoder_device;
}

namespace {

StepPrograms plan_step(const StepOptions& options, const Target& target, const PlanSite& site,
                       std::span<const Program* const> others) {
  if (!site.limit) return build_step(options, target);
  if (fits_device(options.recompute)) return build_fitting_step(options, target, *site.limit, others);
  StepPrograms step = build_step(options, target);
  check_fits(options, step, target, *site.limit, others);
  return step;
}

}  // namespace

RunPlan plan_run(const TrainConfig& config, const PlanSite& site) {
  RunPlan plan;
  plan.model = resolve_model(config);
  plan.encoders_apart = encoder_device(config) != config.device;
  int64_t prompt_tokens = site.prompt_tokens;
  if (prompt_tokens == 0) prompt_tokens = config.text_encoder.prompt_tokens;
  if (prompt_tokens == 0) prompt_tokens = plan.model.text_len;
  plan.encoders = build_encoders(config, plan.model, vae_config(config.vae),
                                 target_of(encoder_device(config)), encoder_types(config));
  const Program* const frozen[] = {&plan.encoders.pictures, &plan.encoders.prompt};
  const std::span<const Program* const> beside(frozen, plan.encoders_apart ? 0 : 2);
  plan.step = plan_step(step_options(config, plan.model, prompt_tokens), target_of(config.device), site, beside);
  std::vector<const Program*> together = plan.step.all();
  together.insert(together.end(), beside.begin(), beside.end());
  plan.memory = combine(together);
  if (plan.encoders_apart) plan.encoder_memory = combine(frozen);
  return plan;
}

std::string describe(const RunPlan& plan) {
  const ArenaReport& arena = plan.step.first.arena;
  std::string text = fmt::format(
      "model     {} trainable parameters, {} tokens a sample\n"
      "memory    {} in all\n",
      plan.step.params->num_elements(), plan.model.sequence_length(),
      format_bytes(plan.memory.total_bytes()));
  for (const auto& [category, bytes] : plan.memory.by_category) {
    if (bytes > 0) text += fmt::format("  {:<12} {}\n", category, format_bytes(bytes));
  }
  if (plan.encoders_apart) {
    text += fmt::format("encoders  {} on a device of their own\n", format_bytes(plan.encoder_memory.total_bytes()));
  }
  text += fmt::format("step      arena {}, lower bound {}, fragmentation {:.1f} %, peak at {}\n",
                      format_bytes(arena.peak), format_bytes(arena.lower_bound),
                      100 * arena.fragmentation(),
                      plan.step.first.steps[static_cast<size_t>(arena.peak_step)].label);
  text += fmt::format("recompute kept for backward {} of {}, {:.3g} FLOPs computed again\n",
                      format_bytes(plan.step.recompute.kept_bytes_after),
                      format_bytes(plan.step.recompute.kept_bytes_before),
                      plan.step.recompute.recomputed_flops);
  text += "programs\n";
  for (const Program* program : plan.programs()) {
    text += fmt::format("  {:<16} {:>6} steps  arena {:>10}  {:.3e} FLOPs  {:.3e} bytes moved\n",
                        program->name, program->steps.size(), format_bytes(program->arena.peak),
                        program->cost.flops, program->cost.bytes);
  }
  return text;
}

}  // namespace wam::train
