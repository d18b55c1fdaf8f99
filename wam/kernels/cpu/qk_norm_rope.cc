#include "wam/kernels/cpu/column_sums.h"
#include "wam/kernels/cpu/rms_norm.h"
#include "wam/kernels/cpu/rope.h"

namespace wam {
namespace {

struct Sizes {
  int64_t rows, length, parts, width, normed, heads;
  bool rope;
  double eps;
  int64_t stride() const { return parts * width; }
  int64_t head_dim() const { return width / heads; }
};

Sizes sizes_of(const KernelSignature& s, size_t x_index) {
  const Shape& x = s.inputs[x_index].shape;
  const int64_t parts = s.attrs.integer("parts");
  return {x.num_rows(),
          x[1],
          parts,
          x[2] / parts,
          s.attrs.integer("normed"),
          s.attrs.integer("heads"),
          s.attrs.flag("rope"),
          s.attrs.real("eps")};
}

// The rotations of the token that row `row` holds.
template <typename T>
const T* token_table(const Sizes& z, const T* table, int64_t row) {
  return table + (row % z.length) * z.head_dim();
}

std::unique_ptr<Kernel> create_forward(const KernelSignature& s) {
  const Sizes z = sizes_of(s, 0);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T* table = z.rope ? io.in<T>(static_cast<size_t>(z.normed) + 1) : nullptr;
      const auto row_forward = [&](int64_t row) {
        for (int64_t part = 0; part < z.parts; ++part) {
          const int64_t offset = row * z.stride() + part * z.width;
          const T* x = io.in<T>(0) + offset;
          T* y = io.out<T>(0) + offset;
          if (part >= z.normed) {
            if (x != y) std::copy_n(x, z.width, y);
            continue;
          }
          cpu::rms_row(x, io.in<T>(static_cast<size_t>(part) + 1), z.width, z.eps, y);
          if (z.rope) {
            cpu::rope_row(y, token_table(z, table, row), z.heads, z.head_dim(), false, y);
          }
        }
      };
      cpu::parallel_for(z.rows, cpu::row_grain(z.stride()), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) row_forward(row);
      });
    });
  });
}

// Place of x among the gradient's inputs.
size_t x_of(const KernelSignature& s) { return s.attrs.flag("two_grads") ? 2 : 1; }

// Partial sums of the weights' gradients: [blocks, normed, width].
int64_t grad_workspace(const KernelSignature& s) {
  const Sizes z = sizes_of(s, x_of(s));
  return cpu::rms_blocks(z.rows) * z.normed * z.width * size_bytes(s.outputs[0].dtype);
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const size_t x_at = x_of(s);
  const Sizes z = sizes_of(s, x_at);
  const bool bias_grad = s.attrs.flag("bias_grad");
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      T* partials = static_cast<T*>(io.workspace);
      const T* table = z.rope ? io.in<T>(x_at + 1 + static_cast<size_t>(z.normed)) : nullptr;
      const auto row_grad = [&](int64_t row, T* block_sums) {
        for (int64_t part = 0; part < z.parts; ++part) {
          const int64_t offset = row * z.stride() + part * z.width;
          const T *dy = io.in<T>(0) + offset, *x = io.in<T>(x_at) + offset;
          T* dx = io.out<T>(0) + offset;
          if (x_at == 2) {
            const T* more = io.in<T>(1) + offset;
            for (int64_t i = 0; i < z.width; ++i) dx[i] = dy[i] + more[i];
            dy = dx;
          }
          if (part >= z.normed) {
            if (dy != dx) std::copy_n(dy, z.width, dx);
            continue;
          }
          if (z.rope) {
            cpu::rope_row(dy, token_table(z, table, row), z.heads, z.head_dim(), true, dx);
            dy = dx;
          }
          cpu::rms_grad_row(dy, x, io.in<T>(x_at + 1 + static_cast<size_t>(part)), z.width, z.eps,
                            dx, block_sums + part * z.width);
        }
      };
      cpu::parallel_for(cpu::rms_blocks(z.rows), 1, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          T* sums = partials + block * z.normed * z.width;
          std::fill_n(sums, z.normed * z.width, T{0});
          const int64_t last = std::min(z.rows, (block + 1) * cpu::kRmsBlockRows);
          for (int64_t row = block * cpu::kRmsBlockRows; row < last; ++row) row_grad(row, sums);
        }
      });
      for (int64_t part = 0; part < z.normed; ++part) {
        cpu::sum_blocks(partials + part * z.width, cpu::rms_blocks(z.rows), z.normed * z.width,
                        z.width, io.out<T>(static_cast<size_t>(part) + 1));
      }
      if (!bias_grad) return;
      const T* dx = io.out<T>(0);
      T* sums = io.out<T>(static_cast<size_t>(z.normed) + 1);
      cpu::sum_columns<T>(
          z.rows, z.stride(), [=](int64_t row, int64_t i) { return dx[row * z.stride() + i]; },
          [=](int64_t i, T sum) { sums[i] = sum; });
    });
  });
}

}  // namespace

extern const KernelDef qk_norm_rope_cpu, qk_norm_rope_grad_cpu;
const KernelDef qk_norm_rope_cpu = {.op = "qk_norm_rope", .create = create_forward};
const KernelDef qk_norm_rope_grad_cpu = {
    .op = "qk_norm_rope_grad", .create = create_grad, .workspace_bytes = grad_workspace};

}  // namespace wam
