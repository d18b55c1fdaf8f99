// The order in which a run draws the rows of its datasets: a permutation of all of them per epoch,
// computed from the place in the run, with nothing stored and nothing to save for a resume.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "wam/base/philox.h"
#include "wam/data/mixture_schedule.h"

namespace wam::data {

// A bijection of [0, size) chosen by (seed, epoch): a Feistel network on the smallest even number
// of bits that holds size, walked until the result lies inside (four steps on average at most).
class KeyedPermutation {
 public:
  KeyedPermutation(uint64_t size, uint64_t seed, uint64_t epoch);
  uint64_t size() const { return size_; }
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t encrypt(uint64_t value) const;

  uint64_t size_, epoch_;
  uint32_t key0_, key1_;
  int half_bits_;
};

// A row among all used rows of one of the datasets.
struct OrderedRow {
  int64_t dataset = 0;
  int64_t row = 0;
  bool operator==(const OrderedRow&) const = default;
};

// Without weights every row of all datasets comes once per epoch. With weights (one per dataset)
// each dataset has its share of every prefix of the stream to within one draw (mixture_schedule.h)
// and goes through epochs of its own.
class SampleOrder {
 public:
  // Every dataset must have rows. Throws ConfigError unless the weights are as many as datasets,
  // positive and finite.
  SampleOrder(std::vector<int64_t> dataset_rows, const std::vector<double>& weights, uint64_t seed);

  int64_t total_rows() const { return starts_.back(); }
  // Of the draws; 1 for a single dataset.
  double share(int64_t dataset) const;
  // The row at place `draw` of the run, counted from 0.
  OrderedRow at(uint64_t draw) const;
  // A uniform row in place of a rejected one: of the same dataset with weights, else of all.
  OrderedRow redraw(const OrderedRow& rejected, Random& random) const;

 private:
  OrderedRow locate(uint64_t row) const;
  OrderedRow weighted_at(uint64_t draw) const;

  std::vector<int64_t> starts_;                      // [datasets + 1] rows before each dataset
  std::unique_ptr<const MixtureSchedule> schedule_;  // null: no weights
  uint64_t seed_;
};

}  // namespace wam::data
