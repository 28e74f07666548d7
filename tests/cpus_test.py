#!/usr/bin/python3
"""cpus_test.py PROGRAM RUNTIME: the program and the small runtime on CPUs that this machine is
not, by QEMU's user mode, which knows no instruction that its CPU does not have: one with SSE4
alone, one with AVX2. There a small run learns what it learns here, within the rounding of other
vectors, and an exported model of every kind of weights writes the same text. Minutes: every
instruction is emulated."""

import json
import math
import os
import subprocess
import sys
import tempfile

from run_bits import SmallRun, run

PROGRAM, RUNTIME = map(os.path.abspath, sys.argv[1:3])
STEPS = 3
# QEMU's name: Highway's best target there, the kernels OpenBLAS has for it
CPUS = {"Westmere": ("SSE4", "Nehalem"), "Haswell": ("AVX2", "Haswell")}
RECIPES = {  # what is computed by different kernels
    "spe": [],
    "gated_delta": ["model.attention=gated_deltanet", "model.encoding=rope:layout=half"],
    "exact": ["model.attention=exact", "model.encoding=alibi"],
    "conv_spe": ["model.encoding=conv_spe:kernel=8,realizations=8"],
}


def losses(out):
    with open(os.path.join(out, "metrics.jsonl")) as lines:
        found = [json.loads(line) for line in lines]
    return [line["loss"] for line in found if "lr" in line]


def train(small, name, out, before=()):
    changes = [word for change in RECIPES[name] for word in ("--set", change)]
    run([*before, *small.train(out), *changes, "--set", "train.threads=1"])
    found = losses(out)
    assert len(found) == STEPS, found
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        small = SmallRun(PROGRAM, steps=STEPS, checkpoint_every=STEPS)
        here = {name: train(small, name, f"{name}-here") for name in RECIPES}
        written = {}
        for weights in ("f32", "bf16", "int8"):
            run([PROGRAM, "export", "gated_delta-here", "--out", weights, "--weights", weights])
            written[weights] = write(weights)
        for cpu, (target, blas) in CPUS.items():
            # Told which kernels of OpenBLAS to take, the program does not start itself anew to
            # choose them, which would leave QEMU.
            before = ["env", f"OPENBLAS_CORETYPE={blas}", "qemu-x86_64", "-cpu", cpu]
            said = json.loads(run([*before, PROGRAM, "doctor", "--json"]).stdout)
            chosen = said["simd"]["chosen"]
            assert chosen == target, (cpu, chosen)
            for name, expected in here.items():
                got = train(small, name, f"{name}-{cpu}", before)
                far = max(abs(a - b) / abs(b) for a, b in zip(got, expected))
                assert math.isfinite(far) and far < 1e-4, (cpu, name, got, expected)
                print(f"{cpu} ({target}): {name}: losses differ by {far:.1e} at the most",
                      flush=True)
            for weights, text in written.items():
                assert write(weights, before) == text, (cpu, weights)
            print(f"{cpu} ({target}): exported models write the same", flush=True)
        os.chdir("/")


def write(model, before=()):
    """What the likeliest tokens are, one after another."""
    done = subprocess.run([*before, RUNTIME, model, "--prompt", "ab", "--length", "40",
                           "--temperature", "0"], capture_output=True, text=True)
    assert done.returncode == 0, (before, done.stderr)
    return done.stdout


if __name__ == "__main__":
    main()
