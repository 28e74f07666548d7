"""python/lagwise/ops.pyi says of every operator what its schema says."""

import ast
import sys
from pathlib import Path

import torch

import lagwise

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import python_stubs  # noqa: E402

STUBS = Path(lagwise.__file__).parent / "ops.pyi"


def test_the_stubs_are_those_of_the_schemas():
    assert STUBS.read_text() == python_stubs.stubs(), (
        "python tools/python_stubs.py > python/lagwise/ops.pyi makes them anew")


def test_every_operator_has_one_and_its_arguments():
    functions = {node.name: node for node in ast.parse(STUBS.read_text()).body
                 if isinstance(node, ast.FunctionDef)}
    assert set(functions) == {s.name.split("::")[1] for s in python_stubs.public_schemas()}
    for name, function in functions.items():
        schema = getattr(torch.ops.lagwise, name).default._schema
        given = function.args
        assert [a.arg for a in given.args + given.kwonlyargs] == [
            a.name for a in schema.arguments]
        assert [a.arg for a in given.kwonlyargs] == [
            a.name for a in schema.arguments if a.kwarg_only]
