"""Attention modules: values and gradients against plain torch in f64, streams, padding."""

import math

import pytest
import torch

import lagwise

B, H, N, D, E = 2, 4, 11, 8, 6
LINEAR = ["none", "decay", "alibi", "rope:layout=half", "lrpe", "sine_spe:realizations=12",
          "conv_spe:kernel=5,realizations=12", "kerple", "t5"]
EXACT = ["none", "alibi", "rope:layout=half", "sine_spe:noise=exact", "t5", "kerple", "shaw:clip=4", "huang:max=32",
         "transformer_xl"]


def rows(*shape, seed=0):
    made = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.double, generator=made)


def qkv(n=N, m=None, value=E):
    m = n if m is None else m
    return rows(B, H, n, D), rows(B, H, m, D, seed=1), rows(B, H, m, value, seed=2)


def elu1(x):
    return torch.nn.functional.elu(x) + 1


def by_pairs(q, k, v, bias, keys=None, values=None, scale=1.0, causal=True):
    """Softmax attention with a bias [H, N, M], by the definition."""
    scores = scale * (q @ k.transpose(2, 3)) + bias
    if causal:
        n, m = scores.shape[-2:]
        scores = scores.masked_fill(torch.ones(n, m).triu(1 + m - n).bool(), -math.inf)
    return scores.softmax(-1) @ v


def table_to_pairs(table, n, m):
    """[H, N+M-1] -> [H, N, M]."""
    lag = torch.arange(n)[:, None] - torch.arange(m) + m - 1
    return table[:, lag]


def test_linear_attention_is_its_definition():
    attend = lagwise.LinearAttention(H, D, "linear:map=elu1,eps=0", value_dim=E).double()
    q, k, v = qkv()
    weights = (elu1(q) @ elu1(k).transpose(2, 3)).tril()
    expected = weights @ v / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(attend(q, k, v), expected)


def test_exact_attention_with_alibi_is_its_definition():
    attend = lagwise.ExactAttention(H, D, encoding="alibi", value_dim=E).double()
    q, k, v = qkv()
    slopes = torch.tensor([2.0 ** (-8 * (h + 1) / H) for h in range(H)]).double()
    lag = torch.arange(N)[:, None] - torch.arange(N)
    expected = by_pairs(q, k, v, -slopes[:, None, None] * lag, scale=D ** -0.5)
    torch.testing.assert_close(attend(q, k, v), expected)


@pytest.mark.parametrize("text", EXACT)
def test_exact_attention_uses_what_the_encoding_hands_over(text):
    attend = lagwise.ExactAttention(H, D, encoding=text).double().eval()
    q, k, v = qkv(value=D)
    x = attend.pos.double()(q, k)
    scores = x.scale * (x.q @ x.k.transpose(2, 3))
    if x.lag_keys is not None:
        lag = torch.arange(N)[:, None] - torch.arange(N) + N - 1
        keys = x.lag_keys.expand(H, -1, -1)[:, lag]  # [H, N, M, D]
        scores = scores + x.scale * torch.einsum("bhnd,hnmd->bhnm", x.q, keys)
    if x.lag_bias is not None:
        scores = scores + table_to_pairs(x.lag_bias, N, N)
    weights = scores.masked_fill(torch.ones(N, N).triu(1).bool(), -math.inf).softmax(-1)
    expected = weights @ v
    if x.lag_values is not None:
        values = x.lag_values.expand(H, -1, -1)[:, lag]
        expected = expected + torch.einsum("bhnm,hnme->bhne", weights, values)
    torch.testing.assert_close(attend(q, k, v), expected)


@pytest.mark.parametrize("kind, text", [(lagwise.LinearAttention, t) for t in LINEAR]
                         + [(lagwise.ExactAttention, t) for t in EXACT])
def test_gradients_reach_queries_keys_values_and_parameters(kind, text):
    attend = kind(H, D, encoding=text).double().eval()
    inputs = [x[:1, :, :5].clone().requires_grad_() for x in qkv(value=D)]
    names = [name for name, _ in attend.named_parameters()]

    def call(*tensors):
        given = dict(zip(names, tensors[3:]))
        return functional(attend, given, tensors[:3])
    parameters = [p.detach().clone().requires_grad_() for p in attend.parameters()]
    assert torch.autograd.gradcheck(call, (*inputs, *parameters), eps=1e-6, atol=1e-5, rtol=1e-4,
                                    fast_mode=True, check_undefined_grad=False)


def functional(module, parameters, inputs):
    """The module with these tensors for parameters."""
    try:
        from torch.func import functional_call
    except ImportError:  # torch 1.13
        from torch.nn.utils.stateless import functional_call
    return functional_call(module, parameters, tuple(inputs))


@pytest.mark.parametrize("text", [t for t in LINEAR if t not in ("kerple", "t5")])
def test_linear_streams_equal_the_whole(text):
    attend = lagwise.LinearAttention(H, D, encoding=text, value_dim=E).double().eval()
    q, k, v = qkv()
    whole = attend(q, k, v)
    state, pieces = None, []
    for a, b in ((0, 4), (4, 5), (5, 11)):
        out, state = attend.extend(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], state)
        pieces.append(out)
    torch.testing.assert_close(torch.cat(pieces, 2), whole)
    assert state.position == N and state.bytes() > 0


