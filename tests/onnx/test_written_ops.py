"""Every op of the op table as an ONNX model: its results are those of the call, or the exporter refuses it. CI runs one
op in four.

A share of the cases; `TORCHLITE_ONNX_CASES=all` runs all of them. tests/oracle has onnxruntime run the models.
"""

import ast
import inspect
import os
import textwrap

import pytest

import torchlite as torch
from tests.onnx.written_ops import NOT_WRITTEN, OPS, cases, is_refused, read_by_torchlite, some_cases, wrong_cases
from tests.ops.op_db import ROWS
from tests.unused_parameters import _unread
from torchlite.onnx._export import graph_builder, program_to_model, random, shape_ops, torch_onnx_ops
from torchlite.onnx._export.arguments import bind_arguments, parameters_of
from torchlite.onnx._export.graph_builder import WriterValue
from torchlite.onnx.errors import OnnxExporterError

ONE_IN = 40
REFUSED = frozenset(NOT_WRITTEN.read_text().split())
# `program_to_model` imports the modules that register the rules.
OTHER_PARAMETERS = {random.__name__, torch_onnx_ops.__name__}
assert OTHER_PARAMETERS <= {f"{program_to_model.__package__}.{name}" for name in program_to_model.__all__}
RULES = sorted(
    {rule for rule in graph_builder._TABLE.values() if rule.__module__ not in OTHER_PARAMETERS},
    key=lambda f: (f.__module__, f.__qualname__, f.__code__.co_firstlineno),
)
WRITTEN = [
    pytest.param(name, marks=[pytest.mark.night] * (i % 4 != 0))
    for i, name in enumerate(name for name in OPS if name not in REFUSED)
]


@pytest.mark.parametrize("name", WRITTEN)
def test_results_are_those_of_the_call(name):
    every = os.environ.get("TORCHLITE_ONNX_CASES") == "all"
    assert not wrong_cases(cases(ROWS[name]) if every else some_cases(ROWS[name], ONE_IN), read_by_torchlite)
    assert not is_refused(name)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_ops_that_are_not_written(name):
    assert is_refused(name), "remove it from not_written.txt"


@pytest.mark.parametrize("rule", RULES)
def test_rules_read_their_parameters(rule):
    """Parameters by name, each of which the body reads: nothing that a node gives is lost on the way.

    One that changes no result begins with an underscore, or is deleted.
    """
    found = parameters_of(rule)
    assert not found.options and (not found.rest or rule in (shape_ops.sym_max, shape_ops.sym_min))
    if rule.__name__ != "<lambda>":
        tree = ast.parse(textwrap.dedent(inspect.getsource(rule)))
        own = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == rule.__name__)
        deleted = {n.id for n in ast.walk(own) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
        assert set(_unread(own)) <= deleted | {own.args.args[0].arg}


def test_an_argument_without_parameter_is_an_error():
    aten, x = torch.ops.aten, WriterValue("x", "float32", (2,))

    def rule(w, x):
        return x.name

    assert bind_arguments(aten.softplus.default, "softplus", rule, (x, 1, 20), {}) == ((x,), {})
    for args, kwargs, shown in (((x, 2), {}, "beta=2"), ((x,), {"threshold": 1}, "threshold=1")):
        with pytest.raises(OnnxExporterError, match=f"the argument {shown} is not written"):
            bind_arguments(aten.softplus.default, "softplus", rule, args, kwargs)
    with pytest.raises(OnnxExporterError, match="the argument decimals=1 is not written"):
        bind_arguments(aten.round.decimals, "round", rule, (x,), {"decimals": 1})
    with pytest.raises(OnnxExporterError, match="the argument sorter=a tensor is not written"):
        bind_arguments(aten.searchsorted.Tensor, "searchsorted", lambda w, x, y: "", (x, x), {"sorter": x})
    moved = {"device": torch.device("cpu"), "non_blocking": True, "dtype": torch.float64}
    with pytest.raises(OnnxExporterError, match="dtype=torch.float64"):
        bind_arguments(aten._to_copy.default, "_to_copy", rule, (x,), moved)


def test_positional_parameters_by_name():
    def rule(w, x, shape, weight=None, bias=None, eps=1e-5):
        return ""

    x = WriterValue("x", "float32", (2,))
    args, kwargs = bind_arguments(torch.ops.aten.layer_norm.default, "layer_norm", rule, (x, [2]), {"eps": 0.5})
    assert args == (x, [2], None, None, 0.5) and kwargs == {}
