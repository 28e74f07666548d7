"""Modules under torch.compile and torch.export: one graph for all lengths, equal to eager."""

import pytest
import torch

if not hasattr(torch, "compiler"):
    pytest.skip(f"torch {torch.__version__} has no torch.compiler", allow_module_level=True)

from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

import lagwise  # noqa: E402

H, D, C = 2, 8, 16
ENCODINGS = ["none", "rope:layout=half", "alibi", "decay", "sine_spe:realizations=8", "lrpe",
             "conv_spe:kernel=3,realizations=8", "t5", "kerple"]


def rows(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same_for_all_lengths(module, make):
    """Values and gradients of the compiled module equal eager's, all from what was compiled for
    the first length. (Torch may ask the backend twice for it: at first it takes the eps of a
    LayerNorm, a float, for a number that changes.)"""
    counter = CompileCounterWithBackend("aot_eager")
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=counter)
    asked = []
    for n in (5, 9, 12, 33):
        inputs = make(n)
        results = []
        for call in (module, compiled):
            given = [x.clone().requires_grad_() for x in inputs]
            out = call(*given)
            out = out[0] if isinstance(out, tuple) else out
            module.zero_grad()
            (out * rows(*out.shape, seed=7)).sum().backward()
            results.append([out, *(x.grad for x in given),
                            *(p.grad.clone() for p in module.parameters())])
        for eager, traced in zip(*results):
            torch.testing.assert_close(traced, eager)
        asked.append(counter.frame_count)
    assert asked[0] >= 1 and len(set(asked)) == 1, asked


@pytest.mark.parametrize("text", ENCODINGS)
def test_linear_attention(text):
    attend = lagwise.LinearAttention(H, D, encoding=text).eval()
    same_for_all_lengths(attend, lambda n: [rows(1, H, n, D, seed=s) for s in range(3)])


@pytest.mark.parametrize("text", ["none", "rope:layout=half", "alibi", "t5", "shaw:clip=3",
                                  "sine_spe:noise=exact"])
def test_exact_attention(text):
    attend = lagwise.ExactAttention(H, D, encoding=text).eval()
    same_for_all_lengths(attend, lambda n: [rows(1, H, n, D, seed=s) for s in range(3)])


class Block(torch.nn.Module):
    def __init__(self, attention, encoding):
        super().__init__()
        self.norm, self.norm2 = torch.nn.LayerNorm(C), torch.nn.LayerNorm(C)
        self.attend = lagwise.MultiheadAttention(C, H, batch_first=True, causal=True,
                                                 attention=attention, encoding=encoding)
        self.up, self.down = torch.nn.Linear(C, 32), torch.nn.Linear(32, C)

    def forward(self, x):
        x = x + self.attend(self.norm(x))[0]
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


@pytest.mark.parametrize("attention, encoding", [
    ("linear:map=elu1", "rope:layout=half"), ("gated_deltanet", "none"), ("exact", "alibi")])
def test_a_block(attention, encoding):
    same_for_all_lengths(Block(attention, encoding).eval(), lambda n: [rows(2, n, C)])


def test_a_model_and_its_gradients():
    model = lagwise.Model(vocabulary=11, dim=C, heads=H, encoding="rope:layout=half").eval()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (4, 9, 17):
        tokens = torch.arange(n)[None] % 11
        results = []
        for call in (model, compiled):
            model.zero_grad()
            logits = call(tokens)
            logits.square().sum().backward()
            results.append([logits, *(p.grad.clone() for p in model.parameters())])
        for eager, traced in zip(*results):
            torch.testing.assert_close(traced, eager)


def test_noise_is_drawn_anew_in_a_compiled_module():
    attend = lagwise.LinearAttention(H, D, encoding="sine_spe:realizations=8")
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    x = rows(1, H, 9, D)
    assert not torch.equal(compiled(x, x, x), compiled(x, x, x))


def test_encodings_and_states_in_a_graph():
    encoding = lagwise.encoding("t5", heads=H, dim=D)
    attend = lagwise.LinearAttention(H, D, encoding="rope:layout=half")

    @torch.compile(fullgraph=True, backend="aot_eager")
    def call(q, state):
        table = encoding(q, q).lag_bias
        out, state = attend.extend(q, q, q, state)
        return table, out, state
    x = rows(1, H, 6, D)
    _, state = attend.extend(x, x, x)
    table, out, after = call(x, state)
    torch.testing.assert_close(table, encoding(x, x).lag_bias)
    expected, state = attend.extend(x, x, x, state)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(after.s, state.s)


def test_inductor_of_a_block():
    block = Block("linear:map=elu1", "rope:layout=half").eval()
    x = rows(2, 9, C)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(block, fullgraph=True)(x), block(x), rtol=1e-4,
                                   atol=1e-5)


def test_export_with_a_dynamic_length(tmp_path):
    block = Block("linear:map=elu1", "rope:layout=half").eval()
    length = torch.export.Dim("length", min=2, max=512)
    program = torch.export.export(block, (rows(2, 9, C),), dynamic_shapes=({1: length},))
    torch.export.save(program, tmp_path / "block.pt2")
    again = torch.export.load(tmp_path / "block.pt2").module()
    for n in (3, 9, 40):
        torch.testing.assert_close(again(rows(2, n, C)), block(rows(2, n, C)))


@pytest.mark.parametrize("text", ["rope:layout=half", "sine_spe:realizations=8", "t5"])
def test_opcheck_of_the_node(text):
    attend = lagwise.LinearAttention(H, D, encoding=text).eval()
    parameters = [p.detach().requires_grad_() for p in attend._tensors()]
    inputs = [rows(1, H, 5, D, seed=s).requires_grad_() for s in range(3)]
    torch.library.opcheck(torch.ops.lagwise_bindings.part_node, (
        attend._whole, parameters, [*inputs, attend.draw()], ["q", "k", "v", "draw"]))


def test_functional_calls_and_second_derivatives():
    attend = lagwise.LinearAttention(H, D, encoding="sine_spe:realizations=8").eval()
    x = rows(1, H, 5, D)
    twice = {name: 2 * p.detach() for name, p in attend.named_parameters()}
    out = torch.func.functional_call(attend, twice, (x, x, x))
    with torch.no_grad():
        for p in attend.parameters():
            p.mul_(2)
    torch.testing.assert_close(out, attend(x, x, x))
