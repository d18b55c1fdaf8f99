#include "wam/train/checkpoint_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "wam/base/error.h"
#include "wam/base/hash.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/train/base_model.h"
#include "wam/train/run_plan.h"

namespace wam::train {
namespace {

constexpr size_t kListed = 3;

std::string examples(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = fmt::format("; {} {}: ", names.size(), what);
  for (size_t i = 0; i < std::min(names.size(), kListed); ++i) text += (i ? ", " : "") + names[i];
  return text + (names.size() > kListed ? ", ..." : "");
}

// The models of one configuration.
struct Candidate {
  std::string name;
  TrainConfig config;
  RunPlan plan;
  const ParamSet& set(ModelPart part) const {
    switch (part) {
      case ModelPart::kVae:
        return *plan.encoders.vae;
      case ModelPart::kText:
        return *plan.encoders.text;
      case ModelPart::kClip:
        return *plan.encoders.clip;
      case ModelPart::kDit:
        break;
    }
    return *plan.step.params;
  }
};

Candidate candidate(std::string name, const TrainConfig& config) {
  return {std::move(name), config, plan_run(config)};
}

std::vector<Candidate> candidates(const InspectOptions& options) {
  std::vector<Candidate> all;
  if (!options.config.empty()) {
    all.push_back(candidate(options.config, load_config(options.config, {})));
    return all;
  }
  const auto published = [](const char* yaml) { return parse_config(yaml, {}, "published model"); };
  all.push_back(candidate("preset 5b (Wan2.2-TI2V-5B)",
                          published("picture_height: 160\npicture_width: 320\nmodel: {preset: 5b}\n"
                                    "vae: {kind: wan22}\ndataset: {embodiment: libero_sim}")));
  all.push_back(
      candidate("preset 14b (Wan2.1-I2V-14B)",
                published("picture_height: 352\npicture_width: 640\nmodel: {preset: 14b}\n"
                          "vae: {kind: wan21}\ndataset: {embodiment: oxe_droid}")));
  return all;
}

std::string fit_line(const Candidate& c, ModelPart part, const TensorArchive& archive) {
  LoadOptions options = encoder_load_options(c.config, part);
  if (part == ModelPart::kDit) options.may_be_missing = base_checkpoint_gaps();
  const ParamSet& set = c.set(part);
  const WeightsFit fit = check_weights(set, archive, options);
  int64_t asked = 0;
  for (const Param& param : set.params()) asked += static_cast<int64_t>(param.parts.size());
  const int64_t absent = asked - fit.present - static_cast<int64_t>(fit.missing.size());
  std::string text = fmt::format("    {:<28} {}", c.name, fit.fits() ? "fits" : "does not fit");
  if (absent > 0) text += fmt::format("; {} tensors a base lacks would be initialised", absent);
  return text + examples("missing", fit.missing) + examples("misshapen", fit.misshapen) +
         examples("unexpected", fit.unexpected) + "\n";
}

struct Totals {
  int64_t tensors = 0, bytes = 0, elements = 0;
  std::map<std::string, int64_t> by_dtype;
};

Totals totals_of(const TensorArchive& archive) {
  Totals totals;
  for (const std::string& name : archive.names()) {
    const TensorType& type = *archive.find(name);
    ++totals.tensors;
    totals.bytes += type.size_bytes();
    totals.elements += type.shape.num_elements();
    ++totals.by_dtype[std::string(wam::name(type.dtype))];
  }
  return totals;
}

std::string size_of(const TensorArchive& archive, const char* name, int dim) {
  const TensorType* type = archive.find(name);
  return type == nullptr || type->shape.ndim() <= dim ? "?" : std::to_string(type->shape[dim]);
}

std::string sizes_line(ModelPart part, const TensorArchive& archive) {
  std::set<std::string> blocks;
  for (const std::string& name : archive.names()) {
    const std::vector<std::string> pieces = split(name, '.');
    if (pieces.size() > 2 && (pieces[0] == "blocks" || pieces[0] == "transformer"))
      blocks.insert(pieces[1]);
  }
  switch (part) {
    case ModelPart::kDit:
      return fmt::format("width {}, {} blocks, feed-forward {}, {} input channels",
                         size_of(archive, "patch_embedding.weight", 0), blocks.size(),
                         size_of(archive, "blocks.0.ffn.0.weight", 0),
                         size_of(archive, "patch_embedding.weight", 1));
    case ModelPart::kText:
      return fmt::format("vocabulary {}, width {}, {} layers",
                         size_of(archive, "token_embedding.weight", 0),
                         size_of(archive, "token_embedding.weight", 1), blocks.size());
    case ModelPart::kClip:
      return fmt::format("width {}, {} layers", size_of(archive, "patch_embedding.weight", 0),
                         blocks.size());
    case ModelPart::kVae:
      return fmt::format("first width {}, {} input channels",
                         size_of(archive, "encoder.conv1.weight", 0),
                         size_of(archive, "encoder.conv1.weight", 1));
  }
  return "";
}

std::string totals_text(const TensorArchive& archive) {
  const Totals totals = totals_of(archive);
  std::vector<std::string> types;
  for (const auto& [type, count] : totals.by_dtype)
    types.push_back(fmt::format("{} {}", count, type));
  return fmt::format("{} tensors ({}), {} elements, {}", totals.tensors, join(types, ", "),
                     totals.elements, format_bytes(totals.bytes));
}

std::string tensor_line(const TensorArchive& archive, const std::string& name, bool has_hash) {
  const TensorType& type = *archive.find(name);
  // Names may hold anything: what is not plain is printed escaped.
  const std::string shown = quote(name, 1000), plain = shown.substr(1, shown.size() - 2);
  std::string text =
      fmt::format("{:<72} {:<5} {:<22}", plain, wam::name(type.dtype), type.shape.to_string());
  if (has_hash) {
    const HostTensor value = archive.load(name);
    text += hex64(hash64(
        {static_cast<const std::byte*>(value.data()), static_cast<size_t>(value.size_bytes())}));
  }
  while (text.ends_with(' ')) text.pop_back();
  return text + "\n";
}

std::string head_text(const CheckpointFiles& files) {
  std::string text =
      fmt::format("path      {}\nkind      {}\n", files.path.string(), name(files.kind));
  if (files.lora) {
    text += fmt::format("lora      rank {}, alpha {:g}{}{}\n", files.lora->rank, files.lora->alpha,
                        files.needs_base ? ", without its base" : "",
                        files.lora->base_fingerprint.empty()
                            ? std::string()
                            : ", base fingerprint " + files.lora->base_fingerprint);
  }
  if (!files.tokenizer.empty()) text += "tokenizer " + files.tokenizer.string() + "\n";
  if (!files.metadata_json.empty()) text += "metadata  " + files.metadata_json.string() + "\n";
  if (!files.ema.empty()) text += "average   " + files.ema.string() + "\n";
  return text;
}

// An archive of no model that is known is still listed.
std::optional<CheckpointFiles> known(const std::filesystem::path& path, std::string& reason) {
  try {
    return find_checkpoint(path);
  } catch (const DataError& error) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) throw;
    reason = error.info().what;
    return std::nullopt;
  }
}

