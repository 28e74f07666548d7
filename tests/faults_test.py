#!/usr/bin/python3
"""faults_test.py PROGRAM [KILLS]: what becomes of training where the world fails. Killed in
the middle of KILLS saves (50 unless given), no checkpoint is unreadable and the run ends with
the bits of one that was left alone; data that is cut short, replaced or written to, a clock
that jumps, signals in a storm, and memory that does not suffice are one line and a documented code, or nothing at
all, and never a wrong result."""

import glob
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from run_bits import SmallRun, run, start, steps_done

PROGRAM = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 50


def fnv1a(data):
    """The hash that state.json has of each file."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def whole_checkpoints(out):
    """How many checkpoints stand, every one of which must be whole to the last bit."""
    names = [name for name in os.listdir(f"{out}/checkpoints") if not name.endswith(".tmp")]
    for name in names:
        folder = f"{out}/checkpoints/{name}"
        text = open(f"{folder}/state.json", "rb").read()
        state = json.loads(text)
        assert state["step"] == int(name), folder
        assert fnv1a(text[:text.rindex(b',\n "fnv1a"')]) == state["fnv1a"], folder
        assert len(state["files"]) == 2, folder
        for file, expected in state["files"].items():
            assert fnv1a(open(f"{folder}/{file}", "rb").read()) == expected, (folder, file)
    return len(names)


def kill_in_a_save(small, out, dice):
    """Lets a run save some checkpoints, then kills it in a save. None: it came to its end;
    else whether it left something unfinished."""
    job = start(small.train(out))
    saves = dice.randint(1, 4)
    unfinished = set()
    while len(unfinished) < saves and job.poll() is None:
        unfinished.update(glob.glob(f"{out}/checkpoints/*.tmp"))
    time.sleep(dice.uniform(0, 0.004))
    job.kill()
    said = job.communicate()[1]
    assert "damaged" not in said and job.returncode in (0, -signal.SIGKILL), said
    if job.returncode == 0:
        return None
    return bool(glob.glob(f"{out}/checkpoints/*.tmp"))


def kills(small):
    dice = random.Random(3)
    killed = cut = stood = runs = 0
    while killed < KILLS:
        out = f"killed-{runs}"
        runs += 1
        while killed < KILLS:
            left = kill_in_a_save(small, out, dice)
            if left is None:
                break
            killed, cut = killed + 1, cut + left
            stood += whole_checkpoints(out)
        run(small.train(out))
        assert small.bits(out) == small.bits("alone"), out
        shutil.rmtree(out)
    assert cut * 10 > killed, "the kills met no saves"
    print(f"{killed} kills in {runs} runs, {cut} with a save half done: {stood} checkpoints "
          "stood, all whole; the same bits")


def one_line(said, *parts):
    lines = [line for line in said.splitlines() if line.startswith("lagwise: ")]
    assert len(lines) == 1 and said.count("\n") <= 1, said
    for part in parts:
        assert part in lines[0], said


def train_while(small, out, change):
    """Trains, and does `change` after some steps. The code and what was said."""
    job = start(small.train(out))
    while steps_done(out) < 10 and job.poll() is None:
        time.sleep(0.002)
    change()
    said = job.communicate()[1]
    return job.returncode, said


def cut_short(small):
    """Pages that are not there any more are the end, said in one line."""
    whole = open("corpus", "rb").read()
    code, said = train_while(small, "short", lambda: os.truncate("corpus", 10))
    assert code == 3, (code, said)
    one_line(said, "corpus: expected the file as it was when it was opened")
    whole_checkpoints("short")
    run(["cp", "whole", "corpus"])
    run(small.train("short"))
    assert small.bits("short") == small.bits("alone")
    assert open("corpus", "rb").read() == whole
    print("a text cut short while it is trained on: one line, and then the same bits")


def replaced(small):
    """Another file under the name does not matter to a run that has the first one open; a run
    that goes on with other data is refused. What is written into the file is noticed."""
    def replace():
        with open("other", "wb") as other:
            other.write(open("whole", "rb").read()[::-1])
        os.replace("other", "corpus")

    code, said = train_while(small, "replaced", replace)
    assert (code, said) == (0, ""), (code, said)
    assert small.bits("replaced") == small.bits("alone")
    run(["cp", "whole", "corpus"])
    stopped = start(small.train("stopped"))
    while steps_done("stopped") < 5 and stopped.poll() is None:
        time.sleep(0.002)
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait() == 130, stopped.communicate()
    replace()
    one_line(run(small.train("stopped"), code=3).stderr, "the data the run began with")
    run(["cp", "whole", "corpus"])

    def write():
        with open("corpus", "r+b") as corpus:
            corpus.write(b"zzzz")

    job = subprocess.Popen(small.train("written"), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    while steps_done("written") < 5 and job.poll() is None:
        time.sleep(0.002)
    write()
    said = job.communicate()[0]
    assert job.returncode == 0, said
    assert said.count("corpus was written to while it is trained on") == 1, said
    run(["cp", "whole", "corpus"])
    print("data replaced or written to meanwhile: the same bits, or a line that says so")


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static long jump(void) {  /* a day on, a year back, a day on, ... */
  static unsigned calls;
  return ++calls % 2 ? 86400L : -365 * 86400L;
}
int clock_gettime(clockid_t clock, struct timespec* to) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int code = real(clock, to);
  if (clock == CLOCK_REALTIME) to->tv_sec += jump();
  return code;
}
int gettimeofday(struct timeval* to, void* zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  to->tv_sec = now.tv_sec, to->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}
"""


