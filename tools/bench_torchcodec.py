#!/usr/bin/env python3
"""Random clips out of videos: bench_video beside torchcodec, in turns, on the same clips.

    tools/bench_torchcodec.py build/bench/bench_video LABEL=FOLDER ... [--python PYTHON]

A clip is 33 frames, 3 apart (2 where the episode is too short), from a random place of a random
video under FOLDER, as multi_anchor windows of DROID are drawn. PYTHON is one that imports torch and
torchcodec (PyPI). torchcodec is used in two ways: `per clip`, a decoder per clip, approximate seek,
frames by index, as RLinf does; `kept`, decoders kept open in exact mode. Every process decodes the
clips once to warm up and once timed; CPU seconds are of that pass, all threads. The pictures must
have equal sums of bytes. Medians over --rounds. Prints a Markdown table.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile


def torchcodec_worker(clips_file, way, threads):
    import concurrent.futures
    import resource
    import threading
    import time
    import torch
    from torchcodec.decoders import VideoDecoder
    torch.set_num_threads(1)
    clips = []
    for line in open(clips_file, encoding="utf-8"):
        path, frames = line.rstrip("\n").split("\t")
        clips.append((path, [int(n) for n in frames.split()]))
    kept = threading.local()

    def decoder_of(path):
        if way == "per_clip":
            return VideoDecoder(path, seek_mode="approximate", dimension_order="NHWC")
        if not hasattr(kept, "decoders"):
            kept.decoders = {}
        if path not in kept.decoders:
            kept.decoders[path] = VideoDecoder(path, seek_mode="exact", dimension_order="NHWC")
        return kept.decoders[path]

    def decode(clip):
        return decoder_of(clip[0]).get_frames_at(indices=clip[1]).data

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        sums = list(pool.map(lambda clip: int(decode(clip).sum(dtype=torch.int64)), clips))
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        frames = sum(pool.map(lambda clip: decode(clip).shape[0], clips))
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"clips": len(clips), "frames": frames, "wall_s": wall, "cpu_s": cpu,
                      "sums": sums}))


def count_frames(path):
    text = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-count_packets", "-show_entries",
         "stream=nb_read_packets", "-of", "csv=p=0", str(path)],
        check=True, capture_output=True, text=True).stdout
    return int(text.strip().strip(","))


def write_clips(folder, count, target):
    videos = sorted(str(p) for p in pathlib.Path(folder).rglob("*.mp4"))
    if not videos:
        sys.exit(f"bench_torchcodec: no .mp4 under {folder}")
    lengths = {video: count_frames(video) for video in videos}
    draw = random.Random(1)
    lines = []
    while len(lines) < count:
        video = draw.choice(videos)
        stride = 3 if lengths[video] >= 97 else 2
        room = lengths[video] - 32 * stride
        if room < 1:
            continue
        first = draw.randrange(room)
        frames = " ".join(str(first + stride * i) for i in range(33))
        lines.append(f"{video}\t{frames}\n")
    target.write_text("".join(lines))


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench_torchcodec: {' '.join(map(str, command))} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(label, folder, options, scratch):
    clips = pathlib.Path(scratch) / "clips.txt"
    write_clips(folder, options.clips, clips)
    threads = options.threads
    ways = {
        "ours": [options.bench, "--clips-file", clips, "--threads", threads],
        "per_clip": [options.python, __file__, "--worker", "per_clip", clips, threads],
        "kept": [options.python, __file__, "--worker", "kept", clips, threads],
    }
    results = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, command in ways.items():
            results[way].append(run(command))
    equal = all(results["ours"][0]["sums"] == results[way][0]["sums"] for way in ways)
    cpu = {way: 1e3 * statistics.median(r["cpu_s"] / r["clips"] for r in rs)
           for way, rs in results.items()}
    wall = {way: 1e3 * statistics.median(r["wall_s"] / r["clips"] for r in rs)
            for way, rs in results.items()}
    decoded = results["ours"][0]["decoded"] / results["ours"][0]["frames"]
    best = min(cpu["per_clip"], cpu["kept"])
    print(f"| {label} | {cpu['ours']:.1f} | {decoded:.2f} | {cpu['per_clip']:.1f} | "
          f"{cpu['kept']:.1f} | {best / cpu['ours']:.2f}x | {wall['ours']:.1f} / "
          f"{min(wall['per_clip'], wall['kept']):.1f} | {'yes' if equal else 'NO'} |", flush=True)


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--worker":
        return torchcodec_worker(sys.argv[3], sys.argv[2], int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("sets", nargs="+", help="LABEL=FOLDER")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--clips", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| clips of | ours, CPU ms a clip | decoded per frame | torchcodec per clip | "
          "torchcodec kept | ours against the better | wall ms a clip | same pictures |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for entry in options.sets:
            label, _, folder = entry.partition("=")
            compare(label, folder, options, scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
