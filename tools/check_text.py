#!/usr/bin/env python3
"""Checks the source tree's text: ASCII only, no path of one machine, no tabs or trailing blanks.

usage: tools/check_text.py [ROOT]

Prints every fault and exits 1 if there is one. Makefiles may hold tabs.
"""

import pathlib
import re
import sys

from source_files import source_files

SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".inc", ".cmake", ".txt", ".py", ".sh", ".md", ".yaml",
            ".yml", ".json", ".in", ".html", ".css", ".js", ".proto", ""}
# Folders that exist on somebody's machine and nowhere else.
MACHINE_PATH = re.compile(r"(?<![\w.})$*-])/(?:home|root|work|Users|mnt)/[\w.]")


def faults(path, data):
    if b"\0" in data:
        return  # no text
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.isascii():
            yield f"{path}:{number}: non-ASCII byte"
        text = line.decode("ascii", "replace")
        if MACHINE_PATH.search(text):
            yield f"{path}:{number}: path of one machine: {text.strip()}"
        if text != text.rstrip():
            yield f"{path}:{number}: blank at the end of the line"
        if "\t" in text and path.name != "Makefile":
            yield f"{path}:{number}: tab"
    if data and not data.endswith(b"\n"):
        yield f"{path}: no newline at the end of the file"


def main(arguments):
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(arguments[0]) if arguments else default
    problems = []
    for path in source_files(root, SUFFIXES):
        problems += faults(path, (root / path).read_bytes())
    for problem in problems:
        print(problem)
    print(f"check_text: {len(problems)} faults")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