std::string list_tensors(const std::filesystem::path& path, const InspectOptions& options) {
  if (!options.has_names) return "";
  const auto archive = open_tensor_archive(path);
  std::string text = fmt::format("tensors of {}\n", path.string());
  for (const std::string& name : archive->names())
    text += tensor_line(*archive, name, options.has_hashes);
  return text;
}

}  // namespace

std::string inspect_checkpoint(const std::filesystem::path& path, const InspectOptions& options) {
  std::string reason;
  const std::optional<CheckpointFiles> files = known(path, reason);
  if (!files) {
    const auto archive = open_tensor_archive(path);
    return fmt::format("path      {}\nkind      {}, {}\n{}\n{}", path.string(), archive->format(),
                       reason, totals_text(*archive), list_tensors(path, options));
  }
  std::string text = head_text(*files);
  const std::vector<Candidate> against = candidates(options);
  std::set<std::filesystem::path> archives;
  for (const auto& [part, file] : files->parts) {
    archives.insert(file);
    const auto archive = open_model(*files, part, {.keep_factors = files->lora.has_value()});
    text += fmt::format("{}\n    in {}\n    {}\n    {}\n", name(part), file.string(),
                        totals_text(*archive), sizes_line(part, *archive));
    if (part == ModelPart::kDit && files->needs_base) continue;  // fits nothing by itself
    for (const Candidate& c : against) text += fit_line(c, part, *open_model(*files, part));
  }
  for (const std::filesystem::path& file : archives) text += list_tensors(file, options);
  return text;
}

}  // namespace wam::train
