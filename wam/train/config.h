// One YAML file describes a run; `key=value` on the command line overrides it. Names are those users
// of the public systems know. The resolved config is stored with the run and reads back the same.
// Every key is listed in docs/config.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wam/data/embodiment.h"
#include "wam/exec/executor.h"
#include "wam/models/dit_config.h"
#include "wam/models/flow_schedule.h"
#include "wam/ops/adamw.h"
#include "wam/passes/recompute.h"

namespace wam::train {

struct ModelSection {
  std::string preset = "5b";  // 5b, 14b, custom
  DitConfig dit;              // the preset's sizes with the section's keys put over them
  std::string weights;        // checkpoint to start from; empty: from the seed
  std::string base;           // fills what is empty: weights of all models, the tokenizer
};

// Frozen encoders: published sizes unless given; weights from files, or from the seed if empty.
struct VaeSection {
  std::string kind = "wan22";  // wan22, wan21
  std::string weights;
  int64_t dim = 0, decoder_dim = 0, latent_channels = 0;  // 0: published
  bool standardise = false;    // measure latent mean and std on the dataset instead of the published
  int64_t sub_batch = 1;       // clips encoded at once
};
struct TextSection {
  std::string weights;
  std::string tokenizer;  // a SentencePiece .model, or "bytes"
  int64_t vocab = 0, dim = 0, attn_dim = 0, ffn_dim = 0, heads = 0, layers = 0;  // 0: published
  int64_t prompt_tokens = 0;  // rows of the text condition; 0: measured from the dataset's prompts
};
struct ClipSection {
  std::string weights;
  int64_t image_size = 0, patch_size = 0, dim = 0, heads = 0, layers = 0;  // 0: published
};

// One dataset of a run: what it is called, how much of it is wanted, and which of its episodes.
struct SourceSection {
  std::string name;  // in metrics and messages; empty: the folder's
  std::string path;
  double weight = 1;  // in a mixture
  data::Embodiment embodiment;
  std::string statistics;                         // metadata.json; empty: the dataset's own
  std::vector<std::string> episodes;              // "7", "0:100": only these train; empty: all
  std::vector<std::string> exclude_episodes;      // not used at all
  std::vector<std::string> tasks, exclude_tasks;  // patterns of instructions
  std::vector<std::string> drop_frames;           // "12[0:30]": rows no window may touch
  std::string faults = "auto";                    // see data::FaultPolicy
  std::vector<std::string> validation_episodes;   // held out by number,
  int64_t validation_last = 0;                    // or the last n,
  double validation_fraction = 0;                 // or a share by hash

  // No key: the block of `statistics`, where it is not the robot's tag.
  std::string statistics_key;

  // `name`, or the last part of the path.
  std::string shown_name() const;
};

// The run's data: one dataset, or with `mixture` several, and then no path of its own.
struct DatasetSection : SourceSection {
  std::string sampling_mode = "multi_anchor"; // or fixed_window
  std::vector<SourceSection> mixture;
  std::string mixture_weights = "samples";  // what a weight is a share of; or rows: times the rows
  int64_t num_workers = 2;
  int64_t prefetch_batches = 4;

