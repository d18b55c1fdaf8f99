#!/usr/bin/env python3
"""Checks that each folder under wam/ uses only the folders above it in the pipeline.

usage: tools/check_layers.py [ROOT]

The order is the one in ROOT/CMakeLists.txt. Checked are #include lines and the DEPS of the folders'
CMakeLists.txt. Prints every violation and exits 1 if there is one.
"""

import pathlib
import re
import sys

from source_files import source_files

SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".inc"}
# Stricter than the order: (folder, what it must not see, files that are excepted, reason).
FORBIDDEN = [
    ("kernels", {"graph", "ops", "autodiff", "passes", "plan"}, {"wam/ops/op_list.inc"},
     "kernels see types, attributes and bytes, never the graph"),
    ("models", {"kernels"}, set(), "models build graphs and never see kernels"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def folder_order(root):
    text = (root / "CMakeLists.txt").read_text()
    match = re.search(r"foreach\(folder\s+(base\b[^)]*)\)", text)
    if not match:
        sys.exit(f"{root}/CMakeLists.txt: no foreach(folder base ...) that gives the order")
    return match.group(1).split()


def violation(order, folder, used, path):
    """Why `folder` may not use `path` of folder `used`, or None."""
    if used not in order:
        return f"'{used}' is no folder of the pipeline"
    if order.index(used) > order.index(folder):
        return f"{folder} stands above {used} in the pipeline"
    for source, targets, excepted, reason in FORBIDDEN:
        if folder == source and used in targets and path not in excepted:
            return reason
    return None


def check_includes(root, order):
    for path in source_files(root, SUFFIXES):
        if len(path.parts) < 3 or path.parts[0] != "wam":
            continue
        folder = path.parts[1]
        if folder not in order:
            yield f"{path}:1: folder '{folder}' is not in CMakeLists.txt's list"
            continue
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or match.group(1).endswith(".pb.h"):  # generated into the build tree
                continue
            target = pathlib.PurePosixPath(match.group(1))
            if target.parts[0] != "wam" or len(target.parts) < 3:
                yield f'{path}:{number}: "{target}": quoted includes name the path from the root'
                continue
            why = violation(order, folder, target.parts[1], str(target))
            if why:
                yield f'{path}:{number}: "{target}": {why}'


def check_cmake(root, order):
    for folder in order:
        path = root / "wam" / folder / "CMakeLists.txt"
        if not path.exists():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for used in re.findall(r"\bwam_([a-z]+)\b", line.split("#")[0]):
                if used in order and order.index(used) > order.index(folder):
                    yield (f"wam/{folder}/CMakeLists.txt:{number}: wam_{used}: "
                           f"{folder} stands above {used} in the pipeline")


def main(arguments):
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(arguments[0]) if arguments else default
    order = folder_order(root)
    problems = [*check_includes(root, order), *check_cmake(root, order)]
    for problem in problems:
        print(problem)
    print(f"check_layers: {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
