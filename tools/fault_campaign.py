#!/usr/bin/env python3
"""Faults on one of four ranks at random moments, and whether the others end in time, name the rank,
and leave a run that resumes exactly.

    tools/fault_campaign.py WAM CONFIG FOLDER [--faults kill,stop,nan] [--count 10] [--seed 1]

kill: SIGKILL. stop: SIGSTOP. nan: NaN written over one rank's weights, moments and activations from
outside (needs the right to write /proc/PID/mem). CONFIG is a run of some 20 steps that checkpoints
every few; it is started by the variables of torchrun. Exit code 1 if any case is bad."""
import argparse
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

RANKS = 4
PATIENCE = 120  # seconds until a rank that does not end counts as hanging


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Run:
    def __init__(self, args, name):
        self.args, self.folder = args, os.path.join(args.folder, name)

    def start(self, resume, more=()):
        port = str(free_port())
        self.ranks = []
        for r in range(RANKS):
            env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(r),
                       MASTER_ADDR="127.0.0.1", MASTER_PORT=port, OMP_NUM_THREADS="1")
            command = [self.args.wam, "train", self.args.config, "--quiet"]
            command += ["--resume"] if resume else []
            command += ["run_dir=" + self.folder, "optimizer.non_finite=stop", *more]
            with open(f"{self.folder}.{r}.err", "w") as err:
                self.ranks.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=err))

    def wait(self, rank):
        try:
            return self.ranks[rank].wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.ranks[rank].kill()
            return "hangs"

    def errors(self, rank):
        with open(f"{self.folder}.{rank}.err") as f:
            return [line for line in f.read().splitlines() if line.startswith("wam:")]

    def losses(self):
        path = os.path.join(self.folder, "metrics.jsonl")
        if not os.path.exists(path):
            return {}
        with open(path) as f:
            rows = [json.loads(line) for line in f]
        return {row["step"]: row["loss"] for row in rows if row.get("kind") == "train"}

    def steps(self):
        path = os.path.join(self.folder, "metrics.jsonl")
        if not os.path.exists(path):
            return 0
        with open(path) as f:
            return sum(1 for _ in f)


def poison(pid):
    """NaN over the mappings that ask for huge pages: the planned memory."""
    with open(f"/proc/{pid}/smaps") as f:
        text = f.read()
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        span = None
        for line in text.splitlines():
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line)
            if head:
                span = (int(head[1], 16), int(head[2], 16)) if head[3].startswith("rw-p") else None
            elif line.startswith("VmFlags") and " hg" in line and span:
                memory.seek(span[0])
                memory.write(b"\x00\x00\xc0\x7f" * ((span[1] - span[0]) // 4))


def hit(run, fault, victim):
    if fault == "kill":
        run.ranks[victim].kill()
    elif fault == "stop":
        run.ranks[victim].send_signal(signal.SIGSTOP)
    else:
        poison(run.ranks[victim].pid)


def one(args, fault, number, whole, steps):
    run = Run(args, f"{fault}{number}")
    victim, step, late = random.randrange(RANKS), random.randrange(0, steps - 1), random.random() * 0.3
    run.start(False)
    while run.steps() < step and run.ranks[0].poll() is None:
        time.sleep(0.002)
    time.sleep(late if step else 3 * late)
    begin = time.time()
    hit(run, fault, victim)
    others = [r for r in range(RANKS) if r != victim]
    codes = {r: run.wait(r) for r in others}
    seconds = time.time() - begin
    if fault == "stop":
        run.ranks[victim].send_signal(signal.SIGCONT)
    codes[victim] = run.wait(victim)
    lines = [run.errors(r) for r in range(RANKS)]
    named = all(any(f"rank {victim}" in line for line in lines[r]) for r in others)
    ended = all(codes[r] not in (0, "hangs") for r in others)
    missed = all(codes[r] == 0 for r in others)  # the run was over, or the memory not in use yet
    run.start(True)
    again = [run.wait(r) for r in range(RANKS)]
    exact = again == [0] * RANKS and run.losses() == whole
    good = exact and (missed or (named and ended))
    print(f"{fault} {number}: rank {victim} after {step} steps; codes {[codes[r] for r in range(RANKS)]} "
          f"after {seconds:.2f} s; {'missed' if missed else 'named' if named else 'NOT NAMED'}; "
          f"resume {'exact' if exact else 'NOT EXACT'}{'' if good else '  BAD'}", flush=True)
    if not good:
        print("  before:", lines, "\n  resumed:", again, [run.errors(r) for r in range(RANKS)], flush=True)
    elif number == 0:
        print("  for example:", lines[others[0]], flush=True)
    shutil.rmtree(run.folder, ignore_errors=True)
    return good, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("wam", "config", "folder"):
        parser.add_argument(name)
    parser.add_argument("--faults", default="kill,stop,nan")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    random.seed(args.seed)
    whole = Run(args, "whole")
    whole.start(False)
    codes = [whole.wait(r) for r in range(RANKS)]
    if codes != [0] * RANKS:
        sys.exit(f"the undisturbed run ends with {codes}: {whole.errors(0)}")
    wanted = whole.losses()
    bad = missed = 0
    for fault in args.faults.split(","):
        for number in range(args.count):
            good, out = one(args, fault, number, wanted, len(wanted))
            bad, missed = bad + (not good), missed + out
    print(f"{args.count * len(args.faults.split(','))} faults, {bad} bad, {missed} too late to matter")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
