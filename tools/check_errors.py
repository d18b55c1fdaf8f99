#!/usr/bin/env python3
"""Checks that every error a user can cause says what to do about it.

usage: tools/check_errors.py [ROOT]

Prints every DataError, ConfigError, PlanError or DeviceError made without a remedy, and exits 1 if
there is one.
"""

import pathlib
import re
import sys

from source_files import source_files

MADE = re.compile(r"\b(?:Data|Config|Plan|Device)Error\(\s*\{(.*?)\}\)", re.S)


def faults(path, text):
    for made in MADE.finditer(text):
        if ".remedy" not in made.group(1):
            line = text.count("\n", 0, made.start()) + 1
            yield f"{path}:{line}: error without a remedy: {' '.join(made.group(0).split())[:100]}"


def main(arguments):
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(arguments[0]) if arguments else default
    problems = []
    for path in source_files(root, {".h", ".cc", ".cu"}):
        if not path.name.endswith("_test.cc"):
            problems += faults(path, (root / path).read_text())
    for problem in problems:
        print(problem)
    print(f"check_errors: {len(problems)} faults")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
