// libFuzzer's entry: one binary for each target, named by WAM_FUZZ_TARGET.
#include "tests/fuzz/targets.h"
#include "wam/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  static const wam::fuzz::Target& target = wam::fuzz::find_target(WAM_FUZZ_TARGET);
  try {
    target.run({reinterpret_cast<const char*>(data), size});
  } catch (const wam::DataError&) {
  } catch (const wam::ConfigError&) {
  }
  return 0;
}
