// The training table bit for bit; the sampler step by step.
#include <bit>

#include "tests/golden/golden.h"
#include "wam/models/flow_schedule.h"
#include "wam/models/unipc.h"

namespace wam {
namespace {

using golden::File;
using golden::relative;

HostTensor tensor_of(std::span<const float> values) {
  HostTensor tensor(DType::kF32, Shape{static_cast<int64_t>(values.size())});
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

TEST(SchedulersGolden, TrainingTable) {
  const auto paths = golden::files("schedulers");
  if (paths.empty()) GTEST_SKIP() << "no schedulers*.safetensors in WAM_GOLDEN_DIR";
  const File file(paths.front());
  const HostTensor sigmas = file.load("train.sigmas"), timesteps = file.load("train.timesteps");
  for (size_t i = 0; i < kFlowSteps; ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(flow_table().sigma[i]),
              std::bit_cast<uint32_t>(sigmas.as<float>()[i]));
    EXPECT_EQ(std::bit_cast<uint32_t>(flow_table().timestep[i]),
              std::bit_cast<uint32_t>(timesteps.as<float>()[i]));
  }
  // Exponentials and a sum of 1000 terms: a few roundings of float32.
  EXPECT_LE(relative(tensor_of(flow_table().weight), file.f32("train.weights"), "weights"), 1e-6);
}

void check_sampler(const File& file, int steps) {
  const std::string prefix = "unipc" + std::to_string(steps) + ".";
  UnipcSampler sampler(steps);
  EXPECT_LE(relative(tensor_of(sampler.schedule().sigmas), file.f32(prefix + "sigmas"),
                     prefix + "sigmas"),
            1e-6);
  const HostTensor start = file.f32(prefix + "in.sample"), times = file.load(prefix + "timesteps");
  std::vector<float> sample(start.as<float>().begin(), start.as<float>().end());
  for (int i = 0; i < steps; ++i) {
    EXPECT_EQ(sampler.schedule().timesteps[static_cast<size_t>(i)],
              times.as<int64_t>()[static_cast<size_t>(i)]);
    std::vector<float> velocity;
    for (const float x : sample)
      velocity.push_back(std::tanh(0.7f * x + 0.1f * static_cast<float>(i)));
    sampler.step(i, velocity, sample);
    const std::string name = prefix + "sample." + std::to_string(i);
    EXPECT_LE(relative(tensor_of(sample), file.f32(name), name), 1e-5);
  }
}

TEST(SchedulersGolden, UnipcTraces) {
  const auto paths = golden::files("schedulers");
  if (paths.empty()) GTEST_SKIP() << "no schedulers*.safetensors in WAM_GOLDEN_DIR";
  const File file(paths.front());
  for (const int steps : {4, 16}) {
    if (file.has("unipc" + std::to_string(steps) + ".sigmas")) check_sampler(file, steps);
  }
}

}  // namespace
}  // namespace wam
