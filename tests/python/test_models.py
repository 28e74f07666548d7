"""Whole models, and runs that go from the program to Python and back."""

import json

import pytest
import torch

import lagwise


def made(**config):
    return lagwise.Model(**{**dict(vocabulary=11, layers=2, dim=16, heads=2, length=32), **config})


TOKENS = torch.arange(24).view(2, 12) % 11


@pytest.mark.parametrize("encoding, attention", [
    ("rope:layout=half", "linear:map=elu1"), ("sine_spe:realizations=8", "linear:map=favor:features=16"),
    ("none", "gated_deltanet"), ("t5", "exact"), ("alibi", "exact:forget=gated")])
def test_every_parameter_learns_and_decoding_equals_the_whole(encoding, attention):
    model = made(encoding=encoding, attention=attention)
    loss = torch.nn.functional.cross_entropy(model(TOKENS).flatten(0, 1), TOKENS.flatten())
    loss.backward()
    assert [n for n, p in model.named_parameters() if p.grad is None] == []
    model.eval()
    whole = model(TOKENS)
    decoder = model.decoder(2)
    first = decoder.extend_all(TOKENS[:, :5])
    rest = torch.stack([decoder.extend(TOKENS[:, t : t + 1]) for t in range(5, 12)], 1)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole, rtol=1e-4, atol=1e-5)
    assert decoder.bytes() > 0


def test_gradients_are_those_of_finite_differences():
    model = made(dim=8, layers=1, encoding="rope:layout=half").double().eval()
    parameters = [p.detach().clone().requires_grad_() for p in model.tensors()]

    def call(*given):
        return lagwise._part.call(model._texts[False], list(given), tokens=TOKENS[:1, :4],
                                  draw=model.draw())[0]
    assert torch.autograd.gradcheck(call, parameters, eps=1e-6, atol=1e-5, rtol=1e-3,
                                    fast_mode=True, check_undefined_grad=False)


def test_a_change_of_a_parameter_before_the_backward_pass_is_noticed():
    model = made()
    loss = model(TOKENS).sum()
    with torch.no_grad():
        model.norm.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_two_passes_may_wait_for_their_backward_pass():
    a, b = made(seed=1), made(seed=2)
    first, second = a(TOKENS).square().sum(), b(TOKENS).square().sum()
    first.backward()
    second.backward()
    alone = made(seed=1)
    alone(TOKENS).square().sum().backward()
    for (name, p), (_, q) in zip(a.named_parameters(), alone.named_parameters()):
        torch.testing.assert_close(p.grad, q.grad, msg=name)


def test_padding_before_and_after():
    model = made(encoding="rope:layout=half").eval()
    alone = model(TOKENS[1:, 3:9])
    right = torch.zeros_like(TOKENS)
    right[1, :6] = TOKENS[1, 3:9]
    lengths = torch.tensor([12, 6])
    torch.testing.assert_close(model(right, lengths)[1:, :6], alone)
    left = model(TOKENS, torch.tensor([12, 9]), starts=torch.tensor([0, 3]))
    torch.testing.assert_close(left[1:, 3:9], alone)


def test_reordering_what_was_read():
    for attention, encoding in (("linear:map=elu1", "rope:layout=half"), ("exact", "t5"),
                                ("linear:map=elu1", "t5"), ("linear:map=none,denominator=none,conv=3", "none")):
        model = made(encoding=encoding, attention=attention).eval()
        decoder, twice = model.decoder(2), model.decoder(2)
        decoder.extend(TOKENS[:, :6])
        decoder.reorder(torch.tensor([1, 1]))
        twice.extend(TOKENS[1:, :6].expand(2, 6))
        for t in range(6, 9):
            next_tokens = TOKENS[:, t : t + 1]
            torch.testing.assert_close(decoder.extend(next_tokens), twice.extend(next_tokens))


def test_unknown_keys_and_texts_are_refused_in_one_line():
    with pytest.raises(ValueError, match="dims: no key of a model; expected one of model, "):
        made(dims=4)
    with pytest.raises(ValueError, match="unknown encoding 'rop'"):
        made(encoding="rop")


