// Shared by the kernels of pack on all devices.
#pragma once

#include <vector>

#include "wam/kernels/kernel.h"

namespace wam {

// A stretch of the output in bytes: of input `input`, or zeros (-1).
struct PackStretch {
  int64_t begin, bytes;
  int64_t input;
};

inline std::vector<PackStretch> pack_stretches(const KernelSignature& s) {
  const std::vector<int64_t> offsets = s.attrs.integers("offsets");
  const int64_t element = size_bytes(s.outputs[0].dtype);
  std::vector<PackStretch> stretches;
  int64_t end = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t begin = offsets[i] * element;
    if (begin > end) stretches.push_back({end, begin - end, -1});
    stretches.push_back({begin, s.inputs[i].size_bytes(), static_cast<int64_t>(i)});
    end = begin + s.inputs[i].size_bytes();
  }
  const int64_t size = s.outputs[0].size_bytes();
  if (size > end) stretches.push_back({end, size - end, -1});
  return stretches;
}

}  // namespace wam
