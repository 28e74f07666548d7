#!/usr/bin/python3
"""train_recipes_test.py PROGRAM: tools/train_recipes trains and judges recipes, prepares what
they read, makes the table, leaves out what has no data, and goes on when called again."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = os.path.abspath(sys.argv[1])
SMALL = ["model.layers=1", "model.dim=16", "model.heads=2", "model.feed_forward=16",
         "train.steps=2", "train.warmup=1", "train.batch=2", "train.eval_examples=2",
         "train.threads=1"]


def call(data, out, *names, code=0, settings=SMALL):
    words = [str(ROOT / "tools/train_recipes"), str(data), str(out), *names, "--program", PROGRAM]
    for one in settings:
        words += ["--set", one]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def put_data(folder):
    """WikiText and SST-2, a little of each."""
    text = "".join(f" the {i} of {i * i} is a word , and {i % 7} another .\n" for i in range(3000))
    for split in ("train", "valid"):
        path = folder / f"wikitext-2/wiki.{split}.tokens"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "sst2").mkdir()
    for split in ("train", "dev"):
        rows = "".join(f"the {i} is {'good' if i % 2 else 'bad'}\t{i % 2}\n" for i in range(20))
        (folder / f"sst2/{split}.tsv").write_text("sentence\tlabel\n" + rows)


def cells(line):
    return [c.strip() for c in line.strip("|").split("|")]


def check_table(out, names):
    lines = (out / "table.md").read_text().splitlines()
    head = cells(lines[0])
    assert head[:9] == ["run", "recipe", "parameters", "steps", "minutes", "memory", "metric",
                        "value", "blind guess"], head
    rows = {cells(line)[0]: dict(zip(head, cells(line))) for line in lines[2:] if "|" in line}
    assert sorted(rows) == sorted(names), rows
    for row in rows.values():
        assert row["steps"] == "2" and int(row["parameters"]) > 0, row
        assert float(row["value"]) >= 0 and row["memory"] != "-", row
        assert float(row["minutes"]) >= 0, row
    return rows


with tempfile.TemporaryDirectory() as folder:
    data, out = Path(folder) / "data", Path(folder) / "out"
    put_data(data)

    # No data needed; what is not there is left out, and is no failure.
    said = call(data, out, "memory/markov", "images-mnist").stdout
    assert "left out" in said and "mnist is not there" in said, said
    rows = check_table(out, ["memory/markov"])
    assert rows["memory/markov"]["metric"] == "nats per token (test)", rows
    assert rows["memory/markov"]["blind guess"] == "2.773", rows  # ln 16

    # Sets are prepared, and the run that another begins with is trained first.
    said = call(data, out, "text-sst2-finetuned", settings=[*SMALL, "data.length=16"]).stdout
    assert said.index("== masked-wikitext2") < said.index("== text-sst2-finetuned"), said
    rows = check_table(out, ["memory/markov", "masked-wikitext2", "text-sst2-finetuned"])
    assert rows["text-sst2-finetuned"]["metric"] == "accuracy (valid)", rows
    assert rows["text-sst2-finetuned"]["blind guess"] == "0.5", rows

    # Again: nothing is trained or judged anew, and the table is the same.
    before = (out / "table.md").read_text()
    judged = (out / "memory/markov/eval/metric-test.json").stat().st_mtime_ns
    trained = (out / "memory/markov/metrics.jsonl").stat().st_mtime_ns
    time.sleep(0.01)
    call(data, out, "memory/markov")
    assert (out / "memory/markov/eval/metric-test.json").stat().st_mtime_ns == judged
    assert (out / "memory/markov/metrics.jsonl").stat().st_mtime_ns == trained
    assert (out / "table.md").read_text() == before

    # One that fails does not keep the others from being trained.
    (out / "listops").write_text("in the way")
    said = call(data, out, "listops", "memory/markov", code=1)
    assert "== listops\n   failed: exit code" in said.stdout, said
    assert "failed: listops; see" in said.stderr, said
    check_table(out, rows)
    assert "no recipe 'listop'" in call(data, out, "listop", code=2).stderr
print("train_recipes: ok")
