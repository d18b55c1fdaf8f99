#!/usr/bin/env bash
# Checks and measures the sharded step on the GPUs of one host, in one call of under ten minutes, and
# prints a table last: what `wam plan` predicts beside what was measured.
#
#   tools/bench_multi_gpu.sh WAM_OR_BUNDLE DATASET OUT [--dry-run] [--gpus N] [--skip check,5b,14b,kill]
#
# WAM_OR_BUNDLE: a wam binary with NCCL, or a bundle of tools/bundle.sh. DATASET: one made by
# `wam sim collect`, for the checks. --dry-run: ranks on CPU, the small model in place of the published
# ones: tries the script, measures nothing.
set -uo pipefail
[[ $# -ge 3 ]] || { sed -n '2,11p' "$0" >&2; exit 2; }
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wam=$1 dataset=$(realpath "$2") out=$3
shift 3
dry=0 gpus=0 skip=""
while [[ $# -gt 0 ]]; do
  case $1 in
    --dry-run) dry=1 ;;
    --gpus) gpus=$2; shift ;;
    --skip) skip=$2; shift ;;
    *) echo "bench_multi_gpu: unknown option $1" >&2; exit 2 ;;
  esac
  shift
done
mkdir -p "$out"
out=$(realpath "$out")
if [[ $wam == *.tar.xz ]]; then
  . "$repository/tools/gpu_env.sh"
  mkdir -p "$out/bundle" && tar -xf "$wam" -C "$out/bundle" && wam=$out/bundle/wam
