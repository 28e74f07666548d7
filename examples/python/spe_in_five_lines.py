"""Stochastic positional encoding in five lines: relative positions for linear attention.

The names are those of the reference package; the code of [length, heads, features,
realizations] numbers is never formed.
"""

import torch

from lagwise.spe import SineSPE, SPEFilter
from lagwise.compat.fast_transformers import CausalLinearAttention

queries, keys, values = (torch.randn(2, 1000, 8, 64) for _ in range(3))  # [B, N, H, D]

code = SineSPE(num_heads=8, in_features=64, num_realizations=64, num_sines=5)
position = SPEFilter(gated=True, code_shape=code.code_shape)
attend = CausalLinearAttention(64)
qhat, khat = position(queries, keys, code(queries.shape[:2]))
out = attend(qhat, khat, values)

print("queries", tuple(queries.shape), "-> with positions", tuple(qhat.shape), "-> out", tuple(out.shape))
