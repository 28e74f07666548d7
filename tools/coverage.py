#!/usr/bin/python3
"""How much of each layer the tests run: at the end of `make test`, and `make coverage`.

  tools/coverage.py build/asan     after its tests have run

Prints, for each layer, its lines and how many of them were run, and the largest functions of
which not one line was. No threshold: the figures are there to be read. Lines of tests do not
count, nor do those of kernels that Highway compiles for other instruction sets.
"""

import gzip
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_NAMED = 10


def reports(build):
    """What gcov says of each object whose code was run."""
    for counts in sorted(build.rglob("*.gcda")):
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities",
                               "--object-directory", counts.parent, counts],
                              cwd=ROOT, capture_output=True)
        text = done.stdout
        if text[:2] == b"\x1f\x8b":
            text = gzip.decompress(text)
        for line in text.splitlines():
            yield json.loads(line)


def own_layer(compiled_in, name):
    """The layer of a source file; nothing for tests and for what is not ours. ccache lets the
    compiler see paths relative to the folder it was called in."""
    path = Path(compiled_in, name).resolve()
    path = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if path.parts[:1] != ("lagwise",) or len(path.parts) < 3:
        return None, None
    if path.stem.endswith("_test") or path.stem.startswith("testing"):
        return None, None
    return path.parts[1], str(path)


def gathered(build):
    """(layer -> (file, line) -> times run), ((file, first line) -> (name, lines, run))."""
    lines, functions = defaultdict(dict), {}
    for report in reports(build):
        for file in report["files"]:
            layer, name = own_layer(report["current_working_directory"], file["file"])
            if layer is None:
                continue
            for line in file["lines"]:
                at = (name, line["line_number"])
                lines[layer][at] = lines[layer].get(at, 0) + line["count"]
            for function in file["functions"]:
                at = (name, function["start_line"])
                size = function["end_line"] - function["start_line"] + 1
                known = functions.get(at, (None, 0, 0))
                functions[at] = (function["demangled_name"], size,
                                 known[2] + function["execution_count"])
    return lines, functions


def main():
    build = Path(sys.argv[1])
    lines, functions = gathered(build)
    if not lines:
        return tell_why_none(build)
    print("| layer | lines | run | |\n|---|---|---|---|")
    for layer in sorted(lines):
        run = sum(count > 0 for count in lines[layer].values())
        print(f"| {layer} | {len(lines[layer])} | {run} | "
              f"{100 * run / len(lines[layer]):.1f} % |")
    never = sorted(((size, at, name) for at, (name, size, count) in functions.items()
                    if count == 0), reverse=True)
    print(f"\n{len(never)} of {len(functions)} functions were never run; the largest:")
    for size, (file, first), name in never[:MOST_NAMED]:
        print(f"  {size:4} lines  {file}:{first}  {name[:100]}")
    return 0


def tell_why_none(build):
    counts = len(list(build.rglob("*.gcda")))
    seen = [(report["current_working_directory"], file["file"])
            for report in reports(build) for file in report["files"]]
    print(f"coverage: no line of {ROOT}/lagwise was counted: {counts} files of counts in {build}, "
          f"{len(seen)} sources named in them, the last one as {seen[-1:]}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
