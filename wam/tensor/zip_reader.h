// The directory of a zip file of stored (uncompressed) entries, zip64 included. Format: PKWARE
// APPNOTE 6.3.9, sections 4.3 and 4.5.3.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "wam/base/files.h"

namespace wam {

struct ZipEntry {
  std::string name;
  int64_t offset = 0;  // of the contents, in the file
  int64_t size = 0;    // bytes
  uint32_t crc32 = 0;
};

// Immutable after construction; safe to use from several threads.
class ZipReader {
 public:
  // Throws DataError for a damaged directory, repeated names, entries that overlap or lie outside
  // the file, and compressed or encrypted ones.
  explicit ZipReader(std::shared_ptr<const MappedFile> file);

  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const std::map<std::string, ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(const std::string& name) const;
  std::string_view contents(const ZipEntry& entry) const;
  // Throws DataError if the contents do not have the stored checksum. A stored 0 means that the
  // writer made none (torch.serialization.set_crc32_options(False)).
  void check_crc(const ZipEntry& entry) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, ZipEntry> entries_;
};

}  // namespace wam
