#!/usr/bin/python3
"""network_test.py PROGRAM: two hosts, a slow and lossy line between them, and a line that is
cut. The hosts are network namespaces of this machine, the line is bad_line.py: 20 ms each way,
1 % loss, 100 Mbit/s. Needs root, ip and /dev/net/tun; ends with 77 without them."""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bad_line import TUN, BadLine, flood, ip, round_trips, socket_in
from run_bits import SmallRun, finish, run, start, steps_done

PROGRAM = os.path.abspath(sys.argv[1])
TIMEOUT = 4  # seconds of silence
NAMES = [f"lagwise-{os.getpid()}-{i}" for i in range(2)]
HOSTS = ["10.213.77.1", "10.213.77.2"]


def set_up():
    for name in NAMES:
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
    return BadLine(NAMES, HOSTS)


def tear_down():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def on_host(host, small, out, *more, timeout=TIMEOUT):
    """What is to be run on a host. Each has a folder of its own: nothing is shared but the
    line."""
    words = small.launch(1, f"{out}-{host}", "--hosts", ",".join(HOSTS), "--host", str(host),
                         "--timeout", str(timeout), *more)
    return ["ip", "netns", "exec", NAMES[host], *words]


def start_both(small, out):
    return [start(on_host(host, small, out)) for host in range(2)]


def the_line_is_bad(line):
    """Measured with packets, before anything is believed that was shown by it."""
    ends = [socket_in(name, host) for name, host in zip(NAMES, HOSTS)]
    trips = round_trips(ends, 20)
    assert min(trips) >= 0.040, trips
    before = line.lost
    sent = 2000
    came, rate = flood(ends, sent, 1400)
    assert sent - came == line.lost - before, (sent, came, line.lost - before)
    assert 0.005 < (sent - came) / sent < 0.02, came
    assert rate < 105e6, rate
    for end in ends:
        end.close()
    print(f"the line: {1000 * statistics.median(trips):.1f} ms there and back, "
          f"{sent - came} of {sent} packets lost, {rate / 1e6:.0f} Mbit/s")


def two_hosts(line, small):
    carried, lost = line.carried, line.lost
    begin = time.monotonic()
    for job in start_both(small, "slow"):
        finish(job)
    seconds = time.monotonic() - begin
    assert small.bits("slow-0") == small.bits("alone")
    about = json.load(open("slow-0/run.json"))
    assert about["ranks"] == 2, about
    carried, lost = line.carried - carried, line.lost - lost
    assert lost > 0 and carried > small.steps, (carried, lost)
    print(f"two hosts: the same bits, {seconds:.1f} s, {carried} packets, {lost} lost")


def slowest_step(out):
    """Seconds: slow is not lost, so a job waits for ten steps at least."""
    with open(os.path.join(out, "metrics.jsonl")) as lines:
        times = [0] + [json.loads(line)["seconds"] for line in lines if '"lr"' in line]
    return max(after - before for before, after in zip(times, times[1:]))


def cut_line(line, small):
    jobs = start_both(small, "cut")
    while steps_done("cut-0") < 3:
        assert jobs[0].poll() is None, jobs[0].communicate()
        time.sleep(0.01)
    line.cut()
    at = time.monotonic()
    said = [finish(job, 5) for job in jobs]
    took = time.monotonic() - at
    assert took < max(TIMEOUT, 10 * slowest_step("cut-0")) + 5, took
    for rank, words in enumerate(said):
        expected = rf"lagwise: rank {1 - rank} \(host \S+\) was lost at step \d+ \(no word for " \
                   r"\d+ s\); newest checkpoint \S+; the same command goes on"
        assert re.fullmatch(expected, words), words
    assert re.search(r"newest checkpoint cut-0/checkpoints/\d{8};", said[0]), said
    print(f"a line that is cut: code 5 after {took:.1f} s, {said[0]}")
    line.mend()
    for job in start_both(small, "cut"):
        finish(job)
    assert small.bits("cut-0") == small.bits("alone")
    print("  it goes on to the same bits")


def wrong_port(small):
    said = run(on_host(1, small, "wrong", "--port", "29999", timeout=2), 5).stderr
    assert f"nobody answered at {HOSTS[0]}:29999" in said, said
    print("a wrong port: code 5")


def two_jobs_on_a_port(small):
    first = start(on_host(0, small, "one"))
    time.sleep(1)
    said = run(on_host(0, small, "two", timeout=2), 1).stderr
    assert "cannot listen on port 29500" in said, said
    first.kill()
    first.communicate()
    print("two jobs on one port: the second says so")


if os.geteuid() != 0 or not shutil.which("ip") or not os.path.exists(TUN):
    print(f"skipped: network namespaces need root, ip (iproute2) and {TUN}")
    sys.exit(77)
try:
    try:
        line = set_up()
    except (OSError, subprocess.CalledProcessError) as error:
        print("skipped: cannot join network namespaces:", getattr(error, "stderr", error))
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        small = SmallRun(PROGRAM, steps=8, checkpoint_every=2)
        run(small.train("alone"))
        the_line_is_bad(line)
        two_hosts(line, small)
        cut_line(line, small)
        wrong_port(small)
        two_jobs_on_a_port(small)
finally:
    tear_down()
