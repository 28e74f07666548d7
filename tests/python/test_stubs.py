"""The types that editors show are those of the operators."""

import ast
from pathlib import Path

import pytest
import torch

import lagwise

STUBS = Path(lagwise.__file__).with_name("ops.pyi")
PUBLIC = sorted(
    name.removeprefix("lagwise::") for name in torch._C._dispatch_get_all_op_names()
    if name.startswith("lagwise::") and not name.startswith("lagwise::_"))

TYPES = {
    "Tensor": "Tensor", "Optional[Tensor]": "Tensor | None", "bool": "bool", "str": "str",
    "float": "float", "Optional[float]": "float | None", "int": "int",
    "Optional[int]": "int | None", "List[int]": "Sequence[int]",
}


def stubs():
    return {x.name: x for x in ast.parse(STUBS.read_text()).body
            if isinstance(x, ast.FunctionDef)}


def as_schema_says(argument):
    """name, type and default of an argument, as a stub writes them."""
    kind, default = TYPES[str(argument.type)], argument.default_value
    if argument.name == "dtype":  # the schema language has no name for a torch.dtype
        kind, default = "torch.dtype", {6: "torch.float32"}.get(default)
        return argument.name, kind, default
    return argument.name, kind, default if argument.has_default_value() else "required"


def as_stub_says(argument, default):
    value = "required"
    if default is not None:
        is_name = isinstance(default, ast.Attribute)
        value = ast.unparse(default) if is_name else ast.literal_eval(default)
    return argument.arg, ast.unparse(argument.annotation), value


def test_every_operator_has_a_stub():
    assert sorted(stubs()) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_stub_is_its_schema(name):
    schema, stub = getattr(torch.ops.lagwise, name).default._schema, stubs()[name].args
    plain = [x for x in schema.arguments if not x.kwarg_only]
    named = [x for x in schema.arguments if x.kwarg_only]
    defaults = [None] * (len(stub.args) - len(stub.defaults)) + stub.defaults
    assert [as_stub_says(*x) for x in zip(stub.args, defaults)] == [
        as_schema_says(x) for x in plain]
    assert [as_stub_says(*x) for x in zip(stub.kwonlyargs, stub.kw_defaults)] == [
        as_schema_says(x) for x in named]
    count = len(schema.returns)
    returned = "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"
    assert ast.unparse(stubs()[name].returns) == returned
