"""One or more calls of every operator in torch.ops.lagwise, small enough to differentiate
by finite differences. Inputs that have a gradient require one; everything is f64 where the
operator takes it."""

from dataclasses import dataclass, field

import torch

import lagwise

OPS = lagwise.ops


@dataclass
class Sample:
    """A call of ``torch.ops.lagwise.<name>``."""

    name: str
    args: tuple
    kwargs: dict = field(default_factory=dict)
    label: str = ""

    def __str__(self):
        return f"{self.name}-{self.label}" if self.label else self.name

    @property
    def operator(self):
        return getattr(OPS, self.name).default

    def run(self):
        return self.operator(*self.args, **self.kwargs)


class Numbers:
    """Random tensors from one seed."""

    def __init__(self, seed=1):
        self.generator = torch.Generator().manual_seed(seed)

    def fixed(self, *sizes, dtype=torch.double):
        return torch.randn(sizes, generator=self.generator, dtype=torch.double).to(dtype)

    def learned(self, *sizes, dtype=torch.double):
        return self.fixed(*sizes, dtype=dtype).requires_grad_()

    def gates(self, *sizes):
        """Logarithms of factors below 1."""
        return (-self.fixed(*sizes).abs()).requires_grad_()


B, H, N, M, D, E = 2, 2, 5, 6, 4, 3


def _whole(*numbers):
    return torch.tensor(numbers)


def _linear(r):
    q, k, v = r.learned(B, H, N, D), r.learned(B, H, N, D), r.learned(B, H, N, E)
    causal = {"causal": True}
    yield "full", (q, r.learned(B, H, M, D), r.learned(B, H, M, E)), {"feature_map": "elu1"}
    yield "causal", (q, k, v), {**causal, "feature_map": "elu1", "decay": r.gates(H)}
    yield "channels", (q, k, v), {**causal, "denominator": "none", "decay": r.gates(H, D)}
    yield "separate", (q, k, v), {
        **causal, "denominator": "separate", "feature_map": "exp",
        "q_norm": r.learned(B, H, N, 3), "k_norm": r.learned(B, H, N, 3)}
    yield "gated", (q, k, v), {**causal, "denominator": "none", "log_decay": r.gates(B, H, N)}
    yield "delta", (q, k, v), {
        **causal, "denominator": "none", "decay": r.gates(H), "log_decay": r.gates(B, H, N),
        "write_strength": (0.1 * r.fixed(B, H, N).abs()).requires_grad_()}
    features = [r.fixed(B, H, N, D).abs().requires_grad_() for _ in range(2)]
    yield "log_scale", (*features, v), {**causal, "eps": 0.0, "log_scale": r.learned(B, H, N)}
    yield "left", (q, k, v), {**causal, "feature_map": "elu1", "starts": _whole(2, 0)}
    yield "padded", (q, k, v), {
        **causal, "feature_map": "elu1", "starts": _whole(1, 0), "lengths": _whole(3, 5)}
    yield "packed", tuple(x.detach()[:1].requires_grad_() for x in (q, k, v)), {
        **causal, "feature_map": "elu1", "cu_seqlens": _whole(0, 2, 2, 5)}
    rows_first = [r.fixed(B, N, H, w).transpose(1, 2).requires_grad_() for w in (D, D, E)]
    yield "rows_first", tuple(rows_first), {**causal, "feature_map": "elu1"}


def _with_state(r, args, kwargs):
    """The same call from a state; z goes with a denominator."""
    q, v = args[0], args[2]
    states = kwargs["cu_seqlens"].numel() - 1 if "cu_seqlens" in kwargs else q.shape[0]
    width = {"none": 0, "same": q.shape[3], "separate": 3}[kwargs.get("denominator", "same")]
    s = r.learned(states, H, q.shape[3], v.shape[3])
    z = r.fixed(states, H, width).abs().add(1).requires_grad_()
    m = r.fixed(states, H) if "log_scale" in kwargs else None
    return (*args, s, z, m)


