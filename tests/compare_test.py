#!/usr/bin/python3
"""compare_test.py PROGRAM: `lagwise compare` as a whole. Killed twice and resumed it ends
with the table of one that was left alone; Ctrl-C ends with 130; the clock leaves cells
unfinished, and says so; runs of another recipe are refused or trained anew; what others
judged a cell on does not become its figure; where nothing is done the exit code says so."""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
RECIPE = """
[model]
layers = 1
dim = 16
heads = 2
[data]
task = "language:valid=0.2,test=0.2"
path = "corpus"
length = 16
[train]
steps = 60
batch = 4
warmup = 5
checkpoint_every = 5
eval_every = 20
log_every = 5
"""
ENCODINGS = "none;sine_spe:realizations=8;huang"
GRID = ["--recipe", "small.toml", "--lr", "0.003,0.01", "--seeds", "2", "--windows",
        "4", "--jobs", "2", "--json"]
TIMES = ("train_seconds", "train_tokens_per_second", "decode_tokens_per_second", "peak_bytes")


def command(out, *more, encodings=ENCODINGS):
    return [PROGRAM, "compare", *GRID, "--encodings", encodings, "--out", out, *more]


def run(words, code=0):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stderr)
    return done


def figures(text):
    rows = json.loads(text)["rows"]
    for row in rows:
        for key in TIMES:
            row.pop(key)
    return rows


def checkpoints(out):
    return set(glob.glob(f"{out}/*/seed-*/checkpoints/*"))


def stop_midway(out, how):
    """Starts the command, lets it get as far as a further checkpoint and ends it."""
    known = checkpoints(out)
    child = subprocess.Popen(command(out), stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
    while checkpoints(out) <= known and child.poll() is None:
        time.sleep(0.005)
    child.send_signal(how)
    child.communicate(timeout=60)
    return child.returncode


def small(out, *more, code=0, encodings="none"):
    """A comparison of a few steps, judged on little."""
    return run([PROGRAM, "compare", "--recipe", "small.toml", "--windows", "2", "--json",
                "--encodings", encodings, "--out", out, *more], code)


def check_other_recipes():
    three = figures(small("other", "--set", "train.steps=3").stdout)
    refused = small("other", "--set", "train.steps=30", encodings="none;sinusoidal", code=2)
    assert refused.stderr.count("\n") == 1 and refused.stdout == "", refused
    assert "seed-0 (train.steps = 30, was 3); --retrain" in refused.stderr, refused.stderr
    anew = small("other", "--set", "train.steps=30", "--retrain", encodings="none;sinusoidal")
    rows = figures(anew.stdout)
    assert [row["steps"] for row in rows] == [30, 30] and anew.stderr.count("start") == 2, rows
    assert rows[0]["value"] != three[0]["value"], rows
    again = small("other", "--set", "train.steps=30", "--jobs", "2",
                  encodings="none;sinusoidal")
    assert figures(again.stdout) == rows and "start" not in again.stderr, again.stderr
    return rows


def check_other_judgements(rows):
    cell = "other/small~none~linear+map=elu1/seed-0"
    os.mkdir("elsewhere")
    with open("elsewhere/train.txt", "w") as file:
        file.writelines(f"quite another text, {i} times\n" for i in range(400))
    for more in (["--data", "elsewhere"], ["--examples", "3"], ["--windows", "3"]):
        run([PROGRAM, "eval", cell, *more])
        shown = figures(small("other", "--set", "train.steps=30",
                              encodings="none;sinusoidal").stdout)
        assert shown == rows, (more, shown, rows)
    part = figures(small("other", "--set", "train.steps=30", "--examples", "3").stdout)[0]
    assert ", 3 of " in part["metric"] and part["value"] != rows[0]["value"], part


def check_exit_codes():
    diverged = small("diverged", "--lr", "1e30", code=4)
    assert "diverged" in json.loads(diverged.stdout)["rows"][0]["state"], diverged.stdout
    assert "no run is done, 1 diverged" in diverged.stderr, diverged.stderr
    run([PROGRAM, "report", "diverged", "--out", "diverged.html"])
    with open("diverged.html") as file:
        assert "diverged at step" in file.read()
    os.makedirs("blocked/small~none~linear+map=elu1")
    with open("blocked/small~none~linear+map=elu1/seed-0", "w"):
        pass  # where a folder should be
    blocked = small("blocked", code=1)
    assert "no run is done, 1 failed" in blocked.stderr, blocked.stderr


def main():
    with open("small.toml", "w") as file:
        file.write(RECIPE)
    os.mkdir("corpus")
    with open("corpus/train.txt", "w") as file:
        file.writelines(f"line {i * i} of {i}\n" for i in range(400))

    whole = figures(run(command("whole")).stdout)
    assert [row["seeds"] for row in whole] == [2, 2, 0], whole
    assert whole[2]["state"].startswith("not served"), whole[2]
    assert all(len(row["lengths"]) == 3 for row in whole[:2]), whole
    assert whole[0]["value"]["deviation"] > 0, whole[0]

    assert stop_midway("cut", signal.SIGKILL) == -signal.SIGKILL
    assert stop_midway("cut", signal.SIGKILL) == -signal.SIGKILL
    assert stop_midway("cut", signal.SIGINT) == 130
    assert figures(run(command("cut")).stdout) == whole, "the tables differ"

    again = run(command("whole"))
    assert figures(again.stdout) == whole and "start" not in again.stderr, again.stderr

    short = figures(run(command("short", "--minutes", "0.001")).stdout)
    states = [row["state"] for row in short]
    assert any("not started" in state or "unfinished" in state for state in states), states
    wrong = run(command("wrong", encodings="rop"), code=2)
    assert wrong.stderr.count("\n") == 1 and "rope" in wrong.stderr, wrong.stderr
    assert not os.path.exists("wrong")
    check_other_judgements(check_other_recipes())
    check_exit_codes()
    print("compare: killed twice, interrupted, resumed: the same table")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
