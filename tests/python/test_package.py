"""The installed package: what `pip install .` leaves, used from a folder of its own."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

import lagwise

PACKAGE = Path(lagwise.__file__).resolve().parent
PROGRAM = Path(sys.executable).parent / "lagwise"
if not (PACKAGE / "bin" / "lagwise").exists():
    pytest.skip("lagwise is not installed from a wheel", allow_module_level=True)


def run(*command, folder, **environment):
    return subprocess.run([str(word) for word in command], cwd=folder, text=True,
                          capture_output=True, check=False,
                          env={**os.environ, **environment})


def python(lines, folder):
    return run(sys.executable, "-c", lines, folder=folder)


def needed(binary):
    """The libraries that an ELF file asks for, and where it looks for them."""
    told = subprocess.run(["readelf", "-d", str(binary)], text=True, capture_output=True,
                          check=True).stdout
    paths = re.search(r"RUNPATH.*\[(.*)\]", told)
    return set(re.findall(r"NEEDED.*\[(.*)\]", told)), paths.group(1).split(":")


def test_the_program_runs_in_any_folder(tmp_path):
    told = run(PROGRAM, "--help", folder=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    assert "train" in told.stdout


def test_the_version_is_one(tmp_path):
    line = run(PROGRAM, "--version", folder=tmp_path).stdout
    torch_version = torch.__version__.split("+")[0]
    assert line.startswith(f"lagwise {metadata.version('lagwise')} (torch {torch_version}")


def test_the_program_trains(tmp_path):
    (tmp_path / "tiny.toml").write_text("""
[model]
layers = 1
dim = 16
heads = 2
encoding = "rope:layout=half"
[data]
task = "music:styles=2,songs=20"
length = 32
[train]
steps = 2
batch = 4
warmup = 1
eval_examples = 4
""")
    told = run(PROGRAM, "train", "tiny.toml", "--out", "run", folder=tmp_path)
    assert told.returncode == 0, told.stderr
    state = json.loads(next(tmp_path.glob("run/checkpoints/*/state.json")).read_text())
    assert state["arithmetic"]["torch"] == torch.__version__.split("+")[0]
    assert state["arithmetic"]["blas"].startswith("MKL")


def test_it_has_types_and_asks_for_its_torch():
    assert (PACKAGE / "py.typed").exists()
    asked = [line for line in metadata.requires("lagwise") if line.startswith("torch")]
    minor = ".".join(torch.__version__.split(".")[:2])
    assert len(asked) == 1 and f">={minor}" in asked[0] and "<" in asked[0]


def test_one_openmp_serves_torch_and_lagwise(tmp_path):
    told = python("""
import lagwise, torch
q = torch.rand(1, 4, 64, 16)
lagwise.ops.linear_attention(q, q, q, causal=True)
lines = open("/proc/self/maps").read().split("\\n")
print(*sorted({line.split()[-1] for line in lines if "omp.so" in line}), sep="\\n")
""", tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stdout.split() == [str(Path(torch.__file__).parent / "lib/libgomp.so.1")]
    doctor = json.loads(run(PROGRAM, "doctor", "--json", folder=tmp_path).stdout)
    assert doctor["threads"]["openmp"] == told.stdout.split()
    assert doctor["versions"]["blas"].startswith("MKL")
    features = {row["name"]: row["on"] for row in doctor["features"]}
    assert features["one OpenMP"] and features["fast BLAS"]


def test_threads_of_torch_do_not_change_a_bit():
    q = torch.rand(2, 4, 300, 16)
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        results.append(lagwise.ops.linear_attention(q, q, q, causal=True))
    torch.set_num_threads(before)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])


@pytest.mark.parametrize("other", ["2.12.1", "2.14.0+cpu", "3.0"])
def test_another_torch_is_refused_in_one_line(tmp_path, other):
    told = python(f"import torch; torch.__version__ = '{other}'; import lagwise", tmp_path)
    built_for = ".".join(torch.__version__.split(".")[:2])
    assert told.stderr.splitlines()[-1] == (
        f"ImportError: lagwise: built for torch {built_for}, "
        f"but torch {other} is installed")
    # The script of the program asks for the installed version, which comes first here.
    (tmp_path / f"torch-{other}.dist-info").mkdir()
    (tmp_path / f"torch-{other}.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch\nVersion: {other}\n")
    told = run(PROGRAM, "--help", folder=tmp_path, PYTHONPATH=str(tmp_path))
    assert told.returncode == 1
    assert told.stderr == (
        f"lagwise: built for torch {built_for}, but torch {other} is installed\n")


def test_a_library_of_another_torch_is_refused_in_one_line(tmp_path):
    (tmp_path / "liblagwise.so").write_bytes(b"no library")
    told = run(sys.executable, "-c", "import lagwise", folder=tmp_path,
               LAGWISE_LIBRARY=str(tmp_path / "liblagwise.so"))
    last = told.stderr.splitlines()[-1]
    assert last.startswith("ImportError: lagwise: ") and torch.__version__ in last


def test_nothing_is_needed_that_is_not_in_the_wheel_torch_or_every_linux():
    library = next(PACKAGE.glob("lib/torch-*/liblagwise.so"))
    linux = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1",
             "ld-linux-x86-64.so.2"}
    brought = {file.name for file in library.parent.iterdir()}
    of_torch = {file.name for file in (Path(torch.__file__).parent / "lib").iterdir()}
    for binary in (library, PACKAGE / "bin" / "lagwise"):
        names, places = needed(binary)
        assert names <= linux | brought | of_torch, binary
        assert all(place.startswith("$ORIGIN") for place in places), binary
