// libpng reports errors by longjmp. Every function that calls setjmp holds only plain values, so
// that no destructor is jumped over.
#include "wam/data/image_png.h"

#include <png.h>

#include <csetjmp>
#include <cstring>

#include "wam/base/error.h"

namespace wam::data {
namespace {

// What libpng's callbacks see.
struct PngState {
  std::span<const std::byte> input;
  size_t position = 0;
  std::vector<std::byte>* output = nullptr;
  char message[128] = {};
};

void on_error(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state->message, message, sizeof(state->message) - 1);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep target, size_t count) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (count > state->input.size() - state->position) png_error(png, "file ends early");
  std::memcpy(target, state->input.data() + state->position, count);
  state->position += count;
}

void on_write(png_structp png, png_bytep source, size_t count) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  const auto* begin = reinterpret_cast<const std::byte*>(source);
  state->output->insert(state->output->end(), begin, begin + count);
}
void on_flush(png_structp) {}

// Owns the two libpng objects of a read.
struct PngReader {
  explicit PngReader(PngState& state)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning)),
        info(png != nullptr ? png_create_info_struct(png) : nullptr) {
    if (info == nullptr) throw std::bad_alloc();
    png_set_read_fn(png, &state, on_read);
    png_set_user_limits(png, kMaxImageSide, kMaxImageSide);
    png_set_chunk_malloc_max(png, 1 << 24);
  }
  ~PngReader() { png_destroy_read_struct(&png, info != nullptr ? &info : nullptr, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  png_structp png;
  png_infop info;
};

bool read_header(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_info(png, info);
  return true;
}

// Any PNG to 8-bit RGB, without gamma: values as they are stored.
bool set_transforms(png_structp png, png_infop info) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_strip_16(png);
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

bool read_rows(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

bool write_rows(png_structp png, png_infop info, ImageSize size, int level, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_compression_level(png, level);
  png_set_IHDR(png, info, static_cast<png_uint_32>(size.width),
               static_cast<png_uint_32>(size.height), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  png_write_image(png, rows);
  png_write_end(png, nullptr);
  return true;
}

void require(bool ok, const PngState& state, const std::string& where) {
  if (ok) return;
  throw DataError({.where = where,
                   .what = "PNG cannot be decoded",
                   .got = state.message,
                   .remedy = "The picture is damaged: restore it or drop the episode."});
}

ImageSize header_size(const PngReader& reader) {
  return {png_get_image_height(reader.png, reader.info),
          png_get_image_width(reader.png, reader.info)};
}

std::vector<png_bytep> row_pointers(uint8_t* pixels, ImageSize size) {
  std::vector<png_bytep> rows(static_cast<size_t>(size.height));
  for (int64_t y = 0; y < size.height; ++y) rows[y] = pixels + y * size.width * 3;
  return rows;
}

}  // namespace

ImageSize read_png_size(std::span<const std::byte> bytes, const std::string& where) {
  PngState state{.input = bytes};
  PngReader reader(state);
  require(read_header(reader.png, reader.info), state, where);
  return header_size(reader);
}

void decode_png(std::span<const std::byte> bytes, const std::string& where, ImageSize size,
                std::span<uint8_t> rgb_hwc) {
  PngState state{.input = bytes};
  PngReader reader(state);
  require(read_header(reader.png, reader.info), state, where);
  const ImageSize found = header_size(reader);
  if (found != size) {
    throw DataError({.where = where,
                     .what = "picture has another size",
                     .got = std::to_string(found.height) + "x" + std::to_string(found.width),
                     .expected = std::to_string(size.height) + "x" + std::to_string(size.width),
                     .remedy = "Correct the size in meta/info.json, or the picture."});
  }
  require(set_transforms(reader.png, reader.info), state, where);
  if (png_get_rowbytes(reader.png, reader.info) != static_cast<size_t>(size.width) * 3) {
    throw DataError({.where = where,
                     .what = "PNG of an unsupported kind",
                     .remedy = "Store it as 8 or 16 bit grey, palette or RGB."});
  }
  std::vector<png_bytep> rows = row_pointers(rgb_hwc.data(), size);
  require(read_rows(reader.png, rows.data()), state, where);
}

std::vector<std::byte> encode_png_rows(std::span<const uint8_t> rgb_hwc, ImageSize size,
                                       int compression_level) {
  std::vector<std::byte> output;
  output.reserve(rgb_hwc.size() / 2 + 1024);
  PngState state{.output = &output};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning);
  png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
  if (info == nullptr) throw std::bad_alloc();
  png_set_write_fn(png, &state, on_write, on_flush);
  // libpng's row pointers are not const but are only read.
  std::vector<png_bytep> rows = row_pointers(const_cast<uint8_t*>(rgb_hwc.data()), size);
  const bool ok = write_rows(png, info, size, compression_level, rows.data());
  png_destroy_write_struct(&png, &info);
  if (!ok)
    throw DataError({.what = "PNG cannot be encoded",
                     .got = state.message,
                     .remedy = "Check the size of the picture."});
  return output;
}

}  // namespace wam::data
