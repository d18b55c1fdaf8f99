#include "wam/train/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/strings.h"
#include "wam/formats/model_archive.h"
#include "wam/tensor/safetensors_writer.h"
#include "wam/train/base_model.h"
#include "wam/train/public_config.h"
#include "wam/train/run_plan.h"

namespace wam::train {
namespace {

namespace fs = std::filesystem;

// Tensors to write, each with where it comes from; loaded one at a time.
class Collection {
 public:
  explicit Collection(std::string dtype) : dtype_(std::move(dtype)) {}

  void add(const std::string& out_name, const std::shared_ptr<const TensorArchive>& archive,
           const std::string& name) {
    TensorType type = *archive->find(name);
    if (is_floating(type.dtype) && dtype_ != "keep") type.dtype = parse_dtype(dtype_);
    sources_[out_name] = {archive, name, type};
  }
  void add_all(const std::string& prefix, const std::shared_ptr<const TensorArchive>& archive) {
    for (const std::string& name : archive->names()) add(prefix + name, archive, name);
  }
  int64_t size() const { return static_cast<int64_t>(sources_.size()); }

  std::vector<WrittenFile> write(const fs::path& folder, const std::string& stem,
                                 const std::map<std::string, std::string>& metadata,
                                 int64_t max_shard) const {
    std::vector<NamedType> types;
    for (const auto& [name, source] : sources_) types.push_back({name, source.type});
    const auto produce = [this](const std::string& name) {
      const Source& source = sources_.at(name);
      return source.archive->load(source.name).to(source.type.dtype);
    };
    return write_safetensors_sharded(folder, stem, std::move(types), produce, metadata, max_shard);
  }

 private:
  struct Source {
    std::shared_ptr<const TensorArchive> archive;
    std::string name;
    TensorType type;
  };
  std::string dtype_;
  std::map<std::string, Source> sources_;
};

bool same_values(const TensorArchive& a, const TensorArchive& b, const std::string& name) {
  const TensorType* other = b.find(name);
  if (other == nullptr || other->shape != a.find(name)->shape) return false;
  const HostTensor x = a.load(name).to(DType::kF32), y = b.load(name).to(DType::kF32);
  return std::memcmp(x.data(), y.data(), static_cast<size_t>(x.size_bytes())) == 0;
}

class Exporter {
 public:
  explicit Exporter(const ExportOptions& options)
      : options_(options), files_(find_checkpoint(options.checkpoint)), tensors_(options.dtype) {
    const fs::path own = options.checkpoint / "config.yaml";
    if (!options.config.empty()) {
      config_ = load_config(options.config, {});
    } else if (fs::exists(own)) {
      config_ = load_config(own, {});
    }
    if (config_ && options.base.empty() && !config_->model.base.empty())
      base_ = config_->model.base;
    if (!options.base.empty()) base_ = options.base;
  }

  std::string run() {
    refuse_existing();
    const fs::path temporary = options_.out.string() + ".partial";
    fs::remove_all(temporary);
    fs::create_directories(temporary);
    try {
      collect();
      written_ = tensors_.write(temporary, stem(), metadata_, options_.max_shard_bytes);
      if (options_.layout != ExportLayout::kTransformer) write_configs(temporary);
      sync_folder(temporary);
      rename_durably(temporary, options_.out);
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(temporary, ignored);
      throw;
    }
    return summary();
  }

 private:
  void refuse_existing() const {
    std::error_code ignored;
    if (!fs::exists(options_.out, ignored)) return;
    throw ConfigError({.where = options_.out.string(),
                       .what = "exists already",
                       .expected = "a new folder",
                       .remedy = "Name another folder, or remove this one."});
  }

  std::string stem() const {
    return options_.layout == ExportLayout::kTransformer ? "diffusion_pytorch_model" : "model";
  }

  void collect() {
    metadata_["format"] = "pt";
    if (options_.layout == ExportLayout::kLora) return collect_lora();
    const std::shared_ptr<const TensorArchive> dit =
        open_model(files_, ModelPart::kDit, {.base = base_, .ema = options_.ema});
    check_fit(*dit);
    const bool is_bare = options_.layout == ExportLayout::kTransformer;
    tensors_.add_all(is_bare ? "" : std::string(dreamzero_prefix(ModelPart::kDit)), dit);
    if (!is_bare && options_.has_encoders) collect_encoders();
  }

  // A checkpoint that would not load here must not reach others.
  void check_fit(const TensorArchive& dit) const {
    if (!config_) return;
    const WeightsFit fit = check_weights(*plan_run(*config_).step.params, dit, {});
    if (fit.fits()) return;
    throw DataError(
        {.where = options_.checkpoint.string(),
         .what = "does not fit its configuration",
         .got = fmt::format("{} missing, {} misshapen, {} unexpected tensors", fit.missing.size(),
                            fit.misshapen.size(), fit.unexpected.size()),
         .remedy = "Name the configuration of the run with --config."});
  }

