"""lagwise's operators in PyTorch: ``import lagwise; lagwise.ops.linear_attention(...)``."""

from typing import TYPE_CHECKING

import torch

from lagwise import _library

_library.load()

from lagwise import _fakes  # noqa: E402,F401  (what operators return without numbers)

if TYPE_CHECKING:
    from lagwise import ops  # ops.pyi: their types
else:
    ops = torch.ops.lagwise
