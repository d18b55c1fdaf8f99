#include <bit>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// One storage type for each floating dtype; bf16 and f16 are told apart by their tags.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

inline float wide(float x) { return x; }
inline double wide(double x) { return x; }
inline float wide(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
inline float wide(F16 x) { return f16_to_float(x.bits); }

inline void narrow(double x, double& y) { y = x; }
inline void narrow(float x, double& y) { y = x; }
inline void narrow(double x, float& y) { y = static_cast<float>(x); }
inline void narrow(float x, float& y) { y = x; }
// As float_to_bf16(), written so that it vectorises.
inline void narrow(float x, Bf16& y) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  y.bits = static_cast<uint16_t>(x == x ? rounded : (bits >> 16) | 0x40u);
}
inline void narrow(float x, F16& y) { y.bits = float_to_f16(x); }
// Through float: what rounds twice differs from one rounding in the last bit of rare ties.
inline void narrow(double x, Bf16& y) { narrow(static_cast<float>(x), y); }
inline void narrow(double x, F16& y) { narrow(static_cast<float>(x), y); }

template <typename F>
auto dispatch_storage(DType dtype, F f) {
  switch (dtype) {
    case DType::kBF16: return f.template operator()<Bf16>();
    case DType::kF16: return f.template operator()<F16>();
    default: return cpu::dispatch_float(dtype, f);
  }
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t count = s.outputs[0].shape.num_elements();
  return dispatch_storage(s.inputs[0].dtype, [&]<typename From>() {
    return dispatch_storage(s.outputs[0].dtype, [&]<typename To>() {
      return cpu::make_kernel([=](const KernelIo& io) {
        const From* x = io.in<From>(0);
        To* y = io.out<To>(0);
        cpu::parallel_for(count, 16384, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) narrow(wide(x[i]), y[i]);
        });
      });
    });
  });
}

}  // namespace

extern const KernelDef cast_cpu;
const KernelDef cast_cpu = {.op = "cast", .create = create};

}  // namespace wam
