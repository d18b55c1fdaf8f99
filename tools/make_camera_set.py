#!/usr/bin/env python3
"""Makes a three-camera h264 dataset out of a one-camera LeRobot v2 dataset, for benchmarks.

    tools/make_camera_set.py SOURCE OUT --gop 12 [--episodes 6] [--b-frames 3] [--crf 23]

The tables are the source's. The cameras show the source's pictures as they are, mirrored, and
upside down: three videos of real content at its size, each with key frames every --gop pictures
and nowhere else. Needs the ffmpeg program with libx264. The benchmarks of docs/performance.md use
sets made of cr5 (480x640, 10 fps) with GOP 2, 12 and 250.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

CAMERAS = {"left": "null", "right": "hflip", "wrist": "vflip"}


def find_camera(info):
    cameras = [key for key, f in info["features"].items() if f["dtype"] == "video"]
    if len(cameras) != 1:
        sys.exit(f"make_camera_set: the source has {len(cameras)} cameras, expected one. "
                 "Choose a dataset with one video camera.")
    return cameras[0]


def encode(source, target, picture_filter, options):
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["ffmpeg", "-v", "error", "-nostdin", "-y", "-i", str(source), "-vf", picture_filter,
         "-c:v", "libx264", "-threads", "1", "-preset", "medium", "-crf", str(options.crf),
         "-pix_fmt", "yuv420p", "-x264-params",
         f"keyint={options.gop}:min-keyint={options.gop}:scenecut=0:bframes={options.b_frames}",
         "-movflags", "+faststart", str(target)], check=True)


def make(options):
    source, out = options.source, options.out
    info = json.loads((source / "meta/info.json").read_text())
    camera = find_camera(info)
    lines = (options.meta or source / "meta").joinpath("episodes.jsonl").read_text().splitlines()
    lines = lines[:options.episodes]
    episodes = [json.loads(line) for line in lines]
    (out / "meta").mkdir(parents=True)
    (out / "meta/episodes.jsonl").write_text("".join(line + "\n" for line in lines))
    shutil.copy(source / "meta/tasks.jsonl", out / "meta/tasks.jsonl")
    feature = info["features"].pop(camera)
    feature.setdefault("info", {})["video.codec"] = "h264"
    for name in CAMERAS:
        info["features"][f"observation.images.{name}"] = feature
    info.update(total_episodes=len(episodes), total_frames=sum(e["length"] for e in episodes),
                total_videos=len(episodes) * len(CAMERAS), splits={"train": f"0:{len(episodes)}"})
    (out / "meta/info.json").write_text(json.dumps(info, indent=1))
    for episode in episodes:
        index = episode["episode_index"]
        fields = {"episode_chunk": index // info["chunks_size"], "episode_index": index}
        table = info["data_path"].format(**fields)
        (out / table).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / table, out / table)
        video = source / info["video_path"].format(video_key=camera, **fields)
        for name, picture_filter in CAMERAS.items():
            key = f"observation.images.{name}"
            encode(video, out / info["video_path"].format(video_key=key, **fields),
                   picture_filter, options)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--meta", type=pathlib.Path, help="another folder for episodes.jsonl")
    parser.add_argument("--gop", type=int, default=12)
    parser.add_argument("--b-frames", type=int, default=3)
    parser.add_argument("--crf", type=int, default=23)
    parser.add_argument("--episodes", type=int, default=6)
    make(parser.parse_args())


if __name__ == "__main__":
    main()
