"""``FastAttention`` as the package performer-pytorch has it: FAVOR+ of Choromanski et al.
(ICLR 2021, arXiv:2009.14794) on [batch, heads, length, width].

    phi(x) = m^(-1/2) (exp(w_f.x d^(-1/4) - |x|^2 d^(-1/2) / 2 - largest) + 1e-4)

with orthogonal random directions w, the largest exponent over a query's features, over
all features and rows of a head's keys. Nothing of length x features x width is formed.
"""

import math
from typing import Callable, Optional

import torch
from torch import Tensor, nn

ops = torch.ops.lagwise

_CAUSAL_EPS = 1e-6  # added to every feature of the sum of keys


def orthogonal_directions(rows: int, columns: int, scaling: int = 0) -> Tensor:
    """[rows, columns]: blocks of orthogonal rows, of the length of normal ones (scaling 0)
    or of length sqrt(columns) (scaling 1)."""
    if scaling not in (0, 1):
        raise ValueError(f"ortho_scaling: expected 0 or 1, got {scaling}")
    blocks = []
    for first in range(0, rows, columns):
        q, _ = torch.linalg.qr(torch.randn(columns, columns))
        blocks.append(q.t()[: rows - first])
    lengths = (torch.randn(rows, columns).norm(dim=1) if scaling == 0
               else torch.full((rows,), math.sqrt(columns)))
    return torch.cat(blocks) * lengths[:, None]


class FastAttention(nn.Module):
    """Takes the place of ``performer_pytorch.FastAttention``.

    Buffers  projection_matrix [nb_features, dim_heads]
    """

    projection_matrix: Tensor

    def __init__(self, dim_heads: int, nb_features: Optional[int] = None, ortho_scaling: int = 0,
                 causal: bool = False, generalized_attention: bool = False,
                 kernel_fn: Callable[[Tensor], Tensor] = nn.ReLU(), no_projection: bool = False):
        super().__init__()
        self.dim_heads, self.causal = dim_heads, causal
        self.nb_features = nb_features or int(dim_heads * math.log(dim_heads))
        self.ortho_scaling, self.no_projection = ortho_scaling, no_projection
        self.generalized_attention, self.kernel_fn = generalized_attention, kernel_fn
        if not no_projection:
            self.register_buffer("projection_matrix", self._drawn())

    def _drawn(self) -> Tensor:
        return orthogonal_directions(self.nb_features, self.dim_heads, self.ortho_scaling)

    @torch.no_grad()
    def redraw_projection_matrix(self) -> None:
        self.projection_matrix.copy_(self._drawn())

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.no_projection:
            q, k = q.softmax(-1), (k.exp() if self.causal else k.softmax(-2))
        elif self.generalized_attention:
            q, k = self._generalized(q), self._generalized(k)
        else:
            q, k = self._softmax(q, (-1,)), self._softmax(k, (-1, -2))
        if not self.causal:
            return ops.linear_attention(q, k, v, causal=False, eps=0.0)
        batch, heads, _, features = k.shape
        s = v.new_zeros(batch, heads, features, v.shape[-1])
        z = k.new_full((batch, heads, features), _CAUSAL_EPS)
        return ops.linear_attention_stateful(q, k, v, s, z, causal=True, eps=0.0)[0]

    def _projected(self, x: Tensor) -> Tensor:
        return (x * self.dim_heads ** -0.25) @ self.projection_matrix.to(x.dtype).t()

    def _softmax(self, x: Tensor, over) -> Tensor:
        half = x.square().sum(-1, keepdim=True) / (2 * math.sqrt(self.dim_heads))
        exponent = self._projected(x)
        largest = exponent.amax(over, keepdim=True).detach()
        return self.nb_features ** -0.5 * ((exponent - half - largest).exp() + 1e-4)

    def _generalized(self, x: Tensor) -> Tensor:
        return self.kernel_fn(self._projected(x)) + 1e-3
