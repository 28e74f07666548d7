"""Models of lagwise as a class of transformers: Auto classes, saving, generate()."""

import os
from typing import Any, Optional, Union

import torch
from torch import Tensor
from transformers import (
    AutoConfig, AutoModelForCausalLM, GenerationMixin, PreTrainedConfig, PreTrainedModel)
from transformers.modeling_outputs import CausalLMOutputWithPast

import lagwise
from lagwise._padding import spans, to_front
from lagwise.models import DEFAULTS, Decoder, Model


class LagwiseConfig(PreTrainedConfig):
    """The keys of a recipe's [model] (:class:`lagwise.Model`), beside those of transformers."""

    model_type = "lagwise"
    attribute_map = {"vocab_size": "vocabulary", "hidden_size": "dim", "num_hidden_layers": "layers",
                     "num_attention_heads": "heads", "max_position_embeddings": "length"}
    keys_to_ignore_at_inference = ["past_key_values"]

    def __init__(self, moment: Optional[list] = None, **keywords: Any):
        named = {self.attribute_map.get(key, key): value for key, value in keywords.items()}
        for key, otherwise in DEFAULTS.items():
            setattr(self, key, named.pop(key, otherwise))
        self.moment = moment  # of the noise: see lagwise._draw; None: at its seed's beginning
        self.use_cache = named.pop("use_cache", True)
        super().__init__(**named)

    def model_config(self) -> dict:
        return {key: getattr(self, key) for key in DEFAULTS}


class LagwiseCache:
    """What a model has read, of constant size with linear attention."""

    is_compileable = False

    def __init__(self, decoder: Decoder):
        self.decoder, self.seen = decoder, 0

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.seen

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self.decoder.reorder(beam_idx)

    def bytes(self) -> int:
        return self.decoder.bytes()


class LagwiseForCausalLM(PreTrainedModel, GenerationMixin):
    """A :class:`lagwise.Model` that continues texts. Padding may stand on either side."""

    config_class = LagwiseConfig
    base_model_prefix = "model"
    _is_stateful = True  # what was read cannot be taken back: no assisted decoding
    _supports_attention_backend = False

    def __init__(self, config: LagwiseConfig):
        super().__init__(config)
        self.model = Model(**config.model_config())
        if not self.model.facts["continues"]:
            raise ValueError(f"model: expected one that continues texts, decoder_lm, got "
                             f"{config.model}")
        config.seed = self.model.config["seed"]  # of torch's generator where none was given
        config.moment = config.moment or [config.seed, 0, 0]
        self.model.draw.moment.copy_(torch.tensor(config.moment, device="cpu"))
        self.post_init()

    @classmethod
    def from_run(cls, folder: Union[str, os.PathLike], which: str = "best") -> "LagwiseForCausalLM":
        """The model of a run of the program."""
        loaded = lagwise.load(folder, which)
        made = cls(LagwiseConfig(moment=loaded.draw.moment.tolist(), **loaded.config))
        made.model.load_state_dict(loaded.state_dict())
        return made.eval()

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Nothing: parameters are born with their values."""

    def _supports_default_dynamic_cache(self) -> bool:
        return False

    def get_input_embeddings(self) -> None:
        return None

    def resize_token_embeddings(self, *_: Any, **__: Any) -> None:
        raise ValueError(f"resize_token_embeddings: expected a new model: the vocabulary, "
                         f"{self.config.vocabulary}, is part of its config")

    def forward(self, input_ids: Optional[Tensor] = None, attention_mask: Optional[Tensor] = None,
                past_key_values: Optional[LagwiseCache] = None, labels: Optional[Tensor] = None,
                use_cache: Optional[bool] = None, logits_to_keep: int = 0,
                **rest: Any) -> CausalLMOutputWithPast:
        """`labels` [B, N] as input_ids, -100 where none counts; the loss is that of the next
        token. With `use_cache` (and without a gradient) the cache comes back."""
        for name in ("inputs_embeds", "output_hidden_states", "output_attentions"):
            if rest.get(name) is not None and rest.get(name) is not False:
                raise ValueError(f"{name}: expected none: a model of lagwise is one step of the graph, "
                                 "from tokens to logits")
        use_cache = self.config.use_cache if use_cache is None else use_cache
        if past_key_values is None and (labels is not None or not use_cache or self._learns()):
            logits = self.model(input_ids, **self._spans(input_ids, attention_mask))
            return CausalLMOutputWithPast(loss=self._loss(logits, labels),
                                          logits=logits[:, -logits_to_keep:])
        return self._read(input_ids, attention_mask, past_key_values, logits_to_keep)

    def _learns(self) -> bool:
        return torch.is_grad_enabled() and self.training

    @staticmethod
    def _spans(input_ids: Tensor, attention_mask: Optional[Tensor]) -> dict:
        if attention_mask is None:
            return {}
        starts, lengths = spans(attention_mask)
        full = starts is None and bool((lengths == input_ids.shape[1]).all())
        return {} if full else {"starts": starts, "lengths": lengths}

    @staticmethod
    def _loss(logits: Tensor, labels: Optional[Tensor]) -> Optional[Tensor]:
        if labels is None:
            return None
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1),
                                                 labels[:, 1:].flatten(), ignore_index=-100)

    def _read(self, tokens: Tensor, mask: Optional[Tensor], cache: Optional[LagwiseCache],
              keep: int) -> CausalLMOutputWithPast:
        first = cache is None
        cache = LagwiseCache(self.model.decoder(tokens.shape[0])) if first else cache
        padded = self._spans(tokens, mask) if first else {}
        cache.seen += tokens.shape[1]
        if not padded and keep != 1:
            logits = cache.decoder.extend_all(tokens)
        elif not padded:
            logits = cache.decoder.extend(tokens)[:, None]
        else:
            logits = None if keep == 1 else self.model(tokens, **padded)
            rows = tokens if padded["starts"] is None else to_front(tokens, padded["starts"], 1)
            last = cache.decoder.extend(rows, padded["lengths"])[:, None]
            logits = last if keep == 1 else logits
        return CausalLMOutputWithPast(logits=logits[:, -keep:], past_key_values=cache)


def register() -> None:
    AutoConfig.register("lagwise", LagwiseConfig, exist_ok=True)
    AutoModelForCausalLM.register(LagwiseConfig, LagwiseForCausalLM, exist_ok=True)
