#include "wam/formats/model_archive.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "wam/base/error.h"
#include "wam/base/hash.h"
#include "wam/base/log.h"
#include "wam/base/quote.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

// Products of B's columns and A's rows, added in float32 in order of the rank.
HostTensor merged(const HostTensor& base, const HostTensor& a, const HostTensor& b, double scale) {
  HostTensor result = base.to(DType::kF32);
  if (result.data() == base.data()) result = result.clone();
  const HostTensor a32 = a.to(DType::kF32), b32 = b.to(DType::kF32);
  const int64_t rows = b.shape()[0], rank = b.shape()[1], columns = a.shape()[1];
  const auto factor = static_cast<float>(scale);
  float* out = result.as<float>().data();
  const float *left = b32.as<float>().data(), *right = a32.as<float>().data();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t r = 0; r < rank; ++r) {
      const float weight = factor * left[i * rank + r];
      for (int64_t j = 0; j < columns; ++j) out[i * columns + j] += weight * right[r * columns + j];
    }
  }
  return result;
}

class ModelArchive : public TensorArchive {
 public:
  using Archive = std::shared_ptr<const TensorArchive>;

  ModelArchive(ModelPart part, std::string format) : part_(part), format_(std::move(format)) {}

  // Takes the part's tensors out of an archive. Of two archives the later one's tensors win: an
  // adapter brings its own action coders.
  void add(const Archive& archive) {
    const std::optional<ModelPart> bare = recognise_part(*archive);
    std::map<std::string, std::string> seen;
    for (const std::string& full : archive->names()) {
      TensorName parsed = parse_tensor_name(full);
      // An adapter alone may hold nothing by which its model is told; it is a transformer's.
      const ModelPart part = parsed.has_part ? parsed.part : bare.value_or(ModelPart::kDit);
      if (part != part_) continue;
      if (part == ModelPart::kClip && parsed.name.starts_with("visual.")) parsed.name.erase(0, 7);
      const std::string key = std::to_string(static_cast<int>(parsed.lora)) + parsed.name;
      if (const auto [twin, is_new] = seen.try_emplace(key, full); !is_new)
        refuse_twice(*archive, full, twin->second);
      place(parsed)[parsed.name] = {archive, full, *archive->find(full)};
    }
    for (const fs::path& file : archive->files()) files_.push_back(file);
    for (const auto& [key, value] : archive->metadata()) metadata_[key] = value;
  }

  void finish(double scale, bool keep_factors) {
    scale_ = scale;
    check_factors(keep_factors);
    if (keep_factors) {
      for (auto* factors : {&a_, &b_}) {
        for (auto& [name, place] : *factors) {
          const std::string module =
              name.substr(0, name.size() - std::string_view(".weight").size());
          tensors_[module + (factors == &a_ ? ".lora_A.weight" : ".lora_B.weight")] = place;
        }
      }
      a_.clear();
      b_.clear();
    }
    for (auto& [name, place] : tensors_) {
      if (a_.contains(name)) place.type.dtype = DType::kF32;
      names_.push_back(name);
    }
  }

  bool has_factors() const { return !a_.empty() || !b_.empty(); }
  const std::vector<std::string>& names() const override { return names_; }
  const TensorType* find(const std::string& name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second.type;
  }
  HostTensor load(const std::string& name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      throw DataError({.where = files_.front().string(),
                       .what = "no tensor of this name",
                       .got = quote(name),
                       .remedy = "List what there is with wam inspect."});
    }
    const HostTensor value = found->second.archive->load(found->second.full_name);
    const auto a = a_.find(name);
    if (a == a_.end()) return value;
    const Place& b = b_.at(name);
    return merged(value, a->second.archive->load(a->second.full_name), b.archive->load(b.full_name),
                  scale_);
  }
  const std::map<std::string, std::string>& metadata() const override { return metadata_; }
  const std::vector<fs::path>& files() const override { return files_; }
  std::string_view format() const override { return format_; }

 private:
  struct Place {
    Archive archive;
    std::string full_name;
    TensorType type;
  };
  using Places = std::map<std::string, Place>;

  Places& place(const TensorName& parsed) {
    return parsed.lora == LoraFactor::kA ? a_ : parsed.lora == LoraFactor::kB ? b_ : tensors_;
  }

  [[noreturn]] static void refuse_twice(const TensorArchive& archive, const std::string& a,
                                        const std::string& b) {
    throw DataError(
        {.where = archive.files().front().string(),
         .what = "two names mean the same tensor",
         .got = quote(a) + " and " + quote(b),
         .remedy = "The checkpoint was put together from two: write it again from one model."});
  }

  void check_factors(bool keep_factors) const {
    for (const auto& [name, a] : a_) check_factor(name, a, keep_factors);
    for (const auto& [name, b] : b_) {
      if (!a_.contains(name)) refuse_factor(b, "has no lora_A beside it", "");
    }
  }

  void check_factor(const std::string& name, const Place& a, bool keep_factors) const {
    const auto b = b_.find(name);
    if (b == b_.end()) refuse_factor(a, "has no lora_B beside it", "");
    const Shape &left = b->second.type.shape, &right = a.type.shape;
    const std::string sizes = "A " + right.to_string() + ", B " + left.to_string();
    const bool floating = is_floating(a.type.dtype) && is_floating(b->second.type.dtype);
    if (!floating || left.ndim() != 2 || right.ndim() != 2 || left[1] != right[0])
      refuse_factor(a, "does not fit its lora_B", sizes);
    if (keep_factors) return;
    const auto base = tensors_.find(name);
    if (base == tensors_.end())
      refuse_factor(a, "changes a tensor that the base does not have", quote(name));
    const Shape& whole = base->second.type.shape;
    if (!is_floating(base->second.type.dtype) || whole.ndim() != 2 || whole[0] != left[0] ||
        whole[1] != right[1])
      refuse_factor(a, "does not fit its base", sizes + ", base " + whole.to_string());
  }

  [[noreturn]] static void refuse_factor(const Place& place, const std::string& what,
                                         const std::string& got) {
    throw DataError(
        {.where = place.archive->files().front().string() + ", " + quote(place.full_name),
         .what = what,
         .got = got,
         .remedy =
             "Name the base model that the adapter was trained on; list both with wam inspect."});
  }

  ModelPart part_;
  std::string format_;
  double scale_ = 0;
  Places tensors_, a_, b_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
  std::vector<fs::path> files_;
};

