#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/train/public_config.h"

namespace wam::train {
namespace {

// Aliases may make a small file enormous.
constexpr size_t kMaxLeaves = 20'000;
constexpr int kMaxDepth = 32;

struct Leaf {
  std::string key;   // "actor.model.embodiment_tag"
  std::string text;  // the scalar, or a list's scalars joined by ", "
  bool is_null = false;
};

[[noreturn]] void refuse(const std::string& where, const std::string& what,
                         const std::string& expected) {
  throw ConfigError(
      {.where = where,
       .what = what,
       .expected = expected,
       .remedy =
           "Give a YAML of RLinf's examples/sft/config or DreamZero's experiment_cfg/conf.yaml."});
}

class Flattener {
 public:
  explicit Flattener(std::string where) : where_(std::move(where)) {}
  std::vector<Leaf> run(const YAML::Node& root) {
    walk(root, "", 0);
    return std::move(leaves_);
  }

 private:
  void walk(const YAML::Node& node, const std::string& key, int depth) {
    if (leaves_.size() > kMaxLeaves || depth > kMaxDepth)
      refuse(where_, "is too large or too deep", "a configuration file");
    if (node.IsMap()) {
      for (const auto& entry : node) {
        if (!entry.first.IsScalar()) refuse(where_, "has a key that is no text", "plain keys");
        walk(entry.second, key.empty() ? entry.first.Scalar() : key + "." + entry.first.Scalar(),
             depth + 1);
      }
      return;
    }
    if (node.IsSequence()) return add_list(node, key, depth);
    leaves_.push_back(
        {key, node.IsScalar() ? node.Scalar() : "", !node.IsScalar() || node.Scalar() == "null"});
  }

  void add_list(const YAML::Node& node, const std::string& key, int depth) {
    std::vector<std::string> parts;
    for (const YAML::Node& item : node) {
      if (item.IsScalar()) {
        parts.push_back(item.Scalar());
      } else {
        walk(item, key + "[]", depth + 1);
      }
      if (parts.size() > kMaxLeaves) refuse(where_, "is too large", "a configuration file");
    }
    leaves_.push_back({key, join(parts, ", "), parts.empty()});
  }

