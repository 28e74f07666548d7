"""Padding before the first real row, by moving rows to the front and back."""

from typing import Optional, Tuple

import torch
from torch import Tensor


def to_front(x: Optional[Tensor], starts: Tensor, dim: int) -> Optional[Tensor]:
    """Row i of sequence b becomes row i - starts[b], those before it go to the end."""
    return None if x is None else _moved(x, starts, dim)


def from_front(x: Tensor, starts: Tensor, dim: int) -> Tensor:
    """The way back."""
    return _moved(x, -starts, dim)


def _moved(x: Tensor, by: Tensor, dim: int) -> Tensor:
    rows = x.shape[dim]
    if rows == 0:
        return x
    index = (torch.arange(rows) + by[:, None]) % rows  # [B, N]
    shape = [x.shape[0]] + [1] * (x.dim() - 1)
    shape[dim] = rows
    return x.gather(dim, index.view(shape).expand(x.shape))


def spans(mask: Tensor) -> Tuple[Optional[Tensor], Tensor]:
    """`starts` and `lengths` [B] of a mask [B, N] that is nonzero where rows are real.

    Real rows of a sequence must stand side by side; `starts` is None where all begin at 0.
    """
    real = mask.bool()
    lengths = real.sum(1)
    starts = real.to(torch.int8).argmax(1) if real.shape[1] > 0 else torch.zeros_like(lengths)
    place = torch.arange(real.shape[1])
    expected = (place >= starts[:, None]) & (place < (starts + lengths)[:, None])
    if not torch.equal(real, expected):
        raise ValueError("mask [B, N]: expected padding before or after the real rows of a "
                         "sequence, got padding between them")
    return (None if bool((starts == 0).all()) else starts), lengths
