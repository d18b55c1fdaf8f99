// Predictions against what an H200 took (docs/performance.md, "The 5B step").
#include "wam/train/cost_model.h"

#include <gtest/gtest.h>

#include "wam/base/error.h"
#include "wam/exec/cuda.h"
#include "wam/train/fit.h"
#include "wam/train/micro_batches.h"
#include "wam/train/step.h"

namespace wam::train {
namespace {

// The bar for a prediction is 15 % of what is seen.
constexpr double kBar = 0.15;

struct Measured {
  const char* what;
  bool is_14b;
  int64_t layers, batch, accumulate, text_rows;
  bool full_recompute, with_optimizer;
  double milliseconds;
};

constexpr Measured kMeasured[] = {
    {"5B, 8 x 4, 90 tokens", false, 30, 8, 4, 91, false, true, 1566.7},
    {"5B, 8 x 4, 512 tokens", false, 30, 8, 4, 512, false, true, 1675.0},
    {"5B, one sample", false, 30, 1, 1, 91, false, true, 99.4},
    {"14B, 2 layers", true, 2, 1, 1, 91, false, false, 112.0},
    {"14B, 4 layers", true, 4, 1, 1, 91, false, false, 226.2},
    {"14B, 2 layers, recomputed", true, 2, 1, 1, 91, true, false, 147.5},
    {"14B, 4 layers, recomputed", true, 4, 1, 1, 91, true, false, 303.5},
};

StepPrograms build(const Measured& m) {
  StepOptions o;
  o.model = m.is_14b ? dit_14b() : dit_5b();
  o.model.actions_per_block = m.is_14b ? 24 : 16;
  o.model.layers = m.layers;
  o.shape.batch = m.batch;
  o.shape.text_tokens = m.text_rows;
  o.accumulate = m.accumulate;
  o.dtype = DType::kBF16;
  if (m.full_recompute) o.recompute.policy = RecomputePolicy::kFull;
  return build_step(o, cuda_target());
}

TEST(CostModel, PredictsWhatWasMeasured) {
  const CardRates& rates = find_card("test", "h200").rates;
  for (const Measured& m : kMeasured) {
    const StepPrograms step = build(m);
    double seconds = predict_seconds(step.first, rates);
    if (step.add) {
      seconds += static_cast<double>(m.accumulate - 1) * predict_seconds(*step.add, rates);
    }
    if (m.with_optimizer) seconds += predict_seconds(step.optimizer, rates);
    std::printf("%s: predicted %.1f ms, measured %.1f (%+.1f %%)\n", m.what, 1e3 * seconds,
                m.milliseconds, 100 * (1e3 * seconds / m.milliseconds - 1));
    EXPECT_NEAR(1e3 * seconds, m.milliseconds, kBar * m.milliseconds) << m.what;
  }
}

TEST(CostModel, RefusesACardItDoesNotKnow) {
  try {
    find_card("--gpu", "h20");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.info().expected.find("h200"), std::string::npos);
    EXPECT_FALSE(error.info().remedy.empty());
  }
}

constexpr const char* kRun = R"(
device: cuda
global_batch_size: 32
micro_batch_size: 8
recompute: auto
picture_height: 160
picture_width: 320
text_encoder: {tokenizer: bytes, prompt_tokens: 91}
vae: {sub_batch: 8}
dataset: {embodiment: libero_sim}
)";

TEST(MicroBatches, ChoosesWhatFitsWithoutRecompute) {
  const Card& card = find_card("test", "h200");
  const auto choices = compare_micro_batches(parse_config(kRun, {}, "test"), card);
  ASSERT_EQ(choices.size(), 6u);  // 1, 2, ..., 32
  for (const MicroBatchChoice& c : choices) {
    ASSERT_TRUE(c.refusal.empty()) << c.refusal;
    EXPECT_LE(c.planned_bytes, card.free_bytes - kDeviceReserve);
    EXPECT_EQ(c.samples, 32);
  }
  EXPECT_EQ(choices[0].recomputed_share, 0);  // one sample fits easily
  EXPECT_GT(choices[5].recomputed_share, choices[3].recomputed_share);
  // Small micro-batches read weights and gradients more often.
  EXPECT_GT(choices[0].step_seconds, choices[2].step_seconds);
  EXPECT_NE(describe(choices, card).find("best: micro_batch_size: "), std::string::npos);
}

TEST(MicroBatches, SaysThatNothingFits) {
  Card card = find_card("test", "h200");
  card.free_bytes = int64_t{20} << 30;
  const auto choices =
      compare_micro_batches(parse_config(kRun, {"global_batch_size=8"}, "test"), card);
  for (const MicroBatchChoice& c : choices) EXPECT_FALSE(c.refusal.empty());
  EXPECT_NE(describe(choices, card).find("none fits"), std::string::npos);
}

}  // namespace
}  // namespace wam::train
