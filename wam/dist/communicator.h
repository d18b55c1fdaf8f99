// Collectives of a group of ranks. All ranks of a group call the same functions with the same sizes
// in the same order. Sums are taken in the order of the ranks, ((x0 + x1) + x2) + ..., in float32
// (float64 for f64), so that the same number of ranks gives the same bits every time, whatever
// carries the bytes.
#pragma once

#include <cstdint>

#include "wam/tensor/dtype.h"

namespace wam::dist {

// How a reduction treats its terms. With kBF16 every rank's term is rounded to bf16 on its way, and
// the result of an all_reduce is; half the bytes of float32.
struct Reduction {
  DType dtype = DType::kF32;  // of input and output: f32, bf16 or f64
  DType wire = DType::kF32;   // of the terms on their way: kF32 (f64 for f64 data) or kBF16
};

struct CommStats {
  int64_t calls = 0;
  int64_t bytes_received = 0;
  double seconds = 0;  // inside collectives: waiting for others and moving bytes
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // within the group
  virtual int size() const = 0;
  // Whether its work only goes onto the stream, so that a CUDA graph can hold it.
  virtual bool can_be_captured() const { return false; }

  // out[r * bytes ...] = rank r's `in`. `in` may lie at out + rank() * bytes.
  virtual void all_gather(const void* in, void* out, int64_t bytes, void* stream) = 0;
  // out[i] = sum over ranks of in[rank() * count + i], `count` elements; `in` has size() * count.
  // `out` may lie at in + rank() * count.
  virtual void reduce_scatter(const void* in, void* out, int64_t count, const Reduction& reduction,
                              void* stream) = 0;
  // out[i] = sum over ranks of in[i], the same bits on every rank. `out` may be `in`.
  virtual void all_reduce(const void* in, void* out, int64_t count, const Reduction& reduction,
                          void* stream) = 0;
  virtual void broadcast(void* data, int64_t bytes, int root, void* stream) = 0;
  virtual void barrier() = 0;
  virtual CommStats stats() const = 0;
};

}  // namespace wam::dist
