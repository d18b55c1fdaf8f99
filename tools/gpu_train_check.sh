#!/usr/bin/env bash
# Trains the demo model on a GPU in many ways and compares: f32 and bf16 with the CPU's losses, each run with its twin
# (again, streamed, recomputed) bit for bit. Prints tables; the exit code is 1 if anything is off.
#
#   tools/gpu_train_check.sh WAM DATASET CPU_RUNS OUT STEPS LR...
#
# DATASET: of the demo (`wam sim collect`, or runs/demo/dataset). CPU_RUNS: a folder with the same runs on a CPU, one a
# learning rate, and their controls in half micro-batches, CPU_RUNS/LR, LR_half and, in bf16, LR_bf16; made first where they lack. A
# learning rate with a + behind it has all the twins, others are only compared with the CPU. OUT: logs and metrics. Runs
# go four at a time, so that equal bits are also bits that do not depend on what else the card does.
set -uo pipefail
[[ $# -ge 6 ]] || { sed -n '2,/^set/s/^# \?//p' "${BASH_SOURCE[0]}" | head -n -1 >&2; exit 2; }
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/gpu_env.sh"
wam=$1 dataset=$2 cpu=$3 out=$4 steps=$5
shift 5
mkdir -p "$out" "$cpu"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
common=(dataset.path="$dataset" steps="$steps" save_every=0 validate_every=0 --quiet)
half=micro_batch_size=8
budget="recompute=auto recompute_budget_bytes=${WAM_CHECK_BUDGET:-40000000}"

# usage: run FOLDER key=value...
run() {
  local name
  name=$(basename "$(dirname "$1")")_$(basename "$1")
  "$wam" train "$here/../configs/demo.yaml" run_dir="$1" "${common[@]}" "${@:2}" >"$out/$name.log" 2>&1 ||
    echo "$1 failed: $(tail -n 1 "$out/$name.log")"
}

twins='again graph exec=graph
stream graph exec=stream
full graph recompute=full
auto graph BUDGET
full_stream graph recompute=full exec=stream
half - HALF
half_again half HALF
half_stream half HALF exec=stream
half_full half HALF recompute=full
half_auto half HALF BUDGET
unfused - fuse=false'
twins=${twins//HALF/$half}
twins=${twins//BUDGET/$budget}

# The CPU's runs: the reference, its control, and bf16 as a CPU has it, whose distance is that of the type.
for rate in "${@%+}"; do
  while read -r name options; do
    [[ -e $cpu/$rate$name/metrics.jsonl ]] || run "$cpu/$rate$name" device=cpu threads=4 optimizer.lr="$rate" $options &
  done <<<"$(printf '%s\n' ' ' "_half $half" '_bf16 dtype=bf16')"
done
wait

status=0
for rate in "$@"; do
  list='graph - exec=graph'
  [[ $rate != *+ ]] || list+=$'\n'$twins
  rate=${rate%+}
  names=() same=() begin=$SECONDS
  for dtype in f32 bf16; do
    while read -r name twin options; do
      read -ra words <<<"$options"
      run "$folder/$rate/${dtype}_$name" device=cuda dtype=$dtype optimizer.lr="$rate" dataset.num_workers=4 "${words[@]}" &
      names+=("$folder/$rate/${dtype}_$name")
      [[ $twin == - ]] || same+=(--same "$folder/$rate/${dtype}_$name=$folder/$rate/${dtype}_$twin")
      (( ${#names[@]} % 4 == 0 )) && wait
    done <<<"$list"
  done
  wait
  echo "== learning rate $rate: ${#names[@]} runs of $steps steps in $((SECONDS - begin)) s"
  python3 "$here/compare_runs.py" "$cpu/$rate" "$cpu/${rate}_bf16" "${names[@]}" --control "$cpu/${rate}_half" "${same[@]}" || status=1
done
exit $status
