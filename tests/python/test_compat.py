"""The shims against the packages whose names they take, and against their formulas."""

import pytest
import torch

from lagwise.compat import fast_transformers, performer

B, N, H, D, E = 2, 13, 3, 8, 5


def rows(*shape, seed=0):
    made = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.double, generator=made).requires_grad_()


def same_with_gradients(ours, theirs, *inputs):
    got, expected = ours(*inputs), theirs(*inputs)
    torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-8)
    weight = rows(*got.shape, seed=9).detach()
    for mine, other in zip(torch.autograd.grad((got * weight).sum(), inputs),
                           torch.autograd.grad((expected * weight).sum(), inputs)):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-7)


class Lengths:
    """As fast_transformers.masking.LengthMask."""

    def __init__(self, lengths, longest):
        self.float_matrix = (torch.arange(longest) < torch.tensor(lengths)[:, None]).double()
        self.all_ones = bool(self.float_matrix.all())


def elu1(x):
    return torch.nn.functional.elu(x) + 1


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("own_map", [True, False])
@pytest.mark.parametrize("lengths", [None, [13, 6]])
def test_linear_attention_by_its_formula(causal, own_map, lengths):
    kind = fast_transformers.CausalLinearAttention if causal else fast_transformers.LinearAttention
    attend = kind(D, feature_map=(lambda _: lambda x: x.relu() + 0.1) if own_map else None)
    mask = Lengths(lengths, N) if lengths else None
    phi = (lambda x: x.relu() + 0.1) if own_map else elu1

    def formula(q, k, v):
        keys = phi(k) * (mask.float_matrix[:, :, None, None] if mask else 1)
        weights = torch.einsum("nlhd,nmhd->nhlm", phi(q), keys)
        weights = weights.tril() if causal else weights
        return torch.einsum("nhlm,nmhe->nlhe", weights / (weights.sum(-1, keepdim=True) + 1e-6), v)
    inputs = rows(B, N, H, D), rows(B, N, H, D, seed=1), rows(B, N, H, E, seed=2)
    same_with_gradients(lambda *x: attend(*x, None, None, mask), formula, *inputs)


def test_causal_dot_product():
    def formula(q, k, v):
        return (q @ k.transpose(2, 3)).tril() @ v
    same_with_gradients(fast_transformers.causal_dot_product, formula, rows(B, H, N, D),
                        rows(B, H, N, D, seed=1), rows(B, H, N, E, seed=2))


def test_causal_dot_product_of_the_package():
    theirs = pytest.importorskip("fast_transformers.causal_product",
                                 reason="pytorch-fast-transformers is not installed")
    q, k, v = (rows(B, H, N, D, seed=s).detach().float() for s in range(3))
    torch.testing.assert_close(fast_transformers.causal_dot_product(q, k, v),
                               theirs.causal_dot_product(q, k, v), rtol=1e-4, atol=1e-4)


def test_other_masks_are_refused():
    class Full:
        lower_triangular = False
    with pytest.raises(RuntimeError, match="expected attn_mask None or lower_triangular"):
        fast_transformers.CausalLinearAttention(D)(*(rows(B, N, H, D),) * 3, Full())


@pytest.mark.parametrize("options", [{}, dict(generalized_attention=True), dict(no_projection=True)],
                         ids=["softmax", "generalized", "no_projection"])
@pytest.mark.parametrize("causal", [True, False])
def test_fast_attention_of_performer(options, causal):
    package = pytest.importorskip("performer_pytorch", reason="performer-pytorch is not installed")
    theirs = package.FastAttention(D, nb_features=21, causal=causal, **options).double()
    theirs.causal_linear_fn = getattr(package.performer_pytorch, "causal_linear_attention_noncuda")
    ours = performer.FastAttention(D, nb_features=21, causal=causal, **options).double()
    if "no_projection" not in options:
        ours.projection_matrix.copy_(theirs.projection_matrix)
    inputs = rows(B, H, N, D), rows(B, H, N, D, seed=1), rows(B, H, N, E, seed=2)
    same_with_gradients(ours, theirs, *inputs)


def test_directions_are_orthogonal_and_drawn_anew():
    attend = performer.FastAttention(D, nb_features=D, ortho_scaling=1)
    square = attend.projection_matrix @ attend.projection_matrix.t()
    torch.testing.assert_close(square, D * torch.eye(D), rtol=1e-4, atol=1e-4)
    before = attend.projection_matrix.clone()
    attend.redraw_projection_matrix()
    assert not torch.equal(before, attend.projection_matrix)


def test_alibi_in_a_layer_of_x_transformers():
    """A whole attention layer of x-transformers, with ours between its projections."""
    package = pytest.importorskip("x_transformers.x_transformers", reason="x-transformers is not installed")
    import lagwise
    layer = package.Attention(dim=24, heads=4, dim_head=6, causal=True).double().eval()
    x = rows(B, N, 24).detach()
    table = torch.zeros(4, 2 * N - 1, dtype=torch.double)
    slopes = torch.tensor([2.0 ** -(8 * (h + 1) / 4) for h in range(4)]).double()
    table -= slopes[:, None] * (torch.arange(1 - N, N)).abs()
    bias = table[:, torch.arange(N)[:, None] - torch.arange(N) + N - 1]
    expected = layer(x, attn_bias=bias)
    expected = expected[0] if isinstance(expected, tuple) else expected
    q, k, v = (f(x).unflatten(2, (4, 6)).transpose(1, 2) for f in (layer.to_q, layer.to_k, layer.to_v))
    attend = lagwise.ExactAttention(4, 6, encoding="alibi").double()
    got = layer.to_out(attend(q, k, v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-6)  # its softmax is in f32
