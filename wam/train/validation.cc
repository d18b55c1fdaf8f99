#include "wam/train/validation.h"

#include "wam/data/loader.h"

namespace wam::train {
namespace {

constexpr uint64_t kNoiseSeed = 0x76616c6e6f697365ULL;

}  // namespace

Validation::Validation(Session& session)
    : session_(session),
      executor_(session.device->load(session.plan.step.validation, session.memory, session.exec())) {
  const TrainConfig& c = session.config;
  const int64_t micro = c.micro_batch_size;
  const int64_t batches = (c.validation_samples + micro - 1) / micro;
  data::Loader loader({.samples_per_step = batches * micro,
                       .micro_batch_size = micro,
                       .num_workers = c.dataset.num_workers,
                       .prefetch_batches = c.dataset.prefetch_batches},
                      session.data.validation);
  for (int64_t i = 0; i < batches; ++i) {
    const data::Batch batch = loader.next();
    const Encoded encoded = session.encoders->encode(batch.video, batch.token_ids, batch.prompts);
    batches_.push_back(make_step_inputs(c, session.plan.model, batch, encoded,
                                        {kNoiseSeed, 0, i * micro}));
  }
}

StepMetrics Validation::run() {
  StepMetrics mean;
  const double share = 1.0 / static_cast<double>(batches_.size());
  for (const StepInputs& inputs : batches_) {
    inputs.write_to(*executor_);
    executor_->run();
    mean.loss += share * executor_->read("loss").as<float>()[0];
    mean.dynamics_loss += share * executor_->read("dynamics_loss").as<float>()[0];
    mean.action_loss += share * executor_->read("action_loss").as<float>()[0];
  }
  return mean;
}

}  // namespace wam::train
