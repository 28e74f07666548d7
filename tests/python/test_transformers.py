"""transformers with our attention, and our models in transformers: values and gradients
against the package's own code. Nothing is downloaded; models are random."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import lagwise  # noqa: E402
import lagwise.transformers as ours  # noqa: E402

SMALL = dict(vocab_size=61, hidden_size=32, num_attention_heads=4)
TOKENS = torch.arange(2 * 13).view(2, 13) % 61
LEFT = torch.ones(2, 13, dtype=torch.long)
LEFT[1, :5] = 0


def llama(**more):
    return transformers.LlamaConfig(**SMALL, intermediate_size=48, num_hidden_layers=2,
                                    num_key_value_heads=2, **more)


def mistral():
    return transformers.MistralConfig(**SMALL, intermediate_size=48, num_hidden_layers=2,
                                      num_key_value_heads=4, sliding_window=4, head_dim=8)


def bloom():
    return transformers.BloomConfig(vocab_size=61, hidden_size=32, n_head=4, n_layer=2,
                                    hidden_dropout=0.0, attention_dropout=0.0)


def mpt():
    return transformers.MptConfig(vocab_size=61, d_model=32, n_heads=4, n_layers=2, max_seq_len=64,
                                  no_bias=True)


CONFIGS = [llama, mistral, bloom, mpt]


def two(config):
    """A model as transformers computes it, and the same with ours."""
    torch.manual_seed(0)
    theirs = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    mine = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="lagwise_exact")
    mine.load_state_dict(theirs.state_dict())
    assert mine.config._attn_implementation == ours.NAME
    return theirs, mine.eval()


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("mask", [None, LEFT], ids=["whole", "padded"])
def test_logits_and_gradients_of_existing_models(config, mask):
    theirs, mine = two(config())
    real = torch.ones_like(TOKENS).bool() if mask is None else mask.bool()
    results = []
    for model in (theirs, mine):
        logits = model(TOKENS, attention_mask=mask, use_cache=False).logits
        (logits[real].square().mean()).backward()
        results.append((logits[real].detach(), [p.grad for p in model.parameters()]))
    torch.testing.assert_close(results[1][0], results[0][0], rtol=1e-4, atol=1e-5)
    for mine_grad, their_grad in zip(results[1][1], results[0][1]):
        torch.testing.assert_close(mine_grad, their_grad, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("config", CONFIGS)
def test_generation_with_left_padding(config):
    theirs, mine = two(config())
    wanted = dict(attention_mask=LEFT, max_new_tokens=8, do_sample=False, pad_token_id=0)
    assert torch.equal(mine.generate(TOKENS, **wanted), theirs.generate(TOKENS, **wanted))


def calls_of_ours(monkeypatch):
    """Shapes of the tensors of every call of our operator."""
    seen = []
    from lagwise.transformers import exact
    attend = exact.attend

    def watched(q, *rest, **named):
        seen.append((tuple(q.shape), named.get("lag_bias")))
        return attend(q, *rest, **named)
    for module in (exact, ours.alibi):
        monkeypatch.setattr(module, "attend", watched)
    return seen


@pytest.mark.parametrize("config", [bloom, mpt])
def test_alibi_is_a_table_by_lag(config, monkeypatch):
    seen = calls_of_ours(monkeypatch)
    _, mine = two(config())
    mine(TOKENS)
    assert [tuple(table.shape) for _, table in seen] == [(4, 25)] * 2


def t5():
    return transformers.T5Config(vocab_size=61, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
                                 dropout_rate=0.0, decoder_start_token_id=0)


def two_t5():
    torch.manual_seed(0)
    config = t5()
    theirs = transformers.AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager").eval()
    mine = transformers.AutoModelForSeq2SeqLM.from_config(config, attn_implementation="lagwise_exact")
    mine.load_state_dict(theirs.state_dict())
    return theirs, mine.eval()


@pytest.mark.parametrize("mask", [None, LEFT.flip(1)], ids=["whole", "padded"])
def test_t5(mask, monkeypatch):
    seen = calls_of_ours(monkeypatch)
    theirs, mine = two_t5()
    results = []
    for model in (theirs, mine):
        logits = model(input_ids=TOKENS, attention_mask=mask, decoder_input_ids=TOKENS[:, :7]).logits
        logits.square().mean().backward()
        results.append((logits.detach(), {n: p.grad for n, p in model.named_parameters()}))
    torch.testing.assert_close(results[1][0], results[0][0], rtol=1e-4, atol=1e-5)
    for name, gradient in results[0][1].items():
        torch.testing.assert_close(results[1][1][name], gradient, rtol=1e-3, atol=1e-5, msg=name)
    tables = [None if table is None else tuple(table.shape) for _, table in seen]
    assert tables == [(4, 25)] * 2 + [(4, 13), None] * 2  # encoder; decoder, its cross attention
    wanted = dict(attention_mask=mask, max_new_tokens=6, do_sample=False)
    assert torch.equal(mine.generate(TOKENS, **wanted), theirs.generate(TOKENS, **wanted))


def test_compiled_llama():
    theirs, mine = two(llama())
    compiled = torch.compile(mine, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(TOKENS, use_cache=False).logits,
                                   theirs(TOKENS, use_cache=False).logits, rtol=1e-4, atol=1e-5)


def test_dropout_of_weights_is_refused():
    _, mine = two(llama(attention_dropout=0.1))
    with pytest.raises(ValueError, match="expected no dropout of attention, got 0.1"):
        mine.train()(TOKENS)


def test_lightning_attention_of_minimax_is_our_decay():
    """A whole layer, with our operator between its projections and its norm."""
    from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention
    config = transformers.MiniMaxConfig(
        hidden_size=32, num_attention_heads=4, head_dim=8, num_hidden_layers=4, block_size=5,
        layer_types=["linear_attention"] * 4)
    torch.manual_seed(0)
    layer = MiniMaxLightningAttention(config, layer_idx=1)
    results = []
    for attention in ("theirs", "ours"):
        x = torch.randn(2, 17, 32, generator=torch.Generator().manual_seed(1)).requires_grad_()
        if attention == "theirs":
            out = layer(x, None, None)[0]
        else:
            qkv = layer.act_fn(layer.qkv_proj(x)).view(2, 17, 4, 24).transpose(1, 2)
            q, k, v = qkv.split(8, dim=3)
            heads = lagwise.ops.linear_attention(q, k, v, causal=True, denominator="none",
                                                 decay=-layer.slope_rate.flatten())
            rows = layer.norm(heads.transpose(1, 2).flatten(2))
            out = layer.out_proj(torch.sigmoid(layer.output_gate(x)) * rows)
        out.square().sum().backward()
        results.append((out.detach(), x.grad))
    torch.testing.assert_close(results[1][0], results[0][0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(results[1][1], results[0][1], rtol=1e-3, atol=1e-5)


# ---- models of lagwise


def made(**config):
    return ours.LagwiseForCausalLM(ours.LagwiseConfig(**{**dict(
        vocabulary=61, dim=32, heads=4, layers=2, encoding="rope:layout=half",
        attention="linear:map=elu1,forget=gated", pad_token_id=0, eos_token_id=60), **config})).eval()


def test_saved_and_loaded_through_the_auto_classes(tmp_path):
    model = made()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.01)
    model.save_pretrained(tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(again, ours.LagwiseForCausalLM)
    assert torch.equal(again(TOKENS).logits, model(TOKENS).logits)
    assert transformers.AutoConfig.from_pretrained(tmp_path).encoding == "rope:layout=half"
    assert model.config.hidden_size == 32 and model.config.vocab_size == 61


@pytest.mark.parametrize("config", [{}, dict(attention="exact"), dict(encoding="sine_spe:realizations=8")])
def test_generates_with_left_padding_as_each_text_alone(config):
    model = made(**config)
    wanted = dict(max_new_tokens=9, do_sample=False)
    together = model.generate(TOKENS, attention_mask=LEFT, **wanted)
    for b, first in ((0, 0), (1, 5)):
        alone = model.generate(TOKENS[b : b + 1, first:], **wanted)[0]
        assert torch.equal(together[b, first : first + len(alone)], alone)
    slow = model.generate(TOKENS, attention_mask=LEFT, use_cache=False, **wanted)
    assert torch.equal(together, slow)


def test_beams():
    model = made()
    wanted = dict(max_new_tokens=7, do_sample=False, num_beams=3)
    fast = model.generate(TOKENS, attention_mask=LEFT, **wanted)
    assert torch.equal(fast, model.generate(TOKENS, attention_mask=LEFT, use_cache=False, **wanted))


def test_the_cache_has_a_constant_size():
    model = made()
    with torch.no_grad():
        cache = model(TOKENS, use_cache=True).past_key_values
        sizes = set()
        for _ in range(20):
            cache = model(TOKENS[:, :1], past_key_values=cache, use_cache=True).past_key_values
            sizes.add(cache.bytes())
    assert len(sizes) == 1 and cache.get_seq_length() == 33


def test_learns_with_labels():
    model = made().train()
    labels = TOKENS.clone()
    labels[1, :6] = -100  # padding, and the token after it
    out = model(TOKENS, attention_mask=LEFT, labels=labels)
    out.loss.backward()
    assert [n for n, p in model.named_parameters() if p.grad is None] == []
    alone = model(TOKENS[1:, 5:], labels=TOKENS[1:, 5:]).loss * 7 + model(TOKENS[:1], labels=TOKENS[:1]).loss * 12
    torch.testing.assert_close(out.loss, alone / 19, rtol=1e-3, atol=1e-4)


def test_a_run_of_the_program(small_run, tmp_path):
    model = ours.LagwiseForCausalLM.from_run(small_run, "last")
    loaded = lagwise.load(small_run, "last")
    tokens = torch.tensor([loaded.encode("line 49")])
    assert torch.equal(model(tokens).logits, loaded(tokens))
    model.save_pretrained(tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    written = again.generate(tokens, max_new_tokens=6, do_sample=False)[0, tokens.shape[1]:]
    assert torch.equal(written, loaded.generate(tokens[0], length=6, temperature=0))


def test_documents_in_one_row_are_refused():
    model = two(llama())[1]
    ids = torch.arange(12)[None] % 7
    positions = torch.cat([torch.arange(5), torch.arange(7)])[None]
    with pytest.raises(ValueError, match="expected one document a row"):
        model(ids, position_ids=positions, use_cache=False)
    model(ids, position_ids=torch.arange(12)[None], use_cache=False)
