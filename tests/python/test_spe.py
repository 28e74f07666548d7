"""`lagwise.spe` against the reference's tensors (tests/golden/spe) and the definition in f64."""

import json
from pathlib import Path

import numpy
import pytest
import torch

import lagwise.spe as spe

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "spe"


def tensors(case):
    class Case:
        def __getattr__(self, name):
            return torch.from_numpy(numpy.load(GOLDEN / case / f"{name}.npy"))
    return Case()


def sizes(case):
    return json.loads((GOLDEN / case / "manifest.json").read_text())["dims"]


def set_to(parameter, value):
    with torch.no_grad():
        parameter.copy_(value)


def sine(case):
    g = tensors(case)
    heads, features, sines = g.freqs.shape
    code = spe.SineSPE(heads, features, g.z.shape[-1], sines).double()
    for name in ("freqs", "offsets", "gains"):
        set_to(getattr(code, name), getattr(g, name))
    return g, code, spe.LazyCode(code, tuple(g.qbar.shape[1:2]), g.z.shape[-1], g.z[0])


def conv(case):
    g = tensors(case)
    heads, features, realizations = g.qbar.shape[-3:]
    kernel = list(g.conv_q_weight.shape[2:])
    code = spe.ConvSPE(len(kernel), heads, features, realizations, kernel).double()
    set_to(code.conv_q.weight, g.conv_q_weight)
    set_to(code.conv_k.weight, g.conv_k_weight)
    used = g.z  # (R, H D, 4 k + size, ..): the samples from k on are used
    for axis, size in enumerate(kernel):
        used = used.narrow(2 + axis, size, used.shape[2 + axis] - size)
    used = used.unflatten(1, (heads, features)).permute(1, 2, *range(3, 3 + len(kernel)), 0)
    return g, code, spe.LazyCode(code, tuple(g.qbar.shape[1:-3]), realizations, used)


CASES = [(sine, "sine_k1"), (sine, "sine_k3"), (sine, "sine_truncated"), (conv, "conv1d"),
         (conv, "conv1d_even"), (conv, "conv2d"), (conv, "conv2d_truncated"), (conv, "conv3d")]


@pytest.mark.parametrize("make, case", CASES, ids=[case for _, case in CASES])
def test_forms_the_code_of_the_reference(make, case):
    g, _, code = make(case)
    qbar, kbar = code
    torch.testing.assert_close(qbar, g.qbar, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(kbar, g.kbar, rtol=1e-9, atol=1e-11)
    assert len(code) == 2 and code[0] is qbar


@pytest.mark.parametrize("make, case", CASES, ids=[case for _, case in CASES])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("lazy", [True, False])
def test_filters_as_the_reference_with_its_gradients(make, case, gated, lazy, monkeypatch):
    g, source, code = make(case)
    filter = spe.SPEFilter(gated=gated, code_shape=source.code_shape).double()
    if gated:
        set_to(filter.gate, g.gate_raw)
        monkeypatch.setattr(torch, "randn", lambda *_, **__: g.gate_noise)
    queries, keys = g.queries.requires_grad_(), g.keys.requires_grad_()
    if not lazy:  # a code that is there, cut to the rows
        size = queries.shape[1:-2]
        code = tuple(x[tuple([slice(None), *(slice(n) for n in size)])] for x in code)
    qhat, khat = filter(queries, keys, code)
    mark = "g" if gated else "u"
    torch.testing.assert_close(qhat, getattr(g, f"qhat_{mark}"), rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(khat, getattr(g, f"khat_{mark}"), rtol=1e-9, atol=1e-11)
    (qhat * g.grad_qhat).sum().add((khat * g.grad_khat).sum()).backward()
    named = {"queries": queries, "keys": keys,
             **{name.replace(".", "_"): p for name, p in source.named_parameters()}}
    if gated:
        named["gate"] = filter.gate
    for name, tensor in named.items():
        if (GOLDEN / case / f"d_{name}_{mark}.npy").exists():
            expected = getattr(g, f"d_{name}_{mark}")
            torch.testing.assert_close(tensor.grad, expected, rtol=1e-8, atol=1e-10, msg=name)


def test_sine_covariance_is_the_references():
    g, code, _ = sine("sine_k3")
    torch.testing.assert_close(code.get_posattn_matrix(9), g.posattn_ref, rtol=1e-6, atol=1e-6)


def test_shapes_parameters_and_fresh_noise():
    code = spe.SineSPE(num_heads=2, in_features=3, num_realizations=5, num_sines=4)
    assert code.code_shape == (2, 3, 5)
    assert {n: tuple(p.shape) for n, p in code.named_parameters()} == {
        "freqs": (2, 3, 4), "offsets": (2, 3, 4), "gains": (2, 3, 4)}
    filter = spe.SPEFilter(code_shape=code.code_shape)
    x = torch.randn(2, 7, 2, 3)
    first, second = (filter(x, x, code((2, 7)))[0] for _ in range(2))
    assert first.shape == (2, 7, 2, 5) and not torch.equal(first, second)
    assert filter(x, x, code((2, 7), 9))[0].shape == (2, 7, 2, 9)
    torch.manual_seed(3)
    again = filter(x, x, code((2, 7)))[0]
    torch.manual_seed(3)
    assert torch.equal(again, filter(x, x, code((2, 7)))[0])


def test_conv_parameters_and_grids():
    code = spe.ConvSPE(ndim=2, num_heads=2, in_features=3, num_realizations=5, kernel_size=4)
    assert {n: tuple(p.shape) for n, p in code.named_parameters()} == {
        "conv_q.weight": (6, 1, 4, 4), "conv_k.weight": (6, 1, 4, 4)}
    filter = spe.SPEFilter(gated=False)
    x = torch.randn(2, 6, 5, 2, 3)
    qhat, khat = filter(x, x, code(x.shape[:3]))
    assert qhat.shape == khat.shape == (2, 6, 5, 2, 5)
    with pytest.raises(ValueError, match="with 2 sizes"):
        code((2, 6))
    with pytest.raises(ValueError, match="rows of the code's size"):
        filter(x, x, code((2, 3, 5)))


def test_a_filter_with_a_gate_needs_its_shape():
    with pytest.raises(ValueError, match="code_shape"):
        spe.SPEFilter(gated=True)
