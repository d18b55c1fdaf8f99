#include "wam/train/open_loop.h"

#include <algorithm>
#include <cstring>

#include "wam/base/check.h"
#include "wam/base/philox.h"
#include "wam/passes/common_subexpressions.h"
#include "wam/passes/dead_code.h"
#include "wam/passes/fuse_linear_gelu.h"
#include "wam/passes/fuse_residual_norm.h"

namespace wam::train {
namespace {

constexpr const char* kCache = "cache.open_loop";

Program make_program(ParamSet& params, const DitConfig& model, const DitInferShape& shape,
                     const Target& target) {
  Graph graph(shape.with_actions ? "predict_block" : "observe");
  Builder b(graph);
  ParamUser user(b, params, DType::kF32);
  const DitInfer infer = build_dit_infer(user, model, shape, kCache);
  graph.add_output("video_velocity", infer.video);
  if (infer.action.valid()) graph.add_output("action_velocity", infer.action);
  merge_common_subexpressions(graph);
  fuse_linear_gelu(graph);
  fuse_residual_norm(graph);
  remove_dead_code(graph);
  return lower(graph, target, {.input_region = "inputs.open_loop"});
}

HostTensor filled(const Shape& shape, float value) {
  HostTensor tensor(DType::kF32, shape);
  std::ranges::fill(tensor.as<float>(), value);
  return tensor;
}

// Frames [first, first + count) of [1, F, ...].
HostTensor frames_of(const HostTensor& x, int64_t first, int64_t count) {
  std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  const int64_t size = x.num_elements() / dims[1];
  dims[1] = count;
  HostTensor part(DType::kF32, Shape(dims));
  std::copy_n(x.as<float>().begin() + first * size, count * size, part.as<float>().begin());
  return part;
}

HostTensor as_tensor(const std::vector<float>& values, const Shape& shape) {
  HostTensor tensor(DType::kF32, shape);
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

}  // namespace

OpenLoopPrograms::OpenLoopPrograms(const DitConfig& model, int64_t prompt_tokens, const Target& target)
    : params_(std::make_shared<ParamSet>("dit", false)) {
  DitInferShape shape{.frames = 1,
                      .first_frame = 0,
                      .cache_capacity = cache_capacity(model, model.num_frames()),
                      .text_tokens = prompt_tokens};
  shape.frames = 2;
  for (int64_t block = 0; block < model.num_blocks; ++block) {
    shape.first_frame = 1 + 2 * block;
    shape.cache_tokens = shape.first_frame * model.tokens_per_frame();
    shape.block = block;
    shape.with_actions = true;
    predict_.push_back(make_program(*params_, model, shape, target));
    shape.with_actions = false;
    observe_.push_back(make_program(*params_, model, shape, target));
  }
  shape = {.frames = 1, .first_frame = 0, .cache_capacity = shape.cache_capacity, .text_tokens = prompt_tokens};
  first_ = make_program(*params_, model, shape, target);
}

std::vector<const Program*> OpenLoopPrograms::programs() const {
  std::vector<const Program*> all = {&first_};
  for (const Program& program : predict_) all.push_back(&program);
  for (const Program& program : observe_) all.push_back(&program);
  return all;
}

OpenLoop::OpenLoop(const DitConfig& model, const OpenLoopPrograms& programs, Device& device,
                   std::shared_ptr<Memory> memory, OpenLoopOptions options)
    : model_(model), options_(options), first_(device.load(programs.first_frame(), memory, {})) {
  for (int64_t block = 0; block < model.num_blocks; ++block) {
    predict_.push_back(device.load(programs.predict(block), memory, {}));
    observe_.push_back(device.load(programs.observe(block), memory, {}));
  }
}

void OpenLoop::write_conditions(Executor& executor, const Encoded& encoded) {
  executor.write("context", encoded.context);
  executor.write("clip", encoded.clip);
}

void OpenLoop::write_frames(Executor& executor, const HostTensor& latents, const Encoded& encoded,
                            int64_t first, int64_t count, float timestep) {
  write_conditions(executor, encoded);
  executor.write("latents", latents);
  if (model_.has_y()) executor.write("y", frames_of(encoded.y, first, count));
  executor.write("timesteps", filled(Shape{1, count + 1}, timestep));
}

void OpenLoop::predict_block(int64_t block, const HostTensor& state, uint64_t index,
                             OpenLoopPrediction& out) {
  Executor& executor = *predict_[static_cast<size_t>(block)];
  const int64_t first = 1 + 2 * block, actions = model_.actions_per_block;
  const Shape video_shape = frames_of(encoded_->latents, first, 2).shape();
  const Shape action_shape{1, actions, model_.action_dim};
  std::vector<float> video(static_cast<size_t>(video_shape.num_elements()));
  std::vector<float> action(static_cast<size_t>(action_shape.num_elements()));
  fill_normal(video, options_.seed, RandomUse::kSampler, static_cast<uint64_t>(2 * block), index);
  fill_normal(action, options_.seed, RandomUse::kSampler, static_cast<uint64_t>(2 * block + 1), index);
  UnipcSampler video_sampler(options_.steps), action_sampler(options_.steps);
  HostTensor own_state(DType::kF32, Shape{1, 1, model_.state_dim});
  std::copy_n(state.as<float>().begin() + block * model_.state_dim, model_.state_dim,
              own_state.as<float>().begin());
  executor.write("state", own_state);
  for (int step = 0; step < options_.steps; ++step) {
    const auto time = static_cast<float>(video_sampler.schedule().timesteps[static_cast<size_t>(step)]);
    write_frames(executor, as_tensor(video, video_shape), *encoded_, first, 2, time);
    executor.write("action", as_tensor(action, action_shape));
    executor.write("action_timesteps", filled(Shape{1, actions}, time));
    executor.run();
    video_sampler.step(step, executor.read("video_velocity").as<float>(), video);
    action_sampler.step(step, executor.read("action_velocity").as<float>(), action);
  }
  std::ranges::copy(video, out.latents.as<float>().begin() + first * (std::ssize(video) / 2));
  std::ranges::copy(action, out.action.as<float>().begin() + block * std::ssize(action));
}

OpenLoopPrediction OpenLoop::run(const Encoded& encoded, const HostTensor& state, uint64_t index) {
  WAM_CHECK(encoded.latents.shape()[0] == 1) << "one window at a time";
  encoded_ = &encoded;
  OpenLoopPrediction out{HostTensor(DType::kF32, Shape{model_.num_actions(), model_.action_dim}),
                         encoded.latents.clone()};
  write_frames(*first_, frames_of(encoded.latents, 0, 1), encoded, 0, 1, 0);
  first_->run();
  for (int64_t block = 0; block < model_.num_blocks; ++block) {
    predict_block(block, state, index, out);
    Executor& observe = *observe_[static_cast<size_t>(block)];
    write_frames(observe, frames_of(encoded.latents, 1 + 2 * block, 2), encoded, 1 + 2 * block, 2, 0);
    observe.run();
  }
  return out;
}

}  // namespace wam::train
