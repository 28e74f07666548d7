"""Attention joined with an encoding: heads in, heads out, [B, H, N, D]."""

from typing import List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from lagwise import _part
from lagwise._draw import Draw, seed_of
from lagwise._padding import from_front, to_front
from lagwise.encodings import Encoding
from lagwise.states import KeyValueCache, LinearState


class Attention(nn.Module):
    """One attention of one layer, by the text that recipes use.

    `attention` is ``linear:map=elu1``, ``linear:map=none,write=delta,...``, ``exact`` or the
    name of a known model (``lagwise list attentions`` of the program lists all). `encoding`
    is a text, or an :class:`Encoding` that several layers share. Where the text says
    ``forget=gated`` or ``write=delta``, a call takes the gates `log_decay` (<= 0) and
    `write_strength` (0 to 1), [B, H, M]; :class:`MultiheadAttention` makes them itself.

    `seed` is what parameters begin with and noise is drawn from; None: torch's generator
    gives one. `layer` of `layers` matters to encodings whose layers differ (``decay:kind=tnl``).

    Its parameters: ``pos.*`` of the encoding, ``q_bias``, ``k_bias``, ``norm_gain`` where the
    text asks for them, with the names of the program's checkpoints.
    """

    kind: Optional[str] = None  #: what the text must begin with

    def __init__(self, heads: int, dim: int, attention: str,
                 encoding: Union[str, Encoding] = "none", *, value_dim: Optional[int] = None,
                 causal: bool = True, horizon: int = 0, layer: int = 0, layers: int = 1,
                 seed: Optional[int] = None):
        super().__init__()
        seed = seed_of(seed)
        self.heads, self.dim, self.attention = heads, dim, attention
        self.value_dim, self.causal = value_dim or dim, causal
        config = dict(attention=attention, heads=heads, dim=dim, value_dim=self.value_dim,
                      causal=causal, horizon=horizon or None, layer=layer, layers=layers,
                      seed=seed)
        given = encoding if isinstance(encoding, Encoding) else None
        text = given.text if given is not None else encoding
        self._config = {**config, "encoding": text}
        self._whole = _part.describe("attention", **self._config)
        self._stepwise = _part.describe("attention", state=True, **self._config)
        self.facts = _part.facts(self._whole)
        self._expect_kind()
        self.pos = given if given is not None else Encoding(text, **{
            name: value for name, value in config.items()})
        self._expect_width()
        self.pos.expect_on_heads()
        self._own: List[str] = []
        for name, value in _part.initial(self._whole):
            if not name.startswith("pos."):
                self.register_parameter(name, nn.Parameter(value))
                self._own.append(name)
        self.draw = Draw(seed, self.facts["draws"])

    def _expect_kind(self) -> None:
        made = self.facts["text"].split(":")[0]
        if self.kind is not None and made != self.kind:
            raise ValueError(f"{type(self).__name__}: expected attention '{self.kind}:...', "
                             f"got '{self.attention}'")

    def _expect_width(self) -> None:
        if self.pos.facts["dim"] != self.facts["dim"] or self.pos.heads != self.heads:
            raise ValueError(
                f"{type(self).__name__}: expected an encoding of {self.heads} heads of width "
                f"{self.facts['dim']}, got {self.pos.heads} of {self.pos.facts['dim']}")

    def _expect_rows(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Heads of another number or width would meet a scale and tables that are not theirs."""
        for name, x, width in (("q", q, self.dim), ("k", k, self.dim), ("v", v, self.value_dim)):
            if not isinstance(x, Tensor):
                raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
            if x.dim() != 4 or x.shape[1] != self.heads or x.shape[3] != width:
                raise ValueError(f"{name}: expected [B, {self.heads}, N, {width}], got {list(x.shape)}")

    def _tensors(self) -> List[Tensor]:
        return [*self.pos.tensors(), *(getattr(self, name) for name in self._own)]

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *, log_decay: Optional[Tensor] = None,
                write_strength: Optional[Tensor] = None, lengths: Optional[Tensor] = None,
                key_lengths: Optional[Tensor] = None, starts: Optional[Tensor] = None,
                query_start: int = 0, key_start: int = 0) -> Tensor:
        """q [B, H, N, D], k [B, H, M, D], v [B, H, M, E] -> [B, H, N, E].

        `lengths` [B]: how many rows of each sequence are real, padding after them; `starts`
        [B]: which is the first of them, padding before it. Padded rows give zeros. Causal
        attention counts from `query_start` and `key_start`: with both at 0, query i sees the
        keys up to i, however many there are.
        """
        self._expect_rows(q, k, v)
        lengths, key_lengths, starts = (None if x is None else torch.as_tensor(x)
                                        for x in (lengths, key_lengths, starts))
        if starts is not None:
            return self._from(starts, lengths, q=q, k=k, v=v, log_decay=log_decay,
                              write_strength=write_strength)
        return _part.call(
            self._whole, self._tensors(), q=q, k=k, v=v, log_decay=log_decay,
            write_strength=write_strength, lengths=lengths, key_lengths=key_lengths,
            start=_part.starts(query_start, key_start), draw=self.draw())[0]

    def _from(self, starts: Tensor, lengths: Optional[Tensor], **rows: Optional[Tensor]) -> Tensor:
        """Self attention where sequences begin late: each counts from its first real row."""
        if lengths is None:
            lengths = rows["q"].shape[2] - starts
        moved = {name: to_front(x, starts, 2) for name, x in rows.items()}
        return from_front(self(lengths=lengths, **moved), starts, 2)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, dim={self.dim}, '{self.attention}', causal={self.causal}"


class LinearAttention(Attention):
    """Linear attention: time grows with N, and the past is a state of constant size.

    >>> attend = lagwise.LinearAttention(8, 64, "linear:map=elu1", "rope:layout=half")
    >>> q, k, v = (torch.randn(1, 8, 100, 64) for _ in range(3))
    >>> attend(q, k, v).shape
    torch.Size([1, 8, 100, 64])

    Token by token, the same numbers:

    >>> state = None
    >>> for t in range(100):
    ...     row = slice(t, t + 1)
    ...     out, state = attend.extend(q[:, :, row], k[:, :, row], v[:, :, row], state)
    >>> torch.allclose(out[:, :, 0], attend(q, k, v)[:, :, -1], atol=1e-5)
    True
    """

    kind = "linear"

    def __init__(self, heads: int, dim: int, attention: str = "linear:map=elu1",
                 encoding: Union[str, Encoding] = "none", **options):
        super().__init__(heads, dim, attention, encoding, **options)

    def extend(self, q: Tensor, k: Tensor, v: Tensor, state: Optional[LinearState] = None, *,
               log_decay: Optional[Tensor] = None, write_strength: Optional[Tensor] = None,
               lengths: Optional[Tensor] = None) -> Tuple[Tensor, LinearState]:
        """The next rows after `state` (None: the first), and the state after them.

        The given state stays as it is. Gradients flow through it; ``state.detach()`` ends
        them.
        """
        if self.facts["state"] is None:
            raise ValueError(f"extend: expected causal attention with an encoding that leaves a "
                             f"state of constant size, got '{self.pos.text}'")
        self._expect_rows(q, k, v)
        before = state if state is not None else LinearState.nothing()
        if not isinstance(before, LinearState):
            raise TypeError(f"state: expected a LinearState, got {type(before).__name__}")
        at = torch.as_tensor(before.position)
        out, s, z, m = _part.call(
            self._stepwise, self._tensors(), q=q, k=k, v=v, s=before.s, z=before.z, m=before.m,
            log_decay=log_decay, write_strength=write_strength, lengths=lengths,
            start=torch.stack([at, at]), draw=self.draw())
        return out, LinearState(s, z, m if m.dim() > 1 else None, before.position + q.shape[2])


class ExactAttention(Attention):
    """Softmax attention over all pairs with whatever an encoding adds, never as N x N.

    >>> attend = lagwise.ExactAttention(8, 64, encoding="alibi")
    >>> q, k, v = (torch.randn(2, 8, 33, 64) for _ in range(3))
    >>> attend(q, k, v).shape
    torch.Size([2, 8, 33, 64])
    """

    kind = "exact"

    def __init__(self, heads: int, dim: int, attention: str = "exact",
                 encoding: Union[str, Encoding] = "none", **options):
        super().__init__(heads, dim, attention, encoding, **options)

    def extend(self, q: Tensor, k: Tensor, v: Tensor, cache: Optional[KeyValueCache] = None, *,
               log_decay: Optional[Tensor] = None) -> Tuple[Tensor, KeyValueCache]:
        """The next rows over all so far, and the cache with them in it."""
        self._expect_rows(q, k, v)
        cache = cache if cache is not None else KeyValueCache()
        if not isinstance(cache, KeyValueCache):
            raise TypeError(f"cache: expected a KeyValueCache, got {type(cache).__name__}")
        cache = cache.append(k, v, log_decay)
        out = _part.call(
            self._whole, self._tensors(), q=q, k=cache.k, v=cache.v,
            log_decay=cache.log_decay,
            start=_part.starts(cache.length - q.shape[2], 0), draw=self.draw())[0]
        return out, cache


def attention(text: str, heads: int, dim: int, **options) -> Attention:
    """Linear or exact attention, as the text says: ``lagwise.attention("retnet", 8, 64)``."""
    kind = _part.facts(_part.describe("attention", attention=text, heads=heads, dim=dim))["text"]
    made = LinearAttention if kind.split(":")[0] == "linear" else ExactAttention
    return made(heads, dim, text, **options)
