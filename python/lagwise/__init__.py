"""lagwise's operators in PyTorch: ``import lagwise; lagwise.ops.linear_attention(...)``.

Loads liblagwise.so into torch and names what it registers; _fakes.py says what the
operators return where tensors have no numbers, ops.pyi of which types they are.
The library is looked for in $LAGWISE_LIBRARY, beside this file, in the build tree,
then where `cmake --install` puts it.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch

_HERE = Path(__file__).resolve().parent


def _library():
    given = os.environ.get("LAGWISE_LIBRARY")
    if given:
        return given
    places = [_HERE, _HERE.parents[1] / "build" / "release"]
    for prefix in [*_HERE.parents, Path("/usr/local"), Path("/usr")]:
        places += [prefix / "lib", *sorted(prefix.glob("lib/*-linux-gnu"))]
    for place in places:
        if (place / "liblagwise.so").exists():
            return str(place / "liblagwise.so")
    raise ImportError("lagwise: no liblagwise.so found; set LAGWISE_LIBRARY to its path")


torch.ops.load_library(_library())
from . import _fakes  # noqa: E402,F401  (needs the operators)

if TYPE_CHECKING:
    from . import ops
else:
    ops = torch.ops.lagwise
