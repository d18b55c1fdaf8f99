#!/usr/bin/env python3
"""Compares training runs with a first one: losses step by step, and whether metrics and checkpoint are the same bits.

  tools/compare_runs.py REFERENCE RUN... [--control RUN] [--same RUN=OTHER ...] [--bound PERCENT]

A run is its folder. For each RUN: mean and largest relative deviation of the loss from REFERENCE's, in percent;
drift, which is the mean signed deviation of the last quarter of the steps less that of the first quarter; and the
slope of a straight line through the signed deviations, over the whole run. --same RUN=OTHER demands that the two have
the same losses and gradient norms as text and the same weights and moments in their newest checkpoint. Exits with 1
where a mean deviation, a last quarter or a drift is above the bound (0.5 %) or a demanded equality does not hold.
--control RUN is the reference once more with its additions in another order: where that alone deviates by more than a
fifth of the bound, training at these settings is chaotic, the bound says nothing of a device, and none is demanded.
"""
import argparse
import hashlib
import json
import pathlib
import sys

NUMBERS = ("loss", "dynamics_loss", "action_loss", "grad_norm", "lr")


def read_metrics(folder):
    records = {}
    for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record.get("kind") == "train":
            records[record["step"]] = {name: record.get(name) for name in NUMBERS}
    if not records:
        sys.exit(f"compare_runs: {folder}/metrics.jsonl holds no steps")
    return records


def file_hash(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def checkpoint_hashes(folder):
    """Hashes of the newest checkpoint's states by file name; empty if the run saved none."""
    found = sorted(path for path in (pathlib.Path(folder) / "checkpoints").glob("*") if path.is_dir())
    if not found:
        return {}
    return {path.name: file_hash(path) for path in sorted(found[-1].glob("*.safetensors"))}


def mean(values):
    return sum(values) / len(values)


def slope(values):
    """Least squares, times the number of values: the change over the whole run."""
    n = len(values)
    centre, average = (n - 1) / 2, mean(values)
    above = sum((i - centre) * (value - average) for i, value in enumerate(values))
    return n * above / max(1e-300, sum((i - centre) ** 2 for i in range(n)))


def deviations(reference, run):
    """Signed relative deviations of the loss, in percent, of the steps that both have."""
    steps = sorted(set(reference) & set(run))
    if len(steps) != len(reference) or len(steps) != len(run):
        sys.exit(f"compare_runs: {len(reference)} steps against {len(run)}")
    return [100 * (run[s]["loss"] - reference[s]["loss"]) / abs(reference[s]["loss"]) for s in steps]


def report(name, values, bound):
    quarter = max(1, len(values) // 4)
    size = mean([abs(v) for v in values])
    last, first = mean(values[-quarter:]), mean(values[:quarter])
    good = size <= bound and abs(last) <= bound and abs(last - first) <= bound
    print(f"{name:<28} {size:10.5f} {max(abs(v) for v in values):10.5f} {first:+10.5f} {last:+10.5f} {last - first:+10.5f} "
          f"{slope(values):+10.5f}  {'ok' if good else 'ABOVE THE BOUND'}")
    return good


def is_same(a, b):
    metrics = read_metrics(a) == read_metrics(b)
    first, second = checkpoint_hashes(a), checkpoint_hashes(b)
    states = bool(first) and first == second
    print(f"{pathlib.Path(a).name:<28} = {pathlib.Path(b).name:<28} metrics {'same' if metrics else 'OTHER'}, "
          f"{', '.join(first) or 'no checkpoint'}: {'same' if states else 'OTHER'} "
          f"({', '.join(value[:12] for value in first.values())})")
    return metrics and states


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--control")
    parser.add_argument("--same", action="append", default=[], metavar="RUN=OTHER")
    parser.add_argument("--bound", type=float, default=0.5)
    args = parser.parse_args()
    reference = read_metrics(args.reference)
    print(f"loss against {args.reference} over {len(reference)} steps, percent")
    print(f"{'run':<28} {'mean |d|':>10} {'largest':>10} {'1st quart.':>10} {'last q.':>10} {'drift':>10} {'slope':>10}")
    good, bound = True, args.bound
    if args.control:
        values = deviations(reference, read_metrics(args.control))
        if mean([abs(v) for v in values]) > bound / 5:
            bound = float("inf")
        report("control: other order", values, bound)
    for run in args.runs:
        good = report(pathlib.Path(run).name, deviations(reference, read_metrics(run)), bound) and good
    if bound == float("inf"):
        print("the control alone deviates by more than a fifth of the bound: chaotic, so no bound is demanded")
    for pair in args.same:
        good = is_same(*pair.split("=", 1)) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