  std::string where_;
  std::vector<Leaf> leaves_;
};

// How a value is written in ours.
enum class Kind {
  kText,
  kInteger,  // 10.0 counts
  kNumber,
  kInterval,  // -1 means never: 0
  kType,      // fp32, float32, bf16, bfloat16
  kList,
  kRunFolder,  // a name: runs/NAME
  kFrames,     // 8 K + 1 frames: K
  kIfTrue,     // the rule's value where it is true, nothing where it is false
};

struct Rule {
  const char* from;
  const char* to;
  Kind kind;
  const char* value = "";
};

constexpr Rule kRlinf[] = {
    {"runner.max_steps", "steps", Kind::kInteger},
    {"runner.save_interval", "save_every", Kind::kInterval},
    {"runner.log_interval", "log_every", Kind::kInteger},
    {"runner.val_check_interval", "validate_every", Kind::kInterval},
    {"runner.logger.experiment_name", "run_dir", Kind::kRunFolder},
    {"data.train_data_paths", "dataset.path", Kind::kText},
    {"data.num_workers", "dataset.num_workers", Kind::kInteger},
    {"actor.micro_batch_size", "micro_batch_size", Kind::kInteger},
    {"actor.global_batch_size", "global_batch_size", Kind::kInteger},
    {"actor.seed", "seed", Kind::kInteger},
    {"actor.model.model_path", "model.base", Kind::kText},
    {"actor.model.diffusion_model_pretrained_path", "model.weights", Kind::kText},
    {"actor.model.text_encoder_pretrained_path", "text_encoder.weights", Kind::kText},
    {"actor.model.image_encoder_pretrained_path", "clip.weights", Kind::kText},
    {"actor.model.vae_pretrained_path", "vae.weights", Kind::kText},
    {"actor.model.tokenizer_path", "text_encoder.tokenizer", Kind::kText},
    {"actor.model.max_seq_len", "model.text_len", Kind::kInteger},
    {"actor.model.dreamzero_max_action_dim", "model.action_dim", Kind::kInteger},
    {"actor.model.dreamzero_max_state_dim", "model.state_dim", Kind::kInteger},
    {"actor.model.dreamzero_action_horizon", "dataset.embodiment.action_horizon", Kind::kInteger},
    {"actor.model.dreamzero_num_chunks", "model.num_blocks", Kind::kInteger},
    {"actor.model.dreamzero_num_video_frames", "model.num_blocks", Kind::kFrames},
    {"actor.model.relative_action_keys", "dataset.embodiment.relative_action_keys", Kind::kList},
    {"actor.model.embodiment_tag", "dataset.embodiment.preset", Kind::kText},
    {"actor.optim.lr", "optimizer.lr", Kind::kNumber},
    {"actor.optim.adam_beta1", "optimizer.beta1", Kind::kNumber},
    {"actor.optim.adam_beta2", "optimizer.beta2", Kind::kNumber},
    {"actor.optim.adam_eps", "optimizer.eps", Kind::kNumber},
    {"actor.optim.weight_decay", "optimizer.weight_decay", Kind::kNumber},
    {"actor.optim.clip_grad", "optimizer.clip_grad", Kind::kNumber},
    {"actor.optim.lr_warmup_steps_ratio", "optimizer.warmup_ratio", Kind::kNumber},
    {"actor.fsdp_config.gradient_checkpointing", "recompute", Kind::kIfTrue, "full"},
    {"actor.fsdp_config.reshard_after_forward", "sharding.reshard_after_forward", Kind::kText},
    {"actor.fsdp_config.mixed_precision.param_dtype", "dtype", Kind::kType},
    {"actor.fsdp_config.mixed_precision.reduce_dtype", "sharding.reduce_dtype", Kind::kType},
};

constexpr Rule kDreamZero[] = {
    {"max_steps", "steps", Kind::kInteger},
    {"save_steps", "save_every", Kind::kInterval},
    {"save_total_limit", "keep_last", Kind::kInteger},
    {"logging_steps", "log_every", Kind::kInteger},
    {"seed", "seed", Kind::kInteger},
    {"output_dir", "run_dir", Kind::kText},
    {"per_device_train_batch_size", "micro_batch_size", Kind::kInteger},
    {"global_batch_size", "global_batch_size", Kind::kInteger},
    {"dataloader_num_workers", "dataset.num_workers", Kind::kInteger},
    {"learning_rate", "optimizer.lr", Kind::kNumber},
    {"adam_beta1", "optimizer.beta1", Kind::kNumber},
    {"adam_beta2", "optimizer.beta2", Kind::kNumber},
    {"adam_epsilon", "optimizer.eps", Kind::kNumber},
    {"weight_decay", "optimizer.weight_decay", Kind::kNumber},
    {"warmup_ratio", "optimizer.warmup_ratio", Kind::kNumber},
    {"max_grad_norm", "optimizer.clip_grad", Kind::kNumber},
    {"bf16", "dtype", Kind::kIfTrue, "bf16"},
    {"gradient_checkpointing", "recompute", Kind::kIfTrue, "full"},
    {"num_frames", "model.num_blocks", Kind::kFrames},
    {"num_action_per_block", "dataset.embodiment.action_horizon", Kind::kInteger},
    {"max_chunk_size", "model.max_chunk_size", Kind::kInteger},
    {"max_action_dim", "model.action_dim", Kind::kInteger},
    {"max_state_dim", "model.state_dim", Kind::kInteger},
    {"hidden_size", "model.coder_dim", Kind::kInteger},
    {"pretrained_model_path", "model.base", Kind::kText},
    {"dit_version", "model.weights", Kind::kText},
    {"text_encoder_pretrained_path", "text_encoder.weights", Kind::kText},
    {"image_encoder_pretrained_path", "clip.weights", Kind::kText},
    {"vae_pretrained_path", "vae.weights", Kind::kText},
    {"tokenizer_path", "text_encoder.tokenizer", Kind::kText},
    {"droid_data_root", "dataset.path", Kind::kText},
    {"libero_data_root", "dataset.path", Kind::kText},
    {"agibot_data_root", "dataset.path", Kind::kText},
    {"embodiment_tag", "dataset.embodiment.preset", Kind::kText},
    {"action_head_cfg.config.decouple_video_action_noise", "noise", Kind::kIfTrue, "decoupled"},
    {"action_head_cfg.config.use_high_noise_emphasis", "noise", Kind::kIfTrue, "beta"},
};

bool is_true(const std::string& text) { return ascii_lower(text) == "true"; }

// The value in our spelling; nullopt if it says nothing that ours does not say by itself. Throws
// std::string, the reason, if it cannot be said.
std::optional<YAML::Node> converted(const Rule& rule, const std::string& text) {
  const auto number = [&] {
    double value = 0;
    if (!YAML::convert<double>::decode(YAML::Node(text), value) || !std::isfinite(value))
      throw std::string("is no number");
    return value;
  };
  const auto integer = [&] {
    const double value = number();
    if (value != std::floor(value) || std::abs(value) > 9e15) throw std::string("is no integer");
    return static_cast<int64_t>(value);
  };
  switch (rule.kind) {
    case Kind::kText:
      return YAML::Node(text);
    case Kind::kInteger:
      return YAML::Node(integer());
    case Kind::kInterval:
      return YAML::Node(std::max<int64_t>(0, integer()));
    case Kind::kNumber:
      return YAML::Node(fmt::format("{}", number()));
    case Kind::kRunFolder:
      return YAML::Node("runs/" + text);
    case Kind::kFrames: {
      const int64_t frames = integer();
      if (frames < 9 || frames % 8 != 1) throw std::string("is not 8 K + 1 frames");
      return YAML::Node((frames - 1) / 8);
    }
    case Kind::kType: {
      const std::string lower = ascii_lower(text);
      if (lower == "bf16" || lower == "bfloat16") return YAML::Node("bf16");
      if (lower == "fp32" || lower == "float32" || lower == "f32") return YAML::Node("f32");
      throw std::string("is a type that is not supported");
    }
    case Kind::kList: {
      YAML::Node list(YAML::NodeType::Sequence);
      for (const std::string& part : split(text, ',')) list.push_back(std::string(trim(part)));
      return list;
    }
    case Kind::kIfTrue:
      if (!is_true(text)) return std::nullopt;
      return YAML::Node(rule.value);
  }
  return std::nullopt;
}

class Importer {
 public:
  Importer(std::string where, std::vector<Leaf> leaves) : where_(std::move(where)) {
    for (Leaf& leaf : leaves) leaves_[leaf.key] = std::move(leaf);
  }

