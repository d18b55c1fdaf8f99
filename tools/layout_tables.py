#!/usr/bin/env python3
"""The tables of docs/sharding.md: what `wam plan --ranks --largest` says of the published models.

    tools/layout_tables.py WAM > tables.md          some minutes; needs no GPU"""
import re
import subprocess
import sys

MODELS = {"configs/dreamzero_5b_libero.yaml": "5B", "configs/dreamzero_14b_droid.yaml": "14B"}
GPUS = (1, 2, 4, 8, 16, 64)
STRATEGIES = ("none", "optimizer", "gradients", "full", "hybrid")
LINE = re.compile(r"(\w+)\s+\d+\s+(\d+)( again)?\s+(.*?)\s+(\d+)ms\s+(\d+)ms\s+(\d+)ms\s+(\d+)ms\s+([\d.]+) %")


def cell(line):
    if "refused" in line:
        needed = re.search(r"does not fit: (.*) a rank", line)
        return f"{needed[1]} needed" if needed else "-"
    found = LINE.match(line)
    total = re.findall(r"[\d.]+ (?:[KMGT]i)?B\b", found[4])[4]
    return f"{found[2]}{found[3] or ''}, {total}, {found[8]} ms, {found[9]} %"


def row(wam, config, memory, gpus):
    nodes = max(1, gpus // 8)
    out = subprocess.run([wam, "plan", config, "device=cuda", "dataset.path=/none", "--ranks", str(gpus),
                          "--nodes", str(nodes), "--memory", memory, "--largest"],
                         check=True, capture_output=True, text=True).stdout
    cells = {line.split()[0]: cell(line) for line in out.splitlines() if line.startswith(STRATEGIES)}
    return f"| {gpus} | " + " | ".join(cells.get(name, "-") for name in STRATEGIES) + " |"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for config, title in MODELS.items():
        for memory in ("80", "141"):
            print(f"### {title} ({config}), GPUs of {memory} GB\n\nMicro-batch, bytes of a GPU, step, scaling.\n")
            print("| GPUs | " + " | ".join(STRATEGIES) + " |\n|" + "---|" * (len(STRATEGIES) + 1))
            for gpus in GPUS:
                print(row(sys.argv[1], config, memory, gpus), flush=True)
            print()


if __name__ == "__main__":
    main()