def test_a_state_stays_as_it_is_and_can_be_reordered():
    attend = lagwise.LinearAttention(H, D, value_dim=E).double()
    q, k, v = qkv()
    _, state = attend.extend(q[:, :, :5], k[:, :, :5], v[:, :, :5])
    before = state.s.clone()
    swapped = state.reorder(torch.tensor([1, 0]))
    row = slice(5, 6)
    out, _ = attend.extend(q[:, :, row], k[:, :, row], v[:, :, row], state)
    other, _ = attend.extend(q.flip(0)[:, :, row], k.flip(0)[:, :, row], v.flip(0)[:, :, row], swapped)
    torch.testing.assert_close(other, out.flip(0))
    assert torch.equal(state.s, before)


def test_gradients_flow_through_a_state_until_it_is_detached():
    attend = lagwise.LinearAttention(H, D, value_dim=E).double()
    q, k, v = qkv()
    k.requires_grad_()
    _, state = attend.extend(q[:, :, :5], k[:, :, :5], v[:, :, :5])
    out, _ = attend.extend(q[:, :, 5:], k[:, :, 5:], v[:, :, 5:], state)
    whole, = torch.autograd.grad(out.sum(), k)
    expected, = torch.autograd.grad(attend(q, k, v)[:, :, 5:].sum(), k)
    torch.testing.assert_close(whole, expected)
    out, _ = attend.extend(q[:, :, 5:], k[:, :, 5:], v[:, :, 5:], state.detach())
    cut, = torch.autograd.grad(out.sum(), k)
    assert cut[:, :, :5].abs().max() == 0


@pytest.mark.parametrize("text", EXACT)
def test_exact_streams_equal_the_whole(text):
    attend = lagwise.ExactAttention(H, D, encoding=text).double().eval()
    q, k, v = qkv(value=D)
    cache, pieces = None, []
    for a, b in ((0, 4), (4, 5), (5, 11)):
        out, cache = attend.extend(q[:, :, a:b], k[:, :, a:b], v[:, :, a:b], cache)
        pieces.append(out)
    torch.testing.assert_close(torch.cat(pieces, 2), attend(q, k, v))
    assert cache.length == N
    assert cache.reorder(torch.tensor([1, 0])).k[0].equal(k[1])


@pytest.mark.parametrize("kind", [lagwise.LinearAttention, lagwise.ExactAttention])
@pytest.mark.parametrize("text", ["rope:layout=half", "alibi"])
def test_padding_before_and_after_equals_each_sequence_alone(kind, text):
    attend = kind(H, D, encoding=text, value_dim=E).double()
    q, k, v = qkv()
    starts, lengths = torch.tensor([0, 3]), torch.tensor([11, 6])
    out = attend(q, k, v, starts=starts, lengths=lengths)
    for b, (first, count) in enumerate(zip(starts.tolist(), lengths.tolist())):
        own = slice(first, first + count)
        alone = attend(*(x[b : b + 1, :, own] for x in (q, k, v)))
        torch.testing.assert_close(out[b : b + 1, :, own], alone)
    assert out[1, :, 9:].abs().max() == 0 and out[1, :, :3].abs().max() == 0
    right = attend(q, k, v, lengths=lengths)
    torch.testing.assert_close(right[1:, :, :6], attend(q[1:, :, :6], k[1:, :, :6], v[1:, :, :6]))


def test_gates_of_content():
    """forget=gated and write=delta, by the recurrence."""
    attend = lagwise.LinearAttention(H, D, "linear:map=none,forget=gated,write=delta",
                                     value_dim=E).double()
    q, k, v = qkv()
    log_decay, strength = -rows(B, H, N, seed=4).exp(), rows(B, H, N, seed=5).sigmoid()
    out = attend(q, k, v, log_decay=log_decay, write_strength=strength)
    unit = [x / (x.square().sum(-1, keepdim=True) + 1e-12).sqrt() for x in (q, k)]
    s, expected = torch.zeros(B, H, D, E).double(), []
    for t in range(N):
        s = s * log_decay[:, :, t].exp()[..., None, None]
        key = unit[1][:, :, t, :, None]
        recalled = (key * s).sum(2, keepdim=True)
        s = s + strength[:, :, t, None, None] * key * (v[:, :, t, None] - recalled)
        expected.append((unit[0][:, :, t, :, None] * s).sum(2))
    torch.testing.assert_close(out, torch.stack(expected, 2))
    with pytest.raises(ValueError, match="log_decay .*expected one with attention forget=gated"):
        attend(q, k, v, write_strength=strength)


def test_one_encoding_may_serve_several_layers():
    shared = lagwise.encoding("t5", heads=H, dim=D)
    a, b = (lagwise.ExactAttention(H, D, encoding=shared) for _ in range(2))
    assert a.pos is b.pos
    with pytest.raises(ValueError, match="expected an encoding of 2 heads"):
        lagwise.ExactAttention(2, D, encoding=shared)