def test_generates_from_tokens_with_a_seed():
    model = made().eval()
    one = model.generate([1, 2, 3], length=5, seed=4)
    assert one.shape == (5,) and torch.equal(one, model.generate([1, 2, 3], length=5, seed=4))
    several = model.generate(TOKENS, length=5)
    assert [x.shape for x in several] == [(5,), (5,)]
    likely = model.generate([1, 2, 3], length=1, temperature=0)
    assert likely[0] == model(torch.tensor([[1, 2, 3]]))[0, -1].argmax()
    with pytest.raises(ValueError, match="encode: expected a model of a run"):
        model.generate("text")


# ---- runs


def test_a_run_gives_the_programs_own_numbers(program, small_run):
    model = lagwise.load(small_run, "last")
    assert model.run["step"] == 12 and not model.training
    said = json.loads(program("generate", small_run, "--last", "--prompt", "line 4", "--length", 9,
                              "--engine", "torch", "--seed", 3, "--logprobs", "--json"))
    sample = said["samples"][0]
    prompt = torch.tensor(model.encode("line 4"))
    assert model.generate(prompt, length=9, seed=3).tolist() == sample["tokens"]
    assert model.generate("line 4", length=9, seed=3) == model.decode(sample["tokens"])
    tokens = prompt.tolist() + sample["tokens"]
    chances = model(torch.tensor([tokens])).log_softmax(-1)[0]
    drawn = [chances[5 + i, token].item() for i, token in enumerate(sample["tokens"])]
    assert drawn == pytest.approx(sample["logprobs"], abs=1e-5)


def test_names_are_those_of_the_safetensors(small_run):
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    file = small_run / "checkpoints/00000012/model.safetensors"
    stored = safetensors.load_file(file)
    model = lagwise.load(small_run, "last")
    state = model.state_dict()
    assert set(stored) == set(state)
    for name, value in stored.items():
        assert torch.equal(value, state[name]), name


def test_safetensors_of_python_are_read_back(small_run, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    model = lagwise.load(small_run, "last")
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")
    other = lagwise.Model(**model.config)
    other.load_state_dict(safetensors.load_file(tmp_path / "model.safetensors"))
    assert torch.equal(other.eval()(TOKENS), model(TOKENS))


def test_a_run_through_python_goes_on_with_the_same_bits(program, small_run, tmp_path):
    model = lagwise.load(small_run, "last")
    lagwise.save(model, tmp_path / "through", optimizer=model.optimizer())
    recipe = small_run.parent / "small.toml"
    judged = json.loads(program("eval", small_run, "--last", "--json"))
    again = json.loads(program("eval", tmp_path / "through", "--last", "--json"))
    assert judged["metric"]["loss"] == again["metric"]["loss"]
    program("train", recipe, "--out", tmp_path / "through", "--set", "train.steps=15")
    program("train", recipe, "--out", tmp_path / "straight", "--set", "train.steps=15")
    name = "checkpoints/00000015/model.safetensors"
    assert (tmp_path / "through" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()


def test_training_in_python_goes_back_to_the_program(program, small_run, tmp_path):
    model = lagwise.load(small_run, "last")
    optimizer = model.optimizer()
    model.train()
    tokens = torch.tensor([model.encode("line 144\nline 169\nline 196\n")])
    losses = []
    for _ in range(20):
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    lagwise.save(model, tmp_path / "tuned", optimizer=optimizer)
    assert lagwise.load(tmp_path / "tuned").run["step"] == 32
    likely = model.eval().generate("line 1", length=8, temperature=0)
    said = json.loads(program("generate", tmp_path / "tuned", "--prompt", "line 1", "--length", 8,
                              "--temperature", 0, "--json"))
    assert said["samples"][0]["text"] == likely
    program("train", small_run.parent / "small.toml", "--out", tmp_path / "tuned", "--set",
            "train.steps=33")


def test_what_is_wrong_with_a_run_is_said_in_one_line(small_run, tmp_path):
    with pytest.raises(ValueError, match="expected the folder of a run, with recipe.toml in it"):
        lagwise.load(tmp_path)
    model = lagwise.load(small_run, "last")
    with pytest.raises(ValueError, match="expected no checkpoint at step 12 or later"):
        lagwise.save(model, small_run)
    with pytest.raises(ValueError, match="save: expected a model of a run"):
        lagwise.save(made(), tmp_path / "x")
