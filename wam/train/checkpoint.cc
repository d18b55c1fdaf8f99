#include "wam/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/hash.h"
#include "wam/tensor/safetensors_index.h"
#include "wam/tensor/safetensors_writer.h"
#include "wam/train/device.h"

namespace wam::train {
namespace {

using nlohmann::json;

constexpr const char* kState = "trainer_state.json";
constexpr const char* kModel = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
const std::pair<StateKind, const char*> kMoments[] = {{StateKind::kFirstMoment, "exp_avg."},
                                                      {StateKind::kSecondMoment, "exp_avg_sq."}};

[[noreturn]] void refuse_to_save(const std::string& what) {
  throw NotFiniteError({.where = "checkpoint",
                        .what = "not saved: " + what + " is not finite",
                        .remedy = "The newest checkpoint is good: resume from it."});
}

// A number lost in memory must not reach the only copy that outlives the run.
HostTensor demand_finite(const std::string& name, HostTensor value) {
  const auto numbers = value.as<float>();
  if (!std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); })) refuse_to_save(name);
  return value;
}

std::string hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

// Finds a part by a name with `prefix`; the set is small enough for a map built once.
class PartIndex {
 public:
  explicit PartIndex(const ParamSet& params) {
    for (const Param& param : params.params()) {
      for (const ParamPart& part : param.parts) index_[part.name] = {&param, &part};
    }
  }
  std::pair<const Param*, const ParamPart*> at(const std::string& name) const {
    return index_.at(name);
  }

 private:
  std::map<std::string, std::pair<const Param*, const ParamPart*>> index_;
};

WrittenFile write_states(const std::filesystem::path& path, const StateAccess& states,
                         std::span<const std::pair<StateKind, const char*>> kinds) {
  const PartIndex index(states.params());
  std::vector<NamedType> tensors;
  for (const auto& [kind, prefix] : kinds) {
    for (const Param& param : states.params().params()) {
      for (const ParamPart& part : param.parts)
        tensors.push_back({prefix + part.name, {DType::kF32, part.shape}});
    }
  }
  const auto produce = [&](const std::string& name) {
    for (const auto& [kind, prefix] : kinds) {
      const std::string_view start = prefix;
      if (!name.starts_with(start)) continue;
      const auto [param, part] = index.at(name.substr(start.size()));
      return demand_finite(name, states.read(kind, *param, *part));
    }
    throw InternalError({.where = name, .what = "no such state"});
  };
  return write_safetensors(path, std::move(tensors), produce, {{"format", "pt"}});
}

std::string write_text(const std::filesystem::path& path, const std::string& text) {
  write_file_atomic(path, text);
  return hex(hash64(text));
}

json read_json(const std::filesystem::path& path) {
  try {
    return json::parse(read_text_file(path));
  } catch (const json::exception& error) {
    throw DataError({.where = path.string(),
                     .what = "is not valid JSON",
                     .remedy = "Resume from an older checkpoint of the run."});
  }
}

void check_hash(const std::filesystem::path& path, const std::string& expected) {
  const MappedFile file(path);
  const std::string got = hex(hash64(file.bytes()));
  if (got != expected) {
    throw DataError(
        {.where = path.string(),
         .what = "content is not what was written",
         .got = "hash " + got,
         .expected = "hash " + expected,
         .remedy = "The file was cut short or changed: resume from an older checkpoint."});
  }
}

TrainerState state_of(const json& j, const std::filesystem::path& path) {
  try {
    return {j.at("step"), j.at("last_loss"), j.at("version"), j.at("config_hash")};
  } catch (const json::exception&) {
    throw DataError({.where = path.string(),
                     .what = "a key is missing or of the wrong type",
                     .expected = "step, last_loss, version, config_hash, files",
                     .remedy = "Resume from an older checkpoint of the run."});
  }
}

void read_moments(const std::filesystem::path& path, StateAccess& states) {
  const auto archive = open_tensor_archive(path);
  for (const auto& [kind, prefix] : kMoments) {
    LoadOptions options{.prefixes = {prefix}, .may_be_unused = {"exp_avg"}};
    load_weights(states.params(), *archive, options, states.writer(kind));
  }
}

// Every tensor of some kinds of states, by name, and who writes it.
class DealtTensors {
 public:
  DealtTensors(const ParamSet& params, std::span<const std::pair<StateKind, const char*>> kinds, int ranks) {
    for (const auto& [kind, prefix] : kinds) {
      for (const Param& param : params.params()) {
        for (const ParamPart& part : param.parts) tensors_.push_back({prefix + part.name, kind, &param, &part, 0});
      }
    }
    std::ranges::sort(tensors_, {}, &Tensor::name);
    deal(ranks);
  }

