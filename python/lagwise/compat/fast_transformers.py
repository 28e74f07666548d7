"""``CausalLinearAttention``, ``LinearAttention`` and ``causal_dot_product`` as the package
pytorch-fast-transformers has them (Katharopoulos et al., ICML 2020, arXiv:2006.16236):
queries, keys and values are [batch, length, heads, width].

    num_i = sum_j phi(q_i).phi(k_j) v_j,   out_i = num_i / (sum_j phi(q_i).phi(k_j) + eps)

over all j, or over j <= i where it is causal.
"""

from typing import Any, Callable, Optional, Tuple

import torch
from torch import Tensor, nn

ops = torch.ops.lagwise


def causal_dot_product(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """sum_{j <= i} (Q_i . K_j) V_j, all [batch, heads, length, width]."""
    return ops.linear_attention(Q, K, V, causal=True, denominator="none")


class _Linear(nn.Module):
    causal: bool

    def __init__(self, query_dimensions: int, feature_map: Optional[Callable[[int], Any]] = None,
                 eps: float = 1e-6, event_dispatcher: str = ""):
        super().__init__()
        self.feature_map = feature_map(query_dimensions) if feature_map is not None else None
        self.eps = eps

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any = None,
                query_lengths: Any = None, key_lengths: Any = None) -> Tensor:
        """The masks are those of the package (``fast_transformers.masking``), or None."""
        self._expect_mask(attn_mask)
        q, k, v = (x.transpose(1, 2) for x in (queries, keys, values))  # [B, H, L, D]
        padded = _padding(key_lengths)
        if self.feature_map is None and padded is None:
            return self._attend(q, k, v, feature_map="elu1")
        q, k = self._features(q, k)
        if padded is not None:
            k = k * padded[:, None, :, None].to(k.dtype)
        return self._attend(q, k, v, feature_map="none")

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, feature_map: str) -> Tensor:
        return ops.linear_attention(q, k, v, causal=self.causal, feature_map=feature_map,
                                    eps=self.eps, eps_mode="add").transpose(1, 2)

    def _features(self, q: Tensor, k: Tensor) -> Tuple[Tensor, Tensor]:
        if self.feature_map is None:
            return ops.feature_map(q, "elu1"), ops.feature_map(k, "elu1")
        new = getattr(self.feature_map, "new_feature_map", None)
        if new is not None:
            new(q.device)
        of_queries = getattr(self.feature_map, "forward_queries", self.feature_map)
        of_keys = getattr(self.feature_map, "forward_keys", self.feature_map)
        return of_queries(q), of_keys(k)

    def _expect_mask(self, mask: Any) -> None:
        legal = "lower_triangular" if self.causal else "all_ones"
        if mask is not None and not getattr(mask, legal, False):
            raise RuntimeError(f"{type(self).__name__}: expected attn_mask None or {legal}, "
                               "got another")


def _padding(lengths: Any) -> Optional[Tensor]:
    """1 where a key is real, [B, L]; None where all are."""
    if lengths is None or getattr(lengths, "all_ones", False):
        return None
    return lengths.float_matrix


class CausalLinearAttention(_Linear):
    """Every query sees the keys at its position and before."""

    causal = True


class LinearAttention(_Linear):
    """Every query sees all keys."""

    causal = False
