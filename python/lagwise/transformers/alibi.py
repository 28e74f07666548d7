"""BLOOM and MPT, whose attention does not ask transformers for an implementation."""

import functools
from typing import Any, Tuple

import torch
from torch import Tensor
from transformers.models.bloom.modeling_bloom import BloomAttention, dropout_add
from transformers.models.mpt.modeling_mpt import MptAttention

from lagwise.transformers.exact import NAME, attend, chosen


def _by_lag(slopes: Tensor, n: int, m: int) -> Tensor:
    """ALiBi of keys m - 1, .., 0 for n queries, the last at the last key: [H, N+M-1].

    The table begins at the lag of the first query to the last key, -(n - 1) where lags
    count from the query's own position; what lies ahead is not looked at.
    """
    lag = torch.arange(1 - m, n) + (m - n)
    return -slopes[:, None] * lag


def _bloom(self: BloomAttention, hidden_states: Tensor, residual: Tensor, alibi: Tensor,
           attention_mask: Tensor, layer_past: Any = None, use_cache: bool = False,
           output_attentions: bool = False, **_: Any) -> Tuple[Tensor, None]:
    if self.training and self.attention_dropout.p:
        raise ValueError(f"{NAME}: expected attention_dropout 0, got {self.attention_dropout.p}")
    q, k, v = self._reshape(self.query_key_value(hidden_states))
    if layer_past is not None:
        k, v = layer_past.update(k, v, self.layer_idx)
    rising = alibi[: self.num_heads, 0, -1] - alibi[: self.num_heads, 0, -2] if k.shape[2] > 1 else (
        alibi.new_zeros(self.num_heads))  # slope times position; of one key nothing is left
    table = _by_lag(rising * self.beta, q.shape[2], k.shape[2])
    out = attend(q, k, v, attention_mask, scale=self.inv_norm_factor, causal=True, lag_bias=table)
    out = self.dense(out.flatten(2))
    return dropout_add(out, residual, self.hidden_dropout, self.training), None


def _mpt(self: MptAttention, hidden_states: Tensor, position_bias: Tensor,
         past_key_values: Any = None, attention_mask: Any = None, **_: Any) -> Tuple[Tensor, None]:
    if self.training and self.attn_dropout_p:
        raise ValueError(f"{NAME}: expected attn_pdrop 0, got {self.attn_dropout_p}")
    mixed = self.Wqkv(hidden_states)
    if self.clip_qkv:
        mixed = mixed.clamp(min=-self.clip_qkv, max=self.clip_qkv)
    q, k, v = (x.unflatten(2, (self.n_heads, self.head_dim)).transpose(1, 2)
               for x in mixed.chunk(3, dim=2))
    if past_key_values is not None:
        k, v = past_key_values.update(k, v, self.layer_idx)
    slopes = position_bias[:, 0, -1] - position_bias[:, 0, -2]  # slope times (j - last)
    out = attend(q, k, v, attention_mask, scale=self.softmax_scale, causal=True,
                 lag_bias=_by_lag(slopes, q.shape[2], k.shape[2]))
    return self.out_proj(out.flatten(2)), None


def register() -> None:
    """Both go on as they were, unless a model chose lagwise."""
    for kind, ours in ((BloomAttention, _bloom), (MptAttention, _mpt)):
        _choose(kind, ours)


def _choose(kind: type, ours: Any) -> None:
    made, theirs = kind.__init__, kind.forward

    @functools.wraps(made)
    def remember(self, config, *arguments, **keywords):
        made(self, config, *arguments, **keywords)
        self.lagwise_config = config  # which knows what was chosen

    @functools.wraps(theirs)
    def forward(self, *arguments, **keywords):
        return (ours if chosen(self.lagwise_config) else theirs)(self, *arguments, **keywords)

    kind.__init__, kind.forward = remember, forward
