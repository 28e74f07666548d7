"""What the tests of several processes have in common: a small run, how it is started, how far
it is, and its bits: what must not depend on who trained it."""

import json
import os
import random
import subprocess

TIMES = ("seconds", "tokens_per_second", "peak_bytes")


class SmallRun:
    """A run of some seconds, with all that draws random numbers: dropout, an encoding with
    noise. Its recipe and its corpus are in the working directory."""

    def __init__(self, program, steps, checkpoint_every):
        self.program, self.steps = os.path.abspath(program), steps
        dice = random.Random(0)
        words = ["".join(dice.choices("abcdefgh", k=dice.randint(2, 6))) for _ in range(50)]
        with open("corpus", "w") as corpus:
            corpus.write(" ".join(dice.choices(words, k=8000)))
        with open("small.toml", "w") as recipe:
            recipe.write(f"""
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
steps = {steps}
batch = 8
accumulate = 2
leaves = 4
warmup = 5
checkpoint_every = {checkpoint_every}
eval_every = 20
eval_examples = 20
log_every = 1
""")

    def train(self, out):
        """The command of one process alone, or of each that a starter starts."""
        return [self.program, "train", "small.toml", "--out", out]

    def launch(self, processes, out, *more):
        """The command of several; `more` are words for `lagwise launch`."""
        return [self.program, "launch", "-n", str(processes), *more, *self.train(out)[1:]]

    def bits(self, out):
        """Tensors, losses, evaluations."""
        folder = os.path.join(out, "checkpoints", f"{self.steps:08}")
        tensors = []
        for name in ("model.safetensors", "optimizer.safetensors"):
            with open(os.path.join(folder, name), "rb") as file:
                tensors.append(file.read())
        with open(os.path.join(out, "metrics.jsonl")) as lines:
            parsed = [json.loads(line) for line in lines]
        return tensors, [{key: value for key, value in line.items() if key not in TIMES}
                         for line in parsed]


def run(words, code=0, **more):
    """Waits for a command, which must end with `code`."""
    done = subprocess.run(words, capture_output=True, text=True, **more)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def start(words, **more):
    """A command whose complaints are read later."""
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            **more)


def finish(job, code=0):
    """What a started command complained of, which must end with `code`."""
    said = job.communicate()[1].strip()
    assert job.returncode == code, (job.args, job.returncode, said)
    return said


def steps_done(out):
    try:
        with open(os.path.join(out, "metrics.jsonl")) as lines:
            return sum('"lr"' in line for line in lines)
    except FileNotFoundError:
        return 0
