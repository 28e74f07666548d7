"""lagwise in PyTorch: attention, positional encodings and models as modules
(``lagwise.LinearAttention``, ``lagwise.encoding``, ``lagwise.load``), and the operators below
them (``lagwise.ops.linear_attention``)."""

from importlib import metadata
from typing import TYPE_CHECKING

import torch

from lagwise import _library

_library.load()

try:
    __version__ = metadata.version("lagwise")
except metadata.PackageNotFoundError:  # a build tree on PYTHONPATH
    __version__ = "not installed"

from lagwise import _fakes  # noqa: E402,F401  (what operators return without numbers)

if TYPE_CHECKING:
    from lagwise import ops  # ops.pyi: their types
else:
    ops = torch.ops.lagwise

from lagwise import spe  # noqa: E402
from lagwise.attention import (  # noqa: E402
    Attention, ExactAttention, LinearAttention, attention)
from lagwise.encodings import Encoded, Encoding, encoding  # noqa: E402
from lagwise.models import Decoder, Model, load, save  # noqa: E402
from lagwise.multihead import LayerState, MultiheadAttention  # noqa: E402
from lagwise.states import KeyValueCache, LinearState  # noqa: E402

__all__ = [
    "Attention", "Decoder", "Encoded", "Encoding", "ExactAttention", "KeyValueCache",
    "LayerState", "LinearAttention", "LinearState", "Model", "MultiheadAttention", "attention",
    "encoding", "load", "ops", "save", "spe"]