  ImportedConfig run() {
    const bool is_rlinf =
        leaves_.contains("actor.model.model_type") || leaves_.contains("runner.max_steps");
    if (!is_rlinf && !leaves_.contains("learning_rate") &&
        !leaves_.contains("action_head_cfg._target_"))
      refuse(where_, "is no configuration that is known",
             "keys actor.model.*, or learning_rate and action_head_cfg");
    if (is_rlinf && leaves_.contains("actor.model.model_type") &&
        leaves_["actor.model.model_type"].text != "dreamzero")
      refuse(where_, "configures another model: " + quote(leaves_["actor.model.model_type"].text),
             "model_type: dreamzero");
    choose_model();
    for (const Rule& rule :
         is_rlinf ? std::span<const Rule>(kRlinf) : std::span<const Rule>(kDreamZero))
      apply(rule);
    apply_rest(is_rlinf);
    check_preset();
    for (const auto& [key, leaf] : leaves_) {
      if (!taken_.contains(key) && !leaf.is_null) note(key, leaf.text, "no place here");
    }
    YAML::Emitter out;
    out << root_;
    result_.yaml = std::string(out.c_str()) + "\n";
    parse_config(result_.yaml, {}, where_ + " as imported");
    return std::move(result_);
  }

 private:
  void note(const std::string& key, const std::string& value, const std::string& why) {
    result_.not_taken.push_back(key + ": " + quote(value) + " (" + why + ")");
  }

  // ${a.b} stands for the value of another key.
  std::string resolved(const std::string& text) const {
    std::string value = text;
    for (int hops = 0; hops < 8 && value.starts_with("${") && value.ends_with("}"); ++hops) {
      const auto found = leaves_.find(value.substr(2, value.size() - 3));
      if (found == leaves_.end()) break;
      value = found->second.text;
    }
    return value;
  }