  struct Tensor {
    std::string name;
    StateKind kind;
    const Param* param;
    const ParamPart* part;
    int owner;
    NamedType type() const { return {name, {DType::kF32, part->shape}}; }
  };
  const std::vector<Tensor>& all() const { return tensors_; }

 private:
  // The largest first, each to whoever has least.
  void deal(int ranks) {
    std::vector<Tensor*> by_size;
    for (Tensor& tensor : tensors_) by_size.push_back(&tensor);
    std::ranges::stable_sort(by_size, std::greater{}, [](const Tensor* t) { return t->part->shape.num_elements(); });
    std::vector<int64_t> load(static_cast<size_t>(ranks));
    for (Tensor* tensor : by_size) {
      const auto least = std::ranges::min_element(load);
      tensor->owner = static_cast<int>(least - load.begin());
      *least += tensor->part->shape.num_elements();
    }
  }

  std::vector<Tensor> tensors_;
};

std::string part_name(const std::string& file, int rank, int ranks) {
  const std::string stem = file.substr(0, file.find('.'));
  return fmt::format("{}-{:05}-of-{:05}.safetensors", stem, rank + 1, ranks);
}

// Writes this rank's tensors. Whenever the file asks for the next of them, those of other ranks that
// come before it by name are given away: all ranks go through the tensors in one order.
std::string write_part(const std::filesystem::path& folder, const std::string& file, const StateAccess& states,
                       const DealtTensors& dealt, const Ranks& ranks) {
  const auto& all = dealt.all();
  std::vector<NamedType> own;
  for (const auto& tensor : all) {
    if (tensor.owner == ranks.rank()) own.push_back(tensor.type());
  }
  size_t next = 0;
  const auto collect = [&](const DealtTensors::Tensor& t) {
    return states.collect(t.kind, *t.param, *t.part, t.owner, *ranks.world().transport());
  };
  const auto produce = [&](const std::string& name) {
    while (all[next].name != name) collect(all[next++]);
    return demand_finite(name, collect(all[next++]));
  };
  std::string hash;
  std::exception_ptr failure;
  try {
    const std::string name = part_name(file, ranks.rank(), ranks.size());
    if (!own.empty()) {
      hash = name + " " + hex(write_safetensors(folder / name, std::move(own), produce, {{"format", "pt"}}).hash);
    }
  } catch (const DataError&) {
    failure = std::current_exception();  // a full disk here must not leave the others waiting
  }
  while (next < all.size()) collect(all[next++]);
  if (failure) std::rethrow_exception(failure);
  return hash;
}

std::string index_text(const std::string& file, const DealtTensors& dealt, int ranks) {
  SafetensorsIndex index;
  int64_t bytes = 0;
  for (const auto& tensor : dealt.all()) {
    index.weight_map[tensor.name] = part_name(file, tensor.owner, ranks);
    bytes += tensor.type().type.size_bytes();
  }
  return make_safetensors_index(index, bytes);
}

std::filesystem::path file_or_index(const std::filesystem::path& folder, const std::string& file) {
  const std::filesystem::path index = folder / (file + ".index.json");
  return std::filesystem::exists(index) ? index : folder / file;
}

void write_rest(const std::filesystem::path& folder, const TrainConfig& config, const TrainerState& state,
                const std::map<std::string, std::string>& extra, json files) {
  files["config.yaml"] = write_text(folder / "config.yaml", to_yaml(config));
  files["config.json"] = write_text(folder / "config.json", model_json(config));
  for (const auto& [name, text] : extra) files[name] = write_text(folder / name, text);
  const json j = {{"step", state.step},
                  {"last_loss", state.last_loss},
                  {"version", state.version},
                  {"config_hash", state.config_hash},
                  {"files", files}};
  write_file_atomic(folder / kState, j.dump(2) + "\n");
}

constexpr std::pair<StateKind, const char*> kWeights[] = {{StateKind::kWeight, ""}};

}  // namespace

void write_checkpoint(const std::filesystem::path& folder, const StateAccess& states,
                      const TrainConfig& config, const TrainerState& state,
                      const std::map<std::string, std::string>& extra) {
  json files;
  files[kModel] = hex(write_states(folder / kModel, states, kWeights).hash);
  files[kOptimizer] = hex(write_states(folder / kOptimizer, states, kMoments).hash);
  write_rest(folder, config, state, extra, std::move(files));
}

