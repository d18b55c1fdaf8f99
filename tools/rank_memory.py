#!/usr/bin/env python3
"""Memory of each of four ranks on CPU, as planned and as the kernel counts it, for every sharding strategy.

    tools/rank_memory.py WAM CONFIG FOLDER [--ranks 4]

Planned: the total of `wam plan CONFIG --ranks N`. Seen: resident bytes of the mappings that hold the
planned memory (those that ask for huge pages), and the largest resident size of the whole process, both
by /proc while the ranks train. CONFIG should run for at least ten seconds."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

from fault_campaign import free_port

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
STRATEGIES = {"none": [], "optimizer": [], "gradients": [], "full": [], "hybrid": ["sharding.shard_size=2"]}


def planned(args, strategy):
    nodes = ["--nodes", "2"] if strategy == "hybrid" else []  # groups are the ranks of a node
    out = subprocess.run([args.wam, "plan", args.config, "--ranks", str(args.ranks), *nodes], check=True,
                         capture_output=True, text=True).stdout
    line = next(row for row in out.splitlines() if row.startswith(strategy + " "))
    sizes = re.findall(r"([0-9.]+) (B|KiB|MiB|GiB)\b", line)
    return float(sizes[4][0]) * UNITS[sizes[4][1]]


def resident(pid):
    total = in_plan = size = 0
    try:
        with open(f"/proc/{pid}/smaps") as f:
            for line in f:
                if line.startswith("Rss:"):
                    size = int(line.split()[1]) * 1024
                    total += size
                elif line.startswith("VmFlags") and " hg" in line:
                    in_plan += size
    except (FileNotFoundError, ProcessLookupError):
        pass
    return in_plan, total


def watch(args, strategy, more):
    run = os.path.join(args.folder, strategy)
    port, ranks = str(free_port()), []
    for r in range(args.ranks):
        env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(args.ranks), LOCAL_RANK=str(r),
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=port, OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([args.wam, "train", args.config, "--quiet", "run_dir=" + run,
                                       "sharding.strategy=" + strategy, *more], env=env,
                                      stdout=subprocess.DEVNULL))
    peak = [(0, 0)] * args.ranks
    while any(p.poll() is None for p in ranks):
        seen = [resident(p.pid) for p in ranks]
        peak = [(max(a[0], b[0]), max(a[1], b[1])) for a, b in zip(peak, seen)]
        time.sleep(0.05)
    if any(p.returncode for p in ranks):
        sys.exit(f"{strategy}: the ranks end with {[p.returncode for p in ranks]}")
    shutil.rmtree(run, ignore_errors=True)
    return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("wam", "config", "folder"):
        parser.add_argument(name)
    parser.add_argument("--ranks", type=int, default=4)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    print(f"{'strategy':12}{'planned':>10}   seen of the plan (each rank)        whole process (largest)")
    for strategy, more in STRATEGIES.items():
        peak = watch(args, strategy, more)
        want = planned(args, strategy)
        shares = "  ".join(f"{p[0] / 2**20:7.1f}" for p in peak)
        off = f"{100 * (max(p[0] for p in peak) / want - 1):+6.2f} %"
        print(f"{strategy:12}{want / 2**20:10.1f}   {shares}   {off:9} {max(p[1] for p in peak) / 2**20:9.1f}  MiB",
              flush=True)


if __name__ == "__main__":
    main()
