#include "wam/data/unpack_pixels.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

#include "wam/base/check.h"

namespace wam::data {
namespace {

#if defined(__AVX2__) && defined(__FMA__)
// x / 255 without a division: q = x * (1 / 255) is off by an ulp for some x; one step with the
// exact remainder of q rounds to what the division gives, for each of the 256 bytes (a test
// compares all).
__m256 divide_by_255(__m256 x) {
  const __m256 inverse = _mm256_set1_ps(1.0f / 255.0f);
  const __m256 q = _mm256_mul_ps(x, inverse);
  const __m256 rest = _mm256_fnmadd_ps(q, _mm256_set1_ps(255.0f), x);
  return _mm256_fmadd_ps(rest, inverse, q);
}

// Four pixels a turn while 16 bytes may be read; returns how many pixels are done.
size_t unpack_fours(const uint8_t* in, size_t width, float* out) {
  const __m128i spread = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  size_t x = 0;
  for (; 3 * x + 16 <= 3 * width; x += 4) {
    const __m128i bytes =
        _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 3 * x)), spread);
    const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)));
    _mm256_storeu_ps(out + 4 * x, divide_by_255(low));
    _mm256_storeu_ps(out + 4 * x + 8, divide_by_255(high));
  }
  return x;
}
#else
size_t unpack_fours(const uint8_t*, size_t, float*) { return 0; }
#endif

}  // namespace

void unpack_pixels(std::span<const uint8_t> rgb, std::span<float> pixels) {
  const size_t width = rgb.size() / 3;
  WAM_CHECK(pixels.size() >= 4 * width);
  const uint8_t* in = rgb.data();
  float* out = pixels.data();
  for (size_t x = unpack_fours(in, width, out); x < width; ++x) {
    out[4 * x] = static_cast<float>(in[3 * x]) / 255.0f;
    out[4 * x + 1] = static_cast<float>(in[3 * x + 1]) / 255.0f;
    out[4 * x + 2] = static_cast<float>(in[3 * x + 2]) / 255.0f;
  }
}

}  // namespace wam::data
