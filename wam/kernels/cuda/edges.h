// Kernels at the model's edges: patches, timesteps, tables. Small next to the blocks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/tensor/dtype.h"

namespace wam::cuda {

// Frames [batch * frames, height, width, channels] <-> patches [.., 4 * channels] of 2 x 2 pixels.
struct Patches {
  int64_t frames = 0, height = 0, width = 0, channels = 0;  // frames of all samples
  bool channel_first = false;  // (channel, row, column) within a patch, else (row, column, channel)
  DType from = DType::kF32, to = DType::kF32;
};
void launch_patchify(const Patches& p, const void* x, void* y, cudaStream_t stream);
void launch_unpatchify(const Patches& p, const void* x, void* y, cudaStream_t stream);

void launch_timestep_embedding(const float* t, int64_t count, int64_t dim, bool cos_first, float* y,
                               cudaStream_t stream);

struct LerpRows {
  DType dtype = DType::kF32;
  int64_t batch = 0, length = 0, width = 0, num_rows = 0;
};
void launch_lerp_rows(const LerpRows& a, const void* x, const void* noise, const float* sigma,
                      const int32_t* index, void* y, cudaStream_t stream);

// table[j, row, c] = e[row, j, c] + m[j, c].
struct ModulationTable {
  int64_t parts = 0, rows = 0, width = 0;
  DType m_dtype = DType::kF32;
};
void launch_modulation_table(const ModulationTable& a, const float* e, const void* m, float* table,
                             cudaStream_t stream);

void launch_relative_bias(DType dtype, const void* table, const int32_t* bucket, int64_t heads,
                          int64_t queries, int64_t keys, float* y, cudaStream_t stream);

}  // namespace wam::cuda
