#!/usr/bin/env python3
"""kill -9 at random moments of a run that saves asynchronously: each must resume and end with the
bits of the run that nobody killed.

    tools/kill_campaign.py WAM FOLDER [--kills 100] [--seed 1] [--set key=value ...]

Collects a small dataset, trains once to the end, then for each kill trains anew in a folder of its
own, kills it at a random moment (some resumed runs are killed a second time), resumes it to the end
and compares weights, moments and every step's loss. Says where the kills fell. Exit code 1 if one
case is bad."""
import argparse
import collections
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time

CONFIG = """
seed: 11
threads: 1
steps: 30
micro_batch_size: 2
global_batch_size: 2
save_every: 2
keep_last: 3
validate_every: 15
validation_samples: 2
model: {preset: custom, dim: 64, layers: 3, heads: 2, ffn_dim: 128, text_len: 300, action_dim: 4,
        state_dim: 4, coder_dim: 32, num_blocks: 2}
vae: {kind: wan22, dim: 4, latent_channels: 6, sub_batch: 2}
text_encoder: {tokenizer: bytes, vocab: 384, dim: 32, ffn_dim: 48, heads: 2, layers: 1}
clip: {image_size: 28, patch_size: 14, dim: 32, heads: 2, layers: 2}
dataset: {embodiment: sim_table, validation_last: 1, num_workers: 1}
optimizer: {lr: 0.003, weight_decay: 0.01}
checkpoint: {keep_every: 20, best: true}
"""
PATIENCE = 600  # seconds until a run that does not end counts as hanging


def command(args, run_dir, resume):
    words = [args.wam, "train", os.path.join(args.folder, "run.yaml"), "--quiet"]
    words += ["--resume"] if resume else []
    words += ["run_dir=" + run_dir, "dataset.path=" + os.path.join(args.folder, "table")]
    return words + ["cache.folder=" + os.path.join(args.folder, "cache"), *args.set]


def train(args, run_dir, resume=False, kill_after=None):
    """Exit code, seconds, and what lay unfinished in checkpoints/ when it was killed."""
    start = time.monotonic()
    with open(run_dir + ".err", "a") as err:
        process = subprocess.Popen(command(args, run_dir, resume), stdout=subprocess.DEVNULL, stderr=err)
        try:
            code = process.wait(PATIENCE if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    return code, time.monotonic() - start, unfinished(run_dir)


def names_in(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def unfinished(run_dir):
    folder = os.path.join(run_dir, "checkpoints")
    return [n for n in names_in(folder) if n.startswith(".")]


def result_of(run_dir):
    newest = [n for n in names_in(os.path.join(run_dir, "checkpoints")) if n.startswith("step_")][-1]
    result = {}
    for name in ("model.safetensors", "optimizer.safetensors"):
        with open(os.path.join(run_dir, "checkpoints", newest, name), "rb") as f:
            result[name] = hashlib.sha256(f.read()).hexdigest()
    with open(os.path.join(run_dir, "metrics.jsonl")) as f:
        records = [json.loads(line) for line in f]
    result["losses"] = [(r["kind"], r["step"], r["loss"]) for r in records if r["kind"] == "train"]
    result["kept"] = names_in(os.path.join(run_dir, "checkpoints"))
    return newest, result


def differences(expected, got):
    return [key for key in expected if expected[key] != got[key]]


def moment(run_dir, left):
    saved = [n for n in names_in(os.path.join(run_dir, "checkpoints")) if n.startswith("step_")]
    if any(n.startswith(".writing") for n in left):
        return "while a checkpoint was written" if saved else "while the first checkpoint was written"
    if left:
        return "while a checkpoint was put in place"
    return "between saves" if saved else "before the first checkpoint"


def one_case(args, number, seconds, expected, draw, moments):
    run_dir = os.path.join(args.folder, f"kill{number}")
    kills, resume = (2 if draw.random() < 0.2 else 1), False
    for _ in range(kills):
        code, _, left = train(args, run_dir, resume, kill_after=draw.uniform(0, seconds))
        moments[moment(run_dir, left) if code == -9 else "after the end"] += 1
        resume = os.path.isdir(run_dir)
    code, _, _ = train(args, run_dir, resume=resume)
    wrong = [f"exit code {code}"] if code != 0 else differences(expected, result_of(run_dir)[1])
    if wrong:
        print(f"case {number}: {', '.join(wrong)}; see {run_dir}", flush=True)
        return False
    shutil.rmtree(run_dir)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wam")
    parser.add_argument("folder")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="key=value for every run")
    args = parser.parse_args()
    args.wam = os.path.abspath(args.wam)
    args.folder = os.path.abspath(args.folder)
    shutil.rmtree(args.folder, ignore_errors=True)
    os.makedirs(args.folder)
    with open(os.path.join(args.folder, "run.yaml"), "w") as f:
        f.write(CONFIG)
    subprocess.run([args.wam, "sim", "collect", os.path.join(args.folder, "table"), "--episodes", "4",
                    "--seed", "3", "--view-size", "32"], check=True, stdout=subprocess.DEVNULL)
    whole = os.path.join(args.folder, "whole")
    code, seconds, _ = train(args, whole)
    if code != 0:
        sys.exit(f"the run that nobody kills ended with {code}: see {whole}.err")
    newest, expected = result_of(whole)
    print(f"uninterrupted: {seconds:.1f} s, {newest}, kept {expected['kept']}", flush=True)
    draw, moments, good = random.Random(args.seed), collections.Counter(), 0
    for number in range(args.kills):
        good += one_case(args, number, seconds, expected, draw, moments)
        if (number + 1) % 10 == 0:
            print(f"{number + 1} killed runs, {good} ended with the same bits", flush=True)
    for name, count in sorted(moments.items()):
        print(f"  {count:4} kills {name}")
    print(f"{good} of {args.kills} resumed and ended bitwise equal")
    sys.exit(good != args.kills)


if __name__ == "__main__":
    main()
