"""The operators of ``torch.ops.lagwise``, as ``lagwise.ops`` names them.

B batch, H heads, N queries, M keys, D width of queries and keys, E width of values. What
each one computes: docs/library.md.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    feature_map: str = "none",
    decay: Tensor | None = None,
    denominator: str = "same",
    q_norm: Tensor | None = None,
    k_norm: Tensor | None = None,
    eps: float = 1e-6,
    eps_mode: str = "add",
    log_scale: Tensor | None = None,
    lengths: Tensor | None = None,
    key_lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    key_cu_seqlens: Tensor | None = None,
    log_decay: Tensor | None = None,
    write_strength: Tensor | None = None,
    starts: Tensor | None = None,
    key_starts: Tensor | None = None,
    attn_mask: Tensor | None = None,
) -> Tensor:
    """The whole sequence: [B, H, N, E]."""

def linear_attention_stateful(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    s: Tensor | None = None,
    z: Tensor | None = None,
    m: Tensor | None = None,
    *,
    causal: bool = False,
    feature_map: str = "none",
    decay: Tensor | None = None,
    denominator: str = "same",
    q_norm: Tensor | None = None,
    k_norm: Tensor | None = None,
    eps: float = 1e-6,
    eps_mode: str = "add",
    log_scale: Tensor | None = None,
    lengths: Tensor | None = None,
    key_lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    key_cu_seqlens: Tensor | None = None,
    log_decay: Tensor | None = None,
    write_strength: Tensor | None = None,
    starts: Tensor | None = None,
    key_starts: Tensor | None = None,
    attn_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same from a state: out, and the state s, z, m after the last key."""

def linear_attention_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    s: Tensor,
    z: Tensor,
    m: Tensor | None = None,
    *,
    feature_map: str = "none",
    decay: Tensor | None = None,
    denominator: str = "same",
    q_norm: Tensor | None = None,
    k_norm: Tensor | None = None,
    eps: float = 1e-6,
    eps_mode: str = "add",
    log_scale: Tensor | None = None,
    log_decay: Tensor | None = None,
    write_strength: Tensor | None = None,
) -> Tensor:
    """One token, [B, H, E]; writes to s, z and m. No gradient."""

def toeplitz_linear(
    q: Tensor, k: Tensor, v: Tensor, lag_bias: Tensor, *, eps: float = 1e-6
) -> Tensor:
    """Full linear attention with a bias by lag [1 or H, N+M-1]: [B, H, N, E]."""

def exact_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    lag_bias: Tensor | None = None,
    lag_keys: Tensor | None = None,
    lag_values: Tensor | None = None,
    query_start: int | None = None,
    key_start: int = 0,
    window: int | None = None,
    lengths: Tensor | None = None,
    key_lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    key_cu_seqlens: Tensor | None = None,
    key_bias: Tensor | None = None,
    starts: Tensor | None = None,
    key_starts: Tensor | None = None,
) -> Tensor:
    """Softmax attention with tables by lag: [B, H, N, E]."""

def exact_attention_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None = None,
    lag_bias: Tensor | None = None,
    lag_keys: Tensor | None = None,
    lag_values: Tensor | None = None,
    window: int | None = None,
    key_bias: Tensor | None = None,
) -> Tensor:
    """One query [B, H, D] at the last of the keys [B, H, M, D]: [B, H, E]. No gradient."""

def feature_map(x: Tensor, map: str) -> Tensor:
    """none, elu1, relu, relu_squared, exp or silu of each number."""

def favor_features(
    x: Tensor, directions: Tensor, kind: str = "positive", offset: float = 0.001
) -> tuple[Tensor, Tensor]:
    """Random features [B, H, N, F] and their log_scale [B, H, N]; relu has none, [0]."""

def favor_directions(
    count: int,
    dim: int,
    *,
    orthogonal: bool = True,
    chi_norms: bool = True,
    layer: int = 0,
    seed: int = 0,
    step: int = 0,
    micro_step: int = 0,
) -> Tensor:
    """Directions [count, dim] for favor_features, f64: orthogonal in blocks of dim."""

def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-5) -> Tensor:
    """x / sqrt(mean x^2 + eps) over the last axis, times a gain [C] or [G, C]."""

def short_convolution(x: Tensor, taps: Tensor, before: Tensor | None = None) -> Tensor:
    """Each row of x [B, N, W] with the K - 1 before it, weighed by taps [K, W]."""

def rotation_table(
    positions: Tensor,
    frequency: Tensor,
    scale: float = 1,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Cosines and sines of position [B or 1, N, axes] times frequency [H or 1, P]."""

def rotate(x: Tensor, table: Tensor, layout: str, opposite: bool = False) -> Tensor:
    """Turns pairs of coordinates; layout is half or interleaved."""

def sine_spe(
    q: Tensor,
    k: Tensor,
    frequency: Tensor,
    phase: Tensor,
    amplitude: Tensor,
    constant: Tensor | None,
    q_at: Tensor,
    k_at: Tensor,
    z: Tensor | None,
    gate: Tensor | None,
    fold: Tensor | None,
    width: int,
) -> tuple[Tensor, Tensor]:
    """Queries [B, H, N, R] and keys [B, H, M, R] with stochastic positions by waves."""

def sine_spe_noise(
    heads: int,
    dim: int,
    sines: int,
    width: int,
    *,
    gated: bool = True,
    shared: bool = True,
    layer: int = 0,
    seed: int = 0,
    step: int = 0,
    micro_step: int = 0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """The noise z [H, D, 2K, R] and gate [H, D, R] of sine_spe."""

def sine_spe_fold(
    heads: int,
    dim: int,
    sines: int,
    width: int,
    *,
    gated: bool = True,
    shared: bool = True,
    layer: int = 0,
    seed: int = 0,
    step: int = 0,
    micro_step: int = 0,
) -> Tensor:
    """The fold of sine_spe: each of its features' bin, from 1, with a sign."""

def conv_spe(
    q: Tensor,
    k: Tensor,
    query_kernel: Tensor,
    key_kernel: Tensor,
    z: Tensor | None = None,
    *,
    realizations: int = 64,
    noise: str = "gaussian",
    grid: Sequence[int] = [],
    query_start: int = 0,
    key_start: int = 0,
    z_start: int = 0,
    seed: int = 0,
    step: int = 0,
    micro_step: int = 0,
    method: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Queries [B, H, N, R] and keys [B, H, M, R] with positions by filtered noise."""

def noise(
    kind: str,
    count: int,
    *,
    first: int = 0,
    seed: int = 0,
    stream: int = 0,
    step: int = 0,
    micro_step: int = 0,
    layer: int = 0,
    head: int = 0,
    feature: int = 0,
    realisation: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """uniform, normal or sign numbers [count], each a function of its coordinates."""
