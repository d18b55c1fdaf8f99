#include "wam/train/source_losses.h"

#include "wam/base/check.h"

namespace wam::train {

std::vector<double> sample_records(std::span<const data::SampleId> ids, std::span<const float> losses,
                                   std::span<const int64_t> part_sources) {
  WAM_CHECK(losses.size() == 2 * ids.size()) << losses.size() << " losses of " << ids.size();
  std::vector<double> records;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t part = ids[i].dataset;
    const int64_t source = part_sources.empty() ? part : part_sources[static_cast<size_t>(part)];
    records.insert(records.end(), {static_cast<double>(source), losses[i], losses[ids.size() + i]});
  }
  return records;
}

void SourceSums::add(std::span<const double> records) {
  WAM_CHECK(records.size() % 3 == 0) << records.size();
  for (size_t i = 0; i < records.size(); i += 3) {
    SourceLoss& sum = sums_.at(static_cast<size_t>(records[i]));
    ++sum.samples;
    sum.dynamics_loss += records[i + 1];
    sum.action_loss += records[i + 2];
  }
}

std::vector<SourceLoss> SourceSums::means() const {
  std::vector<SourceLoss> means = sums_;
  for (SourceLoss& mean : means) {
    if (mean.samples == 0) continue;
    mean.dynamics_loss /= static_cast<double>(mean.samples);
    mean.action_loss /= static_cast<double>(mean.samples);
  }
  return means;
}

}  // namespace wam::train
