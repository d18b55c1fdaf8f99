#include "wam/train/encoders.h"

#include <algorithm>
#include <cstring>

#include "wam/base/check.h"
#include "wam/base/log.h"
#include "wam/models/weights.h"
#include "wam/train/base_model.h"
#include "wam/train/ranks.h"

namespace wam::train {
namespace {

// About a thousand UMT5-XXL prompts of a hundred tokens; one that was dropped is encoded again.
constexpr int64_t kMaxPromptBytes = int64_t{2} << 30;

// Rows [begin, begin + count) of the first dim, sharing the storage.
HostTensor rows_of(const HostTensor& x, int64_t begin, int64_t count) {
  std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  const int64_t row_bytes = x.size_bytes() / dims[0];
  dims[0] = count;
  HostTensor part(x.dtype(), Shape(dims));
  std::memcpy(part.data(), static_cast<const std::byte*>(x.data()) + begin * row_bytes,
              static_cast<size_t>(part.size_bytes()));
  return part;
}

// Puts `part` behind the first `begin` rows of `whole`, allocating it for `total` rows.
void put_rows(HostTensor& whole, const HostTensor& part, int64_t begin, int64_t total) {
  std::vector<int64_t> dims(part.shape().dims().begin(), part.shape().dims().end());
  const int64_t count = std::min(dims[0], total - begin), row_bytes = part.size_bytes() / dims[0];
  dims[0] = total;
  if (whole.empty()) whole = HostTensor(part.dtype(), Shape(dims));
  std::memcpy(static_cast<std::byte*>(whole.data()) + begin * row_bytes, part.data(),
              static_cast<size_t>(count * row_bytes));
}

// The type a set's weights have in the programs.
DType weight_type(const ParamSet& set, const EncoderPrograms& programs) {
  for (const Program* program : {&programs.pictures, &programs.prompt}) {
    for (const NamedOperand& state : program->states) {
      for (const std::string& prefix : {set.name() + "/", "shard/" + set.name() + "."}) {
        if (state.name.starts_with(prefix)) return state.operand.type.dtype;
      }
    }
  }
  return DType::kF32;
}

// Writes the piece of a tensor that this rank keeps of its flat buffer.
void write_kept(const ParamSet& set, const Sharding& sharding, const std::string& region, int64_t begin,
                const HostTensor& value, Memory& memory) {
  const auto buffer = std::ranges::find(set.buffers(), region, &FlatBuffer::region);
  int64_t from = 0, to = buffer->num_elements;
  if (sharding.divides_encoders()) {
    const dist::Axis axis = sharding.encoder_axis();
    const int64_t part = shard_elements(buffer->num_elements, sharding.mesh.size(axis));
    from = sharding.mesh.coordinate(axis) * part;
    to = from + part;
  }
  const int64_t first = std::max(begin, from), last = std::min(begin + value.num_elements(), to);
  if (first >= last) return;
  const int64_t bytes = size_bytes(value.dtype());
  memory.write_region(region, (first - from) * bytes,
                      static_cast<const std::byte*>(value.data()) + (first - begin) * bytes,
                      (last - first) * bytes);
}

void load_set(const ParamSet& set, ModelPart part_of, const std::string& weights, const TrainConfig& config,
              const EncoderPrograms& programs, Memory& memory) {
  const DType dtype = weight_type(set, programs);
  const Sharding sharding = encoder_sharding(config);
  const PartWriter write = [&](const Param& param, const ParamPart& part, const HostTensor& value) {
    write_kept(set, sharding, param.region, param.offset_elements + part.offset_elements, value.to(dtype),
               memory);
  };
  if (weights.empty()) {
    initialise_weights(set, config.seed, write, [&](const Param& param, const ParamPart& part) {
      if (!is_uniform(part) || sharding.divides_encoders()) return false;
      const double bound = uniform_bound(part);
      memory.draw_uniform({.region = param.region,
                           .offset = param.offset_elements + part.offset_elements,
                           .dtype = dtype},
                          part.shape.num_elements(), init_stream(part, config.seed), -bound, bound);
      return true;
    });
    log_info("frozen " + set.name() + " initialised from the seed");
    return;
  }
  const LoadReport report =
      load_weights(set, *open_model(weights, part_of), encoder_load_options(config, part_of), write);
  log_info("frozen " + set.name() + ": " + std::to_string(report.loaded) + " tensors from " + weights);
}

}  // namespace

Encoders::Encoders(const EncoderPrograms& programs, Device& device, std::shared_ptr<Memory> memory,
                   int64_t prompt_tokens, const ExecOptions& exec, Most most)
    : pictures_(device.load(programs.pictures, memory, exec)),
      prompt_(device.load(programs.prompt, memory, exec)),
      most_(std::move(most)),
      prompt_tokens_(prompt_tokens) {
  for (const NamedOperand& output : programs.pictures.outputs) outputs_.push_back(output.name);
}

void Encoders::run_pictures(const HostTensor& frames, const std::function<void(int64_t, int64_t)>& take) {
  const int64_t batch = frames.shape()[0];
  const Shape& input = pictures_->program().inputs.front().operand.type.shape;
  const int64_t sub = input[0];
  for (int64_t begin = 0; begin < batch; begin += sub) {
    const int64_t count = std::min(sub, batch - begin);
    HostTensor part = rows_of(frames, begin, count);
    if (count < sub) {
      // A last short group is filled with its first clip; the extra results are dropped.
      HostTensor full(part.dtype(), input);
      for (int64_t i = 0; i < sub; ++i) put_rows(full, rows_of(part, i < count ? i : 0, 1), i, sub);
      part = full;
    }
    pictures_->write("frames", part);
    pictures_->run();
    take(begin, count);
  }
}

HostTensor Encoders::encode_latents(const HostTensor& frames) {
  HostTensor latents;
  run_pictures(frames, [&](int64_t begin, int64_t) {
    put_rows(latents, pictures_->read("latents"), begin, frames.shape()[0]);
  });
  return latents;
}

const HostTensor& Encoders::prompt(const std::vector<int32_t>& ids, const std::string& text) {
  const auto known = prompts_.find(ids);
  if (known != prompts_.end()) return known->second;
  const Shape shape = prompt_->program().inputs.front().operand.type.shape;
  const auto count = static_cast<int64_t>(ids.size());
  const bool cut = prompt_tokens_ < shape[1];
  if (count > prompt_tokens_ - (cut ? 1 : 0)) {
    throw DataError({.where = "prompt '" + text + "'",
                     .what = "has more tokens than the text condition has rows",
                     .got = std::to_string(count) + " tokens",
                     .expected = "at most " + std::to_string(prompt_tokens_ - (cut ? 1 : 0)),
                     .remedy = "Set text_encoder.prompt_tokens to " + std::to_string(count + 1) +
                               " or more (model.text_len at most)."});
  }
  run_prompt(ids);
  const HostTensor all = prompt_->read("prompt");
  HostTensor kept(all.dtype(), Shape{count, all.shape()[2]});
  std::memcpy(kept.data(), all.data(), static_cast<size_t>(kept.size_bytes()));
  while (!prompt_order_.empty() && prompt_bytes_ + kept.size_bytes() > kMaxPromptBytes) {
    const auto oldest = prompts_.find(prompt_order_.front());
    prompt_bytes_ -= oldest->second.size_bytes();
    prompts_.erase(oldest);
    prompt_order_.pop_front();
  }
  prompt_bytes_ += kept.size_bytes();
  prompt_order_.push_back(ids);
  return prompts_.emplace(ids, std::move(kept)).first->second;
}

void Encoders::run_prompt(const std::vector<int32_t>& ids) {
  const Shape shape = prompt_->program().inputs.front().operand.type.shape;
  HostTensor id_tensor = HostTensor::zeros(DType::kI32, shape), mask = HostTensor::zeros(DType::kF32, shape);
  std::ranges::copy(ids, id_tensor.as<int32_t>().begin());
  std::fill_n(mask.as<float>().begin(), std::ssize(ids), 1.0f);
  prompt_->write("ids", id_tensor);
  prompt_->write("mask", mask);
  prompt_->run();
}

void Encoders::encode_new(const std::vector<std::vector<int32_t>>& ids,
                          const std::vector<std::string>& prompts) {
  std::map<std::vector<int32_t>, size_t> unknown;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!prompts_.contains(ids[i])) unknown.emplace(ids[i], i);
  }
  const int64_t rounds = most_(std::ssize(unknown));
  for (const auto& [tokens, i] : unknown) prompt(tokens, prompts[i]);
  for (int64_t i = std::ssize(unknown); i < rounds; ++i) run_prompt(ids.front());
}