fi
wam=$(realpath "$wam")
export NCCL_NVLS_ENABLE=0  # NVLink multicast stays off
if [[ $dry == 1 ]]; then
  device=cpu gpus=${gpus/#0/2} threads=1
else
  device=cuda threads=0
  [[ $gpus != 0 ]] || gpus=$(nvidia-smi -L | wc -l)
fi
bad=0 table=$out/table.txt
: >"$table"
say() { echo "[$SECONDS s] $*"; }
row() { printf '%s\n' "$*" | tee -a "$table"; }
skipped() { [[ ",$skip," == *",$1,"* ]]; }

# usage: ranks N SECONDS LOG COMMAND...: N ranks by torchrun's variables; the first bad exit code, if any.
ranks() {
  local count=$1 seconds=$2 log=$3 port pids=() code=0
  shift 3
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  for ((r = 0; r < count; r++)); do
    RANK=$r WORLD_SIZE=$count LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      timeout -s KILL "$seconds" "$@" >"$log.$r" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
  return $code
}

# The small model of the checks; every key may be given anew.
small=$out/small.yaml
cat >"$small" <<YAML
seed: 11
steps: 20
micro_batch_size: 1
global_batch_size: 8
save_every: 5
validate_every: 0
log_samples: true
disable_passes: [fuse_accumulation]
threads: $threads
device: $device
model: {preset: custom, dim: 96, layers: 3, heads: 4, ffn_dim: 192, text_len: 300, action_dim: 4, state_dim: 4, coder_dim: 32, num_blocks: 2}
vae: {kind: wan22, dim: 4, latent_channels: 6, standardise: true, sub_batch: 1}
text_encoder: {tokenizer: bytes, vocab: 384, dim: 32, ffn_dim: 48, heads: 2, layers: 1}
clip: {image_size: 28, patch_size: 14, dim: 32, heads: 2, layers: 2}
dataset: {path: "$dataset", embodiment: sim_table, validation_last: 1}
optimizer: {lr: 0.003, weight_decay: 0.01}
sharding: {silence_seconds: 5}
YAML

# usage: train NAME RANKS KEY=VALUE...
train() {
  local name=$1 count=$2
  shift 2
  ranks "$count" 90 "$out/$name" "$wam" train "$small" --quiet "run_dir=$out/run_$name" "$@"
}

# usage: compare A B BOUND: largest relative difference of two runs' losses; their samples must agree.
compare() {
  python3 - "$out/run_$1/metrics.jsonl" "$out/run_$2/metrics.jsonl" "$3" <<'PY'
import json, sys
runs = []
for path in sys.argv[1:3]:
    with open(path) as f:
        rows = [json.loads(line) for line in f]
    runs.append([(r["loss"], r["samples"]) for r in rows if r["kind"] == "train"])
a, b = runs
if len(a) != len(b) or any(x[1] != y[1] for x, y in zip(a, b)):
    print("OTHER SAMPLES"); sys.exit(1)
off = max(abs(x[0] - y[0]) / abs(y[0]) for x, y in zip(a, b))
print(f"{off:.1e}" if off else "same bits")
sys.exit(off > float(sys.argv[3]))
PY
}

check_strategies() {
  local strategies="none optimizer gradients full" s off twice cut
  [[ $gpus -lt 4 ]] || strategies+=" hybrid"
  train one 1 || { row "check: the run on one GPU fails: $(tail -n 1 "$out/one.0")"; bad=1; return; }
  for s in $strategies; do
    local more=(sharding.strategy="$s")
    [[ $s != hybrid ]] || more+=(sharding.shard_size=$((gpus / 2)))
    if ! train "$s" "$gpus" "${more[@]}" || ! train "${s}_again" "$gpus" "${more[@]}" ||
      ! train "${s}_cut" "$gpus" "${more[@]}" sharding.capture=cut; then
      row "check $s: fails: $(tail -q -n 1 "$out/$s."* | head -n 1)"
      bad=1
      continue
    fi
    # 20 steps, each of sums of 8 terms in another order: some units in the last place a step.
    off=$(compare "$s" one 8e-5) || bad=1
    twice=$(compare "${s}_again" "$s" 0) || bad=1
    cut=$(compare "${s}_cut" "$s" 0) || bad=1
    row "check $s on $gpus: against one GPU $off; again: $twice; cut: $cut"
  done
}

# usage: measure TITLE RANKS SECONDS ARGUMENTS...: a bench step; its samples/s a GPU in $rate.
measure() {
  local title=$1 count=$2 seconds=$3 log
  shift 3
  log=$out/bench_${title// /_}
  rate=""
  if ! ranks "$count" "$seconds" "$log" "$wam" bench step "$@" --steps 4 --no-profile --json; then
    row "$title: fails: $(tail -q -n 1 "$log".* | head -n 1 | cut -c1-160)"
    bad=1
    return 1
  fi
  rate=$(python3 -c 'import json, sys; b = json.load(open(sys.argv[1])); print("%.3f" % (b["samples_per_second"] / b["ranks"]))' "$log.0") || bad=1
  [[ -n $rate ]]
}

# usage: memory LOG: planned and seen of rank 0.
memory() {
  python3 -c 'import json, sys; b = json.load(open(sys.argv[1])); p, s = b["planned_bytes"], b["seen_bytes"]; print("memory %.2f / %.2f GB (%+.2f %%)" % (p / 1e9, s / 1e9, 100 * (s / p - 1)))' "$1"
}

# usage: predicted CONFIG STRATEGY RANKS KEY...: the plan's step and scaling.
predicted() {
  local config=$1 strategy=$2 count=$3
  shift 3
  "$wam" plan "$config" --ranks "$count" dataset.path=/none recompute=none "$@" 2>&1 |
    awk -v s="$strategy" '$1 == s { print "predicted " $(NF - 2) ", scaling " $(NF - 1) " %" }'
}

measure_5b() {
  local model=(--model 5b --prompt-tokens 90) config=$repository/configs/dreamzero_5b_libero.yaml alone s
  local sizes=(--micro-batch-size 8 --accumulate 4)
  [[ $dry == 0 ]] || { model=(--config "$small"); sizes=(--micro-batch-size 1 --accumulate 4); config=$small; }
  measure "5B alone" 1 60 "${model[@]}" "${sizes[@]}" --device $device || return
  alone=$rate
  row "5B on 1: $alone samples/s; $(memory "$out/bench_5B_alone.0")"
  for s in none optimizer full; do
    measure "5B $s" "$gpus" 70 "${model[@]}" "${sizes[@]}" --sharding $s --device $device || continue
    row "5B $s on $gpus: $rate samples/s a GPU, $(python3 -c "print(f'{100 * $rate / $alone:.1f}')") % of one; $(memory "$out/bench_5B_$s.0"); $(predicted "$config" $s "$gpus" device=$device)"
  done
}

measure_14b() {
  local model=(--model 14b --prompt-tokens 90 --recompute full --gradient-dtype bf16) config=$repository/configs/dreamzero_14b_droid.yaml
  [[ $dry == 0 ]] || { model=(--config "$small"); config=$small; }
  [[ $dry == 1 || $gpus -ge 4 ]] || { row "14B: skipped, needs 4 GPUs"; return; }
  measure "14B full" "$gpus" 120 "${model[@]}" --micro-batch-size 1 --accumulate 1 --sharding full --device $device || return
  row "14B full on $gpus: $rate samples/s a GPU (RLinf on 8 H100: 0.150; must 0.26, aim 0.32); $(memory "$out/bench_14B_full.0"); $(predicted "$config" full "$gpus" device=$device)"
}

# A rank is killed in the middle of a step; the run goes on with half as many.
check_kill() {
  local half=$((gpus / 2)) port pids=() codes=() named=0 start
  train kill_whole "$gpus" sharding.strategy=full || { row "kill: the undisturbed run fails"; bad=1; return; }
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  for ((r = 0; r < gpus; r++)); do
    RANK=$r WORLD_SIZE=$gpus LOCAL_RANK=$r MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      "$wam" train "$small" --quiet "run_dir=$out/run_killed" sharding.strategy=full >"$out/killed.$r" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < 6000; i++)); do
    [[ $(cat "$out/run_killed/metrics.jsonl" 2>/dev/null | wc -l) -lt 8 ]] || break
    sleep 0.01
  done
  start=$(date +%s%N)
  kill -KILL "${pids[$((gpus - 1))]}"
  for pid in "${pids[@]}"; do wait "$pid"; codes+=($?); done
  local milliseconds=$((($(date +%s%N) - start) / 1000000))
  for ((r = 0; r < gpus - 1; r++)); do
    grep -q "rank $((gpus - 1))" "$out/killed.$r" && [[ ${codes[$r]} != 0 ]] && named=$((named + 1))
  done
  ranks "$half" 90 "$out/resumed" "$wam" train "$small" --quiet --resume "run_dir=$out/run_killed" sharding.strategy=full ||
    { row "kill: the resumed run fails: $(tail -n 1 "$out/resumed.0")"; bad=1; return; }
  local off
  off=$(compare killed kill_whole 8e-5) || bad=1
  [[ $named == $((gpus - 1)) ]] || bad=1
  row "kill: $named of $((gpus - 1)) others end and name rank $((gpus - 1)) after $milliseconds ms; resumed on $half: samples equal, losses within $off"
}

say "$gpus ranks on $device"
rm -rf "$out"/run_*
skipped check || { say "checks"; check_strategies; }
skipped kill || { say "a rank killed"; check_kill; }
skipped 5b || { say "5B"; measure_5b; }
skipped 14b || { say "14B"; measure_14b; }
echo
echo "== $gpus ranks on $device, $SECONDS s, $([[ $bad == 0 ]] && echo all good || echo NOT ALL GOOD)"
cat "$table"
exit $bad
