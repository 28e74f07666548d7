#!/usr/bin/env python3
"""Do the tests notice bugs? Puts known bugs into a copy of the sources, one after
another, and expects the tests to go red for each; first, green without any.

  tools/seeded_bugs.py                every bug
  tools/seeded_bugs.py --only kernels those that the torch-free kernel tests must catch
  tools/seeded_bugs.py --list         what there is

A bug is an exact piece of text and what stands there instead. Text that no longer
occurs exactly once is an error: the bug must then be moved to the new code.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LINEAR = "lagwise/kernels/linear_attention.cpp"
MAPS = "lagwise/kernels/feature_map-inl.h"
FAVOR = "lagwise/kernels/favor.cpp"
CHUNK = "lagwise/kernels/chunk-inl.h"
ROWS = "lagwise/kernels/simd/rows-inl.h"
BACKWARD = "lagwise/ops/linear/linear_backward-inl.h"
TURNS = "lagwise/kernels/turn_table.cpp"
ROTATE = "lagwise/kernels/rotate.cpp"
EXACT = "lagwise/kernels/exact_attention.cpp"
EXACT_TILE = "lagwise/kernels/exact_tile-inl.h"
EXACT_GRADIENT = "lagwise/kernels/exact_gradient.cpp"
SHARED_STATE = "lagwise/attention/shared_state.cpp"


class Bug(NamedTuple):
    name: str
    caught_by: str  # the program that must go red
    file: str
    old: str
    new: str


BUGS = [
    Bug("wrong tail: padding of a row holds phi(0) instead of 0", "kernels", ROWS,
        "hn::IfThenElseZero(first_lanes(tag, cols), left)", "left"),
    Bug("wrong tail: a short last chunk ages the past like a whole one", "kernels", CHUNK,
        "whole = *power(rows - 1 + lead);", "whole = *power(chunk - 1 + lead);"),
    Bug("no decay on the state", "kernels", CHUNK,
        "if (fade.by_row) scale_by(row, fade.whole, width);", ""),
    Bug("no decay on the state, per channel", "kernels", CHUNK,
        "if (fade.by == By::channel) scale_by(row, fade.power(age)[i], width);", ""),
    Bug("decay exponent off by one", "kernels", CHUNK,
        "since = power(lead);", "since = power(0);"),
    Bug("gates: a row fades by the gate of the row before", "kernels", CHUNK,
        "decay_.before_first ? begin : begin - 1;", "begin > 0 ? begin - 1 : 0;"),
    Bug("gates: the gradient of a border is what rounding leaves", "kernels",
        "lagwise/kernels/gate_gradient.cpp",
        "    if (std::isinf(gate(i, 0)) || (from_nothing && i == 0)) after = 0;\n", ""),
    Bug("delta: rows of a chunk do not see what others wrote", "kernels",
        "lagwise/kernels/delta_chunk-inl.h", "T factor = -pairs[a * stride + b];",
        "T factor = 0 * pairs[a * stride + b];"),
    Bug("delta: keys get no gradient through what they recalled", "kernels",
        "lagwise/kernels/delta_gradient.cpp",
        "    multiply<T>({c.turned_m, stride, 1}, k, w.d_padded, w.o, width, rows, rows, true);\n",
        ""),
    Bug("state not carried out", "kernels", LINEAR,
        "  store_state<T>(w, w.s, s);\n  if (denominator.z)", "  if (denominator.z)"),
    Bug("normaliser's state not carried out", "kernels", LINEAR,
        "  if (denominator.z) std::copy_n(w.z, w.d, denominator.z);\n", ""),
    Bug("a row does not see itself", "kernels", CHUNK,
        "x = hn::IfThenElseZero(first_lanes(tag, a + 1 - b), x);",
        "x = hn::IfThenElseZero(first_lanes(tag, a - b), x);"),
    Bug("the denominator sees the next row", "kernels", CHUNK,
        "x = hn::IfThenElseZero(first_lanes(tag, a + 1 - b), x);",
        "x = hn::IfThenElseZero(first_lanes(tag, a + 2 - b), x);"),
    Bug("a tile of rows sees its own future", "kernels", "lagwise/kernels/simd/tile-inl.h",
        "add_outer<kRows, kFirst>(tag, left.data", "add_outer<kRows, 0>(tag, left.data"),
    Bug("eps ignored", "kernels", CHUNK,
        "return denominator.clamp ? std::max(raw, denominator.eps) : "
        "raw + denominator.eps;", "return raw;"),
    Bug("a denominator of zero divides", "kernels", CHUNK,
        "return den == T{0} ? T{0} : T{1} / den;", "return T{1} / den;"),
    Bug("steps between columns ignored", "kernels", ROWS,
        "to[j] = from[j * step];", "to[j] = from[j];"),
    Bug("wrong derivative of elu1", "kernels", MAPS,
        "hn::IfThenElse(hn::Gt(x, hn::Zero(tag)), one, exp_of_negative(tag, x));",
        "hn::IfThenElse(hn::Gt(x, hn::Zero(tag)), one, value(tag, one));"),
    Bug("wrong derivative of silu", "kernels", MAPS,
        "hn::MulAdd(x, rest, one)", "hn::Add(rest, one)"),
    Bug("FAVOR holds its maximum still", "kernels", FAVOR,
        "du[top] += sign * (dlog_scale - total);", "du[top] += T{0};"),
    Bug("FAVOR takes the padding into its maximum", "kernels", FAVOR,
        "for (int64_t i = 0; i < m - j; ++i) {",
        "for (int64_t i = 0; j < m && i < width; ++i) {"),
    Bug("the slope of the state forgets its own steps", "kernels",
        "lagwise/kernels/decay_gradient.cpp",
        "fade_slope(s_slope + d * width, s + d * width, rows, power(rows), width);",
        "fade_slope(s_slope + d * width, s + d * width, 0, power(rows), width);"),
    Bug("a step forgets to fade z", "kernels", "lagwise/kernels/linear_step.cpp",
        "z = g[d] * z + k[d];", "z = z + k[d];"),
    Bug("normaliser's path into dk cut where dk and dv share a pass", "kernels",
        "lagwise/kernels/key_value_gradient.cpp",
        "    if (has_r) advance_r(fade, gradient, begin, count, w);\n", ""),
    Bug("a decayed sum is read as if it were fresh", "kernels",
        "lagwise/kernels/key_value_gradient.cpp",
        "fade.by_row ? fade.since : nullptr", "nullptr"),
    Bug("clamped rows send a gradient into the denominator", "ops",
        "lagwise/kernels/denominator_gradient.cpp", "divisor <= floor ? T{0} : -dot",
        "divisor < floor ? T{0} : -dot"),
    Bug("normaliser's path into dk cut", "ops", BACKWARD,
        "pass_backwards(strip.head, values(strip.head), gradient(strip.head),",
        "pass_backwards(strip.head, values(strip.head), [&] { static const T zero = 0; "
        "Rows<T> x = gradient(strip.head); "
        "if (x.extra.data) x.extra = {&zero, x.x.rows, 1, 0, 1}; return x; }(),"),
    Bug("gradient of the given state not faded by the first step", "ops",
        "lagwise/ops/linear/linear_views.h", "return std::exp(log);",
        "return T{1} + 0 * log;"),
    Bug("gradient of the state after the last key lost", "ops", BACKWARD,
        "if (call_.causal && pair_.d_s1.defined()) pair_.d_s0.copy_(pair_.d_s1);", ""),
    Bug("a strip misses its last column", "ops", "lagwise/ops/parallel/heads.h",
        "cut(i), cut(i + 1)}", "cut(i), cut(i + 1) - (i + 1 < strips ? 1 : 0)}"),
    Bug("angles without the low part of the product", "kernels", TURNS,
        "return {c - lo * s, s + lo * c};", "return {c - 0 * lo * s, s};"),
    Bug("turns of 64 steps not renewed", "kernels", TURNS,
        "if (start != last) far = steps.large(start, begin, end), last = start;",
        "if (far == nullptr) far = steps.large(start, begin, end), last = start;"),
    Bug("coordinates beyond the planes not copied", "kernels", ROTATE,
        "std::copy(from + 2 * planes, from + x.cols, to + 2 * planes);", ""),
    Bug("exact: what was summed before a larger score keeps its weight", "kernels", EXACT,
        "if (top != before) w.factor[a] = std::exp(before - top);", ""),
    Bug("exact: the band of lags off by one", "kernels", EXACT_TILE,
        "t.base = n - 1 - row + t.key;", "t.base = n - row + t.key;"),
    Bug("exact: a row does not see its own key", "kernels", EXACT_TILE,
        "r.hi = std::min(r.hi, at + 1);", "r.hi = std::min(r.hi, at);"),
    Bug("exact: a window one lag too wide", "kernels", EXACT_TILE,
        "r = {at - sight.window + 1, at + sight.window};",
        "r = {at - sight.window, at + sight.window};"),
    Bug("exact: weights of hidden keys carry a NaN", "kernels", EXACT,
        "if (t.whole)\n", "if (t.rows > 0)\n"),
    Bug("exact: margins of a tile not cleared", "kernels", EXACT_TILE,
        "const int64_t end = skewed ? t.stride :", "const int64_t end = skewed ? t.keys :"),
    Bug("exact: gradient of the softmax without its mean", "kernels", EXACT_GRADIENT,
        "const auto dp = hn::Sub(hn::LoadU(tag, row + b), mean);",
        "const auto dp = hn::Add(hn::LoadU(tag, row + b), hn::Mul(mean, hn::Zero(tag)));"),
    Bug("exact: table of keys sends no gradient to the queries", "kernels",
        EXACT_GRADIENT,
        "  sum_keys<kByLag, T>(t, w.scores, part(static_cast<const T*>(p.lag_k), p.lags, lag),\n"
        "                      dq, d);\n", ""),
    Bug("exact: a table read by the wrong end in a short piece", "ops",
        "lagwise/ops/exact/exact_waves.h", "head.lag_zero = piece.keys - 1;",
        "head.lag_zero = piece.rows - 1;"),
    Bug("exact: a padded row aligned to the padding", "ops", "lagwise/ops/exact/exact_call.cpp",
        "piece.shift = at.keys - at.queries;", "piece.shift = call.m - call.n;"),
    Bug("gelu: the slope lacks the density", "kernels", "lagwise/kernels/gelu.cpp",
        "const auto slope = hn::MulAdd(at, normal.density, normal.below);",
        "const auto slope = normal.below;"),
    Bug("loss: the gradient does not know the target", "kernels",
        "lagwise/kernels/softmax_loss.cpp", "    to[target[i]] -= T{1};\n", ""),
    Bug("dense: the gradient of x is that of the last layer alone", "ops",
        "lagwise/ops/dense.cpp",
        "multiply(up, matrix_view<const T>(l.each[i].weight), add, d_block);",
        "multiply(up, matrix_view<const T>(l.each[i].weight), false, d_block);"),
    Bug("dense: what passes by a layer has no gradient", "ops",
        "lagwise/kernels/rms_norm.cpp",
        "plus ? hn::LoadU(tag, plus + j) : hn::Zero(tag);", "hn::Zero(tag);"),
    Bug("bf16: rows of attention are kept rounded but computed with as they came", "ops",
        "lagwise/ops/torch/differentiable_pair.h",
        "      arguments[i] = widened(kept);\n", ""),
    Bug("feed-forward: what is computed anew is that of the last block", "ops",
        "lagwise/ops/feed_forward.cpp",
        "of_g.keep(count * inner, spare.get());", "of_g.keep(0, spare.get());"),
    Bug("ranks: the unit of a state looks ahead", "ops", SHARED_STATE,
        "all.largest.push_back(u);", "all.largest.push_back(next);"),
    Bug("ranks: a row fades once too often before the next shard", "ops", SHARED_STATE,
        "(count - 1 - place)", "(count - place)"),
    Bug("ranks: the gradient of a factor misses the denominator", "ops", SHARED_STATE,
        ": of_z.size(2) > 0 ? of_s + of_z", ": of_z.size(2) > 0 ? of_s"),
    Bug("ranks: gradients of gathered rows are those of rank 0", "ops",
        "lagwise/ops/peer_rows.cpp",
        "  for (size_t p = 1; p < given.size(); ++p) sum += given[p];\n", ""),
]

# What each program is made of: folders of sources, its tests, what it links.
TORCH = ["-lc10", "-ltorch_cpu", "-ltorch", "-ldnnl", "-lgomp"]
PROGRAMS = {
    "kernels": (["lagwise/core/*.cpp", "lagwise/kernels/*.cpp"],
                ["lagwise/kernels/*_test.cpp"], []),
    "ops": (["lagwise/core/*.cpp", "lagwise/kernels/*.cpp", "lagwise/ops/**/*.cpp",
             "lagwise/attention/shared_state.cpp", "bench/torch_linear.cpp"],
            ["lagwise/ops/linear/linear_attention_test.cpp",
             "lagwise/ops/linear/linear_attention_gradient_test.cpp",
             "lagwise/ops/linear/linear_attention_contract_test.cpp",
             "lagwise/ops/exact/exact_attention_test.cpp",
             "lagwise/ops/dense_test.cpp",
             "lagwise/ops/peer_rows_test.cpp",
             "lagwise/attention/shared_state_test.cpp"], TORCH),
}
# One SIMD target is enough here, and compiles in a third of the time.
FLAGS = ["-std=c++20", "-O1", "-march=native", "-DHWY_COMPILE_ONLY_STATIC"]
SUFFIXES = ("_test.cpp", "_bench.cpp", "/main.cpp")


class Tree:
    """A copy of the sources and what was compiled from it."""

    def __init__(self, folder):
        self.root = Path(folder)
        for name in ("lagwise", "bench"):
            shutil.copytree(ROOT / name, self.root / name)
        self.compiler = (["ccache"] if shutil.which("ccache") else []) + ["g++"]

    def compile(self, source, build):
        """The object of one source, made in `build` if it is not there yet."""
        target = build / (str(source).replace("/", ".") + ".o")
        if not target.exists():
            build.mkdir(exist_ok=True)
            subprocess.run(self.compiler + FLAGS + ["-I.", "-MMD", "-c", str(source), "-o",
                                                    str(target)], cwd=self.root, check=True)
        return target

    def depends(self, source, file):
        """Whether the clean object of `source` was made from `file`."""
        made = self.root / "clean" / (str(source).replace("/", ".") + ".d")
        return any(part.endswith(file) for part in made.read_text().split())

    def sources(self, program):
        patterns, tests, _ = PROGRAMS[program]
        found = {p.relative_to(self.root) for x in patterns for p in self.root.glob(x)}
        found = {p for p in found if not str(p).endswith(SUFFIXES)}
        return sorted(found | {p.relative_to(self.root) for x in tests
                               for p in self.root.glob(x)})

    def build(self, program, changed=None):
        """The program; what depends on the changed file is compiled anew."""
        clean, fresh = self.root / "clean", self.root / "bug"
        objects = []
        for source in self.sources(program):
            dirty = changed is not None and self.depends(source, changed)
            objects.append(self.compile(source, fresh if dirty else clean))
        binary = self.root / f"{program}_test"
        subprocess.run(["g++", *map(str, objects), "-o", str(binary), "-lgtest_main",
                        "-lgtest", "-lgmock", "-lhwy", "-pthread"] + PROGRAMS[program][2],
                       check=True)
        return binary


def is_green(binary, options):
    command = [str(binary), "--gtest_brief=1", "--gtest_fail_fast"]
    if options.filter:
        command.append(f"--gtest_filter={options.filter}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return False, "took more than 5 minutes"
    failed = [x for x in done.stdout.splitlines() if x.startswith("[  FAILED  ]")]
    reason = failed[0][13:] if failed else f"ended with {done.returncode}"
    return done.returncode == 0, reason.split(", where")[0]


def try_bug(tree, bug, options):
    """Whether the tests noticed; prints one line."""
    begun = time.time()
    path = tree.root / bug.file
    clean = path.read_text()
    try:
        path.write_text(clean.replace(bug.old, bug.new))
        green, reason = is_green(tree.build(bug.caught_by, bug.file), options)
    finally:
        path.write_text(clean)
        shutil.rmtree(tree.root / "bug", ignore_errors=True)
    verdict = "NOT NOTICED" if green else f"red: {reason}"
    print(f"{time.time() - begun:5.0f} s  {bug.name} ({bug.caught_by}): {verdict}",
          flush=True)
    return not green


def out_of_date(bugs):
    """Bugs whose text does not occur exactly once."""
    return [f"{bug.file}: expected the text of '{bug.name}' once, found it {count} times"
            for bug in bugs
            if (count := (ROOT / bug.file).read_text().count(bug.old)) != 1]


def try_all(tree, bugs, options):
    for program in dict.fromkeys(b.caught_by for b in bugs):
        green, reason = is_green(tree.build(program), options)
        print(f"without bugs ({program}): {'green' if green else reason}", flush=True)
        if not green:
            return 1
    noticed = [try_bug(tree, bug, options) for bug in bugs]
    print(f"{sum(noticed)} of {len(bugs)} bugs noticed")
    return 0 if all(noticed) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", choices=PROGRAMS)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--filter", default="", help="of the tests, as --gtest_filter")
    options = parser.parse_args()
    bugs = [b for b in BUGS if options.only in (None, b.caught_by)]
    if options.list:
        print("\n".join(f"{b.caught_by:8} {b.name}" for b in bugs))
        return 0
    if stale := out_of_date(bugs):
        print("\n".join(stale), file=sys.stderr)
        return 1
    # Tests that compare 1 thread with 2 and 4 need more than one to begin with.
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    with tempfile.TemporaryDirectory(prefix="seeded_bugs.") as folder:
        try:
            return try_all(Tree(folder), bugs, options)
        except subprocess.CalledProcessError as error:  # the compiler said why
            print(f"does not build: {' '.join(error.cmd[-4:])}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
