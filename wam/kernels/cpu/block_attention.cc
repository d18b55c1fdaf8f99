#include "wam/kernels/cpu/attention_core.h"
#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

struct Sizes {
  int64_t batch, length, heads, d;
  double scale;
  int64_t width() const { return heads * d; }
};

Sizes sizes_of(const KernelSignature& s, const Shape& qkv) {
  const int64_t heads = s.attrs.integer("heads");
  return {qkv[0], qkv[1], heads, qkv[2] / 3 / heads, s.attrs.real("scale")};
}

template <typename T>
cpu::AttentionHead<T> head_of(const Sizes& z, const T* qkv, int64_t batch, int64_t head) {
  const T* q = qkv + batch * z.length * 3 * z.width() + head * z.d;
  return {.q = q,
          .k = q + z.width(),
          .v = q + 2 * z.width(),
          .q_stride = 3 * z.width(),
          .kv_stride = 3 * z.width(),
          .d = z.d,
          .scale = static_cast<T>(z.scale)};
}

std::unique_ptr<Kernel> create_forward(const KernelSignature& s) {
  const Sizes z = sizes_of(s, s.inputs[0].shape);
  const std::vector<AttentionRect> rects = parse_rects(s.attrs.integers("rects"), z.length);
  const std::vector<cpu::QueryTile> tiles = cpu::query_tiles(rects);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const int64_t num_tiles = static_cast<int64_t>(tiles.size());
      cpu::parallel_items(z.batch * z.heads * num_tiles, [&](int64_t item) {
        const cpu::QueryTile& tile = tiles[static_cast<size_t>(item % num_tiles)];
        const int64_t head = item / num_tiles % z.heads, batch = item / num_tiles / z.heads;
        cpu::attend<T>(head_of(z, io.in<T>(0), batch, head), tile.begin, tile.end,
                       rects[tile.rect].keys,
                       {.out = io.out<T>(0) + batch * z.length * z.width() + head * z.d,
                        .out_stride = z.width(),
                        .lse = io.out<T>(1) + (batch * z.heads + head) * z.length});
      });
    });
  });
}

// One item a head: the queries' contributions to dk and dv are added in their order.
std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const Sizes z = sizes_of(s, s.inputs[3].shape);
  const std::vector<AttentionRect> rects = parse_rects(s.attrs.integers("rects"), z.length);
  const std::vector<cpu::QueryTile> tiles = cpu::query_tiles(rects);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      cpu::parallel_items(z.batch * z.heads, [&](int64_t item) {
        const int64_t head = item % z.heads, batch = item / z.heads;
        const int64_t out_offset = batch * z.length * z.width() + head * z.d;
        T* dq = io.out<T>(0) + batch * z.length * 3 * z.width() + head * z.d;
        T *dk = dq + z.width(), *dv = dk + z.width();
        for (int64_t row = 0; row < z.length; ++row) {
          std::fill_n(dk + row * 3 * z.width(), z.d, T{0});
          std::fill_n(dv + row * 3 * z.width(), z.d, T{0});
        }
        const cpu::AttentionHeadGrad<T> grad{.dout = io.in<T>(0) + out_offset,
                                             .out = io.in<T>(1) + out_offset,
                                             .out_stride = z.width(),
                                             .lse = io.in<T>(2) + item * z.length,
                                             .dq = dq,
                                             .dk = dk,
                                             .dv = dv};
        const cpu::AttentionHead<T> input = head_of(z, io.in<T>(3), batch, head);
        for (const cpu::QueryTile& tile : tiles) {
          cpu::attend_grad<T>(input, tile.begin, tile.end, rects[tile.rect].keys, grad);
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef block_attention_cpu, block_attention_grad_cpu;
const KernelDef block_attention_cpu = {.op = "block_attention", .create = create_forward};
const KernelDef block_attention_grad_cpu = {.op = "block_attention_grad", .create = create_grad};

}  // namespace wam
