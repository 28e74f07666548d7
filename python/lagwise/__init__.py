"""lagwise's operators in PyTorch: ``import lagwise; lagwise.ops.linear_attention(...)``."""

import torch

from lagwise import _library

_library.load()
ops = torch.ops.lagwise
