#include "wam/tensor/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/tensor/byte_cursor.h"

namespace wam {
namespace {

constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr size_t kEndBytes = 22, kLocator64Bytes = 20, kCentralBytes = 46, kLocalBytes = 30;
constexpr size_t kMaxCommentBytes = 0xFFFF;
constexpr uint16_t kZip64Field = 0x0001;
constexpr uint16_t kEncryptedFlag = 0x0001;
constexpr uint16_t kStored = 0;
// What a field holds when the value is in the zip64 record instead.
constexpr uint64_t kIn64For16 = 0xFFFF, kIn64For32 = 0xFFFFFFFF;

[[noreturn]] void fail(const std::string& where, const std::string& what,
                       const std::string& got = "", const std::string& expected = "") {
  throw DataError({.where = where,
                   .what = what,
                   .got = got,
                   .expected = expected,
                   .remedy = "The file is damaged or cut short: fetch it again."});
}

// Where the central directory lies. `limit` is the first byte after what entries may use.
struct Directory {
  uint64_t num_entries = 0, size = 0, offset = 0, limit = 0;
};

// An entry as the central directory has it.
struct CentralEntry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc32 = 0;
  uint64_t stored_size = 0, size = 0, local_offset = 0;
};

// Position of the end record: the last one whose comment reaches exactly to the end of the file.
size_t find_end_record(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() < kEndBytes)
    fail(where, "too short for a zip", std::to_string(bytes.size()) + " bytes");
  const size_t last = bytes.size() - kEndBytes;
  const size_t first = last > kMaxCommentBytes ? last - kMaxCommentBytes : 0;
  for (size_t position = last + 1; position-- > first;) {
    ByteCursor cursor(bytes, where, position);
    if (cursor.read<uint32_t>() != kEndSignature) continue;
    cursor.skip(kEndBytes - 6);
    if (cursor.read<uint16_t>() == cursor.remaining()) return position;
  }
  fail(where, "no zip directory at the end of the file");
}

void check_same(uint64_t narrow, uint64_t saturated, uint64_t wide, const std::string& where) {
  if (narrow != saturated && narrow != wide) {
    fail(where, "zip and zip64 end records differ", std::to_string(narrow), std::to_string(wide));
  }
}

// Replaces `found` by the zip64 record if there is one in front of the end record.
Directory widen(const Directory& found, std::span<const std::byte> bytes, size_t end_position,
                const std::string& where) {
  if (end_position < kLocator64Bytes) return found;
  ByteCursor locator(bytes, where, end_position - kLocator64Bytes);
  if (locator.read<uint32_t>() != kLocator64Signature) return found;
  locator.skip(4);
  const auto position = locator.read<uint64_t>();
  if (position > end_position - kLocator64Bytes) fail(where, "zip64 end record outside the file");
  ByteCursor record(bytes, where, position);
  if (record.read<uint32_t>() != kEnd64Signature)
    fail(where, "no zip64 end record where one is named");
  record.skip(8 + 2 + 2 + 4 + 4 + 8);
  Directory wide{.num_entries = record.read<uint64_t>(), .size = record.read<uint64_t>()};
  wide.offset = record.read<uint64_t>();
  wide.limit = position;
  check_same(found.num_entries, kIn64For16, wide.num_entries, where);
  check_same(found.size, kIn64For32, wide.size, where);
  check_same(found.offset, kIn64For32, wide.offset, where);
  return wide;
}

Directory find_directory(std::span<const std::byte> bytes, const std::string& where) {
  const size_t end_position = find_end_record(bytes, where);
  ByteCursor cursor(bytes, where, end_position + 4);
  cursor.skip(6);
  Directory found{.num_entries = cursor.read<uint16_t>()};
  found.size = cursor.read<uint32_t>();
  found.offset = cursor.read<uint32_t>();
  found.limit = end_position;
  found = widen(found, bytes, end_position, where);
  if (found.offset > found.limit || found.size > found.limit - found.offset ||
      found.num_entries > found.size / kCentralBytes) {
    fail(where, "zip directory does not fit the file",
         std::to_string(found.num_entries) + " entries in " + std::to_string(found.size) +
             " bytes at " + std::to_string(found.offset));
  }
  return found;
}

// Takes the wide values of the fields that are saturated, in the order the format fixes.
void read_extra_fields(CentralEntry& entry, std::span<const std::byte> extra,
                       const std::string& where) {
  ByteCursor cursor(extra, where);
  while (cursor.remaining() >= 4) {
    const auto id = cursor.read<uint16_t>();
    const auto length = cursor.read<uint16_t>();
    ByteCursor field(cursor.bytes(length), where);
    if (id != kZip64Field) continue;
    for (uint64_t* value : {&entry.size, &entry.stored_size, &entry.local_offset}) {
      if (*value == kIn64For32) *value = field.read<uint64_t>();
    }
    return;
  }
}

