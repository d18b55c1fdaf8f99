// bf16 training through the whole trainer, on the CPU: the split master, checkpoints, resume.
#include <gtest/gtest.h>

#include "tests/e2e/small_run.h"
#include "wam/base/error.h"
#include "wam/tensor/archive.h"

namespace wam::e2e {
namespace {

const std::vector<std::string> kBf16 = {"dtype=bf16", "steps=12"};

std::vector<std::string> with(std::vector<std::string> base, const std::vector<std::string>& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

TEST(Bf16Training, ResumeEqualsTheUninterruptedRun) {
  const TempDir folder;
  run(config(folder / "whole", with(kBf16, {"save_every=12"})));
  // The schedule knows of 12 steps; the first half ends early as a signal would end it.
  run(config(folder / "half", with(kBf16, {"save_every=6", "keep_last=9"})));
  std::filesystem::remove_all(folder / "half" / "checkpoints" / "step_00000012");
  run(config(folder / "half", with(kBf16, {"save_every=6", "keep_last=9"})), /*resume=*/true);
  for (const std::string file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(checkpoint_bytes(folder / "whole", 12, file), checkpoint_bytes(folder / "half", 12, file)) << file;
  }
}

TEST(Bf16Training, CheckpointHoldsTheMaster) {
  const TempDir folder;
  run(config(folder / "run", kBf16));
  const auto archive =
      open_tensor_archive(folder / "run" / "checkpoints" / "step_00000012" / "model.safetensors");
  const HostTensor weight = archive->load("blocks.0.ffn.0.weight");
  ASSERT_EQ(weight.dtype(), DType::kF32);
  int64_t finer = 0;
  for (const float x : weight.as<float>()) finer += bf16_to_float(float_to_bf16(x)) != x;
  EXPECT_GT(finer, weight.num_elements() / 2);  // more than bf16 could say
}

// Gradients rounded to bf16 are another sum, but the same training.
TEST(Bf16Training, NarrowGradientsTrainToo) {
  const TempDir folder;
  run(config(folder / "wide", kBf16));
  run(config(folder / "narrow", with(kBf16, {"gradient_dtype=bf16"})));
  const std::vector<double> a = losses(folder / "wide"), b = losses(folder / "narrow");
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.front(), b.front());
  EXPECT_NE(a, b);
  // A rounding of at most 2^-9 of a gradient cannot move the loss by more than a few of its sizes.
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.02 * a[i]) << i;
}

TEST(Bf16Training, StaysBesideFloat32) {
  const TempDir folder;
  run(config(folder / "wide", {"steps=12"}));
  run(config(folder / "narrow", kBf16));
  const std::vector<double> a = losses(folder / "wide"), b = losses(folder / "narrow");
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.03 * a[i]) << i;
}

TEST(Bf16Training, NarrowGradientsBesideWideWeightsAreRefused) {
  const TempDir folder;
  EXPECT_THROW(config(folder / "run", {"gradient_dtype=bf16"}), ConfigError);
}

}  // namespace
}  // namespace wam::e2e
