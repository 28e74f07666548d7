"""Whole models, and runs of the program: ``lagwise.load(RUN)``, ``lagwise.save(model, RUN)``.

A model is the C++ model of its config with its parameters in Python's hands: forwards it is
the one that the program trains and judges, to the bit.
"""

import json
import os
from typing import Any, Dict, List, Optional, Sequence, Union

import torch
from torch import Tensor, nn

from lagwise import _part
from lagwise._draw import Draw, seed_of
from lagwise._named import NamedParameters
from lagwise._padding import from_front, to_front
from lagwise.optimizers import adamw, moments_of

bindings = torch.ops.lagwise_bindings

#: What a config may leave out. `lagwise train --keys` of the program says what each means.
#: Without a seed torch's generator gives one.
DEFAULTS: Dict[str, Any] = dict(
    model="decoder_lm", vocabulary=256, classes=0, length=512, grid=[], geometry="auto",
    patch=1, seed=None,
    layers=2, dim=64, heads=4, key_dim=0, value_dim=0, feed_forward=0, dropout=0.0, norm="rms",
    pre_norm=True, tied=True, pooling="mean", encoding="none", attention="linear:map=elu1",
    cross_encoding="none", cross_attention="exact")


class Model(NamedParameters):
    """A transformer from a config, with the keys of a recipe's [model].

    >>> model = lagwise.Model(vocabulary=256, layers=2, dim=64, heads=4,
    ...                       encoding="rope:layout=half", attention="linear:map=elu1")
    >>> model(torch.zeros(1, 10, dtype=torch.long)).shape
    torch.Size([1, 10, 256])

    Its state_dict has the names of the program's ``model.safetensors``.
    """

    def __init__(self, **config: Any):
        super().__init__()
        unknown = sorted(set(config) - set(DEFAULTS))
        if unknown:
            raise ValueError(f"{unknown[0]}: no key of a model; expected one of "
                             f"{', '.join(DEFAULTS)}")
        self.config = {**DEFAULTS, **config}
        self.config["seed"] = seed_of(self.config["seed"])
        self._texts = {training: _part.describe("model", training=training, **self.config)
                       for training in (False, True)}
        self.facts = _part.facts(self._texts[False])
        self.take_parameters(_part.initial(self._texts[False]))
        self.draw = Draw(self.config["seed"], True)
        self.run: Optional[Dict[str, Any]] = None  #: state.json of the run it is from

    def forward(self, tokens: Tensor, lengths: Optional[Tensor] = None, *,
                starts: Optional[Tensor] = None, source: Optional[Tensor] = None,
                source_lengths: Optional[Tensor] = None) -> Tensor:
        """Tokens [B, N] -> logits [B, N, V], of a classifier [B, classes].

        `lengths` [B] real tokens of each row; `starts` [B] the first of them, where padding
        stands before. An encoder_decoder also takes `source` [B, M].
        """
        if not isinstance(tokens, Tensor) or tokens.dim() != 2 or tokens.is_floating_point():
            got = f"{tokens.dtype} {list(tokens.shape)}" if isinstance(tokens, Tensor) else repr(type(tokens))
            raise ValueError(f"tokens: expected whole numbers [B, N], got {got}")
        tokens = tokens.long()
        if starts is not None:
            if lengths is None:
                lengths = tokens.shape[1] - starts
            logits = self(to_front(tokens, starts, 1), lengths)
            return from_front(logits, starts, 1)
        return _part.call(self._texts[self.training], self.tensors(), tokens=tokens,
                          lengths=lengths, source=source, source_lengths=source_lengths,
                          draw=self.draw())[0]

    def decoder(self, batch: int = 1) -> "Decoder":
        """Reads token by token: constant in size with linear attention."""
        return Decoder(self, batch)

    def generate(self, prompt: Union[str, List[str], Sequence[int], Tensor, List[Tensor]], length: int = 256,
                 *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0,
                 min_p: float = 0.0, repetition_penalty: float = 1.0,
                 repetition_window: int = 64, seed: int = 0) -> Any:
        """What the model writes after a prompt: the same tokens as ``lagwise generate``.

        A text gives a text (of runs of the program, which know what tokens stand for), tokens
        [N] give tokens, a batch [B, N] or a list of prompts, tokens or texts, gives a list.
        """
        if isinstance(prompt, str) or (isinstance(prompt, list) and prompt
                                       and all(isinstance(text, str) for text in prompt)):
            texts = [prompt] if isinstance(prompt, str) else prompt
            tokens = [torch.tensor(self.encode(text), dtype=torch.long) for text in texts]
            written = self._continue(tokens, length, temperature, top_k, top_p, min_p,
                                     repetition_penalty, repetition_window, seed)
            told = [self.decode(one) for one in written]
            return told[0] if isinstance(prompt, str) else told
        several = isinstance(prompt, list) and prompt and isinstance(prompt[0], Tensor)
        prompts = prompt if several else torch.as_tensor(prompt, dtype=torch.long)
        single = not several and prompts.dim() == 1
        written = self._continue([prompts] if single else list(prompts), length, temperature,
                                 top_k, top_p, min_p, repetition_penalty, repetition_window, seed)
        return written[0] if single else written

    def _continue(self, prompts: List[Tensor], length: int, *sampling: Any) -> List[Tensor]:
        seed, step, _ = self.draw.moment.tolist()
        return bindings.continue_texts(self._texts[False], self.tensors(), self._task, self._words,
                                  prompts, length, *sampling, seed, step)

    @property
    def _task(self) -> str:
        return self.run["task"] if self.run else ""

    @property
    def _words(self) -> List[str]:
        return self.run["words"] if self.run else []

    def encode(self, text: str) -> List[int]:
        """Tokens of a text, of a model that is from a run."""
        self._expect_run("encode")
        return list(bindings.encode_text(self._task, self._words, text))

    def decode(self, tokens: Union[Tensor, Sequence[int]]) -> str:
        self._expect_run("decode")
        tokens = tokens.tolist() if isinstance(tokens, Tensor) else list(tokens)
        written = bytes(bindings.decode_text(self._task, self._words, tokens).tolist())
        return written.decode("utf-8", errors="replace")

    def _expect_run(self, what: str) -> None:
        if self.run is None:
            raise ValueError(f"{what}: expected a model of a run (lagwise.load), got one without: it has "
                             "no recipe, and does not know what its tokens stand for")

    def optimizer(self) -> torch.optim.AdamW:
        """AdamW as the program has it: the settings of the run's recipe and, once, its moments."""
        self._expect_run("optimizer")
        return adamw(self)

    def extra_repr(self) -> str:
        shown = ("model", "vocabulary", "layers", "dim", "heads", "encoding", "attention")
        return ", ".join(f"{key}={self.config[key]!r}" for key in shown)


