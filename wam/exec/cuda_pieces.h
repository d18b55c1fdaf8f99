// A program's steps in pieces, each of which is captured as one CUDA graph or always streamed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "wam/plan/program.h"

namespace wam {

struct Piece {
  size_t begin, end;  // steps [begin, end)
  bool streamed = false;
  cudaGraphExec_t graph = nullptr;  // owned by the executor; null until captured
};

// Whole: one piece, collectives inside. Cut: each collective is streamed alone and what lies
// between is captured; a step that has to wait for a collective begins a piece, since a graph
// cannot wait for what runs outside it.
std::vector<Piece> pieces_of(const Program& program, bool cut);

}  // namespace wam
