#!/usr/bin/python3
"""hostile_state_test.py PROGRAM [VALUES]: a checkpoint from a stranger. Every entry of its
state.json in turn becomes VALUES things that no writer writes (all there are unless given),
without the hash that would tell. Judging the run, and training it on, ends well or with one
line and the code of a command or of a file that is wrong, within a limit on memory."""

import copy
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

from run_bits import SmallRun, run

PROGRAM = os.path.abspath(sys.argv[1])
STEPS = 2
STATE = f"checkpoints/{STEPS:08}/state.json"
LIES = [2**40, None, -1, [2**40, 2**40], "x\x1b[31m\n", 2**31, 2**64 - 1, 1e300, []]
VALUES = int(sys.argv[2]) if len(sys.argv) > 2 else len(LIES)
MEMORY, SECONDS = 10 << 30, 60
CODES = {0, 2, 3}  # done; an option, and a file, that is wrong


def entries(tree, path=()):
    """The paths of all entries, whole objects among them."""
    if path:
        yield path
    if isinstance(tree, dict):
        for key, below in tree.items():
            yield from entries(below, path + (key,))


def replaced(tree, path, value):
    changed = copy.deepcopy(tree)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def try_out(state, what):
    """Both commands on a run with this state."""
    shutil.rmtree("lies", ignore_errors=True)
    shutil.copytree("honest", "lies")
    with open(f"lies/{STATE}", "w") as file:
        json.dump(state, file)
    codes = []
    for words in (["eval", "lies"], ["train", "lies/recipe.toml", "--out", "lies"]):
        done = subprocess.run(
            [PROGRAM, *words], capture_output=True, text=True, timeout=SECONDS,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        codes.append(done.returncode)
        complaints = [line for line in done.stderr.splitlines() if line.startswith("lagwise:")]
        assert done.returncode in CODES, (what, words[0], done.returncode, done.stderr)
        assert done.returncode == 0 or len(complaints) == 1, (what, words[0], done.stderr)
        assert "\x1b" not in done.stderr, (what, words[0], done.stderr)
    return codes


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["OMP_NUM_THREADS"] = "2"
        small = SmallRun(PROGRAM, steps=STEPS, checkpoint_every=STEPS)
        run([*small.train("honest"), "--set", "train.eval_examples=2"])
        with open(f"honest/{STATE}") as file:
            honest = json.load(file)
        honest.pop("fnv1a")
        assert try_out(honest, "nothing") == [0, 0]
        refused = taken = 0
        for number, path in enumerate(entries(honest)):
            for i in range(VALUES):
                lie = LIES[(number + i) % len(LIES)]
                codes = try_out(replaced(honest, path, lie), f"{'.'.join(path)} = {lie!r}")
                refused, taken = refused + sum(map(bool, codes)), taken + codes.count(0)
        assert refused > taken, "nothing is checked"
        print(f"{refused} commands refused what a state.json said, {taken} did not mind")
        os.chdir("/")


if __name__ == "__main__":
    main()