  // The mixture's, or itself.
  std::vector<SourceSection> sources() const;
};

struct OptimizerSection {
  double lr = 1e-5, min_lr = 0, weight_decay = 1e-5;
  AdamwOptions adamw{.beta1 = 0.95, .beta2 = 0.999, .eps = 1e-8};
  double warmup_ratio = 0.05;  // of steps
  double clip_grad = 1.0;
  std::string non_finite = "skip";  // or stop
};

// How the ranks of a run share its states (train/sharding.h).
struct ShardingSection {
  std::string strategy = "none";  // none, optimizer, gradients, full, hybrid
  int64_t shard_size = 0;         // ranks among which states are divided; 0: all
  bool reshard_after_forward = true;
  int64_t prefetch = 1;
  DType reduce_dtype = DType::kF32;
  bool overlap = true;
  std::string encoders = "replicated";  // or sharded
  std::string capture = "inside";  // or cut: collectives in CUDA graphs, or between them
  int64_t bucket_bytes = int64_t{4} << 20;
  double silence_seconds = 30, hang_seconds = 1800;  // of the watchdog
};

// How checkpoints are written and which are kept beside the newest keep_last.
struct CheckpointSection {
  bool async = true;        // written by a thread from a host copy while the run goes on
  int64_t keep_every = 0;   // steps whose multiples are kept for good; 0: none
  bool best = false;        // keep the one with the lowest validation loss
  int64_t retries = 4;      // of a write that failed, after 1, 2, 4, ... seconds
  int64_t reserve_bytes = int64_t{1} << 28;  // disk space that a save leaves free
};

// What frozen encoders made, kept on disk and shared between runs.
struct CacheSection {
  std::string folder = "runs/cache";  // empty: nothing is kept
  bool pictures = false;              // latents, first-frame latents and CLIP tokens too
  int64_t draws = 0;                  // augmentations of a window; 0: a new one every time
};

struct TrainConfig {
  std::string run_dir = "runs/train";
  uint64_t seed = 42;
  std::string device = "cpu";  // cpu, cuda, cuda:N
  std::string encoder_device;  // of the frozen encoders; empty: the same
  DType dtype = DType::kF32;   // of weights and activations; bf16 keeps a split float32 master
  DType gradient_dtype = DType::kF32;
  ExecMode exec = ExecMode::kGraph;  // CPU has one way to run
  bool tune = false;  // GPU, one rank: time the products' algorithms at the start of a run
  std::string algorithms;  // GPU: a table an earlier run stored; empty: none
  int64_t threads = 0;         // OpenMP threads; 0: all
  int64_t steps = 1000;
  int64_t micro_batch_size = 1;
  int64_t global_batch_size = 1;
  int64_t picture_height = 0, picture_width = 0;  // 0: the tiled picture's own size
  NoiseOption noise = NoiseOption::kUniform;
  bool fix_draw = false;  // every step trains on the draw of step 0: for overfitting one sample
  std::vector<std::string> withhold;  // controls: what the model must do without, see kWithholdable
  ModelSection model;
  VaeSection vae;
  TextSection text_encoder;
  ClipSection clip;
  DatasetSection dataset;
  OptimizerSection optimizer;
  ShardingSection sharding;
  CheckpointSection checkpoint;
  CacheSection cache;
  RecomputeOptions recompute;
  bool fuse = true;
  std::vector<std::string> disable_passes;
  int64_t save_every = 500, keep_last = 3;
  int64_t validate_every = 200, validation_samples = 8;
  int64_t validation_pictures = 2;  // held-out windows drawn at each validation; 0: none
  int64_t log_every = 1;
  double peak_flops = 0;     // of the device, for MFU; 0: measured at the start
  bool log_samples = false;  // name each step's samples in metrics.jsonl

  // No keys: this process's place in the run, known when it starts.
  int64_t rank = 0, ranks = 1;

  // Micro-batches of a step on each rank.
  int64_t accumulate() const { return global_batch_size / (micro_batch_size * ranks); }
};

// What a run may withhold, to show what the others gain by it: the clean frames before a block; the
// right states; the right instructions (each sample gets the next one's of its micro-batch, in
// training and in validation).
inline constexpr const char* kCleanContext = "clean_context";
inline constexpr const char* kStates = "states";
inline constexpr const char* kInstructions = "instructions";
bool withholds(const TrainConfig& config, const std::string& what);

// Reads and checks a file, then applies overrides ("optimizer.lr=1e-4"). Relative paths inside stay
// relative to the working directory. Throws ConfigError with the nearest valid name.
TrainConfig load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides);
TrainConfig parse_config(const std::string& yaml, const std::vector<std::string>& overrides,
                         const std::string& where);
// Every key, so that parse_config(to_yaml(c)) equals c.
std::string to_yaml(const TrainConfig& config);

}  // namespace wam::train
