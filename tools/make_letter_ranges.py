#!/usr/bin/python3
"""Writes lagwise/data/text/letter_ranges.inc: which code points Unicode calls letters (L*) and
which numbers (N*), as first and last of each range. Python's own tables are the source."""

import sys
import unicodedata

PER_LINE = 4


def ranges(category):
    found, first = [], None
    for code in range(0x110001):
        inside = code < 0x110000 and unicodedata.category(chr(code))[0] == category
        if inside and first is None:
            first = code
        if not inside and first is not None:
            found.append((first, code - 1))
            first = None
    return found


def table(name, category):
    pairs = [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(category)]
    lines = [", ".join(pairs[i:i + PER_LINE]) for i in range(0, len(pairs), PER_LINE)]
    return f"constexpr CodeRange {name}[] = {{\n    " + ",\n    ".join(lines) + "};\n"


if __name__ == "__main__":
    sys.stdout.write(f"// Made by tools/make_letter_ranges.py from Unicode {unicodedata.unidata_version}.\n"
                     "// clang-format off\n" + table("kLetters", "L") + table("kNumbers", "N")
                     + "// clang-format on\n")