  fs::path encoder_file(ModelPart part) const {
    const auto own = files_.parts.find(part);
    if (own != files_.parts.end()) return own->second;
    std::string named;
    if (config_) {
      named = part == ModelPart::kVae    ? config_->vae.weights
              : part == ModelPart::kText ? config_->text_encoder.weights
                                         : config_->clip.weights;
    }
    if (!named.empty()) return named;
    if (!base_.empty()) {
      const CheckpointFiles base = find_checkpoint(base_);
      const auto found = base.parts.find(part);
      if (found != base.parts.end()) return found->second;
    }
    throw DataError(
        {.where = options_.checkpoint.string(),
         .what = "no weights of the frozen " + std::string(name(part)) + " are known",
         .expected = "a full DreamZero checkpoint holds them",
         .remedy = "Name a base model with --base, or leave the encoders out with --no-encoders."});
  }

  void collect_encoders() {
    for (const ModelPart part : {ModelPart::kVae, ModelPart::kText, ModelPart::kClip}) {
      const std::shared_ptr<const TensorArchive> encoder = open_model(encoder_file(part), part);
      for (const std::string& name : encoder->names()) {
        // The public tower is loaded without the text half of its file.
        if (part == ModelPart::kClip && name.starts_with("textual.")) continue;
        const bool below_visual = part == ModelPart::kClip && name != "log_scale";
        tensors_.add(std::string(dreamzero_prefix(part)) + (below_visual ? "visual." : "") + name,
                     encoder, name);
      }
    }
  }

  // Factors, and every other tensor that the base does not have in these very values.
  void collect_lora() {
    if (!files_.lora) {
      throw DataError({.where = options_.checkpoint.string(),
                       .what = "holds no LoRA factors",
                       .remedy = "Export it whole: leave out --layout lora."});
    }
    if (base_.empty()) {
      throw ConfigError({.where = "--base",
                         .what = "an adapter needs to know its base",
                         .remedy = "Name the base model with --base."});
    }
    const std::shared_ptr<const TensorArchive> all =
        open_model(files_, ModelPart::kDit, {.keep_factors = true});
    const std::shared_ptr<const TensorArchive> base = open_model(base_, ModelPart::kDit);
    for (const std::string& full : all->names()) {
      const TensorName parsed = parse_tensor_name(full);
      if (parsed.lora != LoraFactor::kNone) {
        tensors_.add(dreamzero_lora_name(parsed.name, parsed.lora), all, full);
      } else if (!same_values(*all, *base, full)) {
        tensors_.add(std::string(dreamzero_prefix(ModelPart::kDit)) + "base_model.model." + full,
                     all, full);
      }
    }
    metadata_["base_fingerprint"] = model_fingerprint(*base);
    metadata_["base"] = base_.string();
    metadata_["lora_rank"] = std::to_string(files_.lora->rank);
    metadata_["lora_alpha"] = fmt::format("{}", files_.lora->alpha);
  }

  void write_configs(const fs::path& folder) {
    const fs::path experiment = folder / "experiment_cfg";
    fs::create_directories(experiment);
    const bool is_lora = options_.layout == ExportLayout::kLora;
    if (config_) {
      const PublicLora lora{.rank = is_lora ? files_.lora->rank : 0,
                            .alpha = is_lora ? files_.lora->alpha : 0};
      write_file_atomic(folder / "config.json", public_model_json(*config_, lora));
      write_file_atomic(folder / "config.yaml", to_yaml(*config_));
    } else if (!files_.config_json.empty()) {
      write_file_atomic(folder / "config.json", read_text_file(files_.config_json));
    } else {
      notes_ += "no config.json: the checkpoint names no configuration (--config)\n";
    }
    if (!files_.metadata_json.empty()) {
      write_file_atomic(experiment / "metadata.json", read_text_file(files_.metadata_json));
    } else {
      notes_ += "no experiment_cfg/metadata.json: the checkpoint has no statistics (wam stats)\n";
    }
    const fs::path latents = options_.checkpoint / "latents.json";
    if (fs::exists(latents)) write_file_atomic(folder / "latents.json", read_text_file(latents));
    const fs::path conf = (options_.experiment.empty() ? options_.checkpoint / "experiment_cfg"
                                                       : options_.experiment) /
                          "conf.yaml";
    if (fs::exists(conf)) {
      write_file_atomic(experiment / "conf.yaml", read_text_file(conf));
    } else if (!options_.experiment.empty()) {
      throw DataError({.where = conf.string(),
                       .what = "no such file",
                       .remedy = "Name a folder with a conf.yaml."});
    } else {
      notes_ +=
          "no experiment_cfg/conf.yaml: public servers read their transforms from it; take a "
          "public "
          "checkpoint's with --experiment-cfg\n";
    }
  }

  std::string summary() const {
    int64_t bytes = 0;
    for (const WrittenFile& file : written_) bytes += file.size_bytes;
    std::string text = fmt::format("wrote {}: {} tensors in {} files, {}\n", options_.out.string(),
                                   tensors_.size(), written_.size(), format_bytes(bytes));
    const auto fingerprint = metadata_.find("base_fingerprint");
    if (fingerprint != metadata_.end()) text += "base fingerprint " + fingerprint->second + "\n";
    return text + notes_;
  }

  const ExportOptions& options_;
  CheckpointFiles files_;
  std::optional<TrainConfig> config_;
  fs::path base_;
  Collection tensors_;
  std::map<std::string, std::string> metadata_;
  std::vector<WrittenFile> written_;
  std::string notes_;
};

}  // namespace

std::string export_checkpoint(const ExportOptions& options) { return Exporter(options).run(); }

}  // namespace wam::train
