"""Pieces of the C++ library as functions of their parameters and inputs.

A *part* is described by one line of JSON. C++ makes it for a call, lets it compute with
the parameters that are handed over, and forgets it: nothing is shared between calls, so
threads need no lock. ``part`` records an ordinary graph; under torch.compile and
torch.export ``part_node`` is one node, whose backward pass computes forwards once more.
"""

import functools
import json
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

bindings = torch.ops.lagwise_bindings


def first_line(error: BaseException) -> str:
    """What an exception of C++ says, without the trace some versions of torch add."""
    return str(error).splitlines()[0] if str(error) else repr(error)


def describe(kind: str, **entries: Any) -> str:
    """The text of a part. Entries that are None stand at their default."""
    given = {name: value for name, value in entries.items() if value is not None}
    return json.dumps({"part": kind, **given}, sort_keys=True)


def initial(text: str) -> List[Tuple[str, Tensor]]:
    """Its parameters by name, with their initial values."""
    try:
        return list(zip(*bindings.part_parameters(text)))
    except (RuntimeError, ValueError) as error:
        raise ValueError(first_line(error)) from None


@functools.lru_cache(maxsize=None)
def facts(text: str) -> Dict[str, Any]:
    """What C++ tells of it: `PartRow` in lagwise/bindings/part.h."""
    try:
        return json.loads(bindings.part_facts(text))
    except (RuntimeError, ValueError) as error:
        raise ValueError(first_line(error)) from None


def is_traced() -> bool:
    compiler = getattr(torch, "compiler", None)  # not in torch 1.13
    return compiler is not None and compiler.is_compiling()


def call(text: str, parameters: List[Tensor], **inputs: Optional[Tensor]) -> List[Tensor]:
    """Its results. Inputs that are None are absent."""
    names = [name for name, value in inputs.items() if value is not None]
    tensors = [inputs[name] for name in names]
    if is_traced():
        return bindings.part_node(text, parameters, tensors, names)
    return bindings.part(text, parameters, tensors, names)


def starts(query_start: int, key_start: int) -> Optional[Tensor]:
    """Positions of the first query and key; None where both are 0."""
    if isinstance(query_start, int) and isinstance(key_start, int):
        if query_start == 0 and key_start == 0:
            return None
    return torch.tensor([query_start, key_start], dtype=torch.long)


# ---- shapes of the results, for programs that are traced


def _of_encoding(about: Dict[str, Any], x: Dict[str, Tensor]) -> List[List[Any]]:
    if "x" in x:
        return [list(x["x"].shape)]
    batch, heads, n, _ = x["q"].shape
    m = x["k"].shape[2]
    sizes = []
    for name, probed in about["results"]:  # of one query and one key
        if name in ("q", "k"):
            sizes.append([batch, heads, n if name == "q" else m, probed[-1]])
        elif name == "decay":
            sizes.append(probed)
        else:
            sizes.append([probed[0], n + m - 1, *probed[2:]])
    return sizes


def _with_state(about: Dict[str, Any], batch: Any, out: List[Any]) -> List[List[Any]]:
    return [out, *([batch, *one[1:]] if len(one) > 1 else one for one in about["state"])]


def _of_attention(about: Dict[str, Any], x: Dict[str, Tensor]) -> List[List[Any]]:
    out = [*x["q"].shape[:3], x["v"].shape[3]]
    return _with_state(about, out[0], out) if about["keeps_state"] else [out]


def _of_layer(about: Dict[str, Any], x: Dict[str, Tensor]) -> List[List[Any]]:
    out = list(x["x"].shape)
    return _with_state(about, out[0], out) if about["keeps_state"] else [out]


def _of_model(about: Dict[str, Any], x: Dict[str, Tensor]) -> List[List[Any]]:
    writes = about["continues"] or about["listens"]
    rows = x["tokens"].shape if writes else x["tokens"].shape[:1]
    return [[*rows, about["outputs"]]]


_SIZES = {"encoding": _of_encoding, "attention": _of_attention, "layer": _of_layer,
          "model": _of_model}


def _facts_while_traced(text: str) -> Dict[str, Any]:
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    config = json.loads(text)
    with unset_fake_temporarily():
        return {**facts(text), "kind": config["part"], "keeps_state": config.get("state", False)}


def _fake_part(text, parameters, inputs, names):
    about = _facts_while_traced(text)
    named = dict(zip(names, inputs))
    like = next(x for x in [*inputs, *parameters] if x.is_floating_point())
    return [like.new_empty(sizes) for sizes in _SIZES[about["kind"]](about, named)]


def _fake_part_backward(text, parameters, inputs, names, gradients, wanted):
    return [x.new_empty(x.shape) if want else x.new_empty([0])
            for x, want in zip([*parameters, *inputs], wanted)]


if hasattr(torch.library, "register_fake"):
    torch.library.register_fake("lagwise_bindings::part_node", _fake_part)
    torch.library.register_fake("lagwise_bindings::part_node_backward", _fake_part_backward)
