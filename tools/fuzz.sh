#!/usr/bin/env bash
# Coverage-guided fuzzing (libFuzzer, AddressSanitizer) of every reader of outside bytes.
# usage: tools/fuzz.sh [SECONDS [TARGET...]]   600 s each and all targets by default
# Needs clang with its runtime (Debian: clang-19 libclang-rt-19-dev libomp-19-dev). Works in
# build-fuzz/; a finding is left there as crash-*, timeout-* or oom-* and makes the exit code 1.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
[ $# -gt 0 ] && shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  targets=(safetensors torch_zip pickle safetensors_index parquet json_lines config_yaml tfevents)
fi
clang=$(command -v clang++-19 || command -v clang++) || {
  echo "tools/fuzz.sh: no clang++ found. Install clang-19, libclang-rt-19-dev and libomp-19-dev." >&2
  exit 2
}
cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER="$clang" -DWAM_FUZZ=ON -DWAM_SANITIZE=address \
  -DWAM_CUDA=OFF -DWAM_MPI=OFF -DWAM_WERROR=OFF >build-fuzz.log 2>&1 || {
  cat build-fuzz.log >&2
  exit 2
}
rm -f build-fuzz.log
cmake --build build-fuzz -j "${JOBS:-$(nproc)}" --target write_seeds "${targets[@]/#/fuzz_}"
ASAN_OPTIONS=detect_leaks=0 build-fuzz/tests/fuzz/write_seeds build-fuzz/seeds
status=0
for target in "${targets[@]}"; do
  mkdir -p "build-fuzz/corpus/$target"
  dictionary=()
  [ -f "tests/fuzz/$target.dict" ] && dictionary=(-dict="tests/fuzz/$target.dict")
  log=build-fuzz/$target.log
  if build-fuzz/tests/fuzz/fuzz_"$target" -max_total_time="$seconds" -max_len=65536 -timeout=20 \
    -rss_limit_mb=3072 -print_final_stats=1 -artifact_prefix="build-fuzz/$target-" "${dictionary[@]}" \
    "build-fuzz/corpus/$target" "build-fuzz/seeds/$target" >"$log" 2>&1; then
    found=none
  else
    found=yes
    status=1
  fi
  printf '%-18s finding: %-4s %s\n' "$target" "$found" \
    "$(grep -E 'stat::number_of_executed_units|Done ' "$log" | tr -s ' \n' ' ') $(grep -Eo 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -1)"
done
exit $status
