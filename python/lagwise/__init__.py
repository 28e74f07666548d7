"""lagwise's operators in PyTorch: ``import lagwise; lagwise.ops.linear_attention(...)``."""

from typing import TYPE_CHECKING

import torch

from lagwise import _library

_library.load()
if TYPE_CHECKING:
    from lagwise import ops  # ops.pyi
else:
    ops = torch.ops.lagwise
