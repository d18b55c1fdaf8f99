"""The files of the source tree, for the checks beside this one."""

import os
import pathlib
import subprocess

NOT_SOURCE = {".git", ".venv", ".deps", "runs", "__pycache__"}


def source_files(root, suffixes):
    """Paths below `root`, relative and sorted, that git knows or would add, else all that is there."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True).stdout
        names = {name for name in listing.decode().split("\0") if name}
    except (OSError, subprocess.CalledProcessError):
        names = set(walk(root))
    paths = (pathlib.PurePosixPath(name) for name in names)
    return sorted(p for p in paths if p.suffix in suffixes and (root / p).is_file())


def walk(root):
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [s for s in subfolders if s not in NOT_SOURCE and not s.startswith("build")]
        for name in files:
            yield pathlib.Path(folder, name).relative_to(root).as_posix()
