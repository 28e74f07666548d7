#!/usr/bin/python3
"""Every table of docs/results.md stands under the commands that make it, and lagwise can parse them.

    tools/check_results.py PROGRAM [PAGE]

A section begins with a heading. Its commands are its indented lines; a table without any above
it, and a command that `lagwise ... --parse-only` refuses, is a finding. The shell runs the
commands, so loops and comments are what they are; it has nothing but a `lagwise` and a
`tools/train_recipes` that parse, and a `make` that looks for its target. Recipes and keys that a command names must be there.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tree

PAGE = Path("docs/results.md")
STAND_IN = """#!/bin/sh
'{program}' "$@" --parse-only > /dev/null || echo "refused: lagwise $*" >&2
for word in "$@"; do case $word in --recipe|recipes/*) echo "words: $*" ;; esac; done
"""
TRAIN_RECIPES = """#!/bin/sh
'{tools}/train_recipes' "$@" --program '{program}' --parse-only > /dev/null
"""
MAKE = """#!/bin/sh
grep -q "^$1:" '{root}/Makefile' || echo "refused: make $1" >&2
"""


def sections(text):
    """(heading, its lines) of every section."""
    found = [("the top", [])]
    for line in text.splitlines():
        if line.startswith("#"):
            found.append((line.lstrip("# "), []))
        else:
            found[-1][1].append(line)
    return found


def is_command(line):
    return line.startswith("    ") and line.strip() != ""


def recipe_faults(words, root, keys):
    """Of one command: recipes that are not there, keys that no recipe has."""
    for name in re.findall(r"recipes/[\w./-]+\.toml", words):
        if not (root / name).exists():
            yield f"no recipe {name}"
    for key in re.findall(r"--set ([\w.]+)=", words):
        if key not in keys:
            yield f"no key {key}"


def run(commands, program, root, keys):
    """What is wrong with these lines."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("lagwise", STAND_IN), ("make", MAKE),
                           ("train_recipes", TRAIN_RECIPES)):
            path = Path(folder) / name
            path.write_text(text.format(program=program, root=root,
                                        tools=tree.ROOT / "tools"))
            path.chmod(0o755)
        env = dict(os.environ, PATH=f"{folder}:/usr/bin:/bin")
        done = subprocess.run(["bash", "-c", "\n".join(commands).replace("tools/", "")], cwd=root, env=env,
                              capture_output=True, text=True, check=False)
    wrong = [l for l in done.stderr.splitlines() if l.strip()]
    if done.returncode != 0 and not wrong:
        wrong = [f"exit code {done.returncode}"]
    for words in {l for l in done.stdout.splitlines() if l.startswith("words: ")}:
        wrong += recipe_faults(words, root, keys)
    return wrong


def check(root, program, page=PAGE):
    if not (root / page).exists():
        return []
    listed = subprocess.run([program, "train", "--keys"], capture_output=True, text=True,
                            check=True).stdout
    keys = set(re.findall(r"\b(?:model|data|train)\.\w+", listed))
    found = []
    for heading, lines in sections((root / page).read_text()):
        commands = [l[4:] for l in lines if is_command(l)]
        tables = [i for i, l in enumerate(lines) if re.match(r"\|[-|: ]+\|$", l)]
        first = next((i for i, l in enumerate(lines) if is_command(l)), len(lines))
        if tables and tables[0] < first:
            found.append(f"{page}: {heading}: a table without a command above it")
        if any("..." in c.split(" #")[0] for c in commands):
            found.append(f"{page}: {heading}: a command that is not written out")
            continue
        if commands:
            found += [f"{page}: {heading}: {w}" for w in run(commands, program, root, keys)]
    return found


def cases():
    table = "\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    page = str(PAGE)
    return [
        ({page: "## One\n\n    lagwise bench linear\n" + table}, None),
        ({page: "## One\n" + table}, "without a command"),
        ({page: "## One\n\n    lagwise bench linear\n\n## Two\n" + table}, "Two: a table without"),
        ({page: "## One\n\n    lagwise bench linaer\n" + table}, "linaer"),
        ({page: "## One\n\n    lagwise compare --encoding none\n" + table}, "--encoding"),
        ({page: "## One\n\n    lagwise compare ...the same\n" + table}, "not written out"),
        ({page: "## One\n\n    for n in 1 2; do\n      lagwise eval run-$n --lengths 1x; done\n"},
         None),
        ({page: "## One\n\n    tools/train_recipes DATA out/recipes --sett a=b\n" + table}, "--sett"),
        ({page: "## One\n\n    lagwise train recipes/none.toml\n"}, "no recipe recipes/none.toml"),
        ({page: "## One\n\n    lagwise train recipes/a.toml --set train.stesp=3\n",
          "recipes/a.toml": ""}, "no key train.stesp"),
    ]


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if w != "--self-test"]
    if not words:
        sys.exit(__doc__)
    lagwise = str(Path(words[0]).resolve())
    if "--self-test" in sys.argv:
        sys.exit(tree.expect_failures(lambda root: check(root, lagwise), cases()))
    sys.exit(tree.report("results", check(tree.ROOT, lagwise, Path(*words[1:2] or [PAGE]))))
