// Frozen encoders at work: pictures to latents and image tokens, prompts to embeddings, each distinct
// prompt encoded once and kept (real tokens only) in host memory.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "wam/train/run_plan.h"

namespace wam::train {

// What the encoders make of a micro-batch, on the host; ft is the programs' floating type. Pictures'
// results that went straight into a step's inputs are empty here.
struct Encoded {
  HostTensor latents;  // f32 [B, F, h, w, C]
  HostTensor y;        // f32 [B, F, h, w, Cy]; empty if the model has none
  HostTensor clip;     // ft [B, tokens, dim]
  HostTensor context;  // ft [B, Lt, text_dim], zero behind each prompt's tokens
};

class Encoders {
 public:
  // Most of a number over the ranks among which the encoders are divided.
  using Most = std::function<int64_t(int64_t)>;
  // The memory must be planned for the programs. `prompt_tokens` is Lt. Of encoders divided over
  // ranks `exec` holds the communicators, and `most` is not null: then all ranks call the functions
  // below together, as often and with as many clips.
  Encoders(const EncoderPrograms& programs, Device& device, std::shared_ptr<Memory> memory,
           int64_t prompt_tokens, const ExecOptions& exec = {}, Most most = nullptr);

  // frames u8 [B, T, h, w, 3]; ids with end-of-sequence, not padded. DataError if a prompt has no room
  // in Lt rows (one row stands for the padding).
  Encoded encode(const HostTensor& frames, const std::vector<std::vector<int32_t>>& ids,
                 const std::vector<std::string>& prompts);
  // The same with latents, y and clip put into `step`'s inputs; both on one Memory. Only enqueues,
  // except for prompts that were not seen before.
  Encoded encode_into(Executor& step, const HostTensor& frames, const std::vector<std::vector<int32_t>>& ids,
                      const std::vector<std::string>& prompts);
  // The latents alone: for measuring their statistics.
  HostTensor encode_latents(const HostTensor& frames);

 private:
  // Runs the program over groups of its batch size; after each, take(first row, rows).
  void run_pictures(const HostTensor& frames, const std::function<void(int64_t, int64_t)>& take);
  HostTensor context_of(const std::vector<std::vector<int32_t>>& ids, const std::vector<std::string>& prompts);
  const HostTensor& prompt(const std::vector<int32_t>& ids, const std::string& text);

  // Encodes those of `ids` that are not known, as often as the rank that has most of them.
  void encode_new(const std::vector<std::vector<int32_t>>& ids, const std::vector<std::string>& prompts);
  void run_prompt(const std::vector<int32_t>& ids);

  std::unique_ptr<Executor> pictures_, prompt_;
  Most most_;
  std::vector<std::string> outputs_;  // of pictures_
  int64_t prompt_tokens_;
  std::map<std::vector<int32_t>, HostTensor> prompts_;  // [tokens, dim], kMaxPromptBytes in all
  std::deque<std::vector<int32_t>> prompt_order_;       // oldest first: the next to go
  int64_t prompt_bytes_ = 0;
};

// Weights of all three from their files, or from the seed. Reports what it did in the log.
// A rank keeps its part of weights that are divided.
void load_encoder_weights(const TrainConfig& config, const EncoderPrograms& programs, Memory& memory);

}  // namespace wam::train
