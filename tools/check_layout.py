#!/usr/bin/python3
"""House limits and habits (docs/architecture.md): fails on some, reports the rest."""

import re
import sys

import tree

FILE_LINES, HEADER_LINES, FUNCTION_LINES = 400, 150, 40
EXEMPT = {}  # path -> why it may be longer than FILE_LINES
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "base"}
LIMITED = {".cpp", ".h", ".py", ".js", ".css", ".html"}
TEXT = LIMITED | {".sh", ".cmake", ".txt", ".md", ".json", ".toml", ""}
# Words are spelled in halves, so that this file passes its own check.
MARKER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|root|work|Users)" r"/\w")
PRINTS = re.compile(r"\bstd::(cout|cerr|clog|printf|puts)\b|(?<![\w:.>])(f?printf|puts)\s*\(|<iostream>")
LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")  # of a page, to a file of the repository
NOT_A_FUNCTION = re.compile(r"^\s*(namespace|class|struct|union|enum|extern|if|for|while|switch"
                            r"|do|else|return|case|default|#|//|template\s*<[^>]*>\s*(class|struct))\b")


def function_lengths(text):
    """Lines of each function: from the line that ends in `{` to the brace in its column."""
    lines, lengths, i = text.splitlines(), [], 0
    while i < len(lines):
        line = lines[i]
        indent = len(line) - len(line.lstrip())
        opens = line.endswith("{") and ")" in line and indent <= 4
        if opens and not NOT_A_FUNCTION.match(line):
            end = " " * indent + "}"
            stop = next((j for j in range(i + 1, len(lines)) if lines[j].startswith(end)), None)
            if stop is not None:
                lengths.append(stop - i + 1)
                i = stop
        i += 1
    return lengths


def is_test(path):
    return path.stem.endswith(("_test", "_bench")) or "test" in path.stem.split("_")


def of_file(root, path):
    found = []
    text = (root / path).read_text(errors="replace")
    lines = text.count("\n")
    if path.stem.lower() in VAGUE:
        found.append(f"{path}: the name says nothing about the one thing inside")
    if path.suffix in LIMITED and lines > FILE_LINES and str(path) not in EXEMPT:
        found.append(f"{path}: {lines} lines, more than {FILE_LINES}")
    if MARKER.search(text):
        found.append(f"{path}: contains the marker {MARKER.search(text).group()}")
    if MACHINE_PATH.search(text):
        found.append(f"{path}: contains a path of one machine: {MACHINE_PATH.search(text).group()}...")
    below_cli = path.parts[0] == "lagwise" and path.parts[1] != "cli"
    if below_cli and path.suffix in tree.SOURCES and not is_test(path) and PRINTS.search(text):
        found.append(f"{path}: prints ({PRINTS.search(text).group()}); only cli/ does")
    if path.suffix == ".md":
        found += [f"{path}: links to {link}, which is not there" for link in LINK.findall(text)
                  if not (root / path.parent / link).exists()]
    if is_registered(path) and not (root / path.with_name(path.stem + "_test.cpp")).exists():
        found.append(f"{path}: no {path.stem}_test.cpp beside it")
    return found


def is_registered(path):
    """One encoding per file."""
    if path.suffix != ".cpp" or is_test(path):
        return False
    return path.parts[:2] == ("lagwise", "encodings")


def check(root):
    return [line for path in tree.files(root, TEXT) for line in of_file(root, path)]


def remarks(root):
    lengths = []
    for path in tree.files(root, tree.SOURCES):
        text = (root / path).read_text()
        lengths += function_lengths(text)
        if path.suffix == ".h" and text.count("\n") > HEADER_LINES:
            yield f"note: {path}: {text.count(chr(10))} lines, headers aim at {HEADER_LINES}"
    if lengths:
        lengths.sort()
        p90 = lengths[int(0.9 * (len(lengths) - 1))]
        yield (f"note: {len(lengths)} functions, p90 {p90} lines (aim {FUNCTION_LINES}), "
               f"longest {lengths[-1]}")


CASES = [
    ({"lagwise/core/a.cpp": "int x;\n" * 401}, "more than 400"),
    ({"lagwise/report/page/a.js": "f();\n" * 401}, "more than 400"),
    ({"lagwise/core/utils.h": ""}, "says nothing"),
    ({"lagwise/ops/a.cpp": "void f() { std::cerr << 1; }\n"}, "prints"),
    ({"lagwise/ops/a.cpp": 'void f() { printf("x"); }\n'}, "prints"),
    ({"lagwise/core/a.cpp": "// TO" "DO: later\n"}, "marker"),
    ({"tools/a.sh": "cd /home" "/me\n"}, "path of one machine"),
    ({"lagwise/encodings/rope.cpp": ""}, "no rope_test.cpp"),
    ({"docs/a.md": "see [b](maths/b.md)\n"}, "links to maths/b.md"),
    ({"lagwise/encodings/rope.cpp": "", "lagwise/encodings/rope_test.cpp": "",
      "lagwise/cli/main.cpp": "void f() { std::cout << 1; }\n",
      "lagwise/core/a.cpp": "void f() { std::snprintf(b, 1, c); }\n",
      "docs/a.md": "[core](../lagwise/core/a.cpp#L1), [far](https://x.org/y)\n"}, None),
]

if __name__ == "__main__":
    if "--self-test" in sys.argv:
        assert function_lengths("int f(int a) {\n  return a;\n}\n") == [3]
        sys.exit(tree.expect_failures(check, CASES))
    print(*remarks(tree.ROOT), sep="\n")
    sys.exit(tree.report("layout", check(tree.ROOT)))
