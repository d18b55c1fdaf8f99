#include "wam/models/dit_layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "wam/base/check.h"

namespace wam {
namespace {

// Token counts by their letters.
struct Letters {
  explicit Letters(const DitConfig& c)
      : s(c.tokens_per_frame()), n(c.clean_tokens()), k(c.num_blocks), a(c.actions_per_block) {}
  int64_t s, n, k, a;
  int64_t block_begin(int64_t i) const { return n + s + i * (2 * s + a + 1); }
  int64_t clean_frame(int64_t frame) const { return frame * s; }
};

class LayoutMaker {
 public:
  LayoutMaker(const DitConfig& config, TimestepLayout timesteps, bool clean_context)
      : config_(config), timesteps_(timesteps), clean_context_(clean_context), z_(config) {}

  DitLayout run() {
    layout_.length = config_.sequence_length();
    layout_.num_rows = num_timestep_rows(config_, timesteps_);
    add_range(0, z_.n, [](int64_t) { return 0; });
    add_noisy(0, 1);
    for (int64_t i = 0; i < z_.k; ++i) add_block(i);
    WAM_CHECK(static_cast<int64_t>(layout_.public_row.size()) == layout_.length);
    if (timesteps_ == TimestepLayout::kPerToken) {
      std::iota(layout_.timestep_row.begin(), layout_.timestep_row.end(), 0);
    }
    collect_places();
    add_clean_rects();
    add_noisy_rects();
    check_rects(layout_.rects, layout_.length);
    return std::move(layout_);
  }

 private:
  template <typename Row>
  void add_range(int64_t begin, int64_t end, const Row& row) {
    for (int64_t i = begin; i < end; ++i) {
      layout_.public_row.push_back(static_cast<int32_t>(i));
      layout_.timestep_row.push_back(static_cast<int32_t>(row(i - begin)));
    }
  }

  void add_noisy(int64_t first_frame, int64_t last_frame) {
    add_range(z_.n + first_frame * z_.s, z_.n + last_frame * z_.s, [&](int64_t i) {
      return frame_row(config_, timesteps_, first_frame + i / z_.s);
    });
  }

  void add_block(int64_t i) {
    add_noisy(1 + 2 * i, 3 + 2 * i);
    const int64_t actions = 2 * z_.n + i * z_.a;
    add_range(actions, actions + z_.a, [&](int64_t j) {
      return action_row(config_, timesteps_, i * z_.a + j);
    });
    const int64_t state = 2 * z_.n + z_.k * z_.a + i;
    add_range(state, state + 1, [&](int64_t) { return action_row(config_, timesteps_, i * z_.a); });
  }

  // Inverse of public_row, for the edges of the transformer.
  void collect_places() {
    std::vector<int32_t> internal(layout_.public_row.size());
    for (size_t l = 0; l < internal.size(); ++l) {
      internal[static_cast<size_t>(layout_.public_row[l])] = static_cast<int32_t>(l);
    }
    const auto at = [&](int64_t begin, int64_t count) {
      return std::vector<int32_t>(internal.begin() + begin, internal.begin() + begin + count);
    };
    layout_.noisy_tokens = at(z_.n, z_.n);
    layout_.action_tokens = at(2 * z_.n, z_.k * z_.a);
    for (const int32_t l : layout_.noisy_tokens) {
      layout_.video_rows.push_back(layout_.timestep_row[static_cast<size_t>(l)]);
    }
    for (const int32_t l : layout_.action_tokens) {
      layout_.action_rows.push_back(layout_.timestep_row[static_cast<size_t>(l)]);
    }
  }

  // Clean frame 0 sees itself, clean block i frames 0..2+2i, all tokens of them; a window of C
  // blocks keeps frame 0 and frames max(1, 2i + 2 - 2C)..2i+2.
  void add_clean_rects() {
    layout_.rects.push_back({0, z_.s, {{0, z_.s}}});
    for (int64_t i = 0; i < z_.k; ++i) {
      AttentionRect rect{z_.clean_frame(1 + 2 * i), z_.clean_frame(3 + 2 * i), {}};
      const int64_t first =
          config_.max_chunk_size < 0 ? 1 : std::max<int64_t>(1, 2 * i + 2 - 2 * config_.max_chunk_size);
      if (first == 1) {
        rect.keys = {{0, rect.q_end}};
      } else {
        rect.keys = {{0, z_.s}, {z_.clean_frame(first), rect.q_end}};
      }
      layout_.rects.push_back(std::move(rect));
    }
  }

