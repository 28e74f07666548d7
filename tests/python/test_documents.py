"""What the documents and examples show, run as it stands there."""

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lagwise

ROOT = Path(__file__).resolve().parents[2]


def test_the_blocks_of_the_page_run_in_order():
    text = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/python.md, block {number}", "exec"), names)


@pytest.mark.parametrize("name", ["attention", "encodings", "models", "multihead"])
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"lagwise.{name}")
    done = doctest.testmod(module, extraglobs={"lagwise": lagwise, "torch": torch})
    assert done.failed == 0 and done.attempted > 0


def run(name, *words):
    done = subprocess.run([sys.executable, str(ROOT / "examples/python" / name), *words], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_spe_in_five_lines():
    assert "-> out (2, 1000, 8, 64)" in run("spe_in_five_lines.py")


def test_gated_delta_learns_to_recall():
    recalled = [int(x) for x in re.findall(r"(\d+) % recalled", run("gated_delta.py"))]
    assert recalled[-1] > 60


def test_exact_in_transformers():
    pytest.importorskip("transformers", reason="transformers is not installed")
    said = run("exact_in_transformers.py")
    assert float(re.search(r"at most (\S+)", said)[1]) < 1e-4 and "lagwise writes" in said


def test_the_bench_runs_small():
    done = subprocess.run([sys.executable, "-m", "lagwise.bench", "--length", "64", "--heads", "2",
                           "--dim", "8", "--rounds", "1", "--json"], text=True, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    import json
    found = json.loads(done.stdout)
    assert found["cpu"] and found["simd"] and len(found["rows"]) >= 6
    assert all(row["ratio"] > 0 for row in found["rows"])
