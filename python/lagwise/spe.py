"""Stochastic positional encoding with the names, shapes and parameters of the reference
package (Liutkus et al., ICML 2021, arXiv:2105.08399): ``SineSPE``, ``ConvSPE``, ``SPEFilter``.

    code = SineSPE(num_heads=8, in_features=64, num_realizations=256, num_sines=5)
    spe = SPEFilter(gated=True, code_shape=code.code_shape)
    qhat, khat = spe(queries, keys, code(queries.shape[:2]))

Tensors are [batch, length, heads, features]. A code has length * heads * features *
realizations numbers and is not formed here: calling ``SineSPE`` gives a lazy pair that
``SPEFilter`` hands to a fused operator. Whoever unpacks the pair, or indexes it, gets the
tensors (qbar, kbar) of the reference, [1, length, heads, features, realizations].
"""

import math
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ops = torch.ops.lagwise


class Gate(NamedTuple):
    """A share of the code that has no position, the same noise for queries and keys."""

    share: Tensor  #: [H, D], from 0 to 1
    noise: Tensor  #: [H, D, R]


class LazyCode:
    """The pair (qbar, kbar) of one draw of noise, formed when somebody asks for it."""

    def __init__(self, source: "Code", size: Tuple[int, ...], realizations: int,
                 noise: Union[Tensor, int]):
        self.source, self.size = source, size
        self.realizations, self.noise = realizations, noise
        self._formed: Optional[Tuple[Tensor, Tensor]] = None

    def formed(self) -> Tuple[Tensor, Tensor]:
        """(qbar, kbar): what the fused operator makes of rows with a single 1 in them."""
        if self._formed is None:
            features, heads = self.source.in_features, self.source.num_heads
            rows = math.prod(self.size)
            like = next(self.source.parameters())
            one = torch.eye(features, dtype=like.dtype)[:, None, None, :]  # feature b is 1
            one = one.expand(features, heads, rows, features)
            self._formed = tuple(  # [D, H, N, R] -> [1, *size, H, D, R]
                x.permute(2, 1, 0, 3).reshape(1, *self.size, heads, features, -1)
                for x in self.source.filter(one, one, self, self.size, None))
        return self._formed

    def __getitem__(self, index: int) -> Tensor:
        return self.formed()[index]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.formed())

    def __len__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"LazyCode({type(self.source).__name__}, size={self.size})"


class Code(nn.Module):
    """What both codes have in common."""

    num_heads: int
    in_features: int
    num_realizations: int

    @property
    def code_shape(self) -> Tuple[int, int, int]:
        return (self.num_heads, self.in_features, self.num_realizations)

    def filter(self, q: Tensor, k: Tensor, code: LazyCode, size: Tuple[int, ...],
               gate: Optional[Gate]) -> Tuple[Tensor, Tensor]:
        """Rows [B, H, N, D] times the code, summed over features: [B, H, N, R]."""
        raise NotImplementedError


