#!/usr/bin/python3
"""The golden runner goes red when it should: golden_can_fail_test.py RUNNER"""

import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent / "golden"
METHOD = "RetNet"  # small, and long since built


class Set:
    """A set of one case in a folder of its own, to be spoiled."""

    def __init__(self, folder):
        self.folder = Path(folder) / "set"
        self.folder.mkdir()
        whole = json.loads((GOLDEN / "rpe" / "manifest.json").read_text())
        self.case = next(c for c in whole["cases"] if c["method"] == METHOD)
        for tensor in self.case["tensors"]:
            to = self.folder / tensor["file"]
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(GOLDEN / "rpe" / tensor["file"], to)
        self.manifest = {"n_cases": 1, "cases": [self.case]}
        self.lists = {"not-yet": "", "not-supported": ""}

    def file(self, name):
        return self.folder / next(t["file"] for t in self.case["tensors"] if t["name"] == name)

    def nudge(self, name, by):
        """Adds to the last number of a tensor."""
        contents = self.file(name).read_bytes()
        number = struct.unpack("<d", contents[-8:])[0]
        self.file(name).write_bytes(contents[:-8] + struct.pack("<d", number + by))

    def run(self, runner):
        if self.manifest is not None:
            (self.folder / "manifest.json").write_text(json.dumps(self.manifest))
        command = [runner, str(self.folder)]
        for option, entries in self.lists.items():
            path = self.folder.parent / option
            path.write_text(entries)
            command += ["--" + option, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def leave(s): pass
def wrong_output(s): s.nudge("out", 1e-8)
def wrong_input(s): s.nudge("q", 1e-8)
def no_case(s): s.manifest = {"n_cases": 0, "cases": []}
def no_manifest(s): s.manifest = None
def unknown_method(s): s.case["method"] = "RetNets"
def missing_file(s): s.file("out").unlink()
def cut_file(s): s.file("q").write_bytes(s.file("q").read_bytes()[:-3])
def other_shape(s): s.case["tensors"][0]["shape"] = [1]
def lost_case(s): s.manifest["n_cases"] = 2
def no_form(s): s.manifest = {"case": "x"}
def passes_though_listed(s): s.lists["not-yet"] = f"# still to come\n{METHOD}  # soon\n"
def not_supported(s): s.lists["not-supported"] = f"{METHOD}  # why not\n"
def not_supported_tensor(s): s.lists["not-supported"] = f"{METHOD} [gamma]\n"
def not_supported_other(s): s.lists["not-supported"] = f"{METHOD} [delta]\n"


def wrong_though_listed(s):
    passes_though_listed(s)
    wrong_output(s)


def unknown_though_listed(s):
    unknown_method(s)
    s.lists["not-yet"] = "RetNets\n"


def result_nobody_compares(s):
    s.case["tensors"].append(dict(s.case["tensors"][-1], name="out_again"))


def index_without_case(s):
    (s.folder / "index.json").write_text('{"sine_k9": {}}')


EXPECTED = [  # what is done to the set, exit code, words of the output
    (leave, 0, "1 passed, 0 failed, 0 skipped"),
    (wrong_output, 1, "elements differ"),
    (wrong_input, 1, "elements differ"),
    (no_case, 1, "no case found"),
    (no_manifest, 1, "no case found"),
    (unknown_method, 1, "unknown method 'RetNets'"),
    (missing_file, 1, "expected a readable file"),
    (cut_file, 1, "bytes of elements"),
    (other_shape, 1, "the shape and type its manifest states"),
    (lost_case, 3, "as many cases as n_cases says"),
    (no_form, 3, "'cases' or 'arrays'"),
    (passes_though_listed, 1, "take it off the list"),
    (wrong_though_listed, 1, "elements differ"),
    (unknown_though_listed, 0, "0 passed, 0 failed, 1 skipped"),
    (not_supported, 0, "0 passed, 0 failed, 1 skipped"),
    (not_supported_tensor, 0, "0 passed, 0 failed, 1 skipped"),
    (not_supported_other, 0, "1 passed, 0 failed, 0 skipped"),
    (result_nobody_compares, 1, "compared by nobody"),
    (index_without_case, 3, "a manifest of the case 'sine_k9'"),
]


def main(runner):
    wrong = 0
    for spoil, code, words in EXPECTED:
        with tempfile.TemporaryDirectory() as folder:
            one = Set(folder)
            spoil(one)
            got, text = one.run(runner)
        if got != code or words not in text:
            wrong += 1
            print(f"{spoil.__name__}: expected exit {code} and '{words}', got {got}:\n{text}")
    print(f"{len(EXPECTED) - wrong} of {len(EXPECTED)} as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
