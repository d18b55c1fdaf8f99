// Checkpoints out: the names, sizes and types of the public layouts, LoRA merged or apart,
// averages; and public configurations in.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/formats/stand_in_files.h"
#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/formats/model_archive.h"
#include "wam/train/checkpoint_report.h"
#include "wam/train/export.h"
#include "wam/train/public_config.h"

namespace wam::formats_test {
namespace {

namespace fs = std::filesystem;
using train::ExportLayout;

const StandIn& model() {
  static const StandIn stand_in;
  return stand_in;
}

std::map<std::string, std::string> types_of(const fs::path& path) {
  const auto archive = open_tensor_archive(path);
  std::map<std::string, std::string> types;
  for (const std::string& name : archive->names()) types[name] = archive->find(name)->to_string();
  return types;
}

Tensors values_of(const TensorArchive& archive) {
  Tensors values;
  for (const std::string& name : archive.names()) values[name] = archive.load(name).to(DType::kF32);
  return values;
}

void expect_near(const Tensors& got, const Tensors& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    const auto a = got.at(name).as<float>(), b = tensor.as<float>();
    ASSERT_EQ(a.size(), b.size()) << name;
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], bound * (1 + std::abs(b[i]))) << name;
  }
}

TEST(Export, DreamZeroHasThePublicNamesSizesAndTypes) {
  const TempDir folder;
  write_training(folder / "own", model());
  write_wan_base(folder / "base", model());
  write_dreamzero(folder / "public", model());
  train::export_checkpoint({.checkpoint = folder / "own",
                            .out = folder / "out",
                            .dtype = "bf16",
                            .base = folder / "base",
                            .max_shard_bytes = 60'000});
  EXPECT_EQ(types_of(folder / "out"), types_of(folder / "public"));
  EXPECT_TRUE(fs::exists(folder / "out" / "model.safetensors.index.json"));
  EXPECT_TRUE(fs::exists(folder / "out" / "experiment_cfg" / "metadata.json"));
  const auto config = nlohmann::json::parse(read_text_file(folder / "out" / "config.json"));
  EXPECT_EQ(config["action_head_cfg"]["config"]["diffusion_model_cfg"]["dim"], 32);
  EXPECT_EQ(config["action_head_cfg"]["config"]["train_architecture"], "full");
  const CheckpointFiles files = find_checkpoint(folder / "out");
  EXPECT_EQ(files.kind, CheckpointKind::kDreamZero);
  expect_near(values_of(*open_model(files, ModelPart::kDit)), model().dit, 0);
  EXPECT_THROW(train::export_checkpoint({.checkpoint = folder / "own", .out = folder / "out"}),
               ConfigError);
}

TEST(Export, EncodersMustBeKnownOrLeftOut) {
  const TempDir folder;
  write_training(folder / "own", model());
  EXPECT_THROW(train::export_checkpoint({.checkpoint = folder / "own", .out = folder / "out"}),
               DataError);
  EXPECT_FALSE(fs::exists(folder / "out"));
  EXPECT_FALSE(fs::exists(folder / "out.partial"));
  train::export_checkpoint(
      {.checkpoint = folder / "own", .out = folder / "out", .has_encoders = false});
  expect_near(values_of(*open_model(folder / "out", ModelPart::kDit)), model().dit, 0);
}

TEST(Export, TransformerAndAverage) {
  const TempDir folder;
  const StandIn average(5);
  write_training(folder / "own", model(), &average.dit);
  const ExportLayout layout = ExportLayout::kTransformer;
  train::export_checkpoint({.checkpoint = folder / "own", .out = folder / "out", .layout = layout});
  expect_near(values_of(*open_tensor_archive(folder / "out")), model().dit, 0);
  train::export_checkpoint(
      {.checkpoint = folder / "own", .out = folder / "ema", .layout = layout, .ema = true});
  expect_near(values_of(*open_tensor_archive(folder / "ema")), average.dit, 0);
  write_training(folder / "plain", model());
  EXPECT_THROW(
      train::export_checkpoint(
          {.checkpoint = folder / "plain", .out = folder / "none", .layout = layout, .ema = true}),
      DataError);
}

TEST(Export, LoraApartAndMerged) {
  const TempDir folder;
  const Lora lora = make_lora(model().dit);
  // The coders of the run differ from the base's, as they do after training.
  StandIn base = model();
  for (auto& [name, tensor] : base.dit) {
    if (name.starts_with("action_") || name.starts_with("state_"))
      tensor = HostTensor::zeros(DType::kF32, tensor.shape());
  }
  write_dreamzero(folder / "base", base);
  write_dreamzero(folder / "other", StandIn(9));
  write_dreamzero(folder / "run", model(), &lora);
  write_dreamzero_lora(folder / "public", model(), lora);
  train::export_checkpoint({.checkpoint = folder / "run",
                            .out = folder / "lora",
                            .layout = ExportLayout::kLora,
                            .dtype = "f32",
                            .base = folder / "base"});
  const auto got = types_of(folder / "lora"), want = types_of(folder / "public");
  for (const auto& [name, type] : want) {
    // A coder's zero bias is the base's too.
    if (name.find("lora_") != std::string::npos) {
      EXPECT_EQ(got.count(name), 1U) << name;
    }
  }
  for (const auto& [name, type] : got) EXPECT_EQ(want.count(name), 1U) << name;
  const Tensors expected = merged(model().dit, lora);
  expect_near(values_of(*open_model(folder / "lora", ModelPart::kDit, {.base = folder / "base"})),
              expected, 1e-6);
  EXPECT_THROW(open_model(folder / "lora", ModelPart::kDit, {.base = folder / "other"}), DataError);
  train::export_checkpoint({.checkpoint = folder / "lora",
                            .out = folder / "whole",
                            .layout = ExportLayout::kTransformer,
                            .base = folder / "base"});
  expect_near(values_of(*open_tensor_archive(folder / "whole")), expected, 1e-6);
}

TEST(Inspect, SaysKindFitAndTensors) {
  const TempDir folder;
  write_dreamzero(folder / "full", model());
  write_file_atomic(folder / "run.yaml", train::to_yaml(model().config));
  const std::string text =
      train::inspect_checkpoint(folder / "full", {.config = (folder / "run.yaml").string()});
  for (const char* part :
       {"kind      DreamZero checkpoint", "width 32, 2 blocks", "fits",
        "action_head.model.blocks.0.self_attn.q.weight", "bf16  [32,32]", "text encoder"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_EQ(text.find("does not fit"), std::string::npos) << text;
  const std::string published = train::inspect_checkpoint(folder / "full", {.has_names = false});
  EXPECT_NE(published.find("preset 5b (Wan2.2-TI2V-5B)   does not fit"), std::string::npos)
      << published;
}

bool lists(const train::ImportedConfig& imported, const std::string& key) {
  return std::ranges::any_of(imported.not_taken,
                             [&](const std::string& line) { return line.starts_with(key + ":"); });
}

TEST(ImportConfig, Rlinf) {
  const train::ImportedConfig imported = train::import_config(R"(
runner: {max_steps: 50000, save_interval: 3000, log_interval: 100, val_check_interval: -1,
         logger: {experiment_name: libero_sft_dreamzero}}
data: {train_data_paths: data/libero, num_workers: 8, prefetch_factor: 8}
algorithm: {adv_type: gae}
actor:
  micro_batch_size: 32
  global_batch_size: 256
  seed: 42
  model: {model_type: dreamzero, model_path: models/DreamZero-Libero-5b, tokenizer_path: models/umt5-xxl, max_seq_len: 512,
          dreamzero_max_action_dim: 32, dreamzero_max_state_dim: 64, dreamzero_action_horizon: 16,
          dreamzero_num_chunks: 4, dreamzero_num_video_frames: 33, embodiment_tag: libero_sim,
          relative_action: False, relative_action_keys: [joint_position], action_loss_scale: 1.0}
  optim: {lr: 1.0e-5, adam_beta1: 0.95, adam_eps: 1.0e-08, weight_decay: 1.0e-5, clip_grad: 1.0,
          lr_warmup_steps_ratio: 0.05, total_training_steps: "${runner.max_steps}"}
  fsdp_config: {strategy: fsdp2, gradient_checkpointing: True, reshard_after_forward: False,
                mixed_precision: {param_dtype: bf16, reduce_dtype: bf16}}
)",
                                                              "libero.yaml");
  const train::TrainConfig config = train::parse_config(imported.yaml, {}, "imported");
  EXPECT_EQ(config.steps, 50000);
  EXPECT_EQ(config.validate_every, 0);
  EXPECT_EQ(config.global_batch_size, 256);
  EXPECT_EQ(config.model.preset, "5b");
  EXPECT_EQ(config.model.base, "models/DreamZero-Libero-5b");
  EXPECT_EQ(config.dataset.embodiment.tag, "libero_sim");
  EXPECT_EQ(config.dataset.embodiment.action_horizon, 16);
  EXPECT_TRUE(config.dataset.embodiment.relative_action_keys.empty());
  EXPECT_EQ(config.optimizer.adamw.beta1, 0.95);
  EXPECT_EQ(config.sharding.strategy, "full");
  EXPECT_FALSE(config.sharding.reshard_after_forward);
  EXPECT_EQ(config.dtype, DType::kBF16);
  for (const char* key :
       {"algorithm.adv_type", "data.prefetch_factor", "actor.model.action_loss_scale"})
    EXPECT_TRUE(lists(imported, key)) << key;
  EXPECT_FALSE(lists(imported, "actor.optim.lr"));
}

TEST(ImportConfig, DreamZero) {
  const train::ImportedConfig imported = train::import_config(R"(
max_steps: 10000
save_steps: 500
save_total_limit: 8
logging_steps: 10.0
per_device_train_batch_size: 4
global_batch_size: null
learning_rate: 1e-5
weight_decay: 1e-5
bf16: true
num_frames: 33
num_action_per_block: 24
max_chunk_size: 4
max_state_dim: 64
dit_version: models/Wan2.1-I2V-14B-480P
output_dir: runs/droid
embodiment_tag: oxe_droid
report_to: wandb
action_head_cfg: {_target_: x, config: {diffusion_model_cfg: {dim: 5120}, decouple_video_action_noise: true}}
)",
                                                              "conf.yaml");
  const train::TrainConfig config = train::parse_config(imported.yaml, {}, "imported");
  EXPECT_EQ(config.model.preset, "14b");
  EXPECT_EQ(config.model.dit.num_blocks, 4);
  EXPECT_EQ(config.global_batch_size, 4);
  EXPECT_EQ(config.keep_last, 8);
  EXPECT_EQ(config.noise, NoiseOption::kDecoupled);
  EXPECT_EQ(config.dataset.embodiment.tag, "oxe_droid");
  EXPECT_TRUE(lists(imported, "report_to"));
}

TEST(ImportConfig, OtherFilesAreRefused) {
  for (const char* text : {"a: 1", "[1, 2]", "a: [", "actor: {model: {model_type: openpi}}", ""})
    EXPECT_THROW(train::import_config(text, "x.yaml"), ConfigError) << text;
}

}  // namespace
}  // namespace wam::formats_test
