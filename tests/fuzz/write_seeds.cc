// write_seeds FOLDER: FOLDER/<target>/<n>, where the fuzzer starts.
#include <cstdio>
#include <filesystem>

#include "tests/fuzz/targets.h"
#include "wam/base/files.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_seeds FOLDER\n", stderr);
    return 2;
  }
  for (const wam::fuzz::Target& target : wam::fuzz::targets()) {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / target.name;
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const std::string& seed : wam::fuzz::seeds(target.name)) {
      wam::write_file_atomic(folder / std::to_string(number++), seed);
    }
  }
  return 0;
}