  void set(const std::string& key, const YAML::Node& value) {
    YAML::Node at = root_;
    const std::vector<std::string> keys = split(key, '.');
    for (size_t i = 0; i + 1 < keys.size(); ++i) at.reset(at[keys[i]]);
    at[keys.back()] = value;
    set_.insert({key, true});
  }

  void apply(const Rule& rule) {
    const auto found = leaves_.find(rule.from);
    if (found == leaves_.end()) return;
    taken_[rule.from] = true;
    if (found->second.is_null) return;
    const std::string text = resolved(found->second.text);
    if (text.find("${") != std::string::npos)
      return note(rule.from, text, "refers to a key that is not in the file");
    if (text == "null" || text.empty()) return;
    if (set_.contains(rule.to) && rule.kind == Kind::kFrames) return;
    try {
      if (const auto value = converted(rule, text)) set(rule.to, *value);
    } catch (const std::string& reason) {
      note(rule.from, text, reason);
    }
  }

  std::string text_of(const char* key) const {
    const auto found = leaves_.find(key);
    return found == leaves_.end() ? "" : resolved(found->second.text);
  }

  void choose_model() {
    const std::string dim = text_of("action_head_cfg.config.diffusion_model_cfg.dim");
    bool is_small = dim == "3072";
    if (dim.empty()) {
      std::string all = ascii_lower(where_);
      for (const auto& [key, leaf] : leaves_) all += " " + ascii_lower(leaf.text);
      for (const char* sign : {"wan22", "wan2.2", "_5b", "-5b", "5b.yaml"})
        is_small |= all.find(sign) != std::string::npos;
      note("model.preset", is_small ? "5b" : "14b", "guessed from names; check it");
    }
    set("model.preset", YAML::Node(is_small ? "5b" : "14b"));
    set("vae.kind", YAML::Node(is_small ? "wan22" : "wan21"));
    set("picture_height", YAML::Node(is_small ? 160 : 352));
    set("picture_width", YAML::Node(is_small ? 320 : 640));
  }

  void apply_rest(bool is_rlinf) {
    if (is_rlinf && leaves_.contains("actor.fsdp_config.strategy")) {
      taken_["actor.fsdp_config.strategy"] = taken_["actor.fsdp_config.sharding_strategy"] = true;
      set("sharding.strategy",
          YAML::Node(text_of("actor.fsdp_config.sharding_strategy") == "no_shard" ? "none"
                                                                                  : "full"));
    }
    // RLinf lists keys that count only where actions are relative at all.
    if (is_rlinf && !is_true(text_of("actor.model.relative_action")) &&
        set_.contains("dataset.embodiment.relative_action_keys")) {
      root_["dataset"]["embodiment"].remove("relative_action_keys");
    }
    if (is_rlinf) taken_["actor.model.relative_action"] = taken_["actor.model.model_type"] = true;
    if (!set_.contains("global_batch_size") && set_.contains("micro_batch_size"))
      set("global_batch_size", YAML::Clone(root_["micro_batch_size"]));
  }

  // A robot that is not built in needs a block that no public file has.
  void check_preset() {
    const YAML::Node embodiment = root_["dataset"]["embodiment"];
    if (!embodiment.IsDefined() || !embodiment.IsMap()) {
      note("dataset.embodiment", "", "not in the file: name a robot");
      root_["dataset"]["embodiment"] = "libero_sim";
      return;
    }
    const std::vector<std::string> known = data::embodiment_preset_names();
    const std::string tag = embodiment["preset"].IsDefined() ? embodiment["preset"].Scalar() : "";
    if (std::ranges::find(known, tag) != known.end()) return;
    note("dataset.embodiment.preset", tag,
         "no built-in robot: write its views, state and action; libero_sim stands in");
    root_["dataset"]["embodiment"]["preset"] = "libero_sim";
  }

  std::string where_;
  std::map<std::string, Leaf> leaves_;
  std::map<std::string, bool> taken_, set_;
  YAML::Node root_ = YAML::Node(YAML::NodeType::Map);
  ImportedConfig result_;
};

}  // namespace

ImportedConfig import_config(const std::string& text, const std::string& where) {
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    refuse(where, "is not YAML (" + std::string(error.what()) + ")", "a YAML file");
  }
  if (!root.IsMap()) refuse(where, "is no map of keys", "a configuration file");
  return Importer(where, Flattener(where).run(root)).run();
}

}  // namespace wam::train
