#!/usr/bin/env python3
"""Do the tests notice bugs? Puts known bugs into a copy of the sources, one after
another, and expects the tests to go red for each; first, green without any.

  tools/seeded_bugs.py                every bug
  tools/seeded_bugs.py --only kernels those that the torch-free kernel tests must catch
  tools/seeded_bugs.py --named delta  those with a word in their names
  tools/seeded_bugs.py --untried      those that no test is known to catch yet
  tools/seeded_bugs.py --keep         all, and the tests that caught them are kept in
                                      tools/planted/caught.json
  tools/seeded_bugs.py --table        which test caught which, as it was kept
  tools/seeded_bugs.py --list         what there is
  tools/seeded_bugs.py --check        whether each still fits the sources, and a test is known

A bug (tools/planted) is an exact piece of text and what stands there instead. Text that
no longer occurs exactly once is an error: the bug must then be moved to the new code.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planted import attention, memory, ranks, runtime, tokenizer

ROOT = Path(__file__).resolve().parents[1]
CAUGHT = ROOT / "tools" / "planted" / "caught.json"
BUGS = attention.BUGS + memory.BUGS + runtime.BUGS + ranks.BUGS + tokenizer.BUGS

# What each program is made of: folders of sources, its tests, what it links.
TORCH = ["-lc10", "-ltorch_cpu", "-ltorch", "-ldnnl", "-lgomp"]
FORMATS = ["lagwise/data/formats/*_file.cpp", "lagwise/data/formats/mapped_places.cpp",
           "lagwise/data/formats/safetensors.cpp", "lagwise/data/formats/strict_json.cpp"]
PROGRAMS = {
    "kernels": (["lagwise/core/*.cpp", "lagwise/kernels/*.cpp"],
                ["lagwise/kernels/*_test.cpp"], []),
    "ops": (["lagwise/core/*.cpp", "lagwise/kernels/*.cpp", "lagwise/ops/**/*.cpp",
             "lagwise/attention/shared_state.cpp", "bench/torch_linear.cpp"],
            ["lagwise/ops/linear/linear_attention_test.cpp",
             "lagwise/ops/linear/linear_attention_gradient_test.cpp",
             "lagwise/ops/linear/linear_attention_contract_test.cpp",
             "lagwise/ops/linear/linear_memory_contract_test.cpp",
             "lagwise/ops/linear/linear_memory_pairs_test.cpp",
             "lagwise/ops/precision_test.cpp",
             "lagwise/ops/exact/exact_attention_test.cpp",
             "lagwise/ops/dense_test.cpp",
             "lagwise/ops/peer_rows_test.cpp",
             "lagwise/ops/short_convolution_test.cpp",
             "lagwise/attention/shared_state_test.cpp"], TORCH),
    "runtime": (["lagwise/core/*.cpp", "lagwise/kernels/*.cpp", *FORMATS,
                 "lagwise/runtime/*.cpp"], ["lagwise/runtime/*_test.cpp"], []),
    "tokenizer": (["lagwise/core/*.cpp", *FORMATS, "lagwise/data/text/*.cpp"],
                  ["lagwise/data/text/*_test.cpp"], []),
}
# One SIMD target is enough here, and compiles in a third of the time.
FLAGS = ["-std=c++20", "-O1", "-march=native", "-DHWY_COMPILE_ONLY_STATIC"]
# Torch 1.13 multiplies with oneDNN, so the other file of products is left out.
SUFFIXES = ("_test.cpp", "_bench.cpp", "/main.cpp", "/torch_blas.cpp")


class Tree:
    """A copy of the sources and what was compiled from it."""

    def __init__(self, folder):
        self.root = Path(folder)
        for name in ("lagwise", "bench"):
            shutil.copytree(ROOT / name, self.root / name)
        self.compiler = (["ccache"] if shutil.which("ccache") else []) + ["g++"]

    def compile(self, source, build):
        """The object of one source, made in `build` if it is not there yet."""
        target = build / (str(source).replace("/", ".") + ".o")
        if not target.exists():
            build.mkdir(exist_ok=True)
            subprocess.run(self.compiler + FLAGS + ["-I.", "-MMD", "-c", str(source), "-o",
                                                    str(target)], cwd=self.root, check=True)
        return target

    def depends(self, source, file):
        """Whether the clean object of `source` was made from `file`."""
        made = self.root / "clean" / (str(source).replace("/", ".") + ".d")
        return any(part.endswith(file) for part in made.read_text().split())

    def sources(self, program):
        patterns, tests, _ = PROGRAMS[program]
        found = {p.relative_to(self.root) for x in patterns for p in self.root.glob(x)}
        found = {p for p in found if not str(p).endswith(SUFFIXES)}
        return sorted(found | {p.relative_to(self.root) for x in tests
                               for p in self.root.glob(x)})

    def build(self, program, changed=None):
        """The program; what depends on the changed file is compiled anew."""
        clean, fresh = self.root / "clean", self.root / "bug"

        def compiled(source):
            dirty = changed is not None and self.depends(source, changed)
            return self.compile(source, fresh if dirty else clean)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compiled, self.sources(program)))
        binary = self.root / f"{program}_test"
        subprocess.run(["g++", *map(str, objects), "-o", str(binary), "-lgtest_main",
                        "-lgtest", "-lgmock", "-lhwy", "-pthread"] + PROGRAMS[program][2],
                       check=True)
        return binary


def is_green(binary, options):
    command = [str(binary), "--gtest_fail_fast"]
    if options.filter:
        command.append(f"--gtest_filter={options.filter}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=900)
    except subprocess.TimeoutExpired:
        return False, "took more than 15 minutes"
    # A test that ends the program has begun and not failed.
    told = [x for start in ("[  FAILED  ]", "[ RUN      ]")
            for x in done.stdout.splitlines() if x.startswith(start)]
    failed = [x for x in told if "FAILED" in x]
    reason = failed[0][13:] if failed else told[-1][13:] if told else "no test"
    return done.returncode == 0, reason.split(", where")[0].split(" (")[0]


def try_bug(tree, bug, options):
    """The test that noticed, or None; prints one line."""
    begun = time.time()
    path = tree.root / bug.file
    clean = path.read_text()
    try:
        path.write_text(clean.replace(bug.old, bug.new))
        green, reason = is_green(tree.build(bug.caught_by, bug.file), options)
    finally:
        path.write_text(clean)
        shutil.rmtree(tree.root / "bug", ignore_errors=True)
    verdict = "NOT NOTICED" if green else f"red: {reason}"
    print(f"{time.time() - begun:5.0f} s  {bug.name} ({bug.caught_by}): {verdict}",
          flush=True)
    return None if green else reason


def caught():
    """By the names of bugs that were noticed: the first test that went red."""
    return json.loads(CAUGHT.read_text()) if CAUGHT.exists() else {}


def keep(found):
    """Of bugs that are still planted; one that was tried again and not noticed is forgotten."""
    known = {**caught(), **found}
    names = [bug.name for bug in BUGS if known.get(bug.name)]
    CAUGHT.write_text(json.dumps({name: known[name] for name in names}, indent=1) + "\n")


def table(bugs):
    """Each bug, the file it is put into and the test that noticed, as a table."""
    known = caught()
    return "\n".join(["| bug | put into | noticed first by |", "|---|---|---|"] + [
        f"| {bug.name} | `{bug.file}` | {known.get(bug.name, 'not tried')} |" for bug in bugs])


def out_of_date(bugs):
    """Bugs whose text does not occur exactly once."""
    return [f"{bug.file}: expected the text of '{bug.name}' once, found it {count} times"
            for bug in bugs
            if (count := (ROOT / bug.file).read_text().count(bug.old)) != 1]


def not_kept(bugs):
    """Bugs of which it is not kept that a test noticed them, or whose test is gone."""
    known = caught()
    tests = "".join(path.read_text() for path in (ROOT / "lagwise").rglob("*_test.cpp"))
    gone = [bug for bug in bugs if not re.search(
        r"\b" + known.get(bug.name, "no test").split(".")[-1].split("/")[0] + r"\)", tests)]
    return [f"{bug.name}: no test is known that notices; tools/seeded_bugs.py --keep --named "
            f"'{bug.name}'" for bug in gone]


def try_all(tree, bugs, options):
    for program in dict.fromkeys(b.caught_by for b in bugs):
        green, reason = is_green(tree.build(program), options)
        print(f"without bugs ({program}): {'green' if green else reason}", flush=True)
        if not green:
            return 1
    noticed = 0
    for bug in bugs:
        test = try_bug(tree, bug, options)
        noticed += test is not None
        if options.keep:
            keep({bug.name: test})
    print(f"{noticed} of {len(bugs)} bugs noticed")
    return 0 if noticed == len(bugs) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", choices=PROGRAMS)
    parser.add_argument("--named", default="")
    parser.add_argument("--untried", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--filter", default="", help="of the tests, as --gtest_filter")
    options = parser.parse_args()
    bugs = [b for b in BUGS if options.only in (None, b.caught_by) and options.named in b.name]
    if options.untried:
        bugs = [bug for bug in bugs if bug.name not in caught()]
    if options.table:
        print(table(bugs))
        return 0
    if options.list:
        print("\n".join(f"{b.caught_by:8} {b.name}" for b in bugs))
        return 0
    if stale := out_of_date(bugs) + (not_kept(bugs) if options.check else []):
        print("\n".join(stale), file=sys.stderr)
        return 1
    if options.check:
        print(f"{len(bugs)} bugs fit the sources; for each a test is known that notices")
        return 0
    # Tests that compare 1 thread with 2 and 4 need more than one to begin with.
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    with tempfile.TemporaryDirectory(prefix="seeded_bugs.") as folder:
        try:
            return try_all(Tree(folder), bugs, options)
        except subprocess.CalledProcessError as error:  # the compiler said why
            print(f"does not build: {' '.join(error.cmd[-4:])}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
