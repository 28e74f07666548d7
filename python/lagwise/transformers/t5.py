"""T5's bias by lag: the model's own function would make N x M numbers a head of it."""

import functools
from typing import Any

import torch
from torch import Tensor
from transformers.models.t5.modeling_t5 import T5Attention

from lagwise.transformers.exact import chosen


def _bias_by_lag(self: T5Attention, query_length: int, key_length: int, device: Any = None,
                 past_seen_tokens: int = 0) -> Tensor:
    """[1, H, 1, 1, N+M-1]: query i, counted from the first new one, and key j at column
    i - j + M - 1, where the relative position is j - i - past."""
    column = torch.arange(query_length + key_length - 1)
    relative = key_length - 1 - column - past_seen_tokens
    bucket = self._relative_position_bucket(
        relative, bidirectional=not self.is_decoder,
        num_buckets=self.relative_attention_num_buckets,
        max_distance=self.relative_attention_max_distance)
    return self.relative_attention_bias(bucket).t()[None, :, None, None]


def register() -> None:
    """T5Attention goes on as it was, unless a model chose lagwise."""
    compute_bias, forward = T5Attention.compute_bias, T5Attention.forward

    @functools.wraps(compute_bias)
    def bias(self, *arguments, **keywords):
        return (_bias_by_lag if chosen(self.config) else compute_bias)(self, *arguments, **keywords)

    @functools.wraps(forward)
    def with_bias(self, hidden_states, mask=None, key_value_states=None, position_bias=None,
                  **keywords):
        bare = position_bias is None and not self.has_relative_attention_bias
        if chosen(self.config) and bare:
            position_bias = hidden_states.new_zeros(1)  # else it makes N x M zeros
        return forward(self, hidden_states, mask, key_value_states, position_bias, **keywords)

    T5Attention.compute_bias, T5Attention.forward = bias, with_bias
