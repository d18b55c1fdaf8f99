// wam version: the binary, its compiler and every library. Where a library tells the version that
// is loaded, that one is printed, and the one compiled against beside it if they differ.
#include <arrow/config.h>
#include <dnnl.h>
#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <omp.h>
#include <png.h>
#include <spdlog/version.h>
#include <utf8proc.h>
#include <xxhash.h>
#include <zlib.h>

#include <jconfig.h>
#include <nlohmann/detail/abi_macros.hpp>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "wam/cli/build_facts.h"
#include "wam/cli/commands.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/avutil.h>
}

namespace wam::cli {
namespace {

struct Library {
  const char* name;
  std::string compiled;  // empty: not told apart from the loaded one
  std::string loaded;
};

std::string dotted(int64_t major, int64_t minor, int64_t patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// Versions packed as major, minor and patch times powers of `base`.
std::string unpacked(int64_t version, int64_t base) {
  return dotted(version / (base * base), version / base % base, version % base);
}

std::string ffmpeg_version(unsigned version) {
  return dotted(AV_VERSION_MAJOR(version), AV_VERSION_MINOR(version), AV_VERSION_MICRO(version));
}

std::vector<Library> device_libraries() {
  const dnnl_version_t& dnnl = *dnnl_version();
  return {{"oneDNN", dotted(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH),
           dotted(dnnl.major, dnnl.minor, dnnl.patch)},
          {"OpenMP", "", fmt::format("{}, {} threads", _OPENMP, omp_get_max_threads())},
          {"CUDA", "", facts::kCuda},
          {"MPI", "", facts::kMpi}};
}

std::vector<Library> data_libraries() {
  return {
      {"Arrow", ARROW_VERSION_STRING, arrow::GetBuildInfo().version_string},
      {"FFmpeg", "", av_version_info()},
      {"avcodec", ffmpeg_version(LIBAVCODEC_VERSION_INT), ffmpeg_version(avcodec_version())},
      {"SentencePiece", "", facts::kSentencePiece},
      {"utf8proc", dotted(UTF8PROC_VERSION_MAJOR, UTF8PROC_VERSION_MINOR, UTF8PROC_VERSION_PATCH),
       utf8proc_version()},
      {"libpng", PNG_LIBPNG_VER_STRING, png_get_libpng_ver(nullptr)},
      {"libjpeg", "", unpacked(LIBJPEG_TURBO_VERSION_NUMBER, 1000)},
      {"zlib", ZLIB_VERSION, zlibVersion()}};
}

std::vector<Library> text_libraries() {
  return {{"yaml-cpp", "", facts::kYamlCpp},
          {"nlohmann-json", "",
           dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                  NLOHMANN_JSON_VERSION_PATCH)},
          {"fmt", "", unpacked(FMT_VERSION, 100)},
          {"spdlog", "", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
          {"CLI11", "", CLI11_VERSION},
          {"xxHash", "", unpacked(XXH_VERSION_NUMBER, 100)},
          {"glibc", "", gnu_get_libc_version()}};
}

void print_libraries(const std::vector<Library>& libraries) {
  for (const Library& library : libraries) {
    const bool differs = !library.compiled.empty() && library.compiled != library.loaded;
    fmt::print("  {:<14} {}{}\n", library.name, library.loaded,
               differs ? " (compiled against " + library.compiled + ")" : "");
  }
}

void print_versions() {
  fmt::print("wam {}\ncompiler {}\nbuild {}\nlibraries\n", facts::kVersion, facts::kCompiler,
             facts::kBuild);
  print_libraries(device_libraries());
  print_libraries(data_libraries());
  print_libraries(text_libraries());
}

}  // namespace

void add_version(CLI::App& app, int&) {
  app.add_subcommand("version", "Versions of the binary, its compiler and every library")
      ->callback(print_versions);
}

}  // namespace wam::cli
