#!/usr/bin/python3
"""Every #include follows the arrows between the layers (docs/architecture.md)."""

import re
import sys

import tree

ARROWS = ["core", "kernels", "ops", ("encodings", "attention"), "nn", "models", "tasks",
          "train", ("study", "bindings"), "cli"]
SIDE = {"data": {"core"}, "report": {"core"}, "runtime": {"core", "kernels", "data"},
        "dist": {"core", "ops"}}
# The first layer that may use each of them. Tests of any layer may use dist, for its peers
# between threads.
SIDE_OPENS_TO = {"data": "tasks", "report": "tasks", "runtime": "train", "dist": "train"}
TORCH_FREE = {"core", "kernels", "data", "report", "runtime"}
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def allowed():
    """layer -> the other layers it may include."""
    may, left = dict(SIDE), set()
    for step in ARROWS:
        step = step if isinstance(step, tuple) else (step,)
        left |= {side for side, opens in SIDE_OPENS_TO.items() if opens in step}
        for layer in step:
            may[layer] = set(left)
        left |= set(step)
    may["cli"] |= {"bench"}
    may["bench"] = left - {"cli"}  # baselines: what they are compared with, not the verbs
    return may


MAY = allowed()


def layer_of(parts):
    if parts[0] == "lagwise":
        return parts[1] if len(parts) > 2 else None
    return "bench" if parts[0] == "bench" else None


def check(root):
    found = []
    for path in tree.files(root, tree.SOURCES):
        if path.parts[0] not in ("lagwise", "bench"):
            continue
        layer = layer_of(path.parts)
        if layer not in MAY:
            found.append(f"{path}: {layer} is not a layer")
            continue
        for name in INCLUDE.findall((root / path).read_text()):
            target = layer_of(name.split("/"))
            if target == "bench" and path.stem.endswith(("_test", "_bench")):
                continue  # a baseline is a second reference
            if target == "dist" and path.stem.endswith("_test"):
                continue  # peers between threads
            if target is not None and target != layer and target not in MAY[layer]:
                found.append(f"{path}: {layer} may not include {name}")
            if TORCH.match(name) and layer in TORCH_FREE:
                found.append(f"{path}: {layer} is torch-free, but includes {name}")
            if name.startswith("."):
                found.append(f"{path}: write {name} from the root of the repository")
    return found


CASES = [
    ({"lagwise/core/a.h": '#include "lagwise/kernels/b.h"\n'}, "core may not include"),
    ({"lagwise/encodings/a.cpp": '#include "lagwise/attention/b.h"\n'}, "may not include"),
    ({"lagwise/attention/a.cpp": '#include "lagwise/encodings/b.h"\n'}, "may not include"),
    ({"lagwise/data/a.cpp": '#include "lagwise/ops/b.h"\n'}, "data may not include"),
    ({"lagwise/runtime/a.cpp": '#include "lagwise/ops/b.h"\n'}, "runtime may not include"),
    ({"lagwise/models/a.cpp": '#include "lagwise/runtime/b.h"\n'}, "models may not include"),
    ({"lagwise/nn/a.cpp": '#include "lagwise/dist/b.h"\n'}, "nn may not include"),
    ({"lagwise/dist/a.cpp": '#include "lagwise/nn/b.h"\n'}, "dist may not include"),
    ({"lagwise/runtime/a.cpp": "#include <ATen/core/Tensor.h>\n"}, "torch-free"),
    ({"lagwise/kernels/a.cpp": "#include <ATen/core/Tensor.h>\n"}, "torch-free"),
    ({"lagwise/report/a.cpp": "  #  include <c10/util/Half.h>\n"}, "torch-free"),
    ({"lagwise/ops/a.cpp": '#include "bench/b.h"\n'}, "ops may not include"),
    ({"lagwise/stuff/a.h": ""}, "not a layer"),
    ({"lagwise/ops/a.cpp": '#include "../core/b.h"\n'}, "from the root"),
    ({"lagwise/ops/a_test.cpp": '#include "bench/b.h"\n',
      "lagwise/ops/a.cpp": '#include <ATen/core/Tensor.h>\n#include "lagwise/core/b.h"\n',
      "lagwise/cli/a.cpp": '#include "bench/b.h"\n#include "lagwise/report/c.h"\n',
      "lagwise/nn/a_test.cpp": '#include "lagwise/dist/b.h"\n',
      "lagwise/train/a.cpp": '#include "lagwise/dist/b.h"\n',
      "lagwise/nn/a.cpp": '#include "lagwise/encodings/b.h"\n'}, None),
]

if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(tree.expect_failures(check, CASES))
    sys.exit(tree.report("layers", check(tree.ROOT)))
