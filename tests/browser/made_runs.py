"""Makes folders of runs (docs/runs.md) for the page to show: curves of plausible shape, drawn
from formulas. One run has not ended: its files are few, its last line is cut off."""

import json
import math
import random
from pathlib import Path

LENGTH = 256
ENCODINGS = {  # name -> (encoding, loss in range, rise by 4 lengths, tokens per second)
    "none": ("none", 1.62, 0.17, 31000),
    "decay": ("decay:kind=learned", 1.28, -0.01, 29500),
    "sinusoidal": ("sinusoidal+decay", 1.43, 0.34, 30200),
    "sine_spe": ("sine_spe:exact=true,decay=learned", 1.10, 0.01, 17400),
    "lrpe": ("lrpe:lambda=rotation,decay=learned", 0.97, -0.02, 28100),
}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def recipe(encoding, steps):
    return f"""title = "a made run"

[model]
encoding = "{encoding}"
attention = "linear:map=none,denominator=none,norm=rms_head,qk_bias=true"

[data]
task = "music"
length = {LENGTH}

[train]
steps = {steps}
"""


def metrics(loss, speed, steps, last, dice):
    lines = []
    for step in range(10, last + 1, 10):
        now = loss + 4.2 * math.exp(-step / 60) + 0.5 * math.exp(-step / 400)
        lines.append({"step": step, "loss": now + dice.gauss(0, 0.03), "lr": 3e-3,
                      "grad_norm": 0.6 + dice.expovariate(3), "tokens": 4096 * step,
                      "tokens_per_second": speed * dice.uniform(0.93, 1.03),
                      "seconds": 4096 * step / speed})
        if step % 100 == 0:
            lines.append({"step": step, "split": "valid", "loss": now + 0.02,
                          "metric": "nats per token", "value": now + 0.02})
    if last == steps:
        lines.append({"step": last, "done": True, "seconds": 4096 * last / speed,
                      "peak_bytes": 734003200 + int(1e4 * loss)})
    return "".join(json.dumps(line) + "\n" for line in lines)


def position(loss, rise, dice):
    buckets = []
    for begin in range(0, 4 * LENGTH, LENGTH // 4):
        end = begin + LENGTH // 4
        beyond = max(0.0, (begin + end) / 2 / LENGTH - 1)
        now = loss + 0.25 * math.exp(-begin / 60) + rise * beyond / 2.5 + dice.gauss(0, 0.004)
        bucket = {"begin": begin, "end": end, "loss": now, "error": 0.02}
        if begin >= LENGTH // 2:
            again = loss - 0.005 + dice.gauss(0, 0.004)
            bucket |= {"restart": again, "restart_error": 0.02, "difference": now - again,
                       "difference_error": 0.008}
        buckets.append(bucket)
    return {"split": "test", "trained": LENGTH, "length": 4 * LENGTH, "windows": 64,
            "step": 1000, "buckets": buckets, "spans": spans(buckets)}


def spans(buckets):
    """Half a training length to one, one to two, two to four."""
    made = []
    for end in (LENGTH, 2 * LENGTH, 4 * LENGTH):
        inside = [b for b in buckets if end // 2 <= b["begin"] and b["end"] <= end]
        mean = {key: sum(b[key] for b in inside) / len(inside) for key in ("loss", "restart")}
        made.append({"begin": end // 2, "end": end, **mean})
    return made


def stream(loss, rise, speed):
    points, begin = [], 0
    for end in (256 * 2 ** i for i in range(11)):
        now = loss + rise * math.log2(end / LENGTH) / 2
        points.append({"begin": begin, "end": end, "loss": now, "state_bytes": 49152,
                       "tokens_per_second": 1.4 * speed, "resident_bytes": 3e8})
        begin = end
    return {"split": "test", "trained": LENGTH, "to": begin, "chunk": 1024, "points": points}


def card(name, number, dice):
    words = "and the groove goes on with bass and drums until the morning comes again".split()
    text = " ".join(dice.choice(words) for _ in range(60))
    return {"prompt": f"Take {number}: the bass begins, ", "text": text, "seed": number,
            "temperature": 0.9, "top_p": 0.95, "run": name}


def groove(number, drift, dice, bars=48):
    """Bass, chords and drums; after the training length notes go astray, by `drift`."""
    chords = [(0, 4, 7), (5, 9, 12), (7, 11, 14), (-3, 0, 4)]
    bass, comp, drums = [], [], []
    for bar in range(bars):
        wild = drift * max(0, bar - 16) / bars
        astray = lambda: dice.randrange(-5, 6) if dice.random() < wild else 0
        chord = chords[(bar + number) % 4]
        for eighth in range(8):
            at = 1920 * bar + 240 * eighth
            if dice.random() < 0.8:
                bass.append([at, at + 210, 36 + chord[0] + astray(), 90])
            drums.append([at, at + 60, 42, 60])
            if eighth in (0, 5):
                drums.append([at, at + 60, 36, 110])
            if eighth in (2, 6) and dice.random() > wild:
                drums.append([at, at + 60, 38, 100])
            if eighth in (0, 3, 6):
                comp += [[at, at + 420, 60 + p + astray(), 70] for p in chord]
    tracks = [("bass", 0, 33, bass), ("chords", 1, 4, comp), ("drums", 9, 0, drums)]
    return {"ticks_per_beat": 480, "us_per_beat": 576923, "end": 1920 * bars,
            "prompt_end": 1920 * 6, "trained_end": 1920 * 16,
            "tracks": [{"name": name, "channel": channel, "program": program, "notes": notes}
                       for name, channel, program, notes in tracks]}


def continuations(rise, dice):
    def likeness(first, fall):
        return {"mean": [first - fall * i + dice.gauss(0, 0.005) for i in range(4)],
                "error": [0.02] * 4}

    def part():
        return {"written": likeness(0.75, max(0, rise) / 3), "truth": likeness(0.82, 0.005),
                "shuffled": likeness(0.42, 0)}

    return {"split": "test", "trained": LENGTH, "count": 50, "tokens_per_second": 5200,
            "time_pitch": part(), "onset_duration": part(), "onset_drum": part()}


def make(folder, steps=1000, called="{}"):
    """Five runs in `folder`, of which the last has not come to its end."""
    for number, (name, (encoding, loss, rise, speed)) in enumerate(ENCODINGS.items()):
        dice = random.Random(number)
        run = Path(folder) / called.format(name)
        done = name != "lrpe"
        write(run / "recipe.toml", recipe(encoding, steps))
        write(run / "run.json", {"lagwise": "0.1.0", "parameters": 183552 + 64 * number})
        lines = metrics(loss, speed, steps, steps if done else 620, dice)
        write(run / "metrics.jsonl", lines if done else lines[:-25])
        if done:
            write(run / "eval/position-test.json", position(loss, rise, dice))
            write(run / "eval/stream-test.json", stream(loss, rise, speed))
            write(run / "eval/metric-test.json", {"split": "test", "metric": "nats per token",
                                                  "value": loss, "loss": loss, "step": steps})
            write(run / "eval/continuations-test.json", continuations(rise, dice))
            for sample in (1, 2):
                write(run / f"samples/take-{sample}.json", card(name, sample, dice))
                music = {"prompt": f"song {sample}", "text": "", "seed": sample,
                         "music": groove(sample, 9 * max(0, rise), dice)}
                write(run / f"samples/song-{sample}.json", music)


if __name__ == "__main__":
    import sys
    make(sys.argv[1])