CentralEntry read_central_entry(ByteCursor& cursor, const std::string& where) {
  if (cursor.read<uint32_t>() != kCentralSignature) fail(where, "damaged zip directory");
  cursor.skip(4);
  CentralEntry entry{.flags = cursor.read<uint16_t>(), .method = cursor.read<uint16_t>()};
  cursor.skip(4);
  entry.crc32 = cursor.read<uint32_t>();
  entry.stored_size = cursor.read<uint32_t>();
  entry.size = cursor.read<uint32_t>();
  const auto name_length = cursor.read<uint16_t>();
  const auto extra_length = cursor.read<uint16_t>();
  const auto comment_length = cursor.read<uint16_t>();
  cursor.skip(8);
  entry.local_offset = cursor.read<uint32_t>();
  entry.name = cursor.text(name_length);
  read_extra_fields(entry, cursor.bytes(extra_length), where + ": entry " + quote(entry.name));
  cursor.skip(comment_length);
  return entry;
}

void check_plain(const CentralEntry& entry, const std::string& where) {
  if (entry.method == kStored && (entry.flags & kEncryptedFlag) == 0) return;
  throw DataError({.where = where + ": entry " + quote(entry.name),
                   .what = "zip entry is compressed or encrypted",
                   .got = "method " + std::to_string(entry.method),
                   .expected = "stored entries, as torch.save writes them",
                   .remedy = "Load the file in PyTorch and save it again."});
}

// Finds the contents behind the local header, which must agree with the directory.
ZipEntry locate(const CentralEntry& entry, std::span<const std::byte> bytes,
                const Directory& directory, const std::string& where) {
  const std::string place = where + ": entry " + quote(entry.name);
  if (entry.local_offset > directory.offset) fail(place, "entry outside the file");
  // Entries lie in front of the directory.
  ByteCursor cursor(bytes.first(directory.offset), place, entry.local_offset);
  if (cursor.read<uint32_t>() != kLocalSignature)
    fail(place, "no entry where the directory names one");
  cursor.skip(kLocalBytes - 8);
  const auto name_length = cursor.read<uint16_t>();
  const auto extra_length = cursor.read<uint16_t>();
  if (cursor.text(name_length) != entry.name)
    fail(place, "names in the directory and at the entry differ");
  cursor.skip(extra_length);
  if (entry.size != entry.stored_size) fail(place, "sizes of a stored entry differ");
  if (entry.size > cursor.remaining()) {
    fail(place, "contents past the end", std::to_string(entry.size) + " bytes",
         "at most " + std::to_string(cursor.remaining()));
  }
  return {.name = entry.name,
          .offset = static_cast<int64_t>(cursor.position()),
          .size = static_cast<int64_t>(entry.size),
          .crc32 = entry.crc32};
}

// [begin of local header, end of contents) of an entry.
struct Extent {
  uint64_t begin, end;
  const std::string* name;
};

void check_no_overlap(std::vector<Extent> extents, const std::string& where) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) {
      fail(where, "zip entries overlap",
           quote(*extents[i - 1].name) + " and " + quote(*extents[i].name));
    }
  }
}

}  // namespace

ZipReader::ZipReader(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  const std::string where = file_->path().string();
  const Directory directory = find_directory(file_->bytes(), where);
  ByteCursor cursor(file_->bytes().subspan(directory.offset, directory.size),
                    where + ": directory");
  std::vector<Extent> extents;
  for (uint64_t i = 0; i < directory.num_entries; ++i) {
    const CentralEntry central = read_central_entry(cursor, where);
    check_plain(central, where);
    ZipEntry entry = locate(central, file_->bytes(), directory, where);
    const auto end = static_cast<uint64_t>(entry.offset + entry.size);
    const auto [it, is_new] = entries_.emplace(central.name, std::move(entry));
    if (!is_new) fail(where, "zip entry named twice", quote(central.name));
    extents.push_back({central.local_offset, end, &it->first});
  }
  if (cursor.remaining() != 0) fail(where, "bytes left over in the zip directory");
  check_no_overlap(std::move(extents), where);
}

const ZipEntry* ZipReader::find(const std::string& name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

std::string_view ZipReader::contents(const ZipEntry& entry) const {
  return file_->text().substr(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.size));
}

void ZipReader::check_crc(const ZipEntry& entry) const {
  if (entry.crc32 == 0) return;
  const std::string_view text = contents(entry);
  const uLong crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
  if (crc == entry.crc32) return;
  fail(file_->path().string() + ": entry " + quote(entry.name),
       "contents do not have the stored checksum", std::to_string(crc),
       std::to_string(entry.crc32));
}

}  // namespace wam
