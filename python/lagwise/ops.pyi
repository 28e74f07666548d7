"""The operators of lagwise: see docs/library.md. Made by tools/python_stubs.py."""

from collections.abc import Sequence

from torch import Tensor

def conv_spe(
    q: Tensor,
    k: Tensor,
    query_kernel: Tensor,
    key_kernel: Tensor,
    z: Tensor | None = None,
    *,
    realizations: int = 64,
    noise: str = 'gaussian',
    grid: Sequence[int] = ...,
    query_start: int = 0,
    key_start: int = 0,
    z_start: int = 0,
    seed: int = 0,
    step: int = 0,
    micro_step: int = 0,
    method: str = 'auto',
) -> tuple[Tensor, Tensor]: ...

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
) -> Tensor: ...

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
) -> Tensor: ...

def favor_features(
    x: Tensor,
    directions: Tensor,
    kind: str = 'positive',
    offset: float = 0.001,
) -> tuple[Tensor, Tensor]: ...

def feature_map(
    x: Tensor,
    map: str,
) -> Tensor: ...

def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    feature_map: str = 'none',
    decay: Tensor | None = None,
    denominator: str = 'same',
    q_norm: Tensor | None = None,
    k_norm: Tensor | None = None,
    eps: float = 1e-06,
    eps_mode: str = 'add',
    log_scale: Tensor | None = None,
    lengths: Tensor | None = None,
    key_lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    key_cu_seqlens: Tensor | None = None,
    log_decay: Tensor | None = None,
    write_strength: Tensor | None = None,
    attn_mask: Tensor | None = None,
) -> Tensor: ...

def linear_attention_stateful(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    s: Tensor | None = None,
    z: Tensor | None = None,
    m: Tensor | None = None,
    *,
    causal: bool = False,
    feature_map: str = 'none',
    decay: Tensor | None = None,
    denominator: str = 'same',
    q_norm: Tensor | None = None,
    k_norm: Tensor | None = None,
    eps: float = 1e-06,
    eps_mode: str = 'add',
    log_scale: Tensor | None = None,
    lengths: Tensor | None = None,
    key_lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    key_cu_seqlens: Tensor | None = None,
    log_decay: Tensor | None = None,
    write_strength: Tensor | None = None,
    attn_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...

def linear_attention_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    s: Tensor,
    z: Tensor,
    m: Tensor | None = None,
    *,
    feature_map: str = 'none',
    decay: Tensor | None = None,
    denominator: str = 'same',
    q_norm: Tensor | None = None,
    k_norm: Tensor | None = None,
    eps: float = 1e-06,
    eps_mode: str = 'add',
    log_scale: Tensor | None = None,
    log_decay: Tensor | None = None,
    write_strength: Tensor | None = None,
) -> Tensor: ...

def rotate(
    x: Tensor,
    table: Tensor,
    layout: str,
    opposite: bool = False,
) -> Tensor: ...

def rotation_table(
    positions: Tensor,
    frequency: Tensor,
    scale: float = 1.0,
    dtype: int = 6,
) -> Tensor: ...

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
) -> tuple[Tensor, Tensor]: ...

def toeplitz_linear(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lag_bias: Tensor,
    *,
    eps: float = 1e-06,
) -> Tensor: ...
