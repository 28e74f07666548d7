"""A layer of attention with the keywords of ``torch.nn.MultiheadAttention``."""

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from lagwise import _part
from lagwise._draw import Draw, seed_of
from lagwise._named import NamedParameters
from lagwise._padding import from_front, spans, to_front
from lagwise.encodings import Encoding

_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


class LayerState(NamedTuple):
    """What a layer of linear attention keeps of the past: a constant size."""

    tensors: Tuple[Tensor, ...]  #: s, z, m of the attention, last rows of its convolutions
    position: int  #: rows read

    def detach(self) -> "LayerState":
        return LayerState(tuple(x.detach() for x in self.tensors), self.position)

    def reorder(self, order: Tensor) -> "LayerState":
        """Sequence b becomes what sequence order[b] was: beam search."""
        return LayerState(tuple(x.index_select(0, order) if x.dim() > 1 else x
                                for x in self.tensors), self.position)

    def bytes(self) -> int:
        return sum(x.numel() * x.element_size() for x in self.tensors)


_STATE = ("s", "z", "m", "recent_q", "recent_k", "recent_v")


class _NoShortCut:
    """Stands for the packed weights of torch's layer. An encoder of torch that meets at inference
    what is no tensor but has this method computes layer by layer, and so by ours."""

    @classmethod
    def __torch_function__(cls, *_, **__):
        raise TypeError("in_proj_weight: expected no use of it: projections are apart, q_proj.weight")