  // Noisy frame 0 sees itself; noisy block and actions i see clean frames 0..2i and their own block
  // with its state; a state sees itself.
  void add_noisy_rects() {
    layout_.rects.push_back({z_.n, z_.n + z_.s, {{z_.n, z_.n + z_.s}}});
    for (int64_t i = 0; i < z_.k; ++i) {
      const int64_t begin = z_.block_begin(i), state = begin + 2 * z_.s + z_.a;
      AttentionRect block{begin, state, {{begin, state + 1}}};
      if (clean_context_) block.keys.insert(block.keys.begin(), {0, z_.clean_frame(1 + 2 * i)});
      layout_.rects.push_back(std::move(block));
      layout_.rects.push_back({state, state + 1, {{state, state + 1}}});
    }
  }

  const DitConfig& config_;
  TimestepLayout timesteps_;
  bool clean_context_;
  Letters z_;
  DitLayout layout_;
};

// Angles of one axis appended as (cos, sin) pairs.
void append_axis(std::vector<double>& out, int64_t width, int64_t position) {
  for (int64_t i = 0; i < width / 2; ++i) {
    const double frequency =
        std::pow(10000.0, -static_cast<double>(2 * i) / static_cast<double>(width));
    const double angle = static_cast<double>(position) * frequency;
    out.push_back(std::cos(angle));
    out.push_back(std::sin(angle));
  }
}

}  // namespace

int64_t num_timestep_rows(const DitConfig& config, TimestepLayout timesteps) {
  switch (timesteps) {
    case TimestepLayout::kPerBlock: return 2 + config.num_blocks;
    case TimestepLayout::kPerAction: return 2 + config.num_blocks + config.num_actions();
    case TimestepLayout::kPerFrame: return 1 + config.num_frames() + config.num_actions();
    case TimestepLayout::kPerToken: return config.sequence_length();
  }
  return 0;
}

int64_t frame_row(const DitConfig& config, TimestepLayout timesteps, int64_t frame) {
  if (timesteps == TimestepLayout::kPerFrame) return 1 + frame;
  if (timesteps == TimestepLayout::kPerToken) {
    const Letters z(config);
    return frame == 0 ? z.n : z.block_begin((frame - 1) / 2) + (frame - 1) % 2 * z.s;
  }
  return frame == 0 ? 1 : 2 + (frame - 1) / 2;
}

int64_t action_row(const DitConfig& config, TimestepLayout timesteps, int64_t action) {
  switch (timesteps) {
    case TimestepLayout::kPerBlock: return 2 + action / config.actions_per_block;
    case TimestepLayout::kPerAction: return 2 + config.num_blocks + action;
    case TimestepLayout::kPerFrame: return 1 + config.num_frames() + action;
    case TimestepLayout::kPerToken: {
      const Letters z(config);
      return z.block_begin(action / z.a) + 2 * z.s + action % z.a;
    }
  }
  return 0;
}

DitLayout make_layout(const DitConfig& config, TimestepLayout timesteps, bool clean_context) {
  check(config);
  return LayoutMaker(config, timesteps, clean_context).run();
}

HostTensor rope_table(const std::vector<RopePosition>& positions, int64_t head_dim, DType dtype) {
  const int64_t side = 2 * (head_dim / 6), frame = head_dim - 2 * side;
  std::vector<double> values;
  values.reserve(positions.size() * static_cast<size_t>(head_dim));
  for (const RopePosition& p : positions) {
    if (p.video) {
      append_axis(values, frame, p.frame);
      append_axis(values, side, p.row);
      append_axis(values, side, p.column);
    } else {
      append_axis(values, head_dim, p.index);
    }
  }
  HostTensor table(DType::kF64, Shape{static_cast<int64_t>(positions.size()), head_dim / 2, 2});
  std::ranges::copy(values, table.as<double>().begin());
  return table.to(dtype);
}

std::vector<RopePosition> train_positions(const DitConfig& config, const DitLayout& layout) {
  const Letters z(config);
  const int64_t columns = config.latent_width / 2;
  std::vector<RopePosition> positions;
  for (const int32_t row : layout.public_row) {
    RopePosition p;
    if (row < 2 * z.n) {
      const int64_t token = row % z.n;
      p = {true, token / z.s, token % z.s / columns, token % z.s % columns, 0};
    } else {
      const int64_t rest = row - 2 * z.n;
      p.video = false;
      p.index = rest < z.k * z.a ? rest : rest - z.k * z.a;
    }
    positions.push_back(p);
  }
  return positions;
}

}  // namespace wam