def _exact(r):
    q, k, v = r.learned(B, H, N, D), r.learned(B, H, M, D), r.learned(B, H, M, E)
    yield "full", (q, k, v), {}
    yield "tables", (q, k, v), {
        "causal": True, "lag_bias": r.learned(H, N + M - 1),
        "lag_keys": r.learned(1, N + M - 1, D), "lag_values": r.learned(H, N + M - 1, E),
        "key_bias": r.learned(B, H, M)}
    yield "placed", (q, k, v), {"causal": True, "query_start": 4, "key_start": 2, "window": 3}
    yield "left", (q, k, v), {"causal": True, "key_starts": _whole(3, 0)}
    square = r.learned(B, H, N, D), r.learned(B, H, N, D), r.learned(B, H, N, E)
    yield "padded", square, {"causal": True, "starts": _whole(2, 0), "lengths": _whole(2, 4)}
    yield "packed", tuple(x.detach()[:1].requires_grad_() for x in square), {
        "cu_seqlens": _whole(0, 3, 5)}
    strided = [r.fixed(B, n, H, w).transpose(1, 2).requires_grad_()
               for n, w in ((N, D), (M, D), (M, E))]
    yield "rows_first", tuple(strided), {"causal": True, "scale": 0.3}


def _differentiable(r):
    # Public operators are made of the private ones, which see every case.
    for label, args, kwargs in _linear(r):
        with_state = _with_state(r, args, kwargs)
        yield Sample("_linear_attention", with_state, kwargs, label)
        if label in ("causal", "log_scale"):
            yield Sample("linear_attention", args, kwargs, label)
        if label in ("delta", "packed"):
            yield Sample("linear_attention_stateful", with_state, kwargs, label)
    for label, args, kwargs in _exact(r):
        yield Sample("_exact_attention", args, kwargs, label)
        if label == "tables":
            yield Sample("exact_attention", args, kwargs, label)
    toeplitz = (r.fixed(B, H, N, D).abs().requires_grad_(),
                r.fixed(B, H, M, D).abs().requires_grad_(), r.learned(B, H, M, E),
                r.learned(H, N + M - 1))
    yield Sample("toeplitz_linear", toeplitz, {"eps": 1e-3})
    yield Sample("_toeplitz_linear", (*toeplitz, 1e-3))
    x = r.learned(B, H, N, D)
    for map in ("none", "elu1", "silu", "exp"):
        yield Sample("feature_map", (x, map), label=map)
    for kind in ("positive", "two_sided", "relu"):
        yield Sample("favor_features", (x, r.fixed(7, D), kind, 0.1), label=kind)
    yield Sample("rms_norm", (r.learned(3, 2, D), r.learned(D)), {"eps": 0.1})
    yield Sample("rms_norm", (r.learned(3, 2, D), r.learned(2, D)), label="groups")
    yield Sample("_rms_norm", (r.learned(3, D).t().contiguous().t().detach().requires_grad_(),
                               r.learned(D), 0.1))
    rows, taps = r.learned(B, N, D), r.learned(3, D)
    yield Sample("short_convolution", (rows, taps))
    yield Sample("short_convolution", (r.fixed(B, D, N).transpose(1, 2).requires_grad_(), taps,
                                       r.learned(B, 2, D)), label="before")
    positions = torch.arange(N, dtype=torch.double).reshape(1, N, 1)
    yield Sample("rotation_table", (positions, r.learned(H, D // 2), 1.5, torch.double))
    table = r.learned(1, H, N, D)
    for layout in ("half", "interleaved"):
        yield Sample("rotate", (x, table, layout), label=layout)
    yield Sample("rotate", (r.fixed(B, N, H, D).transpose(1, 2).requires_grad_(),
                            r.fixed(B, 1, N, 2), "half", True), label="rows_first")
    waves = [r.learned(H, D, 2) for _ in range(3)]
    at = torch.arange(N, dtype=torch.double), torch.arange(M, dtype=torch.double)
    k = r.learned(B, H, M, D)
    yield Sample("sine_spe", (x, k, *waves, r.learned(H, D), *at, r.fixed(H, D, 4, 6),
                              r.fixed(H, D, 6), None, 6), label="dense")
    fold = torch.arange(1, D * 4 + 1).remainder(6).add(1).expand(H, -1)
    yield Sample("sine_spe", (x, k, *waves, None, *at, None, None, fold, 6), label="fold")
    kernels = r.learned(H * D, 1, 3), r.learned(H * D, 1, 3)
    yield Sample("conv_spe", (x, k, *kernels), {"realizations": 5, "query_start": 2,
                                                "seed": 3, "step": 2}, label="line")
    grid = r.learned(H * D, 1, 2, 2), r.learned(H * D, 1, 2, 2)
    yield Sample("conv_spe", (k, r.learned(B, H, M, D), *grid), {"realizations": 5, "grid": [2, 3],
                                             "method": "direct"}, label="grid")


def _detached(x):
    return x.detach() if isinstance(x, torch.Tensor) else x


# Of each forward operator: its gradient, how many results have one, which of the results
# and which of the arguments the backward pass is given again.
_PAIRS = {
    "_linear_attention": ("_linear_attention_backward", 3, slice(0, 5)),
    "_exact_attention": ("_exact_attention_backward", 1, slice(0, 2)),
    "_toeplitz_linear": ("_toeplitz_linear_backward", 1, slice(0, 2)),
    "feature_map": ("_feature_map_backward", 1, slice(0, 0)),
    "favor_features": ("_favor_features_backward", 2, slice(0, 2)),
    "_rms_norm": ("_rms_norm_backward", 1, slice(1, 2)),
    "short_convolution": ("_short_convolution_backward", 1, slice(0, 0)),
    "rotation_table": ("_rotation_table_backward", 1, slice(0, 1)),
    "rotate": ("_rotate_backward", 1, slice(0, 0)),
    "sine_spe": ("_sine_spe_backward", 2, slice(0, 0)),
    "conv_spe": ("_conv_spe_backward", 2, slice(0, 0)),
}


def _gradients(forward, r):
    """The call of a backward operator that differentiating ``forward`` makes."""
    name, differentiable, kept = _PAIRS[forward.name]
    args = tuple(_detached(x) for x in forward.args)
    kwargs = {key: _detached(x) for key, x in forward.kwargs.items()}
    results = forward.operator(*args, **kwargs)
    results = (results,) if isinstance(results, torch.Tensor) else results
    cotangents = [r.fixed(*x.shape) for x in results[:differentiable]]
    wanted = [True] * len(getattr(OPS, name).default._schema.returns)
    defaults = [x.default_value for x in forward.operator._schema.arguments
                if not x.kwarg_only][len(args):]
    return Sample(name, (*cotangents, wanted, *results[kept], *args, *defaults), kwargs,
                  forward.label)


def _without_gradient(r):
    state = r.fixed(B, H, D, E), r.fixed(B, H, D).abs()
    token = r.fixed(B, H, D), r.fixed(B, H, D), r.fixed(B, H, E)
    yield Sample("linear_attention_step", (*token, *state), {"feature_map": "elu1"})
    yield Sample("linear_attention_step", (*token, *state, r.fixed(B, H)),
                 {"eps": 0.0, "log_scale": r.fixed(B, H)}, "log_scale")
    yield Sample("linear_attention_step", (*token, state[0], r.fixed(B, H, 0)),
                 {"denominator": "none", "log_decay": -r.fixed(B, H).abs(),
                  "write_strength": r.fixed(B, H).abs()}, "delta")
    yield Sample("exact_attention_step",
                 (r.fixed(B, H, D), r.fixed(B, H, M, D), r.fixed(B, H, M, E)),
                 {"lag_bias": r.fixed(1, M), "window": 4})
    at = {"seed": 3, "step": 2, "micro_step": 1, "layer": 4}
    for kind in ("uniform", "normal", "sign"):
        yield Sample("noise", (kind, 9), {**at, "stream": 5, "first": -2}, kind)
    yield Sample("sine_spe_noise", (H, D, 2, 6), {**at, "dtype": torch.double})
    yield Sample("sine_spe_noise", (H, D, 2, 6), {"gated": False}, "plain")
    yield Sample("sine_spe_fold", (H, D, 2, 6), at)
    yield Sample("favor_directions", (7, D), at)


DIFFERENTIABLE = list(_differentiable(Numbers()))
SAMPLES = [
    *DIFFERENTIABLE,
    *(_gradients(x, Numbers(2)) for x in DIFFERENTIABLE if x.name in _PAIRS),
    *_without_gradient(Numbers(3)),
]