def clock_jumps(small):
    """Durations are measured with a clock that does not jump, and nothing else is read."""
    with open("clock.c", "w") as source:
        source.write(CLOCK)
    run(["gcc", "-shared", "-fPIC", "-o", "clock.so", "clock.c", "-ldl"])
    env = {**os.environ, "LD_PRELOAD": os.path.abspath("clock.so")}
    run(small.train("jumps"), env=env)
    run(small.launch(2, "jumps-2"), env=env)
    for out in ("jumps", "jumps-2"):
        assert small.bits(out) == small.bits("alone"), out
        for line in map(json.loads, open(f"{out}/metrics.jsonl")):
            assert 0 < line.get("seconds", 1) < 3600, line
            assert line.get("tokens_per_second", 1) > 0, line
    print("a clock that jumps by days and years: the same bits, sane times")


HANDLER = r"""
#include <signal.h>
static void nothing(int which) { (void)which; }
__attribute__((constructor)) static void listen(void) {
  struct sigaction action = {0};
  action.sa_handler = nothing, action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, 0);
}
"""


def signals(small):
    """A handler that interrupts a product may write over the heap (terminal/signal_thread.h),
    so whoever computes receives no signal. A few hundred of them used to suffice."""
    with open("handler.c", "w") as source:
        source.write(HANDLER)
    run(["gcc", "-shared", "-fPIC", "-o", "handler.so", "handler.c"])
    job = start(small.train("signals"),
                env={**os.environ, "LD_PRELOAD": os.path.abspath("handler.so")})
    while steps_done("signals") < 1 and job.poll() is None:
        time.sleep(0.002)
    sent = 0
    while job.poll() is None:
        job.send_signal(signal.SIGUSR1)
        sent += 1
        time.sleep(0.0002)
    assert job.returncode == 0, (job.returncode, job.communicate())
    assert sent > 100, sent
    assert small.bits("signals") == small.bits("alone")
    print(f"{sent} signals while it computes: the same bits")


def no_memory(small):
    """Where memory ends it is one line, and what was saved stands."""
    def within(megabytes):
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2)

    def ends_well(megabytes):
        return subprocess.run(small.train("fits"), capture_output=True,
                              preexec_fn=within(megabytes)).returncode == 0

    # How much the program takes to start is a matter of torch and of the number of cores.
    least = next(size for size in range(512, 65536, 256) if ends_well(size))
    assert small.bits("fits") == small.bits("alone")
    # 12 million parameters, with gradients and moments, where little is left.
    wide = ["--set", "model.dim=1024", "--set", "model.layers=1", "--set", "train.batch=64"]
    done = subprocess.run([*small.train("wide"), *wide], capture_output=True, text=True,
                          preexec_fn=within(least + 64))
    assert done.returncode in (1, 2), (done.returncode, done.stderr)
    one_line(done.stderr, "memory")
    assert not glob.glob("wide/checkpoints/*"), "nothing was trained"
    print(f"{least + 64} MB of memory for too wide a model: {done.stderr.strip()}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        small = SmallRun(PROGRAM, steps=30, checkpoint_every=1)
        os.environ["OMP_NUM_THREADS"] = "2"
        shutil.copy("corpus", "whole")
        run(small.train("alone"))
        for check in (cut_short, replaced, clock_jumps, signals, no_memory, kills):
            check(small)
        os.chdir("/")


if __name__ == "__main__":
    main()
