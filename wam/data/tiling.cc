#include "wam/data/tiling.h"

#include <cstring>

#include "wam/base/check.h"

namespace wam::data {
namespace {

struct Place {
  int64_t row = 0, column = 0;  // in units of views
  bool twice = false;           // columns repeated to double width
};

Place place_of(Tiling tiling, int64_t view) {
  switch (tiling) {
    case Tiling::kSingle:
      return {};
    case Tiling::kSideBySide:
      return {0, view};
    case Tiling::kWristOnTop:
      return view == 2 ? Place{0, 0, true} : Place{1, view};
    case Tiling::kGrid:
      return view == 2 ? Place{0, 1} : Place{view, 0};
  }
  return {};
}

int64_t columns_of(Tiling tiling) { return tiling == Tiling::kSingle ? 1 : 2; }

void copy_row_twice(const uint8_t* in, int64_t w, uint8_t* out) {
  for (int64_t x = 0; x < w; ++x, in += 3, out += 6) {
    std::memcpy(out, in, 3);
    std::memcpy(out + 3, in, 3);
  }
}

}  // namespace

void place_view(Tiling tiling, int64_t view, int64_t h, int64_t w, std::span<const uint8_t> pixels,
                std::span<uint8_t> picture) {
  WAM_CHECK(std::ssize(pixels) == h * w * 3);
  const Place place = place_of(tiling, view);
  const int64_t row_bytes = w * 3, stride = columns_of(tiling) * row_bytes;
  const int64_t begin = place.row * h * stride + place.column * row_bytes;
  WAM_CHECK(begin + (h - 1) * stride + row_bytes * (place.twice ? 2 : 1) <= std::ssize(picture));
  uint8_t* out = picture.data() + begin;
  for (int64_t y = 0; y < h; ++y, out += stride) {
    const uint8_t* in = pixels.data() + y * row_bytes;
    if (place.twice)
      copy_row_twice(in, w, out);
    else
      std::memcpy(out, in, static_cast<size_t>(row_bytes));
  }
}

void blacken_unused(Tiling tiling, int64_t num_views, int64_t h, int64_t w,
                    std::span<uint8_t> picture) {
  if (tiling != Tiling::kGrid) return;
  const int64_t row_bytes = w * 3;
  WAM_CHECK(std::ssize(picture) == 4 * h * row_bytes);
  const int64_t first_row = num_views < 3 ? 0 : h;
  for (int64_t y = first_row; y < 2 * h; ++y) {
    std::memset(picture.data() + (2 * y + 1) * row_bytes, 0, static_cast<size_t>(row_bytes));
  }
}

}  // namespace wam::data
