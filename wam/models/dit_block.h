// Parts of the DreamZero transformer shared by training and inference. Each function appends plain
// ops; passes fuse them. Shapes: x [B, L, D] of the graph's floating type; tables [B, T, D] in the
// statistics type; index i32 [L] token -> row of T.
#pragma once

#include <functional>

#include "wam/models/dit_config.h"
#include "wam/models/params.h"

namespace wam {

// t [B, T] -> t_emb [B, T, D] and its projection [B, T, 6 D], both in the statistics type.
struct TimeEmbedding {
  ValueId embedding, projection;
};
TimeEmbedding embed_time(ParamUser& params, const DitConfig& config, ValueId timesteps);

// Text [B, Lt, text_dim] and image tokens [B, 257, clip_dim] -> [B, ., D].
ValueId embed_text(ParamUser& params, const DitConfig& config, ValueId text);
ValueId embed_image(ParamUser& params, const DitConfig& config, ValueId tokens);

// Patches [B, n, 4 (C + y)] in channel-first order -> [B, n, D].
ValueId embed_patches(ParamUser& params, const DitConfig& config, ValueId patches);
// Noised actions [B, n, action_dim] at timesteps [B, n] (statistics type) -> [B, n, D].
ValueId encode_actions(ParamUser& params, const DitConfig& config, ValueId actions, ValueId timesteps);
ValueId encode_states(ParamUser& params, const DitConfig& config, ValueId states);
ValueId decode_actions(ParamUser& params, const DitConfig& config, ValueId tokens);

// What is the same for all blocks.
struct BlockContext {
  ValueId projection;  // [B, T, 6 D]
  ValueId index;       // i32 [L]
  ValueId text;        // [B, Lt, D]
  ValueId image;       // [B, 257, D]
  ValueId text_bias;   // [Lt] added to the scores of text keys; may be invalid
  ValueId rope;        // [L, d/2, 2]
};
// qkv [B, L, 3 D] after normalisation and rotation -> attention output [B, L, D].
using SelfAttention = std::function<ValueId(int layer, ValueId qkv)>;

ValueId transformer_block(ParamUser& params, const DitConfig& config, int layer, ValueId x,
                          const BlockContext& context, const SelfAttention& attend);

// Noisy video tokens x [B, n, D] -> [B, n, 4 C] in channel-last order. `embedding` is t_emb,
// `index` i32 [n].
ValueId head(ParamUser& params, const DitConfig& config, ValueId x, ValueId embedding, ValueId index);

// Score bias [Lt] for a text condition cut to Lt rows, whose last row stands for all padding rows
// from there on: n equal keys equal one key with log(n) added. Invalid where nothing was cut.
ValueId padding_bias(Builder& b, const DitConfig& config, int64_t text_tokens, DType dtype);

// Helpers of model builders.
ValueId constant_i32(Builder& b, const std::vector<int32_t>& values, const std::string& name);

}  // namespace wam
