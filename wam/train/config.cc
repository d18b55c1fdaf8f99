#include "wam/train/config.h"

#include <fmt/format.h>

#include <limits>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/strings.h"
#include "wam/train/config_section.h"
#include "wam/train/device.h"

namespace wam::train {
namespace {

const std::vector<std::string> kNoiseNames = {"uniform", "beta", "decoupled"};
const std::vector<std::string> kRecomputeNames = {"none", "full", "auto", "list"};

void model_fields(Section& s, ModelSection& m) {
  s.field("preset", m.preset);
  if (s.reading()) {
    const size_t which = choose("model.preset", m.preset, {"5b", "14b", "custom"});
    m.dit = which == 1 ? dit_14b() : dit_5b();
  }
  s.field("weights", m.weights);
  s.field("base", m.base);
  DitConfig& d = m.dit;
  s.field("dim", d.dim);
  s.field("layers", d.layers);
  s.field("heads", d.heads);
  s.field("ffn_dim", d.ffn_dim);
  s.field("text_len", d.text_len);
  s.field("action_dim", d.action_dim);
  s.field("state_dim", d.state_dim);
  s.field("coder_dim", d.coder_dim);
  s.field("num_blocks", d.num_blocks);
  s.field("max_chunk_size", d.max_chunk_size);
  bool first_frame = d.has_y();
  s.field("concat_first_frame", first_frame);
  if (s.reading()) d.y_channels = first_frame ? 1 : 0;  // the real number follows from the VAE
}
const std::vector<std::string> kModelKeys = {
    "preset",    "weights",    "base",      "dim",       "layers",    "heads",          "ffn_dim",
    "text_len",  "action_dim", "state_dim", "coder_dim", "num_blocks",     "max_chunk_size",
    "concat_first_frame"};

void vae_fields(Section& s, VaeSection& v) {
  s.field("kind", v.kind);
  if (s.reading()) choose("vae.kind", v.kind, {"wan22", "wan21"});
  s.field("weights", v.weights);
  s.field("dim", v.dim);
  s.field("decoder_dim", v.decoder_dim);
  s.field("latent_channels", v.latent_channels);
  s.field("standardise", v.standardise);
  s.field("sub_batch", v.sub_batch);
}
const std::vector<std::string> kVaeKeys = {"kind",        "weights",         "dim",
                                           "decoder_dim", "latent_channels", "standardise",
                                           "sub_batch"};

void text_fields(Section& s, TextSection& t) {
  s.field("weights", t.weights);
  s.field("tokenizer", t.tokenizer);
  s.field("vocab", t.vocab);
  s.field("dim", t.dim);
  s.field("attn_dim", t.attn_dim);
  s.field("ffn_dim", t.ffn_dim);
  s.field("heads", t.heads);
  s.field("layers", t.layers);
  s.field("prompt_tokens", t.prompt_tokens);
}
const std::vector<std::string> kTextKeys = {"weights", "tokenizer", "vocab", "dim", "attn_dim",
                                            "ffn_dim", "heads", "layers", "prompt_tokens"};

void clip_fields(Section& s, ClipSection& c) {
  s.field("weights", c.weights);
  s.field("image_size", c.image_size);
  s.field("patch_size", c.patch_size);
  s.field("dim", c.dim);
  s.field("heads", c.heads);
  s.field("layers", c.layers);
}
const std::vector<std::string> kClipKeys = {"weights", "image_size", "patch_size",
                                            "dim",     "heads",      "layers"};

void optimizer_fields(Section& s, OptimizerSection& o) {
  s.field("lr", o.lr);
  s.field("min_lr", o.min_lr);
  s.field("weight_decay", o.weight_decay);
  s.field("beta1", o.adamw.beta1);
  s.field("beta2", o.adamw.beta2);
  s.field("eps", o.adamw.eps);
  s.field("warmup_ratio", o.warmup_ratio);
  s.field("clip_grad", o.clip_grad);
  s.field("non_finite", o.non_finite);
  if (s.reading()) choose("optimizer.non_finite", o.non_finite, {"skip", "stop"});
}
const std::vector<std::string> kOptimizerKeys = {"lr",  "min_lr",       "weight_decay", "beta1",    "beta2",
                                                 "eps", "warmup_ratio", "clip_grad",    "non_finite"};

void sharding_fields(Section& s, ShardingSection& d) {
  s.field("strategy", d.strategy);
  if (s.reading()) {
    choose("sharding.strategy", d.strategy, {"none", "optimizer", "gradients", "full", "hybrid"});
  }
  s.field("shard_size", d.shard_size);
  s.field("reshard_after_forward", d.reshard_after_forward);
  s.field("prefetch", d.prefetch);
  int wire = d.reduce_dtype == DType::kBF16 ? 1 : 0;
  s.choice("reduce_dtype", wire, {"f32", "bf16"});
  d.reduce_dtype = wire == 1 ? DType::kBF16 : DType::kF32;
  s.field("overlap", d.overlap);
  s.field("encoders", d.encoders);
  if (s.reading()) choose("sharding.encoders", d.encoders, {"replicated", "sharded"});
  s.field("capture", d.capture);
  if (s.reading()) choose("sharding.capture", d.capture, {"inside", "cut"});
  s.field("bucket_bytes", d.bucket_bytes);
  s.field("silence_seconds", d.silence_seconds);
  s.field("hang_seconds", d.hang_seconds);
}
const std::vector<std::string> kShardingKeys = {"strategy",     "shard_size",   "reshard_after_forward",
                                                "prefetch",     "reduce_dtype", "overlap", "encoders", "capture",
                                                "bucket_bytes", "silence_seconds", "hang_seconds"};

void checkpoint_fields(Section& s, CheckpointSection& c) {
  s.field("async", c.async);
  s.field("keep_every", c.keep_every);
  s.field("best", c.best);
  s.field("retries", c.retries);
  s.field("reserve_bytes", c.reserve_bytes);
}
const std::vector<std::string> kCheckpointKeys = {"async", "keep_every", "best", "retries", "reserve_bytes"};

void cache_fields(Section& s, CacheSection& c) {
  s.field("folder", c.folder);
  s.field("pictures", c.pictures);
  s.field("draws", c.draws);
}
const std::vector<std::string> kCacheKeys = {"folder", "pictures", "draws"};

void type_field(Section& s, const std::string& key, DType& value) {
  int index = value == DType::kBF16 ? 1 : 0;
  s.choice(key, index, {"f32", "bf16"});
  value = index == 1 ? DType::kBF16 : DType::kF32;
}

void device_fields(Section& s, TrainConfig& c) {
  s.field("device", c.device);
  s.field("encoder_device", c.encoder_device);
  if (s.reading()) {
    check_device_name("device", c.device);
    if (!c.encoder_device.empty()) check_device_name("encoder_device", c.encoder_device);
    c.dtype = is_cuda(c.device) ? DType::kBF16 : DType::kF32;
  }
  type_field(s, "dtype", c.dtype);
  type_field(s, "gradient_dtype", c.gradient_dtype);
  int exec = c.exec == ExecMode::kStream ? 1 : 0;
  s.choice("exec", exec, {"graph", "stream"});
  c.exec = exec == 1 ? ExecMode::kStream : ExecMode::kGraph;
  s.field("tune", c.tune);
  s.field("algorithms", c.algorithms);
}

void root_fields(Section& s, TrainConfig& c) {
  s.field("run_dir", c.run_dir);
  s.field("seed", c.seed);
  device_fields(s, c);
  s.field("threads", c.threads);
  s.field("steps", c.steps);
  s.field("micro_batch_size", c.micro_batch_size);
  s.field("global_batch_size", c.global_batch_size);
  s.field("picture_height", c.picture_height);
  s.field("picture_width", c.picture_width);
  int noise = static_cast<int>(c.noise);
  s.choice("noise", noise, kNoiseNames);
  c.noise = static_cast<NoiseOption>(noise);
  s.field("fix_draw", c.fix_draw);
  s.field("withhold", c.withhold);
  int policy = static_cast<int>(c.recompute.policy);
  s.choice("recompute", policy, {"none", "full", "auto", "list"});
  c.recompute.policy = static_cast<RecomputePolicy>(policy);
  s.field("recompute_budget_bytes", c.recompute.budget_bytes);
  s.field("recompute_drop", c.recompute.drop);
  s.field("fuse", c.fuse);
  s.field("disable_passes", c.disable_passes);
  s.field("save_every", c.save_every);
  s.field("keep_last", c.keep_last);
  s.field("validate_every", c.validate_every);
  s.field("validation_samples", c.validation_samples);
  s.field("validation_pictures", c.validation_pictures);
  s.field("log_every", c.log_every);
  s.field("peak_flops", c.peak_flops);
  s.field("log_samples", c.log_samples);
}
const std::vector<std::string> kRootKeys = {
    "run_dir",        "seed",             "device",         "encoder_device", "dtype",
    "gradient_dtype", "exec", "tune", "algorithms", "threads",        "steps",
    "micro_batch_size", "global_batch_size", "picture_height", "picture_width", "noise",
    "fix_draw",       "withhold",         "recompute",        "recompute_budget_bytes", "recompute_drop", "fuse",
    "disable_passes", "save_every",       "keep_last",      "validate_every", "validation_samples",
    "validation_pictures", "peak_flops",  "checkpoint",     "cache",
    "log_every",      "log_samples",      "model",            "vae",            "text_encoder",   "clip",
    "dataset",        "optimizer",        "sharding"};

template <typename T, typename F>
void read_section(const YamlFields& root, const std::string& key, const std::vector<std::string>& keys,
                  T& value, const F& fields) {
  const YAML::Node node = root.has(key) ? root.node(key) : YAML::Node(YAML::NodeType::Map);
  Section section(node, key, keys);
  fields(section, value);
}

template <typename T, typename F>
std::string write_section(const std::string& key, T& value, const F& fields) {
  Section section("  ");
  fields(section, value);
  return key + ":\n" + section.text();
}

// A number that is wrong by magnitudes must be an error here, not a plan that eats the machine.
constexpr int64_t kMaxWidth = 1 << 17, kMaxLayers = 1024, kMaxTokens = 1 << 16, kMaxCount = 1 << 20;
constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

struct IntRange {
  const char* key;
  int64_t value, low, high;
};

void check_ranges(std::initializer_list<IntRange> ranges) {
  for (const IntRange& r : ranges) {
    if (r.value < r.low) {
      fail(r.key, "value is too small", std::to_string(r.value), "at least " + std::to_string(r.low),
           "Choose a larger one.");
    }
    if (r.value > r.high) {
      fail(r.key, "value is too large", std::to_string(r.value), "at most " + std::to_string(r.high),
           "Choose a smaller one.");
    }
  }
}

void check_sizes(const TrainConfig& c) {
  const DitConfig& m = c.model.dit;
  const TextSection& t = c.text_encoder;
  check_ranges({{"model.dim", m.dim, 1, kMaxWidth},
                {"model.layers", m.layers, 1, kMaxLayers},
                {"model.heads", m.heads, 1, kMaxWidth},
                {"model.ffn_dim", m.ffn_dim, 1, kMaxWidth},
                {"model.text_len", m.text_len, 1, kMaxTokens},
                {"model.action_dim", m.action_dim, 1, kMaxWidth},
                {"model.state_dim", m.state_dim, 1, kMaxWidth},
                {"model.coder_dim", m.coder_dim, 1, kMaxWidth},
                {"model.num_blocks", m.num_blocks, 1, kMaxLayers},
                {"model.max_chunk_size", m.max_chunk_size, -1, kMaxLayers},
                {"picture_height", c.picture_height, 0, kMaxTokens},
                {"picture_width", c.picture_width, 0, kMaxTokens}});
  check_ranges({{"vae.dim", c.vae.dim, 0, kMaxWidth},
                {"vae.decoder_dim", c.vae.decoder_dim, 0, kMaxWidth},
                {"vae.latent_channels", c.vae.latent_channels, 0, kMaxWidth},
                {"vae.sub_batch", c.vae.sub_batch, 1, kMaxLayers},
                {"text_encoder.vocab", t.vocab, 0, int64_t{1} << 24},
                {"text_encoder.dim", t.dim, 0, kMaxWidth},
                {"text_encoder.attn_dim", t.attn_dim, 0, kMaxWidth},
                {"text_encoder.ffn_dim", t.ffn_dim, 0, kMaxWidth},
                {"text_encoder.heads", t.heads, 0, kMaxWidth},
                {"text_encoder.layers", t.layers, 0, kMaxLayers},
                {"text_encoder.prompt_tokens", t.prompt_tokens, 0, m.text_len},
                {"clip.image_size", c.clip.image_size, 0, kMaxTokens},
                {"clip.patch_size", c.clip.patch_size, 0, kMaxTokens},
                {"clip.dim", c.clip.dim, 0, kMaxWidth},
                {"clip.heads", c.clip.heads, 0, kMaxWidth},
                {"clip.layers", c.clip.layers, 0, kMaxLayers}});
}

void check_run(const TrainConfig& c) {
  check_ranges({{"steps", c.steps, 1, kAny},
                {"micro_batch_size", c.micro_batch_size, 1, kMaxTokens},
                {"global_batch_size", c.global_batch_size, 1, kMaxCount},
                {"threads", c.threads, 0, kMaxLayers},
                {"save_every", c.save_every, 0, kAny},
                {"keep_last", c.keep_last, 1, kAny},
                {"validate_every", c.validate_every, 0, kAny},
                {"validation_samples", c.validation_samples, 1, kMaxCount},
                {"validation_pictures", c.validation_pictures, 0, 64},
                {"log_every", c.log_every, 1, kAny},
                {"checkpoint.keep_every", c.checkpoint.keep_every, 0, kAny},
                {"checkpoint.retries", c.checkpoint.retries, 0, 16},
                {"checkpoint.reserve_bytes", c.checkpoint.reserve_bytes, 0, kAny},
                {"cache.draws", c.cache.draws, 0, 1 << 16},
                {"sharding.shard_size", c.sharding.shard_size, 0, 1 << 16},
                {"sharding.prefetch", c.sharding.prefetch, 0, kMaxLayers},
                {"sharding.bucket_bytes", c.sharding.bucket_bytes, 1 << 10, int64_t{1} << 32},
                {"dataset.num_workers", c.dataset.num_workers, 1, kMaxLayers},
                {"dataset.prefetch_batches", c.dataset.prefetch_batches, 1, kMaxLayers}});
  if (c.global_batch_size % c.micro_batch_size != 0) {
    fail("global_batch_size", "micro batches do not add up to it", std::to_string(c.global_batch_size),
         "a multiple of micro_batch_size = " + std::to_string(c.micro_batch_size),
         "Choose e.g. global_batch_size=" +
             std::to_string((c.global_batch_size / c.micro_batch_size + 1) * c.micro_batch_size) + ".");
  }
}

// A picture that is augmented anew every time is never asked for again.
void check_cache(const TrainConfig& c) {
  bool augmented = false;
  for (const SourceSection& source : c.dataset.sources()) {
    const data::PictureOptions& picture = source.embodiment.picture;
    augmented = augmented || picture.crop_scale < 1 || picture.jitter.any();
  }
  if (!c.cache.pictures) return;
  if (c.cache.folder.empty()) {
    fail("cache.pictures", "there is no folder to keep them in", "an empty cache.folder", "a path",
         "Set cache.folder.");
  }
  if (augmented && c.cache.draws == 0) {
    fail("cache.pictures", "pictures are cropped or coloured anew every time: none would be met again",
         "cache.draws 0", "a number of draws for each window",
         "Set cache.draws: 4, say, or crop_scale: 1 and color_jitter: false.");
  }
}

void check_types(const TrainConfig& c) {
  if (c.gradient_dtype == DType::kBF16 && c.dtype == DType::kF32) {
    fail("gradient_dtype", "gradients cannot be kept in less than the model computes in", "bf16",
         "f32 beside dtype: f32", "Set dtype: bf16 too, or leave gradient_dtype out.");
  }
}

void check_withheld(const TrainConfig& c) {
  for (const std::string& what : c.withhold) {
    choose("withhold", what, {kCleanContext, kStates, kInstructions});
    if (what != kCleanContext && c.micro_batch_size == 1) {
      fail("withhold", "a micro-batch of one sample has no other sample's " + what + " to give it", what,
           "micro_batch_size of at least 2", "Raise micro_batch_size.");
    }
  }
}

void check_numbers(const TrainConfig& c) {
  const OptimizerSection& o = c.optimizer;
  const auto demand = [](bool fine, const char* key, double value, const char* rule) {
    if (!fine) fail(std::string("optimizer.") + key, "value is out of range", fmt::format("{}", value), rule);
  };
  demand(o.lr >= 0 && std::isfinite(o.lr), "lr", o.lr, "a finite number >= 0");
  demand(o.min_lr >= 0 && o.min_lr <= o.lr, "min_lr", o.min_lr, "0 to lr");
  demand(o.weight_decay >= 0, "weight_decay", o.weight_decay, ">= 0");
  demand(o.adamw.beta1 >= 0 && o.adamw.beta1 < 1, "beta1", o.adamw.beta1, "0 <= beta1 < 1");
  demand(o.adamw.beta2 >= 0 && o.adamw.beta2 < 1, "beta2", o.adamw.beta2, "0 <= beta2 < 1");
  demand(o.adamw.eps > 0, "eps", o.adamw.eps, "> 0");
  demand(o.warmup_ratio >= 0 && o.warmup_ratio <= 1, "warmup_ratio", o.warmup_ratio, "0 to 1");
  demand(o.clip_grad >= 0, "clip_grad", o.clip_grad, ">= 0 (0: no clipping)");
  if (!(c.sharding.silence_seconds >= 1) || !(c.sharding.hang_seconds >= c.sharding.silence_seconds)) {
    fail("sharding.silence_seconds, sharding.hang_seconds", "value is out of range",
         fmt::format("{}, {}", c.sharding.silence_seconds, c.sharding.hang_seconds),
         "at least 1 s, and no hang shorter than a silence", "Leave them out: 30 and 1800.");
  }
  if (!(c.peak_flops >= 0) || !std::isfinite(c.peak_flops)) {
    fail("peak_flops", "value is out of range", fmt::format("{}", c.peak_flops), "a finite number >= 0",
         "Give the device's FLOP/s, 9.9e14 say, or leave it out: it is measured.");
  }
}

// Puts "a.b=value" into the tree; the value is YAML itself, so lists and maps work.
void apply_override(YAML::Node root, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail("command line", "override is not key=value", "'" + text + "'", "e.g. optimizer.lr=1e-4",
         "Write options such as --resume with two dashes, keys with an equals sign.");
  }
  YAML::Node value;
  try {
    value = YAML::Load(text.substr(equals + 1));
  } catch (const YAML::Exception& error) {
    fail("command line", "value of an override is not YAML (" + std::string(error.what()) + ")",
         "'" + text + "'", "key=value", "Quote values that the shell or YAML would take apart.");
  }
  YAML::Node at = root;
  const std::vector<std::string> keys = split(text.substr(0, equals), '.');
  for (size_t i = 0; i + 1 < keys.size(); ++i) {
    YAML::Node next = at[keys[i]];
    if (next && !next.IsMap()) {
      // A preset's name may be refined: embodiment: sim_table, then embodiment.picture...=
      YAML::Node map;
      map["preset"] = next.Scalar();
      at[keys[i]] = map;
      next.reset(at[keys[i]]);
    }
    YAML::Node child = at[keys[i]];
    at.reset(child);
  }
  at[keys.back()] = value;
}

}  // namespace

