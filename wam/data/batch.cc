// Stacking samples.
#include <cstring>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/data/loader.h"

namespace wam::data {
namespace {

Shape stacked(const Shape& shape, int64_t size) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.insert(dims.begin(), size);
  return Shape(dims);
}

void put(const HostTensor& part, int64_t i, const char* name, HostTensor& whole) {
  const Shape want = stacked(part.shape(), whole.shape()[0]);
  if (part.dtype() != whole.dtype() || !(want == whole.shape())) {
    throw DataError(
        {.where = std::string("sample's ") + name,
         .what = "another shape than the rest of the batch",
         .got = part.type().to_string(),
         .expected = whole.type().to_string(),
         .remedy = "Datasets of one run need the same blocks, horizon and view sizes."});
  }
  const auto bytes = static_cast<size_t>(part.size_bytes());
  std::memcpy(static_cast<char*>(whole.data()) + bytes * static_cast<size_t>(i), part.data(),
              bytes);
}

}  // namespace

void allocate_batch(const Sample& sample, int64_t size, Batch& batch) {
  const auto make = [&](const HostTensor& part) {
    return HostTensor(part.dtype(), stacked(part.shape(), size));
  };
  batch.video = make(sample.video);
  batch.action = make(sample.action);
  batch.action_mask = make(sample.action_mask);
  batch.state = make(sample.state);
  batch.video_mask = make(sample.video_mask);
  batch.has_real_action = HostTensor(DType::kF32, {size});
  batch.ids.resize(static_cast<size_t>(size));
  batch.prompts.resize(static_cast<size_t>(size));
  batch.token_ids.resize(static_cast<size_t>(size));
}

void put_sample(Sample sample, int64_t i, Batch& batch) {
  WAM_CHECK(i >= 0 && i < std::ssize(batch.ids));
  const auto at = static_cast<size_t>(i);
  put(sample.video, i, "video", batch.video);
  put(sample.action, i, "action", batch.action);
  put(sample.action_mask, i, "action_mask", batch.action_mask);
  put(sample.state, i, "state", batch.state);
  put(sample.video_mask, i, "video_mask", batch.video_mask);
  batch.has_real_action.as<float>()[at] = sample.has_real_action;
  batch.ids[at] = sample.id;
  batch.prompts[at] = std::move(sample.prompt);
  batch.token_ids[at] = std::move(sample.token_ids);
}

}  // namespace wam::data