class SineSPE(Code):
    """Codes whose covariance is a sum of waves of the lag:

        P(tau) = 1/2K sum_k gain_k^2 cos(2 pi f_k tau + offset_k),  f = sigmoid(freqs) / 2,
        gain = softplus(gains)

    Parameters  freqs, offsets, gains [heads, features, sines]
    """

    def __init__(self, num_heads: int = 8, in_features: int = 64, num_realizations: int = 256,
                 num_sines: int = 1):
        super().__init__()
        self.num_heads, self.in_features = num_heads, in_features
        self.num_realizations, self.num_sines = num_realizations, num_sines
        shape = (num_heads, in_features, num_sines)
        gains = torch.randn(shape)
        self.freqs = nn.Parameter(torch.randn(shape) - 4)
        self.offsets = nn.Parameter(torch.randn(shape))
        self.gains = nn.Parameter(2 * gains / gains.norm(dim=-1, keepdim=True).sqrt())

    def forward(self, shape: Sequence[int], num_realizations: Optional[int] = None) -> LazyCode:
        """The code of `shape` = (batch, length); one serves the whole batch."""
        realizations = num_realizations or self.num_realizations
        noise = torch.randn(self.num_heads, self.in_features, 2 * self.num_sines, realizations,
                            dtype=self.freqs.dtype)
        return LazyCode(self, tuple(shape[1:]), realizations, noise)

    def filter(self, q: Tensor, k: Tensor, code: LazyCode, size: Tuple[int, ...],
               gate: Optional[Gate]) -> Tuple[Tensor, Tensor]:
        width = code.realizations
        strength = (width * self.in_features) ** -0.25
        frequency = torch.sigmoid(self.freqs.double()) / 2
        amplitude = F.softplus(self.gains.double()) * strength / math.sqrt(2 * self.num_sines)
        constant = noise = None
        if gate is not None:
            amplitude = amplitude * _root(1 - gate.share.double())[..., None]
            constant, noise = _root(gate.share.double()) * strength, gate.noise.to(q.dtype)
        at = torch.arange(q.shape[2], dtype=torch.double)
        return ops.sine_spe(q, k, frequency, self.offsets.double(), amplitude, constant, at, at,
                            code.noise.to(q.dtype), noise, None, width)

    def get_posattn_matrix(self, max_len: int = 2048) -> Tensor:
        """2K P(m - n) by head and feature, [1, H, D, max_len, max_len], as the reference has it."""
        lag = torch.arange(max_len)[:, None] - torch.arange(max_len)
        every = torch.arange(1 - max_len, max_len)
        angle = math.pi * torch.sigmoid(self.freqs)[..., None] * every + self.offsets[..., None]
        waves = F.softplus(self.gains)[..., None] ** 2 * torch.cos(angle)
        return waves.sum(2)[..., lag + max_len - 1][None]


class ConvSPE(Code):
    """Codes that are noise filtered by learned kernels, on a line or a grid:
    the covariance is a learned function of lags shorter than the kernel.

    Parameters  conv_q.weight, conv_k.weight [heads * features, 1, *kernel]. As in the
                reference, conv_q makes the code of keys and conv_k that of queries.
    """

    def __init__(self, ndim: int = 1, num_heads: int = 8, in_features: int = 64,
                 num_realizations: int = 256, kernel_size: Union[int, Sequence[int]] = 200):
        super().__init__()
        if ndim not in (1, 2, 3):
            raise ValueError(f"ndim: expected 1, 2 or 3, got {ndim}")
        sizes = [kernel_size] * ndim if isinstance(kernel_size, int) else list(kernel_size)
        self.ndim, self.num_heads, self.in_features = ndim, num_heads, in_features
        self.num_realizations, self.kernel_size = num_realizations, sizes
        window = torch.ones([1] * ndim)
        for axis, size in enumerate(sizes):
            shape = [1] * ndim
            shape[axis] = size
            window = window * torch.hamming_window(size + 2)[1:-1].view(shape)
        window = (window / window.norm().sqrt()).expand(num_heads * in_features, 1, *sizes)
        self.conv_q, self.conv_k = nn.Module(), nn.Module()
        self.conv_q.weight = nn.Parameter(window.clone())
        self.conv_k.weight = nn.Parameter(window.clone())

    def forward(self, shape: Sequence[int], num_realizations: Optional[int] = None) -> LazyCode:
        """The code of `shape` = (batch, *size); one serves the whole batch."""
        size = tuple(shape[1:])
        if len(size) != self.ndim:
            raise ValueError(f"shape: expected (batch, *size) with {self.ndim} sizes, got {shape}")
        seed = int(torch.randint(2 ** 62, ()))  # of the noise that the operator draws
        return LazyCode(self, size, num_realizations or self.num_realizations, seed)

    def filter(self, q: Tensor, k: Tensor, code: LazyCode, size: Tuple[int, ...],
               gate: Optional[Gate]) -> Tuple[Tensor, Tensor]:
        of_queries, of_keys = self.conv_k.weight.to(q.dtype), self.conv_q.weight.to(q.dtype)
        if gate is not None:
            keep = _root(1 - gate.share).to(q.dtype).view(-1, *[1] * (1 + self.ndim))
            of_queries, of_keys = of_queries * keep, of_keys * keep
        drawn = {"z": code.noise.to(q.dtype)} if isinstance(code.noise, Tensor) else {"seed": code.noise}
        qhat, khat = ops.conv_spe(q, k, of_queries, of_keys, realizations=code.realizations,
                                  grid=list(size) if self.ndim > 1 else [], **drawn)
        if gate is None:
            return qhat, khat
        strength = (code.realizations * self.in_features) ** -0.25
        placeless = (_root(gate.share)[..., None] * gate.noise * strength).to(q.dtype)
        return qhat + q @ placeless, khat + k @ placeless

    def get_posattn_matrix(self, shape: Sequence[int],
                           num_realizations: Optional[int] = None) -> Tensor:
        """qbar kbar^T of one draw, averaged over realizations: [*size, *size] flattened,
        heads, features."""
        qbar, kbar = self((1, *shape), num_realizations)
        scale = math.sqrt(self.in_features / qbar.shape[-1])
        flat = (x.reshape(-1, *x.shape[-3:]) for x in (qbar, kbar))
        return torch.einsum("mhdr,nhdr->mnhd", *flat) * scale


