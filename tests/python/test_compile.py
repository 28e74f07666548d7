"""A block of a transformer under torch.compile and torch.export, with changing lengths."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

import lagwise

WIDTH, HEADS, DIM = 24, 3, 8
LENGTHS = (7, 12, 5, 33)


class Block(torch.nn.Module):
    """Gated linear attention, then exact attention, then a feed-forward; RoPE in both."""

    def __init__(self):
        super().__init__()
        self.norms = torch.nn.Parameter(torch.ones(3, WIDTH))
        self.linear = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.gate = torch.nn.Linear(WIDTH, HEADS)
        self.exact = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.slopes = torch.nn.Parameter(torch.rand(HEADS, 1))
        self.up, self.down = torch.nn.Linear(WIDTH, 48), torch.nn.Linear(48, WIDTH)
        self.register_buffer("frequency", 100 ** -torch.linspace(0, 1, DIM // 2).double()[None])

    def heads(self, x):
        b, n, _ = x.shape
        return x.view(b, n, 3, HEADS, DIM).permute(2, 0, 3, 1, 4).unbind()

    def forward(self, x):
        ops, n = lagwise.ops, x.shape[1]
        positions = torch.arange(n, dtype=torch.double).view(1, n, 1)
        table = ops.rotation_table(positions, self.frequency)
        y = ops.rms_norm(x, self.norms[0])
        q, k, v = self.heads(self.linear(y))
        q, k = (ops.rotate(h, table, "half") for h in (q, k))
        gate = torch.nn.functional.logsigmoid(self.gate(y)).transpose(1, 2)
        out = ops.linear_attention(q, k, v, causal=True, denominator="none", log_decay=gate)
        x = x + out.transpose(1, 2).flatten(2)
        q, k, v = self.heads(self.exact(ops.rms_norm(x, self.norms[1])))
        q, k = (ops.rotate(h, table, "interleaved") for h in (q, k))
        lags = torch.arange(1 - n, n)
        bias = -self.slopes * lags.abs()
        out = ops.exact_attention(q, k, v, causal=True, lag_bias=bias)
        x = x + out.transpose(1, 2).flatten(2)
        y = ops.rms_norm(x, self.norms[2])
        return x + self.down(torch.nn.functional.gelu(self.up(y)))


@pytest.fixture
def block():
    torch.manual_seed(1)
    torch._dynamo.reset()
    return Block()


def outcome(block, call, n):
    """What comes out, and the gradient of the input and of every parameter."""
    x = torch.randn(2, n, WIDTH, generator=torch.Generator().manual_seed(n)).requires_grad_()
    y = call(x)
    return y, *torch.autograd.grad(y.square().sum(), (x, *block.parameters()))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_block_equals_eager_at_every_length(block, backend, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(block, fullgraph=True, dynamic=True, backend=counter)
    for n in LENGTHS:
        for got, want in zip(outcome(block, compiled, n), outcome(block, block, n)):
            # In f32, where fused operators sum in another order.
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    assert counter.frame_count == 1, "compiled anew for another length"


def test_an_exported_block_takes_every_length(block):
    n = torch.export.Dim("n", min=2, max=512)
    with torch.no_grad():
        program = torch.export.export(block, (torch.randn(2, 9, WIDTH),),
                                      dynamic_shapes={"x": {1: n}})
        for length in LENGTHS:
            x = torch.randn(2, length, WIDTH)
            torch.testing.assert_close(program.module()(x), block(x))
    names = {str(node.target) for node in program.graph.nodes}
    assert any("lagwise" in name and "linear_attention" in name for name in names), names


def counted(function):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    return torch.compile(function, fullgraph=True, backend=counter, dynamic=True), counter


def test_writing_token_by_token_is_compiled_once():
    """The state is written in place, and the cache grows, without compiling anew."""

    def step(q, k, v, s, z):
        return lagwise.ops.linear_attention_step(q, k, v, s, z, feature_map="elu1")

    compiled, counter = counted(step)
    ours = torch.zeros(1, 2, 4, 3), torch.zeros(1, 2, 4)
    theirs = torch.zeros(1, 2, 4, 3), torch.zeros(1, 2, 4)
    for _ in range(5):
        token = torch.randn(1, 2, 4), torch.randn(1, 2, 4), torch.randn(1, 2, 3)
        torch.testing.assert_close(compiled(*token, *ours), step(*token, *theirs))
    torch.testing.assert_close(ours, theirs)
    assert counter.frame_count == 1

    def look_back(q, k, v):
        return lagwise.ops.exact_attention_step(q, k, v)

    compiled, counter = counted(look_back)
    for n in (5, 6, 7, 9):  # no other size is one of these
        call = torch.randn(1, 2, 4), torch.randn(1, 2, n, 4), torch.randn(1, 2, n, 3)
        torch.testing.assert_close(compiled(*call), look_back(*call))
    assert counter.frame_count == 1


def test_whole_numbers_may_change_without_compiling_anew():
    def attend(x, start):
        return lagwise.ops.exact_attention(x, x, x, causal=True, query_start=start)

    compiled, counter = counted(attend)
    x = torch.randn(1, 2, 6, 4)
    for start in (2, 3, 4, 5):
        torch.testing.assert_close(compiled(x, start), attend(x, start))
    assert counter.frame_count == 1

    kernel = torch.randn(8, 1, 3)

    def encode(x, seed, step):
        return lagwise.ops.conv_spe(x, x, kernel, kernel, realizations=4, seed=seed, step=step)

    compiled, counter = counted(encode)
    for seed, step in ((7, 2), (8, 2), (9, 3), (7, 4)):
        for got, want in zip(compiled(x, seed, step), encode(x, seed, step)):
            torch.testing.assert_close(got, want)
    assert counter.frame_count == 1


def test_padding_and_packing_are_compiled_once():
    def attend(x, starts, cuts):
        left = lagwise.ops.linear_attention(x, x, x, causal=True, starts=starts)
        packed = lagwise.ops.linear_attention_stateful(x[:1], x[:1], x[:1], causal=True,
                                                       cu_seqlens=cuts)
        return left, *packed

    compiled, counter = counted(attend)
    for n, starts, cuts in ((6, (2, 0), (0, 3, 6)), (9, (5, 1), (0, 1, 4, 9))):
        call = torch.randn(2, 2, n, 4), torch.tensor(starts), torch.tensor(cuts)
        for got, want in zip(compiled(*call), attend(*call)):
            torch.testing.assert_close(got, want)
    assert counter.frame_count == 1
