#include "wam/tensor/archive.h"

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"
#include "wam/tensor/archive_error.h"
#include "wam/tensor/safetensors.h"
#include "wam/tensor/torch_zip.h"

namespace wam {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
constexpr std::string_view kFileSuffix = ".safetensors";
// The local header that every zip with an entry starts with.
constexpr std::string_view kZipStart = "PK\x03\x04";
constexpr std::string_view kPickleStart = "\x80";
constexpr std::string_view kLfsStart = "version https://git-lfs";

std::vector<fs::path> files_ending_with(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().ends_with(suffix)) found.push_back(it->path());
  }
  if (error) throw_io_error(folder, "cannot list the folder", error.value());
  return found;
}

// The file of a folder that open_tensor_archive takes.
fs::path file_of_folder(const fs::path& folder) {
  std::vector<fs::path> found = files_ending_with(folder, kIndexSuffix);
  if (found.empty()) found = files_ending_with(folder, kFileSuffix);
  if (found.size() == 1) return found.front();
  throw DataError({.where = folder.string(),
                   .what = "no single checkpoint in the folder",
                   .got = std::to_string(found.size()) + " candidates",
                   .expected = "one *.safetensors.index.json or one *.safetensors",
                   .remedy = "Name the file instead of the folder."});
}

[[noreturn]] void refuse(const fs::path& path, const std::string& what, const std::string& remedy) {
  throw DataError({.where = path.string(), .what = what, .remedy = remedy});
}

void refuse_other_formats(const MappedFile& file) {
  const std::string_view text = file.text();
  if (text.empty()) refuse(file.path(), "the file is empty", "Fetch it again.");
  if (text.starts_with(kLfsStart)) {
    refuse(file.path(), "a Git LFS pointer, not the file itself",
           "Fetch the contents with git lfs pull.");
  }
  if (text.starts_with(kPickleStart) && text.size() > 1 && text[1] >= 2 && text[1] <= 5) {
    refuse(file.path(), "a bare pickle (torch.save before version 1.6 or legacy mode)",
           "Load it in PyTorch and save it again, as a zip or as safetensors.");
  }
}

std::unique_ptr<TensorArchive> open_file(const fs::path& path, const ArchiveOptions& options) {
  auto file = std::make_shared<const MappedFile>(path);
  const std::string_view text = file->text();
  if (text.starts_with(kZipStart)) return open_torch_zip(std::move(file), options.key);
  if (!options.key.empty()) {
    refuse(path, "the key " + quote(options.key) + " can be taken of a torch file only",
           "Leave the key out.");
  }
  // A safetensors file whose header has 0x7B bytes starts with '{' too; its next byte is 0.
  if (text.starts_with('{') && text.size() > 1 && text[1] != '\0')
    return open_sharded_safetensors(*file);
  refuse_other_formats(*file);
  return open_safetensors(std::move(file));
}

}  // namespace

std::unique_ptr<TensorArchive> open_tensor_archive(const fs::path& path,
                                                   const ArchiveOptions& options) {
  std::error_code ignored;
  return open_file(fs::is_directory(path, ignored) ? file_of_folder(path) : path, options);
}

void throw_no_such_tensor(const TensorArchive& archive, const std::string& name) {
  // Checkpoints differ most often by a prefix.
  std::string remedy = "List what there is with wam inspect.";
  for (const std::string& other : archive.names()) {
    if (other.ends_with("." + name) || name.ends_with("." + other)) {
      remedy = "There is " + quote(other) + ".";
      break;
    }
  }
  throw DataError({.where = archive.files().front().string(),
                   .what = "no tensor of this name",
                   .got = quote(name),
                   .expected = "one of " + std::to_string(archive.names().size()) + " names",
                   .remedy = remedy});
}

}  // namespace wam