void write_checkpoint_together(const std::filesystem::path& folder, const StateAccess& states,
                               const TrainConfig& config, const TrainerState& state,
                               const std::map<std::string, std::string>& extra, const Ranks& ranks) {
  std::string damaged;
  const std::vector<std::string> found = ranks.gather(states.first_non_finite());
  for (size_t r = 0; r < found.size(); ++r) {
    if (!found[r].empty()) damaged += fmt::format("{}{} of rank {}", damaged.empty() ? "" : ", ", found[r], r);
  }
  if (!damaged.empty()) refuse_to_save(damaged);
  ranks.world().barrier();  // the folder is there
  json files;
  const std::pair<const char*, DealtTensors> parts[] = {
      {kModel, DealtTensors(states.params(), kWeights, ranks.size())},
      {kOptimizer, DealtTensors(states.params(), kMoments, ranks.size())}};
  for (const auto& [file, dealt] : parts) {
    std::string written;
    ranks.together([&] { written = write_part(folder, file, states, dealt, ranks); });
    for (const std::string& line : ranks.gather(written)) {
      if (!line.empty()) files[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
    }
  }
  ranks.first_alone([&] {
    for (const auto& [file, dealt] : parts) {
      const std::string index = std::string(file) + ".index.json";
      files[index] = write_text(folder / index, index_text(file, dealt, ranks.size()));
    }
    write_rest(folder, config, state, extra, std::move(files));
  });
}

std::filesystem::path weights_file(const std::filesystem::path& checkpoint) {
  const std::filesystem::path found = file_or_index(checkpoint, kModel);
  return std::filesystem::exists(found) ? found : checkpoint;
}

TrainerState read_trainer_state(const std::filesystem::path& folder) {
  return state_of(read_json(folder / kState), folder / kState);
}

TrainerState read_checkpoint(const std::filesystem::path& folder, StateAccess& states) {
  const json j = read_json(folder / kState);
  const TrainerState state = state_of(j, folder / kState);
  for (const auto& [name, hash] : j.at("files").items()) {
    if (name.find('/') != std::string::npos || !hash.is_string()) {
      throw DataError({.where = (folder / kState).string(),
                       .what = "file list is malformed",
                       .got = name,
                       .remedy = "Use an older checkpoint."});
    }
    check_hash(folder / name, hash.get<std::string>());
  }
  load_weights(states.params(), *open_tensor_archive(weights_file(folder)), {},
               states.writer(StateKind::kWeight));
  read_moments(file_or_index(folder, kOptimizer), states);
  return state;
}

int64_t checkpoint_bytes(const ParamSet& params) {
  constexpr int64_t kFloats = 3;                       // weight and two moments
  constexpr int64_t kBesides = int64_t{1} << 20;       // headers, configuration, statistics
  return params.num_elements() * kFloats * int64_t{sizeof(float)} + kBesides;
}

std::string resume_hash(const TrainConfig& config) {
  TrainConfig c = config;
  // What may differ between two halves of a run without changing its numbers.
  c.run_dir.clear();
  c.save_every = c.validate_every = c.log_every = c.validation_pictures = 0;
  c.log_samples = false;
  c.peak_flops = 0;
  c.checkpoint = {};
  c.cache = {.draws = c.cache.draws};
  c.keep_last = c.validation_samples = 0;
  c.threads = 0;
  c.device = is_cuda(c.device) ? "cuda" : "cpu";
  c.exec = ExecMode::kGraph;
  c.tune = false;
  c.algorithms.clear();
  c.dataset.num_workers = c.dataset.prefetch_batches = 0;
  c.disable_passes.clear();
  c.recompute = {};
  c.sharding = {};
  c.fuse = true;
  c.micro_batch_size = 0;
  return hex(hash64(to_yaml(c)));
}

std::string model_json(const TrainConfig& config) {
  const DitConfig& d = config.model.dit;
  const json j = {{"model_type", d.has_y() ? "i2v" : "ti2v"},
                  {"dim", d.dim},
                  {"num_layers", d.layers},
                  {"num_heads", d.heads},
                  {"ffn_dim", d.ffn_dim},
                  {"freq_dim", d.freq_dim},
                  {"text_dim", d.text_dim},
                  {"text_len", d.text_len},
                  {"clip_dim", d.clip_dim},
                  {"in_dim", d.latent_channels + d.y_channels},
                  {"out_dim", d.latent_channels},
                  {"frame_seqlen", d.tokens_per_frame()},
                  {"action_dim", d.action_dim},
                  {"max_state_dim", d.state_dim},
                  {"hidden_size", d.coder_dim},
                  {"num_frame_per_block", 2},
                  {"num_action_per_block", d.actions_per_block},
                  {"num_state_per_block", 1},
                  {"max_chunk_size", d.max_chunk_size},
                  {"concat_first_frame_latent", d.has_y()}};
  return j.dump(2) + "\n";
}

}  // namespace wam::train
