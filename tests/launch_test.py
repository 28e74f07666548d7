#!/usr/bin/python3
"""launch_test.py PROGRAM [ROUNDS]: `lagwise launch` as a whole. 1, 2 and 4 processes end with
the same bits; a process that is killed, stopped or told to end, at a random step, ends the
job within five seconds with one line and the documented code, and the same command, with
another number of processes, goes on to the same bits. ROUNDS of that, 3 unless given."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
STEPS = 50
RECIPE = f"""
[model]
layers = 2
dim = 32
heads = 2
dropout = 0.1
encoding = "sine_spe:realizations=8"
[data]
task = "language:valid=0.2,test=0.2"
path = "corpus"
length = 64
[train]
steps = {STEPS}
batch = 8
accumulate = 2
leaves = 4
warmup = 5
checkpoint_every = 7
eval_every = 20
eval_examples = 20
log_every = 1
"""
TIMES = ("seconds", "tokens_per_second", "peak_bytes")
CODES = {signal.SIGKILL: 5, signal.SIGSTOP: 5, signal.SIGTERM: 130}


def launch(processes, out, *more):
    return [PROGRAM, "launch", "-n", str(processes), *more, "train", "small.toml", "--out", out]


def run(words, code=0, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def bits(out):
    """What must not depend on who trained: tensors, losses, evaluations."""
    folder = os.path.join(out, "checkpoints", f"{STEPS:08}")
    tensors = [open(os.path.join(folder, name), "rb").read()
               for name in ("model.safetensors", "optimizer.safetensors")]
    lines = []
    for text in open(os.path.join(out, "metrics.jsonl")):
        line = json.loads(text)
        lines.append({key: value for key, value in line.items() if key not in TIMES})
    return tensors, lines


def steps_done(out):
    try:
        with open(os.path.join(out, "metrics.jsonl")) as lines:
            return sum('"lr"' in line for line in lines)
    except FileNotFoundError:
        return 0


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


def strike(out, processes, which, dice):
    """Lets a job get somewhere, then does `which` to one of its processes."""
    begun = steps_done(out)
    job = subprocess.Popen(launch(processes, out), stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    goal = begun + dice.randint(1, max(1, (STEPS - begun) // 3))
    while steps_done(out) < goal and job.poll() is None:
        time.sleep(0.002)
    if job.poll() is not None:
        assert job.returncode == 0, job.stderr.read()
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


def same_bits():
    for processes in (1, 2, 4):
        run(launch(processes, f"of-{processes}", "--timeout", "300"))
    run([PROGRAM, "train", "small.toml", "--out", "alone"])
    for other in ("of-1", "of-2", "of-4"):
        assert bits(other) == bits("alone"), other
    about = json.load(open("of-4/run.json"))
    assert about["ranks"] == 4 and len(about["hosts"]) == 4, about
    assert os.path.exists("of-4/ranks/3.log") and not os.path.exists("of-4/ranks/0.log")
    assert f"step {STEPS}/{STEPS}" in open("of-4/ranks/3.log").read()
    print("1, 2 and 4 processes: the same bits")


def failures():
    dice = random.Random(1)
    signals = list(CODES)
    for number in range(ROUNDS):
        out = f"struck-{number}"
        while True:
            processes = dice.choice((2, 4))
            if not strike(out, processes, signals[number % len(signals)], dice):
                break
            if dice.random() < 0.5:
                break
        run(launch(dice.choice((1, 2, 4)), out))
        assert bits(out) == bits("alone"), out
    print(f"{ROUNDS} rounds of failures: the same bits")


def restarts():
    job = subprocess.Popen(launch(2, "again", "--restarts", "2"), stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    while steps_done("again") < 10:
        time.sleep(0.002)
    os.kill(ranks_of(job.pid)[1], signal.SIGKILL)
    said = job.communicate()[1]
    assert job.returncode == 0 and "beginning again, 1 of 2" in said, said
    assert bits("again") == bits("alone")
    print("--restarts: the same bits")


def refusals():
    def refused(words, expected, code=2, **variables):
        said = run(words, code, env={**os.environ, **variables}).stderr.strip()
        assert expected in said and said.count("\n") == 0, said

    train = [PROGRAM, "train", "small.toml", "--out", "refused"]
    refused(train, "WORLD_SIZE: expected a value", RANK="0")
    refused(train, "MASTER_ADDR: expected a value", RANK="0", WORLD_SIZE="2")
    refused(train, "SLURM_JOB_NODELIST: expected a value", SLURM_PROCID="0",
            SLURM_NTASKS="2")
    refused([*train, "--set", "train.leaves=3"], "train.leaves: expected a power of two")
    refused([PROGRAM, "launch", "-n", "2", "eval", "x"], "expected the verb train or compare")
    said = run([*launch(8, "refused")], 2).stderr
    assert "train.leaves: expected a multiple of 8" in said, said
    assert not os.path.exists("refused/recipe.toml")
    # Nobody else comes.
    alone = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29617"}
    refused([*train, "--timeout", "1"], "rank 1 was lost: it did not come within 1 s", 5, **alone)
    alone["RANK"] = "1"
    refused([*train, "--timeout", "1"], "nobody answered at 127.0.0.1:29617", 5, **alone)
    commands = run(launch(2, "x", "--hosts", "a,b")).stdout
    assert "--hosts a,b --host 1 --port 29500 train small.toml --out x" in commands, commands
    print("refusals: one line each")


def torchrun_variables():
    """Started by anybody who sets them, not only by us."""
    jobs = []
    for rank in range(2):
        variables = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29618"}
        jobs.append(subprocess.Popen([PROGRAM, "train", "small.toml", "--out", "by-hand"],
                                     env={**os.environ, **variables},
                                     stdout=subprocess.DEVNULL))
    assert [job.wait() for job in jobs] == [0, 0]
    assert bits("by-hand") == bits("alone")
    print("the variables of torchrun: the same bits")


os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # more threads than cores
with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    dice = random.Random(0)
    words = ["".join(dice.choices("abcdefgh", k=dice.randint(2, 6))) for _ in range(50)]
    with open("corpus", "w") as corpus:
        corpus.write(" ".join(dice.choices(words, k=8000)))
    with open("small.toml", "w") as recipe:
        recipe.write(RECIPE)
    same_bits()
    refusals()
    torchrun_variables()
    restarts()
    failures()
