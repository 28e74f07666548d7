#!/usr/bin/python3
"""valgrind_test.py PROGRAM FOLDER: the example in C, with models of every kind of weights and
the library of the runtime in FOLDER, under Valgrind: no invalid read, no use of what was never
written, no leak. A file cut short and one that lies are refused without any of them, too."""

import os
import subprocess
import sys
import tempfile

from run_bits import SmallRun, run

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM, FOLDER = map(os.path.abspath, sys.argv[1:3])
WATCHED = ["valgrind", "--quiet", "--leak-check=full", "--errors-for-leak-kinds=all",
           "--error-exitcode=99"]


def watched(code, *words):
    """Runs the example, which must end with `code` and not with that of an error."""
    done = subprocess.run([*WATCHED, "./play_on", *words], capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": FOLDER})
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        small = SmallRun(PROGRAM, steps=2, checkpoint_every=2)
        run(small.train("run"))
        run(["gcc", f"-I{ROOT}", f"{ROOT}/examples/play_on.c", "-o", "play_on", f"-L{FOLDER}",
             "-llagwise_runtime"])
        for weights in ("f32", "bf16", "int8"):
            run([PROGRAM, "export", "run", "--out", weights, "--weights", weights])
            assert "seed 2: " in watched(0, weights, "12", "7", "30"), weights
            print(f"{weights}: clean")
        whole = open("f32", "rb").read()
        for name, contents in (("cut", whole[:len(whole) // 2]), ("empty", b""),
                               ("lies", whole.replace(b'"heads', b'"hands', 1))):
            with open(name, "wb") as file:
                file.write(contents)
            watched(3, name, "12")
        watched(3, "none", "12")
        watched(2, "f32", "100000")
        print("files that are none: refused, clean")
        os.chdir("/")


if __name__ == "__main__":
    main()
