"""Finds liblagwise.so for the torch of this process and loads it into it.

The library is compiled for one minor version of torch, and is looked for in
$LAGWISE_LIBRARY, in the installed package, in the build tree, then where
`cmake --install` puts it.
"""

import os
from pathlib import Path

import torch

_HERE = Path(__file__).resolve().parent
_NAME = "liblagwise.so"


def torch_minor():
    """The version of torch that a library must fit: "2.13" of "2.13.0+cpu"."""
    return ".".join(torch.__version__.split(".")[:2])


def _find():
    given = os.environ.get("LAGWISE_LIBRARY")
    if given:
        return given
    minor = torch_minor()
    packed = {path.parent.name.removeprefix("torch-"): path
              for path in sorted(_HERE.glob(f"lib/torch-*/{_NAME}"))}
    if minor in packed:
        return str(packed[minor])
    if packed:
        raise ImportError(f"lagwise: built for torch {' and '.join(packed)}, "
                          f"but torch {torch.__version__} is installed")
    build = _HERE.parents[1] / "build"
    places = [build / f"torch-{minor}", build / "release"]
    for prefix in [*_HERE.parents, Path("/usr/local"), Path("/usr")]:
        places += [prefix / "lib", *sorted(prefix.glob("lib/*-linux-gnu"))]
    for place in places:
        if (place / _NAME).exists():
            return str(place / _NAME)
    raise ImportError(f"lagwise: no {_NAME} found; set LAGWISE_LIBRARY to its path")


def load():
    """Registers the operators as torch.ops.lagwise. Returns the path of the library."""
    path = _find()
    try:
        torch.ops.load_library(path)
    except OSError as error:
        reason = str(error).splitlines()[0]
        raise ImportError(f"lagwise: {path} does not fit torch {torch.__version__}: "
                          f"{reason}") from None
    return path