class SPEFilter(nn.Module):
    """Multiplies queries and keys by a code and sums over features.

    `gated`: a learned share of every feature, sigmoid(gate), has no position.

    Parameters  gate [heads, features]
    """

    gate: Optional[Tensor]

    def __init__(self, gated: bool = True, code_shape: Optional[Sequence[int]] = None):
        super().__init__()
        self.code_shape = None if code_shape is None else tuple(code_shape)
        if gated and code_shape is None:
            raise ValueError("code_shape: expected that of a code with gated=True, got None")
        self.register_parameter("gate", nn.Parameter(torch.randn(*code_shape[:2])) if gated else None)

    def forward(self, queries: Tensor, keys: Tensor,
                code: Union[LazyCode, Tuple[Tensor, Tensor]]) -> Tuple[Tensor, Tensor]:
        """(batch, *size, heads, features) twice -> (batch, *size, heads, realizations) twice."""
        lazy = isinstance(code, LazyCode)
        realizations = code.realizations if lazy else code[0].shape[-1]
        gate = None
        if self.gate is not None:
            noise = torch.randn(*self.gate.shape, realizations, dtype=queries.dtype)
            gate = Gate(torch.sigmoid(self.gate), noise)
        if not lazy:
            return _multiply(queries, keys, code, gate)
        size = tuple(queries.shape[1:-2])
        if size != tuple(keys.shape[1:-2]) or any(n > m for n, m in zip(size, code.size)):
            raise ValueError(f"queries, keys: expected rows of the code's size {code.size}, got "
                             f"{size} and {tuple(keys.shape[1:-2])}")
        q, k = (x.flatten(1, -3).transpose(1, 2) for x in (queries, keys))
        results = code.source.filter(q, k, code, size, gate)
        return tuple(x.transpose(1, 2).unflatten(1, size) for x in results)


def _root(x: Tensor) -> Tensor:
    return x.clamp_min(torch.finfo(x.dtype).tiny).sqrt()  # whose slope at 0 is finite


def _multiply(queries: Tensor, keys: Tensor, code: Tuple[Tensor, Tensor],
              gate: Optional[Gate]) -> Tuple[Tensor, Tensor]:
    """By the definition, with a code that is there."""
    def one(x: Tensor, bar: Tensor) -> Tensor:
        if gate is not None:
            share = gate.share[..., None]
            strength = (bar.shape[-1] * bar.shape[-2]) ** -0.25
            bar = _root(1 - share) * bar + _root(share) * gate.noise * strength
        return (x[..., None] * bar).sum(-2)
    return one(queries, code[0]), one(keys, code[1])