class Decoder:
    """What a model remembers of a batch of texts."""

    def __init__(self, model: Model, batch: int):
        seed, step, _ = model.draw.moment.tolist()
        self._made = torch.classes.lagwise_bindings.Decoding(
            model._texts[False], model.tensors(), batch, seed, step)

    def extend(self, tokens: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        """Takes tokens [B, N], the first `lengths` of each row; logits [B, V] after the last."""
        return self._made.extend(tokens, lengths)

    def extend_all(self, tokens: Tensor) -> Tensor:
        """The same with the logits of every row, [B, N, V]."""
        return self._made.extend_all(tokens)

    def reorder(self, order: Tensor) -> None:
        """Sequence b becomes what sequence order[b] was: beam search."""
        self._made.reorder(order)

    def bytes(self) -> int:
        return self._made.bytes()


def load(folder: Union[str, os.PathLike], which: str = "best") -> Model:
    """The model of a run's folder, in evaluation mode; `which` checkpoint: best or last."""
    try:
        config, state, notes, names, values, moments = bindings.open_run(os.fspath(folder), which)
    except (RuntimeError, ValueError) as error:
        raise ValueError(_part.first_line(error)) from None
    model = Model(**json.loads(config))
    model.run = {**json.loads(state), "notes": notes, "moments": moments}
    model.run["task"], model.run["train"] = _recipe(model.run["recipe"])
    with torch.no_grad():
        for own, value in zip(model.tensors(), values):
            own.copy_(value)
    seed = model.run["train"].get("seed", 0)
    model.draw.moment.copy_(torch.tensor([seed, model.run["step"], 0]))
    return model.eval()


def _recipe(text: str):
    """The task and the [train] table of a recipe as a run keeps it."""
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        import tomli as tomllib
    recipe = tomllib.loads(text)
    return recipe["data"]["task"], recipe["train"]


def save(model: Model, folder: Union[str, os.PathLike], *, step: Optional[int] = None,
         optimizer: Optional[torch.optim.Optimizer] = None) -> None:
    """Writes a run that the program goes on with: eval, generate, train.

    The model must be from a run, whose recipe and data go with it. `step`: how many updates
    it has seen, as many as its optimiser counted unless given. Without an optimiser its
    moments are 0, as at the first step.
    """
    model._expect_run("save")
    state = {key: value for key, value in model.run.items()
             if key not in ("notes", "moments", "task", "train", "fnv1a", "files")}
    moments, counted = moments_of(model, optimizer)
    state["step"] = counted if step is None and counted else step or state["step"]
    state["files"] = {}
    try:
        bindings.save_run(os.fspath(folder), json.dumps(state), model.names,
                     [x.detach().float() for x in model.tensors()], moments)
    except (RuntimeError, ValueError) as error:
        raise ValueError(_part.first_line(error)) from None
