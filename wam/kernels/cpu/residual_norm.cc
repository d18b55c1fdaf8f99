#include "wam/kernels/cpu/column_sums.h"
#include "wam/kernels/cpu/layer_norm.h"
#include "wam/kernels/cpu/rms_norm.h"
#include "wam/kernels/cpu/token_rows.h"

namespace wam {
namespace {

// Places of the inputs, -1 where absent, in the order ops/residual_norm.h gives.
struct Layout {
  bool residual, gated, norm, modulated, affine;
  double eps;
  int x, dx_out = -1, stats = -1, o = -1, gate = -1, scale = -1, shift = -1, weight = -1, bias = -1;
  int index = -1;
};

Layout parse(const Attrs& attrs) {
  const std::string &residual = attrs.text("residual"), &norm = attrs.text("norm");
  return {.residual = residual != "none",
          .gated = residual == "gate",
          .norm = norm != "none",
          .modulated = norm == "modulate",
          .affine = norm == "affine",
          .eps = attrs.real("eps")};
}

Layout forward_layout(const Attrs& attrs) {
  Layout l = parse(attrs);
  int next = 0;
  l.x = next++;
  if (l.residual) l.o = next++;
  if (l.gated) l.gate = next++;
  if (l.modulated) {
    l.scale = next++;
    l.shift = next++;
  }
  if (l.affine) {
    l.weight = next++;
    l.bias = next++;
  }
  if (l.gated || l.modulated) l.index = next++;
  return l;
}

Layout grad_layout(const Attrs& attrs) {
  Layout l = parse(attrs);
  int next = 1;  // dh comes first
  if (attrs.flag("dx_out")) l.dx_out = next++;
  l.x = next++;
  l.stats = next++;
  if (l.gated) {
    l.o = next++;
    l.gate = next++;
  }
  if (l.modulated) l.scale = next++;
  if (l.affine) l.weight = next++;
  if (l.gated || l.modulated) l.index = next++;
  return l;
}

cpu::TokenSizes sizes_of(const KernelSignature& s, const Layout& l) {
  const Shape& x = s.inputs[0].shape;
  const int table = l.modulated ? l.scale : l.gate;
  return {x[0], x[1], table < 0 ? 0 : s.inputs[static_cast<size_t>(table)].shape[1], x[2]};
}

// Input `place`, null if absent.
template <typename T>
const T* input(const KernelIo& io, int place) {
  return place < 0 ? nullptr : io.in<T>(static_cast<size_t>(place));
}

const int32_t* checked_index(const KernelIo& io, const Layout& l, const cpu::TokenSizes& z) {
  const auto* index = input<int32_t>(io, l.index);
  if (index != nullptr) cpu::check_index(index, z.length, z.table_rows, "residual_norm");
  return index;
}

// x + o or x + o * gate; to may be x.
template <typename T>
void add_row(const T* x, const T* o, const T* gate, int64_t n, T* to) {
  if (gate == nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = x[i] + o[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = x[i] + o[i] * gate[i];
  }
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Layout l = forward_layout(s.attrs);
  const cpu::TokenSizes z = sizes_of(s, l);
  const int64_t n = z.width;
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const int32_t* index = checked_index(io, l, z);
      const T *o = input<T>(io, l.o), *gate = input<T>(io, l.gate);
      const T *scale = input<T>(io, l.scale), *shift = input<T>(io, l.shift);
      const T *w = input<T>(io, l.weight), *b = input<T>(io, l.bias);
      T* x_out = l.residual ? io.out<T>(0) : nullptr;
      T* h_out = l.norm ? io.out<T>(l.residual ? 1 : 0) : nullptr;
      T* stats_out = l.norm ? io.out<T>(l.residual ? 2 : 1) : nullptr;
      cpu::for_tokens(z, [&](int64_t row) {
        const T* x = io.in<T>(0) + row * n;
        if (l.residual) {
          add_row(x, o + row * n, l.gated ? cpu::table_row(z, gate, index, row) : nullptr, n,
                  x_out + row * n);
          x = x_out + row * n;
        }
        if (!l.norm) return;
        const auto stats = cpu::layer_stats(x, n, l.eps);
        T* h = h_out + row * n;
        if (l.modulated) {
          const T *up = cpu::table_row(z, scale, index, row),
                  *by = cpu::table_row(z, shift, index, row);
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i)
            h[i] = cpu::normalized(x[i], stats) * (T{1} + up[i]) + by[i];
        } else {
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) h[i] = cpu::normalized(x[i], stats) * w[i] + b[i];
        }
        stats_out[row * 2] = stats.mean;
        stats_out[row * 2 + 1] = stats.rstd;
      });
    });
  });
}

int64_t blocks_of(int64_t rows) {
  return (rows + cpu::kLayerNormBlockRows - 1) / cpu::kLayerNormBlockRows;
}

// Sums of the affine part's gradients: [blocks, 2, D].
int64_t grad_workspace(const KernelSignature& s) {
  if (!parse(s.attrs).affine) return 0;
  const Shape& x = s.inputs[0].shape;
  return blocks_of(x.num_rows()) * 2 * x[2] * size_bytes(s.outputs[0].dtype);
}

