"""Positional encodings by the text that recipes use: ``lagwise.encoding("rope", ...)``."""

from typing import List, NamedTuple, Optional, Sequence

import torch
from torch import Tensor, nn

from lagwise import _part
from lagwise._draw import Draw, seed_of


class Encoded(NamedTuple):
    """What an encoding hands to attention; None where it has no such thing."""

    q: Tensor  #: [B, H, N, D']
    k: Tensor  #: [B, H, M, D']
    scale: float  #: of q.k and lag_keys in exact attention
    lag_bias: Optional[Tensor] = None  #: [H, N+M-1]: query i, key j at column i - j + M - 1
    lag_keys: Optional[Tensor] = None  #: [1|H, N+M-1, D'], inside the scale
    lag_values: Optional[Tensor] = None  #: [1|H, N+M-1, E]
    decay: Optional[Tensor] = None  #: [H] or [H, D'], log of the factor per step


class Encoding(nn.Module):
    """A positional encoding of heads, as data for any attention.

    Made by :func:`encoding`. Its parameters have the names that runs of the program have
    under ``pos.``. One module may serve several layers, which then share it. `seed` is what its
    parameters begin with and what its noise is drawn from; None: torch's generator gives one.
    """

    def __init__(self, text: str, heads: int, dim: int, *, value_dim: Optional[int] = None,
                 model_dim: Optional[int] = None, causal: bool = True, horizon: int = 0,
                 grid: Optional[Sequence[int]] = None, layer: int = 0, layers: int = 1,
                 seed: Optional[int] = None, attention: Optional[str] = None):
        super().__init__()
        seed = seed_of(seed)
        self.text, self.heads, self.dim = text, heads, dim
        self.config = dict(
            encoding=text, heads=heads, dim=dim, value_dim=value_dim, model_dim=model_dim,
            causal=causal, horizon=horizon or None, grid=list(grid) if grid else None,
            layer=layer, layers=layers, seed=seed, attention=attention)
        self._text = _part.describe("encoding", **self.config)
        self.facts = _part.facts(self._text)
        self.names: List[str] = []
        for name, value in _part.initial(self._text):
            self.register_parameter(name, nn.Parameter(value))
            self.names.append(name)
        self.draw = Draw(seed, self.facts["stochastic"])

    @property
    def width(self) -> int:
        """D' of encoded queries and keys."""
        return self.facts["width"]

    def tensors(self) -> List[Tensor]:
        """Its parameters in the order of C++."""
        return [getattr(self, name) for name in self.names]

    def forward(self, q: Tensor, k: Tensor, *, query_start: int = 0, key_start: int = 0) -> Encoded:
        """Queries [B, H, N, D] and keys [B, H, M, D] with their positions in or beside them."""
        results = _part.call(self._text, self.tensors(), q=q, k=k,
                             start=_part.starts(query_start, key_start), draw=self.draw())
        names = [name for name, _ in self.facts["results"]]
        return Encoded(scale=self.facts["scale"], **dict(zip(names, results)))

    def embed(self, x: Tensor, *, start: int = 0) -> Tensor:
        """The input [B, N, C] of a model with positions in it; most leave it alone."""
        return _part.call(self._text, self.tensors(), x=x, start=_part.starts(start, start))[0]

    def expect_on_heads(self) -> None:
        """Refuses what attention would pass over: positions that are added to the input."""
        if self.facts["stage"] != "input":
            return
        width = self.config["model_dim"] or self.heads * self.dim
        with torch.no_grad():
            if bool(self.embed(torch.zeros(1, 1, width)).any()):
                raise ValueError(f"encoding: expected one of queries and keys, got '{self.text}', which is "
                                 "added to the input of a model: lagwise.encoding(...).embed(x)")

    def extra_repr(self) -> str:
        return f"'{self.text}', heads={self.heads}, dim={self.dim}"


def encoding(text: str, heads: int, dim: int, **options) -> Encoding:
    """The encoding of that text (``rope:layout=half``), for heads of width `dim`.

    >>> lagwise.encoding("rope:layout=half", heads=8, dim=64).width
    64

    `options` are those of :class:`Encoding`. A text that is not legal is a ValueError of
    one line that says what is.
    """
    return Encoding(text, heads, dim, **options)
