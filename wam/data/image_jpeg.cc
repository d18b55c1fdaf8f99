// libjpeg reports errors by longjmp here. Every function that calls setjmp holds only plain values,
// so that no destructor is jumped over.
#include "wam/data/image_jpeg.h"

#include <cstdio>
// jpeglib.h needs FILE from stdio.h before it.
#include <jpeglib.h>

#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include "wam/base/error.h"

namespace wam::data {
namespace {

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg hands out a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void on_error(j_common_ptr common) {
  auto* errors = reinterpret_cast<JpegErrors*>(common->err);
  (*common->err->format_message)(common, errors->message);
  std::longjmp(errors->jump, 1);
}

// Warnings mean that libjpeg would invent the missing part of the picture.
void on_message(j_common_ptr common, int level) {
  if (level < 0) on_error(common);
}

jpeg_error_mgr* init_errors(JpegErrors& errors) {
  jpeg_std_error(&errors.base);
  errors.base.error_exit = on_error;
  errors.base.emit_message = on_message;
  errors.message[0] = 0;
  return &errors.base;
}

struct JpegReader {
  JpegReader() {
    std::memset(&info, 0, sizeof(info));
    info.err = init_errors(errors);
  }
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  jpeg_decompress_struct info;
  JpegErrors errors;
};

bool read_header(JpegReader& reader, const unsigned char* bytes, size_t count) {
  if (setjmp(reader.errors.jump) != 0) return false;
  jpeg_create_decompress(&reader.info);
  jpeg_mem_src(&reader.info, bytes, count);
  jpeg_read_header(&reader.info, TRUE);
  return true;
}

bool read_rows(JpegReader& reader, uint8_t* pixels, int64_t row_bytes) {
  if (setjmp(reader.errors.jump) != 0) return false;
  reader.info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&reader.info);
  while (reader.info.output_scanline < reader.info.output_height) {
    JSAMPROW row = pixels + reader.info.output_scanline * row_bytes;
    jpeg_read_scanlines(&reader.info, &row, 1);
  }
  jpeg_finish_decompress(&reader.info);
  return true;
}

struct JpegTarget {
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
};

bool write_rows(jpeg_compress_struct& info, JpegErrors& errors, JpegTarget& target,
                const uint8_t* pixels, ImageSize size, int quality) {
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &target.bytes, &target.count);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(pixels) + info.next_scanline * size.width * 3;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

void require(bool ok, const JpegErrors& errors, const std::string& where) {
  if (ok) return;
  throw DataError({.where = where,
                   .what = "JPEG cannot be decoded",
                   .got = errors.message,
                   .remedy = "The picture is damaged: restore it or drop the episode."});
}

void open_header(JpegReader& reader, std::span<const std::byte> bytes, const std::string& where) {
  const auto* begin = reinterpret_cast<const unsigned char*>(bytes.data());
  require(read_header(reader, begin, bytes.size()), reader.errors, where);
}

ImageSize header_size(const JpegReader& reader) {
  return {reader.info.image_height, reader.info.image_width};
}

}  // namespace

ImageSize read_jpeg_size(std::span<const std::byte> bytes, const std::string& where) {
  JpegReader reader;
  open_header(reader, bytes, where);
  return header_size(reader);
}

void decode_jpeg(std::span<const std::byte> bytes, const std::string& where, ImageSize size,
                 std::span<uint8_t> rgb_hwc) {
  JpegReader reader;
  open_header(reader, bytes, where);
  const ImageSize found = header_size(reader);
  if (found != size) {
    throw DataError({.where = where,
                     .what = "picture has another size",
                     .got = std::to_string(found.height) + "x" + std::to_string(found.width),
                     .expected = std::to_string(size.height) + "x" + std::to_string(size.width),
                     .remedy = "Correct the size in meta/info.json, or the picture."});
  }
  require(read_rows(reader, rgb_hwc.data(), size.width * 3), reader.errors, where);
}

std::vector<std::byte> encode_jpeg_rows(std::span<const uint8_t> rgb_hwc, ImageSize size,
                                        int quality) {
  jpeg_compress_struct info;
  std::memset(&info, 0, sizeof(info));
  JpegErrors errors;
  info.err = init_errors(errors);
  JpegTarget target;
  const bool ok = write_rows(info, errors, target, rgb_hwc.data(), size, quality);
  jpeg_destroy_compress(&info);
  std::vector<std::byte> output;
  if (ok) {
    const auto* begin = reinterpret_cast<const std::byte*>(target.bytes);
    output.assign(begin, begin + target.count);
  }
  std::free(target.bytes);
  if (!ok)
    throw DataError({.what = "JPEG cannot be encoded",
                     .got = errors.message,
                     .remedy = "Check the size of the picture."});
  return output;
}

}  // namespace wam::data
