#!/usr/bin/env python3
"""Warns of long files and functions and counts TODOs; never fails.

usage: tools/check_sizes.py [ROOT]

A function is found by its shape in clang-formatted code: it starts in the first column and ends
with a closing brace there. Long members defined inside a class are not seen.
"""

import pathlib
import re
import statistics
import sys

from source_files import source_files

SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 80
NO_FUNCTION = re.compile(r"^(namespace|class|struct|enum|union|extern|using|typedef|#|//|\})")


def functions(lines):
    """Yields (first line, number of lines) of each function body."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "}" and start is not None:
            yield start, number - start + 1
            start = None
        elif line and not line[0].isspace() and not NO_FUNCTION.match(line):
            if start is None and "(" in line and not line.rstrip().endswith((";", "}")):
                start = number
        elif line.endswith(";") and start is not None and line.startswith("    ") and \
                "{" not in "".join(lines[start - 1:number]):
            start = None  # a declaration over several lines


def main(arguments):
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(arguments[0]) if arguments else default
    file_sizes, function_sizes, num_todos = [], [], 0
    for path in source_files(root, SUFFIXES):
        lines = (root / path).read_text(errors="replace").splitlines()
        num_todos += sum("TODO(" in line for line in lines)
        file_sizes.append(len(lines))
        if len(lines) > MAX_FILE_LINES:
            print(f"warning: {path}: {len(lines)} lines (over {MAX_FILE_LINES})")
        for start, size in functions(lines):
            function_sizes.append(size)
            if size > MAX_FUNCTION_LINES:
                print(f"warning: {path}:{start}: function of {size} lines"
                      f" (over {MAX_FUNCTION_LINES})")
    for name, sizes in (("files", file_sizes), ("functions", function_sizes)):
        if sizes:
            print(f"check_sizes: {len(sizes)} {name}, median {statistics.median(sizes):.0f} lines,"
                  f" longest {max(sizes)}")
    print(f"check_sizes: {num_todos} TODOs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
