#include "wam/train/validation.h"

#include <algorithm>
#include <span>

#include "wam/data/loader.h"
#include "wam/train/source_losses.h"

namespace wam::train {
namespace {

constexpr uint64_t kNoiseSeed = 0x76616c6e6f697365ULL;

}  // namespace

Validation::Validation(Session& session, const Ranks& ranks)
    : session_(session),
      ranks_(ranks),
      executor_(session.device->load(session.plan.step.validation, session.memory, session.exec())) {
  const TrainConfig& c = session.config;
  num_batches_ = (c.validation_samples + c.micro_batch_size - 1) / c.micro_batch_size;
  rounds_ = (num_batches_ + ranks.size() - 1) / ranks.size();
  Share own = share_of(ranks.rank());
  // Who has none runs the last one along: the programs of sharded weights need all ranks.
  if (own.first == own.end) own = {num_batches_ - 1, num_batches_};
  load(own);
}

Validation::Share Validation::share_of(int rank) const {
  return {std::min(num_batches_, rank * rounds_), std::min(num_batches_, (rank + 1) * rounds_)};
}

void Validation::load(const Share& own) {
  const TrainConfig& c = session_.config;
  const int64_t micro = c.micro_batch_size;
  data::Loader loader({.first_index = own.first * micro,
                       .samples_per_step = (own.end - own.first) * micro,
                       .micro_batch_size = micro,
                       .num_workers = c.dataset.num_workers,
                       .prefetch_batches = c.dataset.prefetch_batches},
                      session_.data.validation);
  data::Batch batch;
  for (int64_t i = own.first; i < own.first + rounds_; ++i) {
    if (i < own.end) batch = loader.next();
    // Divided encoders need all ranks, also those whose share is done.
    const Encoded encoded = session_.encoders->encode(batch.video, batch.token_ids, batch.prompts);
    if (i >= own.end) continue;
    ids_.push_back(batch.ids);
    batches_.push_back(make_step_inputs(c, session_.plan.model, batch, encoded,
                                        {kNoiseSeed, 0, i * micro}));
  }
}

std::vector<double> Validation::losses(size_t batch) {
  batches_[batch].write_to(*executor_);
  executor_->run();
  std::vector<double> values;
  for (const char* name : {"loss", "dynamics_loss", "action_loss"})
    values.push_back(executor_->read(name).as<float>()[0]);
  if (!is_mixture()) return values;
  const HostTensor of_samples = executor_->read("sample_losses");
  const std::vector<double> records =
      sample_records(ids_[batch], of_samples.as<float>(), session_.data.validation_sources);
  values.insert(values.end(), records.begin(), records.end());
  return values;
}

StepMetrics Validation::run() {
  std::vector<double> own;
  for (int64_t i = 0; i < rounds_; ++i) {
    const std::vector<double> values = losses(static_cast<size_t>(std::min(i, std::ssize(batches_) - 1)));
    own.insert(own.end(), values.begin(), values.end());
  }
  const std::vector<double> all = ranks_.gather(own);
  StepMetrics mean;
  const double share = 1.0 / static_cast<double>(num_batches_);
  const auto records = static_cast<size_t>(is_mixture() ? 3 * session_.config.micro_batch_size : 0);
  SourceSums sums(session_.data.sources.size());
  // Shares follow each other without gaps: all but the last ranks' are `rounds_` long.
  for (int64_t i = 0; i < num_batches_; ++i) {
    const auto values = std::span(all).subspan(static_cast<size_t>(i) * (3 + records), 3 + records);
    mean.loss += share * values[0];
    mean.dynamics_loss += share * values[1];
    mean.action_loss += share * values[2];
    sums.add(values.subspan(3));
  }
  if (is_mixture()) mean.sources = sums.means();
  return mean;
}

}  // namespace wam::train