template <typename T>
struct GradIo {
  const T *dh, *dx_out, *x, *stats, *o, *gate, *scale, *w;
  const int32_t* index;
  T *dx, *d_o, *partials;
};

// One token: dx, d_o, and the sums of dw and db.
template <typename T>
void grad_row(const cpu::TokenSizes& z, const GradIo<T>& io, int64_t row, T* sums) {
  const int64_t n = z.width;
  const T *dh = io.dh + row * n, *x = io.x + row * n;
  const cpu::RowStats<T> stats{io.stats[row * 2], io.stats[row * 2 + 1]};
  T* dx = io.dx + row * n;
  const auto through_norm = [&](const auto& g) {
    if (io.dx_out == nullptr) {
      cpu::layer_grad_row(g, x, stats, n, [dx](int64_t i, T value) { dx[i] = value; });
    } else {
      const T* direct = io.dx_out + row * n;
      cpu::layer_grad_row(g, x, stats, n,
                          [dx, direct](int64_t i, T value) { dx[i] = direct[i] + value; });
    }
  };
  if (io.scale != nullptr) {
    const T* scale = cpu::table_row(z, io.scale, io.index, row);
    through_norm([dh, scale](int64_t i) { return dh[i] * (T{1} + scale[i]); });
  } else {
    const T* w = io.w;
    cpu::add_affine_grads(dh, x, stats, n, sums);
    through_norm([dh, w](int64_t i) { return dh[i] * w[i]; });
  }
  if (io.gate == nullptr) return;
  const T* gate = cpu::table_row(z, io.gate, io.index, row);
  T* d_o = io.d_o + row * n;
  for (int64_t i = 0; i < n; ++i) d_o[i] = dx[i] * gate[i];
}

template <typename T>
void grad_rows(const cpu::TokenSizes& z, const GradIo<T>& io) {
  cpu::parallel_for(blocks_of(z.rows()), 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      T* sums = io.w == nullptr ? nullptr : io.partials + block * 2 * z.width;
      if (sums != nullptr) std::fill_n(sums, 2 * z.width, T{0});
      const int64_t end = std::min(z.rows(), (block + 1) * cpu::kLayerNormBlockRows);
      for (int64_t row = block * cpu::kLayerNormBlockRows; row < end; ++row) {
        grad_row(z, io, row, sums);
      }
    }
  });
}

// dscale and dshift come before dx, which may take the place of dh, dx_out or x; dgate reads dx.
std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const Layout l = grad_layout(s.attrs);
  const cpu::TokenSizes z = sizes_of(s, l);
  const int64_t n = z.width;
  const size_t norm_out = l.gated ? 3 : 1;  // place of dscale or dw among the outputs
  const bool bias_grad = s.attrs.flag("bias_grad");
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const GradIo<T> g{.dh = io.in<T>(0),
                        .dx_out = input<T>(io, l.dx_out),
                        .x = input<T>(io, l.x),
                        .stats = input<T>(io, l.stats),
                        .o = input<T>(io, l.o),
                        .gate = input<T>(io, l.gate),
                        .scale = input<T>(io, l.scale),
                        .w = input<T>(io, l.weight),
                        .index = checked_index(io, l, z),
                        .dx = io.out<T>(0),
                        .d_o = l.gated ? io.out<T>(1) : nullptr,
                        .partials = static_cast<T*>(io.workspace)};
      if (l.modulated) {
        const auto term = [g, n](int64_t row, int64_t i) {
          const cpu::RowStats<T> stats{g.stats[row * 2], g.stats[row * 2 + 1]};
          return g.dh[row * n + i] * cpu::normalized(g.x[row * n + i], stats);
        };
        cpu::sum_tokens(z, g.index, term, io.out<T>(norm_out));
        cpu::sum_tokens(
            z, g.index, [g, n](int64_t row, int64_t i) { return g.dh[row * n + i]; },
            io.out<T>(norm_out + 1));
      }
      grad_rows(z, g);
      if (l.affine) {
        cpu::sum_blocks(g.partials, blocks_of(z.rows()), 2 * n, n, io.out<T>(norm_out));
        cpu::sum_blocks(g.partials + n, blocks_of(z.rows()), 2 * n, n, io.out<T>(norm_out + 1));
      }
      if (l.gated) {
        const auto term = [g, n](int64_t row, int64_t i) {
          return g.dx[row * n + i] * g.o[row * n + i];
        };
        cpu::sum_tokens(z, g.index, term, io.out<T>(2));
      }
      if (bias_grad) {
        const T* summed = l.gated ? g.d_o : g.dx;
        T* sums = io.out<T>(norm_out + 2);
        cpu::sum_columns<T>(
            z.rows(), n, [=](int64_t row, int64_t i) { return summed[row * n + i]; },
            [=](int64_t i, T sum) { sums[i] = sum; });
      }
    });
  });
}

}  // namespace

extern const KernelDef residual_norm_cpu, residual_norm_grad_cpu;
const KernelDef residual_norm_cpu = {.op = "residual_norm", .create = create};
const KernelDef residual_norm_grad_cpu = {
    .op = "residual_norm_grad", .create = create_grad, .workspace_bytes = grad_workspace};

}  // namespace wam