[[noreturn]] void refuse_absent(const CheckpointFiles& files, ModelPart part) {
  std::string held;
  for (const auto& [other, path] : files.parts)
    held += (held.empty() ? "" : ", ") + std::string(name(other));
  throw DataError({.where = files.path.string(),
                   .what = "holds no " + std::string(name(part)),
                   .got = std::string(name(files.kind)) + " with: " + held,
                   .remedy = part == ModelPart::kClip
                                 ? "CLIP comes with Wan2.1-I2V-14B: name its .pth as clip.weights."
                                 : "Name another checkpoint, or the part's own file."});
}

fs::path base_of(const CheckpointFiles& files, const ModelOptions& options) {
  if (!options.base.empty()) return options.base;
  std::error_code ignored;
  const fs::path noted = files.lora->base;
  if (!noted.empty() && fs::exists(noted, ignored)) return noted;
  throw DataError(
      {.where = files.path.string(),
       .what = "is a LoRA adapter without its base model",
       .got = noted.empty() ? "" : "base " + quote(noted.string()) + ", which is not here",
       .remedy = "Name the base with model.base, or --base of wam export."});
}

void check_base(const CheckpointFiles& files, const TensorArchive& base) {
  const std::string& expected = files.lora->base_fingerprint;
  if (expected.empty()) {
    log_warn(files.path.string() + " does not say which base it was trained on: cannot be checked");
    return;
  }
  const std::string got = model_fingerprint(base);
  if (got == expected) return;
  throw DataError(
      {.where = files.path.string(),
       .what = "was trained on another base than " + base.files().front().string(),
       .got = "fingerprint " + got,
       .expected = expected,
       .remedy = "Name the base it was trained on" +
                 (files.lora->base.empty() ? std::string() : ": " + quote(files.lora->base)) +
                 "."});
}

fs::path archive_of(const CheckpointFiles& files, ModelPart part, bool ema) {
  if (ema) {
    if (!files.ema.empty()) return files.ema;
    throw DataError({.where = files.path.string(),
                     .what = "holds no moving average of the weights",
                     .expected = "ema.safetensors",
                     .remedy = "Leave out --ema, or train with a moving average."});
  }
  const auto found = files.parts.find(part);
  if (found == files.parts.end()) refuse_absent(files, part);
  return found->second;
}

}  // namespace

std::unique_ptr<TensorArchive> open_model(const CheckpointFiles& files, ModelPart part,
                                          const ModelOptions& options) {
  auto model = std::make_unique<ModelArchive>(part, std::string(name(files.kind)));
  const bool is_adapter = part == ModelPart::kDit && files.needs_base;
  if (is_adapter && !options.keep_factors) {
    const CheckpointFiles base = find_checkpoint(base_of(files, options));
    if (base.needs_base) {
      throw DataError({.where = base.path.string(),
                       .what = "is itself an adapter, not a base",
                       .remedy = "Merge it with wam export first."});
    }
    std::shared_ptr<const TensorArchive> whole = open_model(base, part);
    check_base(files, *whole);
    model->add(whole);
  }
  model->add(open_tensor_archive(archive_of(files, part, options.ema)));
  model->finish(files.lora ? files.lora->scale() : 0, options.keep_factors);
  if (model->names().empty()) refuse_absent(files, part);
  return model;
}

std::unique_ptr<TensorArchive> open_model(const fs::path& path, ModelPart part,
                                          const ModelOptions& options) {
  return open_model(find_checkpoint(path), part, options);
}

std::string model_fingerprint(const TensorArchive& model) {
  Hash64 hash;
  for (const std::string& name : model.names()) {
    const TensorType& type = *model.find(name);
    HostTensor value = model.load(name);
    if (is_floating(type.dtype)) value = value.to(DType::kF32);
    hash.update(name + " " + type.shape.to_string() + "\n");
    hash.update(
        {static_cast<const std::byte*>(value.data()), static_cast<size_t>(value.size_bytes())});
  }
  return hex64(hash.digest());
}

}  // namespace wam