TrainConfig parse_config(const std::string& yaml, const std::vector<std::string>& overrides,
                         const std::string& where) {
  YAML::Node root;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(yaml);
    if (documents.size() > 1) {
      fail(where, "several YAML documents in one file", std::to_string(documents.size()), "one",
           "Remove the lines that read '---'.");
    }
    if (!documents.empty()) root = documents.front();
  } catch (const YAML::Exception& error) {
    fail(fmt::format("{}, line {}", where, error.mark.line + 1), "is not YAML (" + error.msg + ")", "",
         "keys and values", "configs/demo.yaml is an example.");
  }
  if (!root.IsDefined() || root.IsNull()) root = YAML::Node(YAML::NodeType::Map);
  // Repeated keys must be seen before an override can hide one.
  { const YamlFields check(root, "config", kRootKeys); }
  for (const std::string& text : overrides) apply_override(root, text);
  const YamlFields fields(root, "config", kRootKeys);
  TrainConfig config;
  Section section(root, "config", kRootKeys);
  root_fields(section, config);
  read_section(fields, "model", kModelKeys, config.model, model_fields);
  read_section(fields, "vae", kVaeKeys, config.vae, vae_fields);
  read_section(fields, "text_encoder", kTextKeys, config.text_encoder, text_fields);
  read_section(fields, "clip", kClipKeys, config.clip, clip_fields);
  read_section(fields, "dataset", dataset_keys(), config.dataset, dataset_fields);
  read_section(fields, "optimizer", kOptimizerKeys, config.optimizer, optimizer_fields);
  read_section(fields, "sharding", kShardingKeys, config.sharding, sharding_fields);
  read_section(fields, "checkpoint", kCheckpointKeys, config.checkpoint, checkpoint_fields);
  read_section(fields, "cache", kCacheKeys, config.cache, cache_fields);
  check_run(config);
  check_types(config);
  check_cache(config);
  check_withheld(config);
  check_sizes(config);
  check_numbers(config);
  check_dataset(config.dataset);
  return config;
}

bool withholds(const TrainConfig& config, const std::string& what) {
  return std::ranges::count(config.withhold, what) != 0;
}

TrainConfig load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  return parse_config(read_text_file(path), overrides, path.string());
}

std::string to_yaml(const TrainConfig& config) {
  TrainConfig c = config;
  Section root("");
  root_fields(root, c);
  return root.text() + write_section("model", c.model, model_fields) +
         write_section("vae", c.vae, vae_fields) +
         write_section("text_encoder", c.text_encoder, text_fields) +
         write_section("clip", c.clip, clip_fields) +
         write_section("dataset", c.dataset, dataset_fields) +
         write_section("optimizer", c.optimizer, optimizer_fields) +
         write_section("sharding", c.sharding, sharding_fields) +
         write_section("checkpoint", c.checkpoint, checkpoint_fields) +
         write_section("cache", c.cache, cache_fields);
}

}  // namespace wam::train
