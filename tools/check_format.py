#!/usr/bin/python3
"""Every source is as clang-format leaves it. `make format` repairs; --list lists."""

import subprocess
import sys

import tree

FORMAT = "clang-format-14"


def check(root):
    sources = [str(p) for p in tree.files(root, tree.SOURCES)]
    if not sources:
        return []
    style = f"--style=file:{tree.ROOT / '.clang-format'}"
    run = subprocess.run([FORMAT, style, "--dry-run", "-Werror", *sources], cwd=root,
                         capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return []
    lines = [l for l in run.stderr.splitlines() if "error:" in l]
    return sorted({l.split(":", 1)[0] + ": run `make format`" for l in lines}) or [run.stderr]


CASES = [
    ({"a.cpp": "int  main( ) {return 0;}\n"}, "a.cpp: run"),
    ({"a.cpp": "int main() { return 0; }\n"}, None),
    ({"a.cpp": "//     f(x) = " + "x^2 + " * 20 + "1\n"}, None),  # formulas are not wrapped
]

if __name__ == "__main__":
    if "--list" in sys.argv:
        print("\n".join(str(p) for p in tree.files(tree.ROOT, tree.SOURCES)))
        sys.exit(0)
    if "--self-test" in sys.argv:
        sys.exit(tree.expect_failures(check, CASES))
    sys.exit(tree.report("format", check(tree.ROOT)))