class MultiheadAttention(NamedParameters):
    """Stands where ``torch.nn.MultiheadAttention`` stood, with an encoding and an attention
    of your choice (texts as in recipes):

    >>> layer = lagwise.MultiheadAttention(512, 8, batch_first=True, causal=True,
    ...                                    attention="gated_deltanet")
    >>> x = torch.randn(2, 100, 512)
    >>> y, _ = layer(x, x, x)

    Gates, short convolutions and norms of heads that the text of the attention asks for are
    part of the layer. Parameters are named as in the program's checkpoints (``q_proj.weight``);
    a state_dict of ``torch.nn.MultiheadAttention`` is taken too. Differences: no weights are
    returned, dropout on them is refused, masks are `causal`, `is_causal` and
    `key_padding_mask` alone, and key and value are projected from the same rows. `seed` is what
    parameters begin with and noise is drawn from; None: torch's generator gives one.
    """

    # What encoders of torch.nn ask their attention before they take a short cut.
    in_proj_weight = _NoShortCut()
    in_proj_bias = None
    _qkv_same_embed_dim = False

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False,
                 kdim: Optional[int] = None, vdim: Optional[int] = None,
                 batch_first: bool = False, device=None, dtype=None, *,
                 attention: str = "exact", encoding: str = "none", causal: bool = False,
                 key_dim: Optional[int] = None, value_dim: Optional[int] = None,
                 horizon: int = 0, layer: int = 0, layers: int = 1, seed: Optional[int] = None):
        super().__init__()
        seed = seed_of(seed)
        _refuse("dropout", dropout, 0.0, "weights are never formed: drop out what comes back")
        _refuse("add_bias_kv", add_bias_kv, False, "linear attention has no row to add")
        _refuse("add_zero_attn", add_zero_attn, False, "linear attention has no row to add")
        _refuse("kdim", kdim or embed_dim, embed_dim, "project keys to embed_dim first")
        _refuse("vdim", vdim or embed_dim, embed_dim, "project values to embed_dim first")
        if (key_dim is None or value_dim is None) and embed_dim % num_heads:
            raise ValueError(f"embed_dim: expected a multiple of num_heads = {num_heads}, "
                             f"got {embed_dim}")
        self.embed_dim, self.num_heads, self.batch_first = embed_dim, num_heads, batch_first
        self.attention, self.encoding, self.causal = attention, encoding, causal
        config = dict(
            attention=attention, encoding=encoding, heads=num_heads,
            dim=key_dim or embed_dim // num_heads, value_dim=value_dim or embed_dim // num_heads,
            model_dim=embed_dim, horizon=horizon or None, layer=layer, layers=layers, seed=seed)
        Encoding(encoding, **{name: value for name, value in config.items()
                              if name not in ("attention", "encoding")}).expect_on_heads()
        self._texts = {order: _part.describe("layer", causal=order, **config)
                       for order in (False, True)}
        self._stepwise = _part.describe("layer", causal=True, state=True, **config)
        facts = _part.facts(self._texts[causal])
        self._has_state = causal and facts["state"] is not None
        self.take_parameters(_part.initial(self._texts[causal]), device=device, dtype=dtype)
        self.draw = Draw(seed, facts["draws"])
        if not bias:
            for name in _PROJECTIONS:
                value = getattr(self, name).bias.detach()
                del getattr(self, name).bias
                getattr(self, name).register_buffer("bias", value, persistent=False)

    def forward(self, query: Tensor, key: Optional[Tensor] = None, value: Optional[Tensor] = None,
                key_padding_mask: Optional[Tensor] = None, need_weights: bool = False,
                attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> Tuple[Tensor, None]:
        """[N, B, C], with batch_first [B, N, C], without a batch [N, C] -> the same, None.

        `key_padding_mask` [B, M] is true at padding, which stands before or after the rest.
        """
        key = query if key is None else key
        if need_weights:
            raise ValueError("need_weights: expected False, got True: the N x N weights are "
                             "never formed")
        if value is not None and not _same(value, key):
            raise ValueError("value: expected the same tensor as key, got another")
        if attn_mask is not None and not (is_causal or self.causal):
            raise ValueError("attn_mask: expected none, or a causal one with is_causal=True; "
                             "an N x N mask would undo the linear cost")
        if query.dim() == 2:
            out, _ = self.forward(query.unsqueeze(self._batch), _unsqueezed(key, query, self._batch),
                                  is_causal=is_causal)
            return out.squeeze(self._batch), None
        x = query if self.batch_first else query.transpose(0, 1)
        y = None if _same(key, query) else key if self.batch_first else key.transpose(0, 1)
        out = self._attend(self._widened(x), self._widened(y), key_padding_mask,
                           is_causal or self.causal).to(query.dtype)
        return (out if self.batch_first else out.transpose(0, 1)), None

    def _widened(self, x: Optional[Tensor]) -> Optional[Tensor]:
        """Rows of a half type, as layers under autocast hand them on, in that of our weights."""
        half = x is not None and x.dtype in (torch.bfloat16, torch.float16)
        return x.to(self.q_proj.weight.dtype) if half else x

    @property
    def _batch(self) -> int:
        return 0 if self.batch_first else 1

    def _attend(self, x: Tensor, y: Optional[Tensor], padding: Optional[Tensor],
                causal: bool) -> Tensor:
        starts, lengths = (None, None) if padding is None else spans(_real(padding))
        if y is not None:  # cross attention: the rows of the keys are padded
            if starts is not None:
                y = to_front(y, starts, 1)
            return self._call(causal, x=x, y=y, key_lengths=lengths)
        if starts is None:
            return self._call(causal, x=x, lengths=lengths)
        return from_front(self._call(causal, x=to_front(x, starts, 1), lengths=lengths), starts, 1)

    def _call(self, causal: bool, **inputs: Optional[Tensor]) -> Tensor:
        return _part.call(self._texts[causal], self.tensors(), draw=self.draw(), **inputs)[0]

    def extend(self, x: Tensor, state: Optional[LayerState] = None) -> Tuple[Tensor, LayerState]:
        """Causal: the next rows [B, n, C] after `state` (None: the first), and the next state."""
        if not self._has_state:
            raise ValueError(f"extend: expected causal=True and linear attention with a state of "
                             f"constant size, got '{self.attention}' with '{self.encoding}'")
        before = dict(zip(_STATE, state.tensors)) if state is not None else {}
        position = state.position if state is not None else 0
        at = torch.as_tensor(position)
        out, *kept = _part.call(self._stepwise, self.tensors(), x=x, start=torch.stack([at, at]),
                                draw=self.draw(), **before)
        return out, LayerState(tuple(kept), position + x.shape[1])

    def _load_from_state_dict(self, state_dict: Dict[str, Tensor], prefix: str, *rest) -> None:
        """Takes the packed projections of ``torch.nn.MultiheadAttention`` apart."""
        for kind in ("weight", "bias"):
            packed = state_dict.pop(f"{prefix}in_proj_{kind}", None)
            if packed is not None:
                for name, piece in zip(_PROJECTIONS, packed.chunk(3)):
                    state_dict[f"{prefix}{name}.{kind}"] = piece
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        return (f"{self.embed_dim}, {self.num_heads}, attention='{self.attention}', "
                f"encoding='{self.encoding}', causal={self.causal}")


def _refuse(name: str, got, expected, why: str) -> None:
    if got != expected:
        raise ValueError(f"{name}: expected {expected}, got {got}; {why}")


def _real(padding: Tensor) -> Tensor:
    """Where rows are real: masks are true, or -inf, at padding."""
    return ~padding if padding.dtype == torch.bool else padding == 0


def _unsqueezed(key: Tensor, query: Tensor, dim: int) -> Optional[Tensor]:
    return None if _same(key, query) else key.unsqueeze(dim)


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are one, or views of the same numbers: ``layer(x[0], x[0], x[0])``."""
    if a is b or _part.is_traced():
        return a is b
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.stride() == b.stride()
