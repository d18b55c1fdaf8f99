#!/usr/bin/env python3
"""Writes wam/data/html_entities.inc: the W3C's named character references, from Python's table.

    python3 tools/gen_html_entities.py > wam/data/html_entities.inc
An entry is {name, UTF-8 text, may stand without its semicolon}, sorted by name.
"""
import html.entities


def c_string(text):
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'


print("// Written by tools/gen_html_entities.py. Do not edit.")
table = html.entities.html5
cells = []
for name in sorted(n[:-1] for n in table if n.endswith(";")):
    bare = "true" if name in table else "false"
    cells.append(f'{{"{name}", {c_string(table[name + ";"])}, {bare}}},')
line = ""
for cell in cells:
    if line and len(line) + len(cell) >= 99:
        print(line)
        line = ""
    line += (" " if line else "") + cell
print(line)
