"""What every operator returns for tensors without numbers: sizes, types and strides.

torch.compile, torch.export, FakeTensorMode and the device "meta" ask for them. Sizes may
be symbols, so nothing here reads one as a number, and nothing is checked that the
operator itself checks when it runs. An operator made of others (linear_attention,
exact_attention, toeplitz_linear, rms_norm) needs nothing: torch looks inside.

B batch, H heads, N queries, M keys, D width of queries and keys, E width of values.
"""

import math

import torch

_LIBRARY = torch.library.Library("lagwise", "IMPL")


def _fake(function):
    """Registers ``function`` under its own name, as torch 2 or as torch 1 has it."""
    name = function.__name__
    if hasattr(torch.library, "register_fake"):
        torch.library.register_fake(f"lagwise::{name}", function, lib=_LIBRARY)
    else:
        _LIBRARY.impl(name, function, "Meta")
    return function


def _dense(x, *sizes, **options):
    """Not filled, of these sizes, or those of x, row by row."""
    return x.new_empty(sizes or x.shape, **options)


def _absent(x):
    """Stands for the gradient of an input that is absent or whose gradient is unwanted."""
    return x.new_empty((0,))


def _in_order(x, *sizes):
    """Not filled, in the order in which the heads of x lie: see ops/torch/rows_first.h."""
    b, h, n, width = sizes or x.shape
    if not x.is_contiguous() and x.transpose(1, 2).is_contiguous():
        return x.new_empty((b, n, h, width)).transpose(1, 2)
    return x.new_empty((b, h, n, width))


# ---- linear attention

@_fake
def _linear_attention(q, k, v, s=None, z=None, m=None, *, denominator="same",
                      q_norm=None, log_scale=None, cu_seqlens=None, **_):
    b, h, n, d = q.shape
    e = v.shape[3]
    states = b if cu_seqlens is None else cu_seqlens.shape[0] - 1
    f = {"none": 0, "same": d}.get(denominator)
    if f is None:
        f = q_norm.shape[3]
    return (_in_order(v, b, h, n, e), _dense(q, states, h, d, e), _dense(q, states, h, f),
            _dense(q, b, h, 0 if denominator == "none" else n),
            _dense(q, states, h, 0) if log_scale is None else _dense(q, states, h))


@_fake
def _linear_attention_backward(d_out, d_s, d_z, wanted, out, s1, z1, den, max, q, k, v,
                               s=None, z=None, m=None, *, decay=None, q_norm=None,
                               k_norm=None, log_scale=None, log_decay=None,
                               write_strength=None, **_):
    inputs = (q, k, v, s, z, decay, q_norm, k_norm, log_scale, log_decay, write_strength)

    def gradient(x, want):
        if x is None or not want:
            return _absent(q)
        if x is s or x is z or x.dim() != 4:
            return _dense(x)
        return _in_order(x)

    return tuple(gradient(x, want) for x, want in zip(inputs, wanted))


@_fake
def linear_attention_step(q, k, v, s, z, m=None, **_):
    return _dense(q, q.shape[0], q.shape[1], v.shape[2])


@_fake
def _toeplitz_linear(q, k, v, lag_bias, eps):
    b, h, n, e = *q.shape[:3], v.shape[3]
    return _dense(q, b, h, n, e), _dense(q, b, h, e + 1, n)


@_fake
def _toeplitz_linear_backward(d_out, wanted, out, sums, q, k, v, lag_bias, eps):
    return tuple(_dense(x) for x in (q, k, v, lag_bias))


# ---- exact attention

@_fake
def _exact_attention(q, k, v, **_):
    b, h, n, e = *q.shape[:3], v.shape[3]
    return _dense(q, b, h, n, e), _dense(q, b, h, n, 2)


@_fake
def _exact_attention_backward(d_out, wanted, out, stats, q, k, v, *, lag_bias=None,
                              lag_keys=None, lag_values=None, key_bias=None, **_):
    beside = zip((lag_bias, lag_keys, lag_values, key_bias), wanted[3:])
    return (_dense(q), _dense(k), _dense(v),
            *(_absent(q) if x is None or not want else _dense(x) for x, want in beside))


