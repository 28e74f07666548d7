#!/usr/bin/python3
"""network_test.py PROGRAM: two hosts, a slow and lossy line between them, and a line that is
cut. The hosts are network namespaces of this machine joined by a veth pair, with netem
between: 20 ms, 1 % loss, 100 Mbit/s. Needs root, ip and tc; ends with 77 without them."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
STEPS = 12
TIMEOUT = 6
RECIPE = f"""
[model]
layers = 1
dim = 32
heads = 2
[data]
task = "language:valid=0.2,test=0.2"
path = "corpus"
length = 64
[train]
steps = {STEPS}
batch = 8
leaves = 2
warmup = 5
checkpoint_every = 2
eval_every = 0
eval_examples = 8
log_every = 1
threads = 1
"""
NAMES = [f"lagwise-{os.getpid()}-{i}" for i in range(2)]
LINES = [f"lw{os.getpid() % 100000}{i}" for i in "ab"]
HOSTS = ["10.213.77.1", "10.213.77.2"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def within(name, words):
    return ["ip", "netns", "exec", name, *words]


def set_up():
    for name in NAMES:
        ip("netns", "add", name)
    ip("link", "add", LINES[0], "netns", NAMES[0], "type", "veth", "peer", "name", LINES[1],
       "netns", NAMES[1])
    for name, line, host in zip(NAMES, LINES, HOSTS):
        ip("-n", name, "addr", "add", f"{host}/24", "dev", line)
        for link in ("lo", line):
            ip("-n", name, "link", "set", link, "up")


def make_slow():
    """Whether the line could be made slow and lossy: it takes netem in the kernel."""
    for name, line in zip(NAMES, LINES):
        added = subprocess.run(
            within(name, ["tc", "qdisc", "add", "dev", line, "root", "netem", "delay", "20ms",
                          "loss", "1%", "rate", "100mbit"]), capture_output=True, text=True)
        if added.returncode != 0:
            print("not tried: a slow line; this kernel has no netem:", added.stderr.strip())
            return False
    return True


def tear_down():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def start(out, host):
    # Each host has a folder of its own: nothing is shared but the line.
    words = [PROGRAM, "launch", "-n", "1", "--hosts", ",".join(HOSTS), "--host", str(host),
             "--timeout", str(TIMEOUT), "train", "small.toml", "--out", f"{out}-{host}"]
    return subprocess.Popen(within(NAMES[host], words), stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def tensors(out):
    path = os.path.join(out, "checkpoints", f"{STEPS:08}", "model.safetensors")
    return open(path, "rb").read()


def steps_done(out):
    try:
        with open(os.path.join(out, "metrics.jsonl")) as lines:
            return sum('"lr"' in line for line in lines)
    except FileNotFoundError:
        return 0


def slowest_step(out):
    """Seconds: slow is not lost, so a job waits for ten steps at least."""
    seconds = [0]
    for line in open(os.path.join(out, "metrics.jsonl")):
        seconds.append(json.loads(line).get("seconds", seconds[-1]))
    return max(after - before for before, after in zip(seconds, seconds[1:]))


def finish(jobs, code):
    for job in jobs:
        said = job.communicate()[1].strip()
        assert job.returncode == code, (job.returncode, said)
        yield said


def two_hosts(line):
    begin = time.monotonic()
    list(finish([start("slow", 0), start("slow", 1)], 0))
    assert tensors("slow-0") == tensors("alone")
    about = json.load(open("slow-0/run.json"))
    assert about["ranks"] == 2, about
    print(f"{line}: the same bits, {time.monotonic() - begin:.1f} s")


def cut_line():
    jobs = [start("cut", 0), start("cut", 1)]
    while steps_done("cut-0") < 4:
        assert jobs[0].poll() is None, jobs[0].communicate()
        time.sleep(0.01)
    ip("-n", NAMES[0], "link", "set", LINES[0], "down")
    at = time.monotonic()
    said = list(finish(jobs, 5))
    took = time.monotonic() - at
    assert took < max(TIMEOUT, 10 * slowest_step("cut-0")) + 5, took
    for rank, line in enumerate(said):
        assert f"lagwise: rank {1 - rank} (host " in line, line
        assert "was lost at step" in line and "newest checkpoint" in line, line
        assert line.count("\n") == 0, line
    ip("-n", NAMES[0], "link", "set", LINES[0], "up")
    list(finish([start("cut", 0), start("cut", 1)], 0))
    assert tensors("cut-0") == tensors("alone")
    print(f"a line that is cut: code 5 after {took:.1f} s; it goes on to the same bits")


def wrong_port():
    words = [PROGRAM, "launch", "-n", "1", "--hosts", ",".join(HOSTS), "--host", "1", "--port",
             "29999", "--timeout", "2", "train", "small.toml", "--out", "wrong"]
    done = subprocess.run(within(NAMES[1], words), capture_output=True, text=True)
    assert done.returncode == 5 and f"nobody answered at {HOSTS[0]}:29999" in done.stderr, done
    print("a wrong port: code 5")


def two_jobs_on_a_port():
    first = start("one", 0)
    time.sleep(1)
    words = [PROGRAM, "launch", "-n", "1", "--hosts", ",".join(HOSTS), "--host", "0",
             "--timeout", "2", "train", "small.toml", "--out", "two"]
    done = subprocess.run(within(NAMES[0], words), capture_output=True, text=True)
    assert done.returncode == 1 and "cannot listen on port 29500" in done.stderr, done
    first.send_signal(signal.SIGKILL)
    first.wait()
    print("two jobs on one port: the second says so")


if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
    print("skipped: network namespaces need root, ip and tc (iproute2)")
    sys.exit(77)
try:
    try:
        set_up()
    except subprocess.CalledProcessError as error:
        print("skipped: cannot make network namespaces:", error.stderr.decode().strip())
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        dice = random.Random(0)
        with open("corpus", "w") as corpus:
            corpus.write("".join(dice.choices("abcdefgh ", k=20000)))
        with open("small.toml", "w") as recipe:
            recipe.write(RECIPE)
        subprocess.run([PROGRAM, "train", "small.toml", "--out", "alone"], check=True,
                       stdout=subprocess.DEVNULL)
        two_hosts("20 ms, 1 % loss, 100 Mbit/s" if make_slow() else "a plain line")
        cut_line()
        wrong_port()
        two_jobs_on_a_port()
finally:
    tear_down()