Encoded Encoders::encode(const HostTensor& frames, const std::vector<std::vector<int32_t>>& ids,
                         const std::vector<std::string>& prompts) {
  Encoded out;
  const int64_t batch = frames.shape()[0];
  run_pictures(frames, [&](int64_t begin, int64_t) {
    for (const std::string& name : outputs_) {
      HostTensor& whole = name == "latents" ? out.latents : name == "y" ? out.y : out.clip;
      put_rows(whole, pictures_->read(name), begin, batch);
    }
  });
  out.context = context_of(ids, prompts);
  return out;
}

Encoded Encoders::encode_into(Executor& step, const HostTensor& frames,
                              const std::vector<std::vector<int32_t>>& ids,
                              const std::vector<std::string>& prompts) {
  run_pictures(frames, [&](int64_t begin, int64_t count) {
    for (const NamedOperand& output : pictures_->program().outputs) {
      const TensorType& type = output.operand.type;
      const int64_t row = type.size_bytes() / type.shape[0];
      pictures_->copy_output(output.name, count * row, step, output.name, begin * row);
    }
  });
  return {.context = context_of(ids, prompts)};
}

HostTensor Encoders::context_of(const std::vector<std::vector<int32_t>>& ids,
                                const std::vector<std::string>& prompts) {
  HostTensor context;
  if (most_) encode_new(ids, prompts);
  for (size_t i = 0; i < ids.size(); ++i) {
    const HostTensor& embedding = prompt(ids[i], prompts[i]);
    if (context.empty()) {
      context = HostTensor::zeros(embedding.dtype(), Shape{static_cast<int64_t>(ids.size()), prompt_tokens_,
                                                           embedding.shape()[1]});
    }
    const int64_t row = context.size_bytes() / context.shape()[0];
    std::memcpy(static_cast<std::byte*>(context.data()) + static_cast<int64_t>(i) * row, embedding.data(),
                static_cast<size_t>(embedding.size_bytes()));
  }
  return context;
}

void load_encoder_weights(const TrainConfig& config, const EncoderPrograms& programs, Memory& memory) {
  load_set(*programs.vae, ModelPart::kVae, config.vae.weights, config, programs, memory);
  load_set(*programs.text, ModelPart::kText, config.text_encoder.weights, config, programs, memory);
  load_set(*programs.clip, ModelPart::kClip, config.clip.weights, config, programs, memory);
}

}  // namespace wam::train
