"""Every operator under torch's own checks: opcheck, gradcheck, torch.func."""

import pytest
import torch
from operator_samples import DIFFERENTIABLE, OPS, SAMPLES, Numbers

import lagwise


def all_operators():
    names = torch._C._dispatch_get_all_op_names()
    return sorted(x.removeprefix("lagwise::") for x in names if x.startswith("lagwise::"))


def test_every_operator_has_a_sample():
    assert all_operators() == sorted({x.name for x in SAMPLES})


@pytest.mark.parametrize("name", all_operators())
def test_every_operator_is_tagged(name):
    assert torch.Tag.pt2_compliant_tag in getattr(OPS, name).default.tags


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_opcheck(sample):
    torch.library.opcheck(sample.operator, sample.args, sample.kwargs)


def learned_inputs(sample):
    """The tensors with a gradient, and the sample as a function of them alone."""
    named = [*enumerate(sample.args), *sample.kwargs.items()]
    keys = [key for key, x in named if isinstance(x, torch.Tensor) and x.requires_grad]
    given = dict(named)

    def call(*tensors):
        x = {**given, **dict(zip(keys, tensors))}
        args = [x[i] for i in range(len(sample.args))]
        results = sample.operator(*args, **{k: x[k] for k in sample.kwargs})
        results = (results,) if isinstance(results, torch.Tensor) else results
        return tuple(y for y in results if y.requires_grad)

    return call, tuple(given[key] for key in keys)


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_gradients_equal_finite_differences(sample):
    if "log_scale" in sample.kwargs and sample.name != "linear_attention":
        pytest.skip("a state is relative to a running maximum, which has no gradient")
    call, inputs = learned_inputs(sample)
    assert torch.autograd.gradcheck(call, inputs)


def loss_of(sample):
    """A number that every differentiable result takes part in."""
    call, inputs = learned_inputs(sample)
    weights = [Numbers(9).fixed(*y.shape) for y in call(*inputs)]

    def loss(*tensors):
        return sum((w * y).sum() for w, y in zip(weights, call(*tensors)))

    return loss, inputs


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_torch_func_gives_the_gradients_of_autograd(sample):
    loss, inputs = loss_of(sample)
    want = torch.autograd.grad(loss(*inputs), inputs)
    plain = tuple(x.detach() for x in inputs)
    got = torch.func.grad(loss, argnums=tuple(range(len(plain))))(*plain)
    for x, y in zip(got, want):
        assert torch.equal(x, y)


def gated(q, k, v, log_decay):
    return lagwise.ops.linear_attention(
        q, k, v, causal=True, feature_map="elu1", denominator="none", log_decay=log_decay)


def exact(q, k, v, key_bias):
    return lagwise.ops.exact_attention(q, k, v, causal=True, key_bias=key_bias)


def tensors_of_attention(*leading):
    r = Numbers(4)
    return (r.fixed(*leading, 1, 2, 5, 4), r.fixed(*leading, 1, 2, 5, 4),
            r.fixed(*leading, 1, 2, 5, 3), -r.fixed(*leading, 1, 2, 5).abs())


@pytest.mark.parametrize("attention", [gated, exact])
def test_jacobians_are_those_of_reverse_mode(attention):
    inputs = tensors_of_attention()
    got = torch.func.jacrev(attention, argnums=(0, 1, 2, 3))(*inputs)
    want = torch.autograd.functional.jacobian(attention, inputs)
    for x, y in zip(got, want):
        torch.testing.assert_close(x, y)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("attention", [gated, exact])
def test_vmap_is_a_loop(attention):
    many = tensors_of_attention(3)
    got = torch.func.vmap(attention)(*many)
    want = torch.stack([attention(*(x[i] for x in many)) for i in range(3)])
    assert torch.equal(got, want)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_gradients_per_sample():
    many = tensors_of_attention(3)

    def loss(*x):
        return gated(*x).square().sum()

    got = torch.func.vmap(torch.func.grad(loss))(*many)
    for i in range(3):
        one = torch.func.grad(loss)(*(x[i] for x in many))
        assert torch.equal(got[i], one)


@pytest.mark.parametrize("attention", [gated, exact])
def test_second_derivatives_are_refused_aloud(attention):
    inputs = tensors_of_attention()

    def first(q):
        return torch.func.grad(lambda x: attention(x, *inputs[1:]).square().sum())(q).sum()

    with pytest.raises(RuntimeError, match="differentiated once"):
        torch.func.grad(first)(inputs[0])


@pytest.mark.parametrize("kind", ["linear_attention", "linear_attention_stateful"])
def test_bfloat16_is_stored_and_computed_in_float(kind):
    x = [Numbers(5).learned(1, 2, 9, 4, dtype=torch.bfloat16) for _ in range(3)]
    wide = [y.detach().float().requires_grad_() for y in x]
    options = {"causal": True, "feature_map": "elu1"}
    short, long = (getattr(lagwise.ops, kind)(*y, **options) for y in (x, wide))
    if kind == "linear_attention_stateful":
        assert short[1].dtype == torch.float32
        short, long = short[0], long[0]
    assert short.dtype == torch.bfloat16
    assert torch.equal(short, long.bfloat16())
    short.float().sum().backward()
    long.sum().backward()
    for a, b in zip(x, wide):
        torch.testing.assert_close(a.grad, b.grad.bfloat16())


def test_a_step_tells_of_all_it_writes():
    s, z, m = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3), torch.zeros(1, 2)
    q, v = torch.rand(1, 2, 3), torch.rand(1, 2, 4)
    before = [x._version for x in (s, z, m)]
    OPS.linear_attention_step(q, q, v, s, z, m, eps=0.0, log_scale=torch.ones(1, 2))
    assert all(x._version > old for x, old in zip((s, z, m), before))


@pytest.mark.parametrize("name", ["linear_attention_step", "exact_attention_step"])
def test_steps_refuse_to_be_differentiated(name):
    q = torch.rand(1, 2, 3, requires_grad=True)
    cache = (torch.rand(1, 2, 5, 3), torch.rand(1, 2, 5, 4))
    state = (torch.rand(1, 2, 3), torch.rand(1, 2, 4), torch.zeros(1, 2, 3, 4),
             torch.zeros(1, 2, 3))
    with pytest.raises(RuntimeError, match="gradient"):
        getattr(OPS, name)(q, *(cache if name.startswith("exact") else state))


def test_noise_is_a_function_of_its_coordinates():
    whole = OPS.noise("normal", 20, seed=3, stream=2, head=1)
    assert torch.equal(whole[7:], OPS.noise("normal", 13, first=7, seed=3, stream=2, head=1))
    assert not torch.equal(whole, OPS.noise("normal", 20, seed=4, stream=2, head=1))


@pytest.mark.parametrize("call, words", [
    (lambda: OPS.noise("pink", 3), "noise: expected kind"),
    (lambda: OPS.noise("sign", 3, layer=-1), "noise: "),
    (lambda: OPS.sine_spe_noise(2, 3, 4, 0), "sine_spe_noise: expected"),
    (lambda: OPS.sine_spe_fold(-1, 3, 4, 5), "sine_spe_fold: expected"),
    (lambda: OPS.favor_directions(3, 0), "favor_directions: expected"),
])
def test_noise_says_what_is_wrong(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()
