"""What the Python tests share: the program, and a small run of it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import lagwise

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
[model]
layers = 2
dim = 16
heads = 2
encoding = "rope:layout=half"
attention = "linear:map=elu1,forget=gated"
[data]
task = "language:valid=0.3,test=0.3"
length = 16
path = "{data}"
[train]
steps = 12
batch = 4
schedule = "constant"
warmup = 0
seed = 7
threads = 1
eval_every = 12
checkpoint_every = 12
"""


def find_program():
    """The program: $LAGWISE_PROGRAM, that of the wheel, that of the build, or on the path."""
    places = [os.environ.get("LAGWISE_PROGRAM", ""), Path(lagwise.__file__).parent / "bin/lagwise",
              ROOT / "build/release/lagwise"]
    for place in places:
        if place and Path(place).is_file():
            return str(place)
    return shutil.which("lagwise")


@pytest.fixture(scope="session")
def program():
    """Runs the program and returns what it printed."""
    found = find_program()
    if found is None:
        pytest.skip("the program lagwise is not here: set LAGWISE_PROGRAM")

    def run(*words, expect=0):
        done = subprocess.run([found, *map(str, words)], text=True, capture_output=True,
                              check=False)
        assert done.returncode == expect, done.stderr
        return done.stdout
    return run


@pytest.fixture(scope="session")
def small_run(program, tmp_path_factory):
    """The folder of a run of twelve steps, beside its recipe `small.toml`."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "corpus").mkdir()
    (folder / "corpus/train.txt").write_text("".join(f"line {i * i}\n" for i in range(200)))
    (folder / "small.toml").write_text(RECIPE.format(data=folder / "corpus"))
    program("train", folder / "small.toml", "--out", folder / "run")
    return folder / "run"
