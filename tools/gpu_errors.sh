#!/usr/bin/env bash
# Provokes on a GPU what can go wrong with one, and checks exit code and message of each case.
#
#   tools/gpu_errors.sh FOLDER DATASET      FOLDER holds wam, cuda_faults and, if built, cuda_other_architecture;
#                                           DATASET is a demo dataset
# Prints each message; the exit code is the number of cases that went otherwise.
set -uo pipefail
[[ $# == 2 ]] || { sed -n '2,/^set/s/^# \?//p' "${BASH_SOURCE[0]}" | head -n -1 >&2; exit 2; }
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/gpu_env.sh"
folder=$1 dataset=$2 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# usage: expect NAME EXIT_CODE REGEX... -- COMMAND...: the output must match every REGEX.
expect() {
  local name=$1 code=$2 words=() good=yes
  shift 2
  while [[ $1 != -- ]]; do words+=("$1"); shift; done
  shift
  timeout -s KILL 120 "$@" >"$scratch/out" 2>&1
  local got=$?
  [[ $got == "$code" ]] || good="no: exit code $got, expected $code"
  for word in "${words[@]}"; do grep -qE -- "$word" "$scratch/out" || good="no: nothing like '$word'"; done
  [[ $good == yes ]] || failed=$((failed + 1))
  printf '== %s: %s\n' "$name" "$([[ $good == yes ]] && echo ok || echo "FAILED, $good")"
  grep -vE '^\s|^(model|memory|step|recompute|programs) ' "$scratch/out" | cut -c1-420 | tail -n 4
}
train() { echo "$folder/wam" train "$here/../configs/demo.yaml" run_dir="$scratch/run$RANDOM" dataset.path="$dataset" device=cuda validate_every=0 save_every=0 log_every=1 --quiet "$@"; }
bench=("$folder/wam" bench step --model 5b --prompt-tokens 90 --no-profile --steps 1)

expect 'no GPU' 4 'no GPU can be used' 'device: cpu' -- env CUDA_VISIBLE_DEVICES= "${bench[@]}" --layers 1
expect 'a GPU that is not there' 4 'no such GPU' 'Choose one of the' -- "${bench[@]}" --layers 1 --device cuda:7
if [[ -x $folder/cuda_other_architecture ]]; then
  expect 'a build for another architecture' 0 'holds no code for the GPU' -- "$folder/cuda_other_architecture"
fi
expect 'a plan larger than the card' 4 'does not fit' 'These would fit: micro_batch_size' -- "${bench[@]}" --micro-batch-size 32
expect 'a fault, streamed: names the op' 0 'take_rows of lookup' 'ok: nothing runs after it' -- "$folder/cuda_faults" stream
expect 'a fault, captured: says how to learn the op' 0 'exec: stream' 'ok: nothing runs after it' -- "$folder/cuda_faults" graph
# shellcheck disable=SC2046
expect 'not finite, stop: names step and samples' 3 'step [0-9]+: .*not finite' 'episode [0-9]+ row' 'non_finite: skip' -- $(train steps=12 optimizer.lr=1e30 optimizer.warmup_ratio=0 optimizer.non_finite=stop)
# shellcheck disable=SC2046
expect 'not finite, skip: goes on' 0 'update skipped; samples of' 'episode [0-9]+ row' 'done at step 6' -- $(train steps=6 optimizer.lr=1e30 optimizer.warmup_ratio=0 optimizer.non_finite=skip)

# Another process holds most of the card.
read -r total < <(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits)
mkfifo "$scratch/end"
"$folder/cuda_faults" hold $(((total - 36000) * 1024 * 1024)) <"$scratch/end" >"$scratch/held" 2>&1 &
holder=$!
exec 9>"$scratch/end"
for _ in $(seq 100); do [[ -s $scratch/held ]] && break; sleep 0.1; done
cat "$scratch/held"
expect 'memory held by another process' 4 'does not fit' 'held by other processes' -- "${bench[@]}" --micro-batch-size 8 --accumulate 4
expect 'the same, what would fit' 4 'does not fit' 'held by other processes' 'These would fit: micro_batch_size: [0-9]+' -- "${bench[@]}" --layers 4 --micro-batch-size 32
exec 9>&-
wait "$holder"
echo "$failed cases went wrong"
exit "$failed"
