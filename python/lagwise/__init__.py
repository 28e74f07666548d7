"""lagwise's operators in PyTorch: ``import lagwise; lagwise.ops.linear_attention(...)``.

Loads liblagwise.so into torch and names what it registers; there is no logic here.
The library is looked for in $LAGWISE_LIBRARY, beside this file, in the build tree,
then where `cmake --install` puts it.
"""

import os
from pathlib import Path

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
ops = torch.ops.lagwise

from .attention import Attention, ExactAttention, LinearAttention, attention  # noqa: E402
from .encodings import Encoded, Encoding, encoding  # noqa: E402
from .models import Decoder, Model, load, save  # noqa: E402
from .multihead import LayerState, MultiheadAttention  # noqa: E402
from .states import KeyValueCache, LinearState  # noqa: E402

__all__ = [
    "Attention", "Decoder", "Encoded", "Encoding", "ExactAttention", "KeyValueCache",
    "LayerState", "LinearAttention", "LinearState", "Model", "MultiheadAttention", "attention",
    "encoding", "load", "ops", "save"]
