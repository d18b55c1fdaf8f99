#include "wam/train/base_model.h"

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/train/run_plan.h"

namespace wam::train {
namespace {

void fill(std::string& key, const std::string& value) {
  if (key.empty()) key = value;
}

[[noreturn]] void refuse_gap(const CheckpointFiles& files, const std::string& what,
                             const std::string& key) {
  throw DataError(
      {.where = files.path.string() + " (model.base)",
       .what = "holds no " + what,
       .got = std::string(name(files.kind)),
       .remedy = "Name it as " + key + (what == "clip" ? ", from Wan2.1-I2V-14B." : ".")});
}

void fill_part(const CheckpointFiles& files, ModelPart part, std::string& weights,
               const std::string& key) {
  if (!weights.empty()) return;
  const auto found = files.parts.find(part);
  if (found == files.parts.end()) refuse_gap(files, std::string(name(part)), key);
  weights = found->second.string();
}

// A transformer may come without coders and image parts from Wan alone, in whatever wrapping.
bool may_have_gaps(const CheckpointFiles& files) {
  return files.kind == CheckpointKind::kWanBase || files.kind == CheckpointKind::kSingle;
}

}  // namespace

TrainConfig with_base(TrainConfig config) {
  if (config.model.base.empty()) return config;
  const CheckpointFiles files = find_checkpoint(config.model.base);
  // The transformer is opened through the folder: LoRA scale and configs lie beside the weights.
  fill(config.model.weights, config.model.base);
  fill_part(files, ModelPart::kVae, config.vae.weights, "vae.weights");
  fill_part(files, ModelPart::kText, config.text_encoder.weights, "text_encoder.weights");
  fill_part(files, ModelPart::kClip, config.clip.weights, "clip.weights");
  if (config.text_encoder.tokenizer.empty() && files.tokenizer.empty())
    refuse_gap(files, "tokenizer (google/umt5-xxl/spiece.model)", "text_encoder.tokenizer");
  fill(config.text_encoder.tokenizer, files.tokenizer.string());
  return config;
}

LoadReport load_transformer(const TrainConfig& config, const std::string& source,
                            const ParamSet& params, const PartWriter& write) {
  const CheckpointFiles files = find_checkpoint(source);
  // An adapter in model.weights goes onto model.base; a base of itself would be no base.
  const std::string base = config.model.base == source ? "" : config.model.base;
  const auto archive = open_model(files, ModelPart::kDit, {.base = base});
  LoadOptions options{.seed = config.seed};
  const std::string whole = files.needs_base ? (base.empty() ? files.lora->base : base) : source;
  if (may_have_gaps(files.needs_base ? find_checkpoint(whole) : files))
    options.may_be_missing = base_checkpoint_gaps();
  LoadReport report = load_weights(params, *archive, options, write);
  log_info("transformer: " + std::to_string(report.loaded) + " tensors from " + source + " (" +
           std::string(name(files.kind)) + "), " + std::to_string(report.initialised.size()) +
           " initialised from the seed");
  return report;
}

LoadOptions encoder_load_options(const TrainConfig& config, ModelPart part) {
  LoadOptions options{.seed = config.seed};
  if (part == ModelPart::kVae) options.may_be_unused = {"decoder.", "conv2."};
  if (part == ModelPart::kClip) {
    const int64_t last = clip_config(config.clip).layers - 1;
    options.may_be_unused = {"transformer." + std::to_string(last) + ".", "head", "post_norm",
                             "textual.", "log_scale"};
  }
  return options;
}

}  // namespace wam::train
