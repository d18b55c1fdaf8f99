// TFRecord framing: each record is its length (8 bytes, little-endian), the masked CRC-32C of the
// length, the bytes, and their masked CRC-32C.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wam::train {

// CRC-32C (Castagnoli), as in RFC 3720 section B.4.
uint32_t crc32c(std::string_view bytes);

// The record with its frame.
std::string frame_tfrecord(std::string_view bytes);

// The records of a file, as views into it. A last record that was cut short (a writer that is still
// at work or was killed) is left out; a wrong checksum is a DataError naming `where` and the byte.
std::vector<std::string_view> split_tfrecords(std::string_view file, const std::string& where);

}  // namespace wam::train