@_fake
def exact_attention_step(q, k, v, **_):
    return _dense(q, q.shape[0], q.shape[1], v.shape[3])


# ---- features, norms

@_fake
def feature_map(x, map):
    return _dense(x)


@_fake
def _feature_map_backward(d_out, wanted, x, map):
    return _dense(x)


@_fake
def favor_features(x, directions, kind="positive", offset=0.001):
    b, h, n, _ = x.shape
    m = directions.shape[0]
    features = _dense(x, b, h, n, 2 * m if kind == "two_sided" else m)
    return features, _absent(x) if kind == "relu" else _dense(x, b, h, n)


@_fake
def _favor_features_backward(d_features, d_log_scale, wanted, features, log_scale, x,
                             directions, kind, offset):
    return _dense(x)


@_fake
def _rms_norm(x, gain, eps):
    *rows, width = x.shape
    return _dense(x), _dense(x, 0 if width == 0 else math.prod(rows))


@_fake
def _rms_norm_backward(d_y, wanted, inv_size, x, gain, eps):
    return _dense(x), _dense(gain)


@_fake
def short_convolution(x, taps, before=None):
    return _dense(x)


@_fake
def _short_convolution_backward(d_y, wanted, x, taps, before):
    return _dense(x), _dense(taps), _absent(x) if before is None else _dense(before)


# ---- positions

@_fake
def rotation_table(positions, frequency, scale=1.0, dtype=torch.float32):
    (b, n, _), (h, planes) = positions.shape, frequency.shape
    return _dense(positions, b, h, n, 2 * planes, dtype=dtype)


@_fake
def _rotation_table_backward(d_table, wanted, table, positions, frequency, scale, dtype):
    return _dense(frequency)


@_fake
def rotate(x, table, layout, opposite=False):
    return _in_order(x)


@_fake
def _rotate_backward(d_out, wanted, x, table, layout, opposite):
    return (_in_order(d_out) if wanted[0] else _absent(d_out),
            _dense(table) if wanted[1] else _absent(d_out))


@_fake
def sine_spe(q, k, frequency, phase, amplitude, constant, q_at, k_at, z, gate, fold, width):
    return _dense(q, *q.shape[:3], width), _dense(k, *k.shape[:3], width)


@_fake
def _sine_spe_backward(d_q, d_k, wanted, q, k, frequency, phase, amplitude, constant,
                       q_at, k_at, z, gate, fold, width):
    waves = (_dense(q), _dense(k), _dense(frequency), _dense(phase), _dense(amplitude))
    return *waves, _absent(frequency) if constant is None else _dense(constant)


@_fake
def conv_spe(q, k, query_kernel, key_kernel, z=None, *, realizations=64, **_):
    return _dense(q, *q.shape[:3], realizations), _dense(k, *k.shape[:3], realizations)


@_fake
def _conv_spe_backward(d_q, d_k, wanted, q, k, query_kernel, key_kernel, z=None, **_):
    return tuple(_dense(x) for x in (q, k, query_kernel, key_kernel))


# ---- noise

@_fake
def noise(kind, count, *, dtype=torch.float32, **_):
    return torch.empty((count,), dtype=dtype)


@_fake
def sine_spe_noise(heads, dim, sines, width, *, gated=True, dtype=torch.float32, **_):
    gate = (heads, dim, width) if gated else (0,)
    return (torch.empty((heads, dim, 2 * sines, width), dtype=dtype),
            torch.empty(gate, dtype=dtype))


@_fake
def sine_spe_fold(heads, dim, sines, width, *, gated=True, **_):
    return torch.empty((heads, dim * (2 * sines + gated)), dtype=torch.int64)


@_fake
def favor_directions(count, dim, **_):
    return torch.empty((count, dim), dtype=torch.float64)