def test_noise_is_new_in_training_and_stays_in_evaluation():
    attend = lagwise.LinearAttention(H, D, encoding="sine_spe:realizations=12")
    q, k, v = (x.float() for x in qkv(value=D))
    assert not torch.equal(attend(q, k, v), attend(q, k, v))
    attend.eval()
    assert torch.equal(attend(q, k, v), attend(q, k, v))


@pytest.mark.parametrize("text, said", [
    ("rop", "unknown encoding 'rop'.*rope"),
    ("alibi:exponant=4", "alibi: unknown option 'exponant'"),
    ("shaw", "cannot be used with causal linear attention; expected one of"),
])
def test_wrong_texts_are_refused_in_one_line(text, said):
    with pytest.raises(ValueError, match=said) as refused:
        lagwise.LinearAttention(H, D, encoding=text)
    assert "\n" not in str(refused.value)


def test_kinds_do_not_mix():
    with pytest.raises(ValueError, match="expected attention 'linear:...', got 'exact'"):
        lagwise.LinearAttention(H, D, "exact")
    assert isinstance(lagwise.attention("retnet", H, D), lagwise.LinearAttention)
    assert "heads=4, dim=8, 'exact'" in repr(lagwise.attention("exact", H, D))


def test_short_types_are_computed_in_f32():
    for kind in (lagwise.LinearAttention, lagwise.ExactAttention):
        attend = kind(H, D, encoding="rope:layout=half")
        q, k, v = (x.bfloat16() for x in qkv(value=D))
        out = attend(q, k, v)
        assert out.dtype == torch.bfloat16
        expected = attend(q.float(), k.float(), v.float())
        torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=1e-2)


def test_threads_may_call_one_module_at_the_same_time():
    from concurrent.futures import ThreadPoolExecutor
    attend = lagwise.LinearAttention(H, D, encoding="sine_spe:realizations=12").eval()
    inputs = [tuple(rows(1, H, 9, D, seed=s + j).float() for j in range(3)) for s in range(8)]
    expected = [attend(*x) for x in inputs]
    with ThreadPoolExecutor(4) as threads:
        for out, alone in zip(threads.map(lambda x: attend(*x), inputs), expected):
            assert torch.equal(out, alone)


def test_modules_begin_as_torch_draws_them():
    def made():
        layer = lagwise.MultiheadAttention(16, 2, attention="gated_deltanet", causal=True)
        model = lagwise.Model(vocabulary=7, dim=8, heads=2)
        return layer.q_proj.weight, next(model.parameters()), lagwise.encoding("huang", 2, 8).tensors()[0]
    torch.manual_seed(5)
    first, second = made(), made()
    torch.manual_seed(5)
    for one, other, again in zip(first, second, made()):
        assert not torch.equal(one, other)
        torch.testing.assert_close(one, again, rtol=0, atol=0)
    same = [lagwise.MultiheadAttention(16, 2, seed=3).q_proj.weight for _ in range(2)]
    assert torch.equal(*same)


def test_noise_of_two_modules_differs():
    x = rows(1, 2, 9, 8)
    one, other = (lagwise.LinearAttention(2, 8, encoding="sine_spe:realizations=8").eval()
                  for _ in range(2))
    other.load_state_dict(one.state_dict())
    assert not torch.allclose(one(x, x, x), other(x, x, x))


@pytest.mark.parametrize("text", ["sinusoidal", "learned:max=9"])
def test_encodings_of_the_input_are_refused(text):
    for make in (lambda: lagwise.LinearAttention(2, 8, encoding=text),
                 lambda: lagwise.MultiheadAttention(16, 2, encoding=text)):
        with pytest.raises(ValueError, match="added to the input of a model"):
            make()
    x = torch.zeros(1, 5, 16)
    assert bool(lagwise.encoding(text, 2, 8, model_dim=16).embed(x).any())


@pytest.mark.parametrize("kind", [lagwise.LinearAttention, lagwise.ExactAttention])
def test_heads_of_another_shape_are_refused(kind):
    attend = kind(2, 8)
    x = rows(1, 2, 5, 8)
    for wrong, name in ((rows(1, 3, 5, 8), "q"), (rows(1, 2, 5, 4), "q"), (rows(2, 5, 8), "q")):
        with pytest.raises(ValueError, match=rf"^{name}: expected \[B, 2, N, 8\], got"):
            attend(wrong, x, x)
    with pytest.raises(ValueError, match=r"^v: expected \[B, 2, N, 8\]"):
        attend.extend(x, x, rows(1, 2, 5, 3))
    with pytest.raises(TypeError, match="^k: expected a tensor, got list"):
        attend(x, [1.0], x)
    with pytest.raises(TypeError, match="expected a"):
        attend.extend(x, x, x, {})
    torch.testing.assert_close(attend(x, x, x, lengths=[3]), attend(x, x, x, lengths=torch.tensor([3])))
