"""``python -m lagwise.bench``: our operators beside what one would use without them.

Each pair is timed in turns in one run, so that what else the machine does meets both; a
ratio is the median of (time of the other / ours) over the rounds: above 1, ours is faster.
Every pair is first checked to compute the same.
"""

import argparse
import json
import math
import statistics
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

import lagwise
import lagwise.spe

ops = torch.ops.lagwise


class Pair(NamedTuple):
    name: str
    other: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    tolerance: Optional[float]  #: of the results; None: they are random


def _rows(heads: int, n: int, width: int, seed: int, grad: bool = False) -> Tensor:
    made = torch.Generator().manual_seed(seed)
    return torch.randn(1, heads, n, width, generator=made).requires_grad_(grad)


def _alibi(heads: int) -> Tensor:
    return 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)


def exact_pairs(n: int, dim: int, heads: int) -> Iterator[Pair]:
    """Softmax attention with ALiBi, causal."""
    slopes = _alibi(heads)
    lag = torch.arange(n)[:, None] - torch.arange(n)
    mask = (-slopes[:, None, None] * lag).masked_fill(lag < 0, -math.inf)  # [H, N, N]
    table = -slopes[:, None] * torch.arange(1 - n, n)
    q, k, v = (_rows(heads, n, dim, seed) for seed in range(3))

    def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ops.exact_attention(q, k, v, causal=True, scale=dim ** -0.5, lag_bias=table)

    def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    yield Pair("exact, ALiBi, forward", "sdpa, bias as mask", lambda: ours(q, k, v),
               lambda: sdpa(q, k, v), 1e-4)
    flex = _flex(slopes, n, dim, heads)
    if flex is not None:
        yield Pair("exact, ALiBi, forward", "flex_attention, compiled", lambda: ours(q, k, v),
                   lambda: flex(q, k, v), 1e-4)
    x, y, z = (_rows(heads, n, dim, seed, grad=True) for seed in range(3))
    weight = _rows(heads, n, dim, 5)

    def gradients(attend: Callable[..., Tensor]) -> Tensor:
        return torch.autograd.grad(attend(x, y, z), (x, y, z), weight)[0]
    yield Pair("exact, ALiBi, forward + backward", "sdpa, bias as mask", lambda: gradients(ours),
               lambda: gradients(sdpa), 1e-3)


def _flex(slopes: Tensor, n: int, dim: int, heads: int) -> Optional[Callable[..., Tensor]]:
    """flex_attention with ALiBi, or None where it cannot be compiled."""
    try:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        blocks = create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cpu")
        compiled = torch.compile(flex_attention, dynamic=False)

        def score(score, b, h, i, j):
            return score - slopes[h] * (i - j)

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            with torch.no_grad():
                return compiled(q, k, v, score_mod=score, block_mask=blocks)
        attend(*(_rows(heads, n, dim, seed) for seed in range(3)))
        return attend
    except Exception as error:  # whatever the compiler could not do
        print(f"flex_attention is left out: {str(error).splitlines()[0]}", file=sys.stderr)
        return None


