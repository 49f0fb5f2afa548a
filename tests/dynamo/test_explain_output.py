"""`torch._dynamo.explain` counts graphs, breaks and ops as PyTorch does, and names the lines of breaks."""

from __future__ import annotations

import contextlib
import io
import warnings

import pytest

import torchlite as torch
from torchlite._dynamo.testing import CompileCounter

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def whole(x):
    return torch.sin(x * 2) + 1


@program
def printed(x):
    y = x * 2
    print("here")
    return torch.sin(y)


@program
def printed_first(x):
    print("here")
    return torch.sin(x * 2)


@program
def item(x):
    y = torch.sum(x * 2)
    n = y.item()
    return torch.sin(x) * n


@program
def three_items(x):
    a = torch.sum(torch.sin(x))
    print(a.item())
    b = torch.sum(torch.cos(x))
    print(b.item())
    return a + b


@program
def branch(x):
    y = torch.sin(x)
    if torch.sum(y) > 0:
        return y * 2
    return torch.cos(y)


@program
def marked(x):
    y = x + 1
    torch._dynamo.graph_break()
    z = torch.exp(y)
    torch._dynamo.graph_break()
    return z * 2


@torch.compiler.disable
def _aside(t):
    return t + 1


@program
def disabled(x):
    return torch.sin(_aside(x * 2)) * 3


def _inner(t):
    u = torch.relu(t) + 1
    print("inner")
    return u * 2


@program
def nested(x):
    y = _inner(x - 1)
    return torch.sin(y)


@program
def nested_twice(x):
    y = _inner(x)
    return _inner(y) + 1


@program
def tolist(x):
    y = torch.abs(x)
    values = y.tolist()
    return torch.exp(x) * len(values)


@program
def shape_of_elements(x):
    y = x * 2
    z = torch.nonzero(y)
    return torch.sin(x) + z.shape[1]


# graph_count, graph_break_count, op_count of PyTorch 2.13, and the lines of breaks after the function's first line.
# PyTorch gives no reason for a break before the first graph.
RECORDED = {
    "whole": ((1, 0, 3), []),
    "printed": ((2, 1, 2), [3]),
    "printed_first": ((1, 0, 2), [2]),
    "item": ((2, 1, 4), [3]),
    "three_items": ((3, 2, 5), [3, 5]),
    "branch": ((2, 1, 4), [3]),
    "marked": ((3, 2, 3), [3, 5]),
    "disabled": ((2, 1, 3), [2]),
    "nested": ((4, 3, 5), [-4]),
    "nested_twice": ((3, 2, 4), [-10]),
    "tolist": ((2, 1, 3), [3]),
    "shape_of_elements": ((2, 1, 3), [3]),
}


def explained(name):
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch._dynamo.explain(PROGRAMS[name])(torch.ones(3))
    return found, out.getvalue()


@pytest.mark.parametrize("name", RECORDED)
def test_counts_are_those_of_pytorch(name):
    found, printed = explained(name)
    lines = [stack.user_stack[-1].lineno for stack in found.break_reasons]
    first = PROGRAMS[name].__code__.co_firstlineno
    assert (found.graph_count, found.graph_break_count, found.op_count) == RECORDED[name][0]
    assert [line - first for line in lines] == RECORDED[name][1]
    wanted = io.StringIO()
    with contextlib.redirect_stdout(wanted):
        PROGRAMS[name](torch.ones(3))
    assert printed == wanted.getvalue()


@pytest.mark.parametrize("name", RECORDED)
def test_compilers_get_each_graph_at_the_first_call(name):
    counter = CompileCounter()
    x = torch.arange(3.0)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(PROGRAMS[name], backend=counter)
        for _ in range(3):
            assert torch.equal(compiled(x), PROGRAMS[name](x))
            graphs, _, ops = RECORDED[name][0]
            assert (counter.frame_count, counter.op_count) == (graphs, ops)


def test_reasons_and_text():
    found, _ = explained("three_items")
    assert all("elements are read by item" in one.reason for one in found.break_reasons)
    assert found.break_reasons[0].user_stack[0].line == "print(a.item())"
    assert "Graph Count: 3\nGraph Break Count: 2\nOp Count: 5\n" in str(found)
