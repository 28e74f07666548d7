#!/usr/bin/python3
"""launch_test.py PROGRAM [ROUNDS]: `lagwise launch` as a whole. 1, 2 and 4 processes end with
the same bits; a process that is killed, stopped or told to end, at a random step, ends the
job within five seconds with one line and the documented code, and the same command, with
another number of processes, goes on to the same bits. ROUNDS of that, 3 unless given."""

import glob
import json
import os
import random
import re
import signal
import sys
import tempfile
import time

from run_bits import SmallRun, finish, run, start, steps_done

PROGRAM = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
COSTS = ("train_seconds", "train_tokens_per_second", "decode_tokens_per_second", "peak_bytes")
CODES = {signal.SIGKILL: 5, signal.SIGSTOP: 5, signal.SIGTERM: 130}


def ranks_of(launcher):
    """Process ids by rank."""
    found = {}
    children = open(f"/proc/{launcher}/task/{launcher}/children").read().split()
    for child in children:
        variables = open(f"/proc/{child}/environ", "rb").read().split(b"\0")
        for variable in variables:
            if variable.startswith(b"RANK="):
                found[int(variable[5:])] = int(child)
    return found


def strike(small, out, processes, which, dice):
    """Lets a job get somewhere, then does `which` to one of its processes."""
    begun = steps_done(out)
    job = start(small.launch(processes, out))
    goal = begun + dice.randint(1, max(1, (small.steps - begun) // 3))
    while steps_done(out) < goal and job.poll() is None:
        time.sleep(0.002)
    if job.poll() is not None:
        finish(job)
        return False  # it was faster than we
    rank, process = dice.choice(sorted(ranks_of(job.pid).items()))
    at = time.monotonic()
    os.kill(process, which)
    said = job.communicate()[1].strip()
    took = time.monotonic() - at
    if job.returncode == 0:
        return False
    assert job.returncode == CODES[which], (which, rank, job.returncode, said)
    assert took < 5, (which, rank, took)
    if which != signal.SIGTERM:
        line = rf"lagwise: rank {rank} \(host \S+\) was lost at step \d+ \(.*\); newest " \
               r"checkpoint (none|\S+/checkpoints/\d+); the same command goes on"
        assert re.fullmatch(line, said), (rank, said)
    print(f"  {which.name} to rank {rank} of {processes}: {took:.1f} s, {said}")
    return True


def same_bits(small):
    for processes in (1, 2, 4):
        run(small.launch(processes, f"of-{processes}", "--timeout", "300"))
    run(small.train("alone"))
    for other in ("of-1", "of-2", "of-4"):
        assert small.bits(other) == small.bits("alone"), other
    about = json.load(open("of-4/run.json"))
    assert about["ranks"] == 4 and len(about["hosts"]) == 4, about
    assert os.path.exists("of-4/ranks/3.log") and not os.path.exists("of-4/ranks/0.log")
    assert f"step {small.steps}/{small.steps}" in open("of-4/ranks/3.log").read()
    print("1, 2 and 4 processes: the same bits")


def failures(small):
    dice = random.Random(1)
    signals = list(CODES)
    for number in range(ROUNDS):
        out = f"struck-{number}"
        while True:
            processes = dice.choice((2, 4))
            if not strike(small, out, processes, signals[number % len(signals)], dice):
                break
            if dice.random() < 0.5:
                break
        run(small.launch(dice.choice((1, 2, 4)), out))
        assert small.bits(out) == small.bits("alone"), out
    print(f"{ROUNDS} rounds of failures: the same bits")


def restarts(small):
    job = start(small.launch(2, "again", "--restarts", "2"))
    while steps_done("again") < 10:
        time.sleep(0.002)
    os.kill(ranks_of(job.pid)[1], signal.SIGKILL)
    said = finish(job)
    assert "beginning again, 1 of 2" in said, said
    assert small.bits("again") == small.bits("alone")
    print("--restarts: the same bits")


def refusals(small):
    def refused(words, expected, code=2, **variables):
        said = run(words, code, env={**os.environ, **variables}).stderr.strip()
        assert expected in said and said.count("\n") == 0, said

    train = small.train("refused")
    refused(train, "WORLD_SIZE: expected a value", RANK="0")
    refused(train, "MASTER_ADDR: expected a value", RANK="0", WORLD_SIZE="2")
    refused(train, "SLURM_JOB_NODELIST: expected a value", SLURM_PROCID="0",
            SLURM_NTASKS="2")
    refused([*train, "--set", "train.leaves=3"], "train.leaves: expected a power of two")
    refused([PROGRAM, "launch", "-n", "2", "eval", "x"], "expected the verb train or compare")
    refused([PROGRAM, "launch", "--restarts", "1", "compare", "x"],
            "--restarts: expected the verb train, got compare")
    refused(small.launch(8, "refused"), "train.leaves: expected a multiple of 8")
    assert not os.path.exists("refused/recipe.toml")
    # Nobody else comes.
    alone = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29617"}
    refused([*train, "--timeout", "1"], "rank 1 was lost: it did not come within 1 s", 5, **alone)
    alone["RANK"] = "1"
    refused([*train, "--timeout", "1"], "nobody answered at 127.0.0.1:29617", 5, **alone)
    commands = run(small.launch(2, "x", "--hosts", "a,b")).stdout
    assert "--hosts a,b --host 1 --port 29500 train small.toml --out x" in commands, commands
    run([*small.launch(2, "only-read"), "--parse-only"])
    run([*small.launch(2, "only-read"), "--fersh", "--parse-only"], code=2)
    assert not os.path.exists("only-read")
    print("refusals: one line each")


def torchrun_variables(small):
    """Started by anybody who sets them, not only by us."""
    jobs = []
    for rank in range(2):
        variables = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29618"}
        jobs.append(start(small.train("by-hand"), env={**os.environ, **variables}))
    for job in jobs:
        finish(job)
    assert small.bits("by-hand") == small.bits("alone")
    print("the variables of torchrun: the same bits")


def comparison(small):
    """Each cell is trained by two processes, and has the figures of one."""
    def figures(*words):
        out = f"compared-{len(words)}"
        said = run([PROGRAM, *words, "compare", "--recipe", "small.toml", "--encodings",
                    "none;rope:layout=half", "--set", "train.steps=8", "--lengths", "1x",
                    "--windows", "4", "--examples", "8", "--json", "--out", out]).stdout
        rows = json.loads(said)["rows"]
        assert len(rows) == 2 and all(row["state"] == "done" for row in rows), rows
        return out, [{key: value for key, value in row.items() if key not in COSTS}
                     for row in rows]

    _, alone = figures()
    out, together = figures("launch", "-n", "2")
    assert together == alone, (together, alone)
    for path in glob.glob(f"{out}/*/seed-0/run.json"):
        assert json.load(open(path))["ranks"] == 2, path
    print("a comparison: the same figures")


os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # more threads than cores
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    small = SmallRun(PROGRAM, steps=50, checkpoint_every=7)
    same_bits(small)
    refusals(small)
    torchrun_variables(small)
    comparison(small)
    restarts(small)
    failures(small)
