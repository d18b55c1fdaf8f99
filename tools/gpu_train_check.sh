#!/usr/bin/env bash
# Trains the demo model on a GPU in many ways and compares: f32 and bf16 with the CPU's losses, each run with its twin
# (again, streamed, recomputed) bit for bit. Prints one table; the exit code is 1 if anything is off.
#
#   tools/gpu_train_check.sh WAM DATASET CPU_RUN OUT [STEPS]
#
# DATASET: a demo dataset (`wam sim collect` or runs/demo/dataset). CPU_RUN: the folder of the same run on a CPU; made
# first if it has no metrics. OUT: folder of the runs' logs and metrics. Runs go four at a time, so that equal bits are
# also bits that do not depend on what else the card does.
set -uo pipefail
[[ $# == 4 || $# == 5 ]] || { sed -n '2,/^set/s/^# \?//p' "${BASH_SOURCE[0]}" | head -n -1 >&2; exit 2; }
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/gpu_env.sh"
wam=$1 dataset=$2 cpu=$3 out=$4 steps=${5:-200}
mkdir -p "$out"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
common=(dataset.path="$dataset" steps="$steps" save_every=0 validate_every=0 dataset.num_workers=4 --quiet)

if [[ ! -e $cpu/metrics.jsonl ]]; then
  "$wam" train "$here/../configs/demo.yaml" run_dir="$cpu" "${common[@]}" device=cpu >"$out/cpu.log" 2>&1 || { tail -n 3 "$out/cpu.log"; exit 1; }
fi

# usage: run NAME key=value... : in the background
run() {
  local name=$1
  shift
  "$wam" train "$here/../configs/demo.yaml" run_dir="$folder/$name" "${common[@]}" device=cuda "$@" >"$out/$name.log" 2>&1 ||
    { echo "$name failed: $(tail -n 1 "$out/$name.log")"; }
  cp "$folder/$name/metrics.jsonl" "$out/$name.jsonl" 2>/dev/null
}
half=(micro_batch_size=8)
budget=(recompute=auto recompute_budget_bytes="${WAM_CHECK_BUDGET:-40000000}")
names=() same=()
begin=$SECONDS
for dtype in f32 bf16; do
  i=0
  while read -r name twin options; do
    [[ -n $name ]] || continue
    read -ra words <<<"$options"
    run "${dtype}_$name" dtype="$dtype" "${words[@]}" &
    names+=("$folder/${dtype}_$name")
    [[ $twin == - ]] || same+=(--same "$folder/${dtype}_$name=$folder/${dtype}_$twin")
    (( ++i % 4 == 0 )) && wait
  done <<LIST
graph - exec=graph
again graph exec=graph
stream graph exec=stream
full graph recompute=full
auto graph ${budget[*]}
full_stream graph recompute=full exec=stream
half - ${half[*]}
half_again half ${half[*]}
half_stream half ${half[*]} exec=stream
half_full half ${half[*]} recompute=full
half_auto half ${half[*]} ${budget[*]}
unfused - fuse=false
LIST
  wait
done
echo "24 runs of $steps steps in $((SECONDS - begin)) s"
python3 "$here/compare_runs.py" "$cpu" "${names[@]}" "${same[@]}"
