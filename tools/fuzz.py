#!/usr/bin/python3
"""Runs the fuzz targets of build/fuzz, and keeps an account of what was run.

  tools/fuzz.py                      every target for a minute
  tools/fuzz.py --seconds 3600 smf   one of them for an hour
  tools/fuzz.py --table              what was run so far: seconds, executions, faults
  tools/fuzz.py --keep               takes account and inputs over into the repository

A fault is an input that crashes a target, trips a sanitizer, takes more than 10 seconds or
more than 2 GB. It is kept in build/fuzz/faults and its report in build/fuzz/logs; the other
targets go on. Interesting inputs are kept in build/fuzz/found, from which the next run
starts, beside the seeds in fuzz/corpus. An hour for every target is more than one sitting, and
build/ does not last: --keep appends the account to fuzz/account.jsonl and packs, of all inputs
but the seeds, as many as reach what all of them reach into fuzz/found/TARGET.tar.xz. Whoever
builds the targets unpacks them into build/fuzz/kept, so the next sitting goes on from there.

The account also says how many edges (jumps between blocks of code) a target's inputs reach and
how many of them the last run added: a target that adds none for long has little left to find.
"""

import argparse
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "fuzz"
ACCOUNT, KEPT = BUILD / "account.jsonl", ROOT / "fuzz" / "account.jsonl"
EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
EDGES = re.compile(r"(?:INITED|DONE)\s+cov: (\d+)")  # when all known inputs are read; at the end


def targets():
    return sorted(path.stem for path in (ROOT / "fuzz").glob("*.cpp"))


def inputs_of(name):
    """The folders a target starts from; it writes what it finds into the first."""
    folders = [BUILD / "found" / name, ROOT / "fuzz" / "corpus" / name, BUILD / "kept" / name]
    return [folder for folder in folders if folder.is_dir()]


def is_fault(name, since):
    """Whether what ended a target does so again: on a busy machine an input may have taken
    long only because nothing was computed."""
    kept = [path for path in (BUILD / "faults").glob(f"{name}-*") if path.stat().st_mtime >= since]
    found = False
    for path in kept:
        again = subprocess.run([BUILD / f"fuzz_{name}", "-timeout=10", path],
                               capture_output=True)
        if again.returncode == 0 and path.name.startswith(f"{name}-timeout"):
            path.unlink()
        else:
            found = True
    return found or not kept


def sitting(name, seconds, log):
    """One call of a target: how it ended, the seconds it computed, what it executed, and the
    edges reached when it began and when it ended."""
    with log.open("w") as out:
        process = subprocess.Popen(
            [BUILD / f"fuzz_{name}", f"-max_total_time={seconds}", "-print_final_stats=1",
             "-timeout=10", f"-artifact_prefix={BUILD}/faults/{name}-",
             *inputs_of(name)],
            stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    executed = EXECUTIONS.findall(text)
    return (process.returncode, usage.ru_utime + usage.ru_stime,
            int(executed[-1]) if executed else 0, [int(x) for x in EDGES.findall(text)])


def run(name, seconds):
    """One target; its line of the account. Seconds are of computing, not of the clock: beside
    other work a target gets less of the machine, and is called again until it has had its share."""
    for folder in ("found/" + name, "faults", "logs"):
        (BUILD / folder).mkdir(parents=True, exist_ok=True)
    log = BUILD / "logs" / f"{name}.log"
    computed, executions, faults, edges = 0.0, 0, 0, []
    while computed < 0.98 * seconds and not faults:
        begun = time.time()
        code, spent, executed, reached = sitting(name, max(1, round(seconds - computed)), log)
        computed, executions, edges = computed + spent, executions + executed, edges + reached
        faults = int(code != 0 and is_fault(name, begun))
    line = {"target": name, "seconds": round(computed), "executions": executions,
            "faults": faults}
    if edges:
        line |= {"edges": edges[-1], "new_edges": edges[-1] - edges[0]}
    with ACCOUNT.open("a") as account:
        account.write(json.dumps(line) + "\n")
    print(f"{name}: {executions} executions in {line['seconds']} s"
          + (f", A FAULT: see {log}" if faults else ""), flush=True)
    return line


def keep_inputs(name):
    """Packs inputs of all sittings that together reach what all inputs reach. The archive of
    the same inputs has the same bytes."""
    seeds = {hashlib.sha1(path.read_bytes()).hexdigest()
             for path in (ROOT / "fuzz" / "corpus" / name).iterdir()}
    archive = ROOT / "fuzz" / "found" / f"{name}.tar.xz"
    archive.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as few:
        subprocess.run([BUILD / f"fuzz_{name}", "-merge=1", few, *inputs_of(name)],
                       check=True, capture_output=True)
        with tarfile.open(archive, "w:xz") as out:
            for path in sorted(Path(few).iterdir()):
                if path.name in seeds:
                    continue
                entry = tarfile.TarInfo(path.name)
                entry.size = path.stat().st_size
                out.addfile(entry, io.BytesIO(path.read_bytes()))


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(lines, names):
    """The account as a table, one row for each target: what all sittings came to, and the
    edges reached and added in the last one that counted them."""
    rows = []
    for name in names:
        own = [x for x in lines if x["target"] == name]
        last = [x for x in own if "edges" in x][-1:]
        rows.append([name] + [sum(x[key] for x in own)
                              for key in ("seconds", "executions", "faults")]
                    + [last[0][key] if last else "" for key in ("edges", "new_edges")])
    rows.append(["all"] + [sum(row[i] for row in rows) for i in (1, 2, 3)] + ["", ""])
    text = ["| target | seconds | executions | faults | edges | of these new |",
            "|---|---|---|---|---|---|"]
    return "\n".join(text + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("targets", nargs="*", help="of fuzz/; all if none is named")
    parser.add_argument("--seconds", type=int, default=60, help="of computing, for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--table", action="store_true", help="only print the account")
    parser.add_argument("--keep", action="store_true",
                        help="only keep the account and the inputs, in fuzz/")
    options = parser.parse_args()
    unknown = set(options.targets) - set(targets())
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are "
                     + ", ".join(targets()))
    if options.table:
        print(table(lines_of(KEPT) + lines_of(ACCOUNT), targets()))
        return 0
    if options.keep:
        with ThreadPoolExecutor() as pool:
            list(pool.map(keep_inputs, {line["target"] for line in lines_of(ACCOUNT)}))
        with KEPT.open("a") as kept:
            kept.writelines(json.dumps(line) + "\n" for line in lines_of(ACCOUNT))
        ACCOUNT.unlink(missing_ok=True)
        return 0
    with ThreadPoolExecutor(options.jobs) as pool:
        names = options.targets or targets()
        lines = list(pool.map(lambda name: run(name, options.seconds), names))
    print(table(lines, names))
    return 1 if any(line["faults"] for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
