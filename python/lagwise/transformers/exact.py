"""Exact attention under the name that models of transformers ask for."""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

ops = torch.ops.lagwise

NAME = "lagwise_exact"


def chosen(config: Any) -> bool:
    """Whether a model was made with ``attn_implementation="lagwise_exact"``."""
    return getattr(config, "_attn_implementation", None) == NAME


def padding_mask(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0,
                 kv_offset: int = 0, mask_function: Any = None,
                 attention_mask: Optional[Tensor] = None, **_: Any) -> Tensor:
    """What a model hands to its layers in place of an N x N mask: true where a key is real,
    [B, M]. Causality and windows reach :func:`exact_attention` as words."""
    _expect_neighbours(batch_size, q_length, q_offset, mask_function)
    if attention_mask is None:
        return torch.ones(batch_size, kv_length, dtype=torch.bool)
    return attention_mask[:, -kv_length:].bool()


def _expect_neighbours(rows: int, queries: int, first: int, sees: Any) -> None:
    """Refuses masks that are more than causality, a window and padding: all those let a token
    see the one before it, while documents in one row (position_ids that begin again) and chunks
    do not, at their borders."""
    if sees is None or queries < 2 or torch.compiler.is_compiling():
        return
    at = first + torch.arange(1, queries)
    seen = sees(torch.arange(rows)[:, None], torch.tensor(0), at, at - 1)
    if not bool(torch.as_tensor(seen).all()):
        raise ValueError(f"{NAME}: expected one document a row, got a mask that keeps a token from the one "
                         "before it (position_ids that begin again, chunks); give documents rows of their own")


def key_bias(mask: Optional[Tensor], like: Tensor) -> Optional[Tensor]:
    """-inf at padding, [B, H, M] for queries [B, H, N, D]; None where nothing is padded."""
    if mask is None:
        return None
    if mask.dim() != 2:
        raise ValueError(f"{NAME}: expected a mask [B, M], got {list(mask.shape)}; this model makes "
                         "masks of its own")
    if not torch.compiler.is_compiling() and bool(mask.all()):
        return None
    hidden = torch.zeros(mask.shape, dtype=like.dtype).masked_fill(~mask.bool(), float("-inf"))
    return hidden[:, None].expand(-1, like.shape[1], -1)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], *, scale: float, causal: bool,
           lag_bias: Optional[Tensor] = None, window: Optional[int] = None) -> Tensor:
    """q [B, H, N, D] over k, v [B, G, M, .], the last N of which are those of q, where G
    divides H (grouped queries) -> [B, N, H, E]."""
    batch, heads, n, _ = q.shape
    groups, m = k.shape[1], k.shape[2]
    dtype = q.dtype
    if dtype in (torch.bfloat16, torch.float16):
        q, k, v = q.float(), k.float(), v.float()
    bias = key_bias(mask, q)
    if groups != heads:  # a group's queries are heads of one sequence, whose keys they share
        each = heads // groups
        q = q.unflatten(1, (groups, each)).flatten(0, 1)
        k, v = (x.flatten(0, 1)[:, None].expand(-1, each, -1, -1) for x in (k, v))
        if bias is not None:
            bias = bias[:, :1].expand(-1, groups, -1).flatten(0, 1)[:, None].expand(-1, each, -1)
    out = ops.exact_attention(q, k, v, causal=causal, scale=scale, lag_bias=lag_bias,
                              query_start=m - n if causal else 0, window=window, key_bias=bias)
    if groups != heads:
        out = out.unflatten(0, (batch, groups)).flatten(1, 2)
    return out.transpose(1, 2).to(dtype)


def exact_attention(module: Any, query: Tensor, key: Tensor, value: Tensor,
                    attention_mask: Optional[Tensor], scaling: Optional[float] = None,
                    dropout: float = 0.0, sliding_window: Optional[int] = None,
                    softcap: Optional[float] = None, is_causal: Optional[bool] = None,
                    position_bias: Optional[Tensor] = None, **_: Any) -> Tuple[Tensor, None]:
    """An attention function of transformers: heads in, [B, N, H, E] and no weights out."""
    if dropout:
        raise ValueError(f"{NAME}: expected no dropout of attention, got {dropout}: weights are "
                         "never formed; set attention_dropout (dropout_rate) to 0")
    if softcap is not None:
        raise ValueError(f"{NAME}: expected no softcap, got {softcap}")
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    return attend(query, key, value, attention_mask, scale=scale, causal=bool(causal),
                  lag_bias=_table(position_bias), window=sliding_window), None


def _table(bias: Optional[Tensor]) -> Optional[Tensor]:
    """[H, N+M-1] of a bias as lagwise.transformers.t5 makes it, [1, H, 1, 1, N+M-1]."""
    if bias is None or bias.numel() == 1:
        return None
    if bias.dim() != 5:
        raise ValueError(f"{NAME}: expected a bias by lag, got one of {list(bias.shape)} pairs; this "
                         "model makes a bias that lagwise does not know")
    return bias[0, :, 0, 0]


def register() -> None:
    AttentionInterface.register(NAME, exact_attention)
    AttentionMaskInterface.register(NAME, padding_mask)