def chunked(q: Tensor, k: Tensor, v: Tensor, chunk: int = 64) -> Tensor:
    """Causal linear attention with elu1 features, chunk by chunk in plain torch."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    b, h, n, d = q.shape
    q, k, v = (x.view(b, h, n // chunk, chunk, -1) for x in (q, k, v))
    s = (k.transpose(3, 4) @ v).cumsum(2)
    s = torch.cat([torch.zeros_like(s[:, :, :1]), s[:, :, :-1]], 2)  # before each chunk
    z = k.sum(3).cumsum(2)
    z = torch.cat([torch.zeros_like(z[:, :, :1]), z[:, :, :-1]], 2)
    weights = (q @ k.transpose(3, 4)).tril()
    num = weights @ v + q @ s
    den = weights.sum(-1) + (q @ z[..., None]).squeeze(-1)
    return (num / (den[..., None] + 1e-6)).view(b, h, n, -1)


def linear_pairs(n: int, dim: int, heads: int) -> Iterator[Pair]:
    q, k, v = (_rows(heads, n, dim, seed) for seed in range(3))

    def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ops.linear_attention(q, k, v, causal=True, feature_map="elu1")
    yield Pair("linear, causal, forward", "torch, in chunks", lambda: ours(q, k, v),
               lambda: chunked(q, k, v), 1e-3)
    x, y, z = (_rows(heads, n, dim, seed, grad=True) for seed in range(3))
    weight = _rows(heads, n, dim, 5)

    def gradients(attend: Callable[..., Tensor]) -> Tensor:
        return torch.autograd.grad(attend(x, y, z), (x, y, z), weight)[0]
    yield Pair("linear, causal, forward + backward", "torch, in chunks", lambda: gradients(ours),
               lambda: gradients(chunked), 1e-3)
    try:
        from fast_transformers.causal_product import causal_dot_product
    except ImportError:
        print("fast-transformers is left out: it is not installed", file=sys.stderr)
        return
    from lagwise.compat import fast_transformers
    yield Pair("causal product, forward", "fast-transformers",
               lambda: fast_transformers.causal_dot_product(q, k, v),
               lambda: causal_dot_product(q, k, v), 1e-2)
    yield Pair("causal product, forward + backward", "fast-transformers",
               lambda: gradients(fast_transformers.causal_dot_product),
               lambda: gradients(causal_dot_product), 1e-2)


def reference_spe(q: Tensor, k: Tensor, code: lagwise.spe.SineSPE) -> List[Tensor]:
    """SineSPE as its formula says: noise, waves, the whole code, the product with it."""
    n, width = q.shape[1], code.num_realizations
    z = torch.randn(code.num_heads, code.in_features, 2 * code.num_sines, width)
    z = z / math.sqrt(2 * code.num_sines) / (width * code.in_features) ** 0.25
    turn = math.pi * torch.sigmoid(code.freqs)[:, :, None] * torch.arange(n)[:, None]  # [H, D, N, K]
    gain = F.softplus(code.gains)[:, :, None, :, None]
    results = []
    for x, phase in ((q, turn + code.offsets[:, :, None]), (k, turn)):
        waves = (torch.stack([phase.cos(), phase.sin()], -1) * gain).flatten(3)  # [H, D, N, 2K]
        bar = (waves @ z).permute(2, 0, 1, 3)  # [N, H, D, R]
        results.append((bar * x[..., None]).sum(-2))
    return results


def spe_pairs(n: int, dim: int, heads: int) -> Iterator[Pair]:
    """On [B, N, H, D], with 64 realisations of 5 sines, without a gate."""
    code = lagwise.spe.SineSPE(heads, dim, num_realizations=64, num_sines=5)
    filter = lagwise.spe.SPEFilter(gated=False)
    q, k = (torch.randn(1, n, heads, dim) for _ in range(2))
    x, y = (torch.randn(1, n, heads, dim).requires_grad_() for _ in range(2))

    def gradients(results: Any) -> None:
        torch.autograd.grad(sum(r.sum() for r in results), (x, y, *code.parameters()))

    def forward(compute: Callable[[], Any]) -> Any:
        with torch.no_grad():
            return compute()
    yield Pair("SineSPE, forward", "its formula in torch",
               lambda: forward(lambda: filter(q, k, code((1, n)))),
               lambda: forward(lambda: reference_spe(q, k, code)), None)
    yield Pair("SineSPE, forward + backward", "its formula in torch",
               lambda: gradients(filter(x, y, code((1, n)))),
               lambda: gradients(reference_spe(x, y, code)), None)


def seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def measure(pair: Pair, rounds: int) -> Dict[str, Any]:
    ours, theirs = pair.ours(), pair.theirs()  # also warms both up
    if pair.tolerance is not None:
        torch.testing.assert_close(ours, theirs, rtol=pair.tolerance, atol=pair.tolerance)
    times = [(seconds(pair.ours), seconds(pair.theirs)) for _ in range(rounds)]
    return {"what": pair.name, "other": pair.other,
            "ours_ms": 1e3 * statistics.median(mine for mine, _ in times),
            "other_ms": 1e3 * statistics.median(other for _, other in times),
            "ratio": statistics.median(other / mine for mine, other in times)}


def machine() -> Dict[str, Any]:
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
             if line.startswith("model name")]
    return {"cpu": names[0] if names else "unknown", "simd": torch.ops.lagwise_bindings.simd_target(),
            "threads": torch.get_num_threads(), "torch": torch.__version__}


def main(arguments: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m lagwise.bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=2048, help="N, a multiple of 64 (2048)")
    parser.add_argument("--dim", type=int, default=64, help="D of a head (64)")
    parser.add_argument("--heads", type=int, default=8, help="H (8)")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is timed (9)")
    parser.add_argument("--threads", type=int, help="as torch has them unless given")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    flags = parser.parse_args(arguments)
    if flags.length < 64 or flags.length % 64:
        parser.error(f"--length: expected a multiple of 64, got {flags.length}")
    if flags.threads:
        torch.set_num_threads(flags.threads)
    torch.manual_seed(0)
    about = {**machine(), "N": flags.length, "D": flags.dim, "H": flags.heads}
    if not flags.json:
        print(", ".join(f"{key} {value}" for key, value in about.items()))
        print(f"{'':38}{'against':28}{'ours':>10}{'other':>10}{'ratio':>8}")
    rows = []
    for pairs in (exact_pairs, linear_pairs, spe_pairs):
        for pair in pairs(flags.length, flags.dim, flags.heads):
            row = measure(pair, flags.rounds)
            rows.append(row)
            if not flags.json:
                print(f"{row['what']:38}{row['other']:28}{row['ours_ms']:7.2f} ms{row['other_ms']:7.2f} ms"
                      f"{row['ratio']:7.2f}x", flush=True)
    if flags.json:
        print(json.dumps({**about, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
