#!/usr/bin/env bash
# Tries and times the CUDA kernels on a machine with a GPU: unpacks a bundle made by tools/bundle.sh
# from cuda_conformance, cuda_step and cuda_kernels, and leaves logs in OUT.
#
#   tools/gpu_check.sh BUNDLE.tar.xz OUT [PART]      a part of cuda_kernels to time, default 5b
set -uo pipefail
[[ $# == 2 || $# == 3 ]] || { echo "usage: tools/gpu_check.sh BUNDLE.tar.xz OUT [PART]" >&2; exit 2; }
. "$(dirname "${BASH_SOURCE[0]}")/gpu_env.sh"
folder=$(mktemp -d)
tar -xf "$1" -C "$folder" || exit
nvidia-smi --query-gpu=name,driver_version,clocks.sm,memory.used --format=csv,noheader

# usage: part SECONDS NAME COMMAND...: a kernel that hangs must not eat the time of the others.
part() {
  local seconds=$1 name=$2
  shift 2
  echo "== $name"
  timeout -s KILL "$seconds" "$@" >"$out/$name.log" 2>&1
  echo "exit $?, ${SECONDS} s so far"
}
out=$2
part 100 conformance "$folder/cuda_conformance"
part 60 step "$folder/cuda_step"
part 60 step_2 "$folder/cuda_step" time 2 8
part 60 step_4 "$folder/cuda_step" time 4 8
part 40 check "$folder/cuda_kernels" check
part 60 times "$folder/cuda_kernels" ${3:-5b}
grep -h -E "FAILED|failed,|lost|error" "$out"/conformance.log | grep -v " 0 failed, worst" | cut -c1-260 | head -60
cut -c1-200 "$out/step.log" "$out/step_2.log" "$out/step_4.log"
grep -E "WRONG|other bits|rror" "$out/check.log"
cut -c1-150 "$out/times.log"
