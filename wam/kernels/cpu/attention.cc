#include "wam/kernels/cpu/attention_core.h"
#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

struct Sizes {
  int64_t batch, queries, keys, heads, d;
  double scale;
  int key_bias, pair_bias;  // input index or -1
  int64_t key_bias_batch;   // elements between samples; 0 if shared
  int64_t width() const { return heads * d; }
};

// `first` is the index of q among the inputs.
Sizes sizes_of(const KernelSignature& s, int first) {
  const Shape& q = s.inputs[static_cast<size_t>(first)].shape;
  const Shape& kv = s.inputs[static_cast<size_t>(first) + 1].shape;
  const int64_t heads = s.attrs.integer("heads");
  Sizes z{q[0], q[1], kv[1], heads, q[2] / heads, s.attrs.real("scale"), -1, -1, 0};
  int at = first + 2;
  if (s.attrs.flag("key_bias")) {
    z.key_bias = at++;
    z.key_bias_batch = s.inputs[static_cast<size_t>(z.key_bias)].shape.ndim() == 2 ? z.keys : 0;
  }
  if (s.attrs.flag("pair_bias")) z.pair_bias = at;
  return z;
}

template <typename T>
cpu::AttentionHead<T> head_of(const Sizes& z, const KernelIo& io, size_t first, int64_t batch,
                              int64_t head) {
  const T* k = io.in<T>(first + 1) + batch * z.keys * 2 * z.width() + head * z.d;
  cpu::AttentionHead<T> result{.q = io.in<T>(first) + batch * z.queries * z.width() + head * z.d,
                               .k = k,
                               .v = k + z.width(),
                               .q_stride = z.width(),
                               .kv_stride = 2 * z.width(),
                               .d = z.d,
                               .scale = static_cast<T>(z.scale)};
  if (z.key_bias >= 0) {
    result.key_bias = io.in<T>(static_cast<size_t>(z.key_bias)) + batch * z.key_bias_batch;
  }
  if (z.pair_bias >= 0) {
    result.pair_bias = io.in<T>(static_cast<size_t>(z.pair_bias)) + head * z.queries * z.keys;
    result.pair_stride = z.keys;
  }
  return result;
}

std::vector<AttentionRect> whole(const Sizes& z) { return {{0, z.queries, {{0, z.keys}}}}; }

std::unique_ptr<Kernel> create_forward(const KernelSignature& s) {
  const Sizes z = sizes_of(s, 0);
  const std::vector<cpu::QueryTile> tiles = cpu::query_tiles(whole(z));
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const KeyRange keys[] = {{0, z.keys}};
      const int64_t num_tiles = static_cast<int64_t>(tiles.size());
      cpu::parallel_items(z.batch * z.heads * num_tiles, [&](int64_t item) {
        const cpu::QueryTile& tile = tiles[static_cast<size_t>(item % num_tiles)];
        const int64_t head = item / num_tiles % z.heads, batch = item / num_tiles / z.heads;
        cpu::attend<T>(head_of<T>(z, io, 0, batch, head), tile.begin, tile.end, keys,
                       {.out = io.out<T>(0) + batch * z.queries * z.width() + head * z.d,
                        .out_stride = z.width(),
                        .lse = io.out<T>(1) + (batch * z.heads + head) * z.queries});
      });
    });
  });
}

// One item a head: the queries' contributions to dk and dv are added in their order.
std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const Sizes z = sizes_of(s, 3);
  const std::vector<cpu::QueryTile> tiles = cpu::query_tiles(whole(z));
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const KeyRange keys[] = {{0, z.keys}};
      cpu::parallel_items(z.batch * z.heads, [&](int64_t item) {
        const int64_t head = item % z.heads, batch = item / z.heads;
        const int64_t q_offset = batch * z.queries * z.width() + head * z.d;
        T* dk = io.out<T>(1) + batch * z.keys * 2 * z.width() + head * z.d;
        T* dv = dk + z.width();
        for (int64_t row = 0; row < z.keys; ++row) {
          std::fill_n(dk + row * 2 * z.width(), z.d, T{0});
          std::fill_n(dv + row * 2 * z.width(), z.d, T{0});
        }
        const cpu::AttentionHeadGrad<T> grad{.dout = io.in<T>(0) + q_offset,
                                             .out = io.in<T>(1) + q_offset,
                                             .out_stride = z.width(),
                                             .lse = io.in<T>(2) + item * z.queries,
                                             .dq = io.out<T>(0) + q_offset,
                                             .dk = dk,
                                             .dv = dv};
        const cpu::AttentionHead<T> input = head_of<T>(z, io, 3, batch, head);
        for (const cpu::QueryTile& tile : tiles) {
          cpu::attend_grad<T>(input, tile.begin, tile.end, keys, grad);
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef attention_cpu, attention_grad_cpu;
const KernelDef attention_cpu = {.op = "attention", .create = create_forward};
const KernelDef attention_grad_cpu = {.op = "attention_grad", .create = create_grad};

}  // namespace wam
