#!/usr/bin/env python3
"""Prints python/lagwise/ops.pyi, the types of lagwise.ops, from the schemas of the operators:

    build/python-venv/bin/python tools/python_stubs.py > python/lagwise/ops.pyi

tests/python/test_stubs.py compares the two.
"""

import torch

import lagwise  # noqa: F401  registers the operators

HEAD = '''"""The operators of lagwise: see docs/library.md. Made by tools/python_stubs.py."""

from collections.abc import Sequence

from torch import Tensor
'''
PLAIN = {"Tensor": "Tensor", "int": "int", "SymInt": "int", "float": "float", "bool": "bool",
         "str": "str", "number": "float", "Scalar": "float", "ScalarType": "int"}


def python_type(kind):
    """'Optional[List[int]]', as torch prints a type of a schema, in Python's words."""
    text = str(kind)
    for outer, form in (("Optional[", "{} | None"), ("List[", "Sequence[{}]")):
        if text.startswith(outer):
            return form.format(python_type(text[len(outer):-1]))
    return PLAIN[text]


def parameter(argument):
    text = f"{argument.name}: {python_type(argument.type)}"
    if not argument.has_default_value():
        return text
    value = argument.default_value
    return f"{text} = {value!r}" if not isinstance(value, list) else f"{text} = ..."


def stub(schema):
    """One function: `def rotate(x: Tensor, ..., *, opposite: bool = False) -> Tensor: ...`"""
    parameters = [parameter(a) for a in schema.arguments if not a.kwarg_only]
    named = [parameter(a) for a in schema.arguments if a.kwarg_only]
    if named:
        parameters += ["*", *named]
    results = [python_type(result.type) for result in schema.returns]
    result = {0: "None", 1: "".join(results)}.get(
        len(results), f"tuple[{', '.join(results)}]")
    name = schema.name.split("::")[1]
    lines = "".join(f"    {p},\n" for p in parameters)
    return f"def {name}(\n{lines}) -> {result}: ...\n"


def public_schemas():
    """Those of the operators whose names begin with a letter, by name."""
    names = sorted({name.split(".")[0] for name in torch._C._dispatch_get_all_op_names()
                    if name.startswith("lagwise::") and not name.startswith("lagwise::_")})
    return [getattr(torch.ops.lagwise, name.split("::")[1]).default._schema
            for name in names]


def stubs():
    return "\n".join([HEAD, *map(stub, public_schemas())])


if __name__ == "__main__":
    print(stubs(), end="")
