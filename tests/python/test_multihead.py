"""MultiheadAttention against torch's own, its gates, streams and refusals."""

import pytest
import torch

import lagwise

C, H, N, B = 24, 4, 9, 2
MEMORY = "linear:map=none,forget=gated,write=delta,conv=3,gate_output=true,norm=rms_head"


def rows(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def pair(batch_first, **keywords):
    theirs = torch.nn.MultiheadAttention(C, H, batch_first=batch_first, bias=True)
    torch.nn.init.normal_(theirs.in_proj_bias)
    ours = lagwise.MultiheadAttention(C, H, batch_first=batch_first, **keywords)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_takes_the_place_of_torchs_with_its_weights(batch_first, causal):
    theirs, ours = pair(batch_first)
    x = rows(B, N, C).requires_grad_()
    mask = torch.ones(N, N).triu(1).bool() if causal else None
    got, weights = ours(x, x, x, attn_mask=mask, is_causal=causal)
    if not batch_first:  # then N and B change roles
        mask = torch.ones(B, B).triu(1).bool() if causal else None
    expected, _ = theirs(x, x, x, attn_mask=mask, need_weights=False)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    assert weights is None
    ours_grad, = torch.autograd.grad(got.square().sum(), x)
    their_grad, = torch.autograd.grad(expected.square().sum(), x)
    torch.testing.assert_close(ours_grad, their_grad, rtol=1e-4, atol=1e-5)


def test_padding_and_cross_attention_as_in_torchs():
    theirs, ours = pair(True)
    x, y = rows(B, N, C), rows(B, 5, C, seed=1)
    for padding in ([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]], [[1, 0, 0, 0, 0], [1, 1, 1, 0, 0]]):
        padding = torch.tensor(padding).bool()
        got, _ = ours(x, y, y, key_padding_mask=padding)
        expected, _ = theirs(x, y, y, key_padding_mask=padding, need_weights=False)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
        got, _ = ours(y, y, y, key_padding_mask=padding)
        expected, _ = theirs(y, y, y, key_padding_mask=padding, need_weights=False)
        torch.testing.assert_close(got[~padding], expected[~padding], rtol=1e-4, atol=1e-5)
    unbatched, _ = ours(x[0], y[0], y[0])
    torch.testing.assert_close(unbatched, ours(x, y, y)[0][0])


def test_stands_in_a_layer_of_torch():
    layer = torch.nn.TransformerEncoderLayer(C, H, 48, dropout=0.0, batch_first=True)
    theirs = layer(x := rows(B, N, C))
    ours = lagwise.MultiheadAttention(C, H, batch_first=True)
    ours.load_state_dict(layer.self_attn.state_dict())
    layer.self_attn = ours
    torch.testing.assert_close(layer(x), theirs, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(layer.eval()(x), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attention, encoding", [
    ("linear:map=elu1", "rope:layout=half"), (MEMORY, "none"), ("retnet", "none"),
    ("gated_deltanet", "none"), ("exact:forget=gated", "rope:layout=half")])
def test_trains_every_parameter(attention, encoding):
    layer = lagwise.MultiheadAttention(C, H, batch_first=True, causal=True, attention=attention,
                                       encoding=encoding)
    x = rows(B, N, C)
    out, _ = layer(x)
    (out * rows(B, N, C, seed=2)).sum().backward()
    assert [n for n, p in layer.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("attention, encoding", [
    ("linear:map=elu1", "rope:layout=half"), (MEMORY, "none"), ("retnet", "none")])
def test_streams_equal_the_whole(attention, encoding):
    layer = lagwise.MultiheadAttention(C, H, batch_first=True, causal=True, attention=attention,
                                       encoding=encoding)
    x = rows(B, N, C)
    whole, _ = layer(x)
    state, pieces = None, []
    for a, b in ((0, 3), (3, 4), (4, 5), (5, 9)):
        out, state = layer.extend(x[:, a:b], state)
        pieces.append(out)
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-4, atol=1e-5)
    assert state.position == N
    size = state.bytes()
    assert layer.extend(x, state)[1].bytes() == size
    other, _ = layer.extend(x.flip(0), state.reorder(torch.tensor([1, 0])).detach())
    torch.testing.assert_close(other.flip(0), layer.extend(x, state)[0], rtol=1e-4, atol=1e-5)


def test_without_bias():
    layer = lagwise.MultiheadAttention(C, H, bias=False)
    assert sorted(n for n, _ in layer.named_parameters()) == [
        f"{p}_proj.weight" for p in ("k", "out", "q", "v")]
    theirs = torch.nn.MultiheadAttention(C, H, bias=False)
    layer.load_state_dict(theirs.state_dict())
    x = rows(N, B, C)
    torch.testing.assert_close(layer(x, x, x)[0], theirs(x, x, x)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make, said", [
    (dict(dropout=0.1), "dropout: expected 0.0, got 0.1"),
    (dict(kdim=7), "kdim: expected 24, got 7"),
    (dict(attention="linear:map=elu1,forget=gated"), "expected causal attention with forget=gated"),
])
def test_refuses_in_one_line(make, said):
    with pytest.raises(ValueError, match=said) as refused:
        lagwise.MultiheadAttention(C, H, **make)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("call, said", [
    (dict(need_weights=True), "need_weights: expected False"),
    (dict(attn_mask=torch.zeros(N, N)), "attn_mask: expected none"),
    (dict(key_padding_mask=torch.tensor([[0, 1, 0, 0, 0, 0, 0, 0, 0]] * B).bool()), "padding between"),
])
def test_refuses_masks_that_it_would_have_to_ignore(call, said):
    layer = lagwise.MultiheadAttention(C, H, batch_first=True)
    x = rows(B, N, C)
    with pytest.raises(ValueError, match=said):
        layer(x, x, x, **call)


def test_an_encoder_of_torch_with_padding():
    """At inference it would take a short cut that knows torch's own attention alone."""
    layer = torch.nn.TransformerEncoderLayer(C, H, batch_first=True, dropout=0.0)
    encoder = torch.nn.TransformerEncoder(layer, 2)
    for one in encoder.layers:
        one.self_attn = lagwise.MultiheadAttention(C, H, batch_first=True)
    x = rows(2, 7, C).detach().float()
    padding = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    expected = encoder(x, src_key_padding_mask=padding)
    with torch.no_grad():
        found = encoder.eval()(x, src_key_padding_mask=padding)
    torch.testing.assert_close(found[~padding], expected[~padding])


def test_rows_of_autocast_are_taken():
    layer, x = lagwise.MultiheadAttention(C, H, batch_first=True), rows(2, 7, C).detach().float()
    half = x.bfloat16()
    out, _ = layer(half, half, half)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), layer(x, x, x)[0], rtol=0.05, atol=0.05)
