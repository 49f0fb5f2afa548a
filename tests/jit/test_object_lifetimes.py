"""Programs and traces keep no more objects alive than the function that they were created from."""

from __future__ import annotations

import ast
import gc
import io
import tracemalloc

import pytest

import torchlite as torch
from torchlite.fx.experimental.proxy_tensor import make_fx
from torchlite.jit._insert_deletions import insert_deletions


def shown(text):
    return ast.unparse(ast.Module(insert_deletions(ast.parse(text).body), []))


@pytest.mark.parametrize(
    "given, want",
    [
        ("a = f()\nb = a + a\nreturn b", "a = f()\nb = a + a\ndel a\nreturn b"),
        ("a, (b, c) = f()\nd = b\nreturn d", "a, (b, c) = f()\ndel a, c\nd = b\ndel b\nreturn d"),
        ("a = f()\na = g(a)\nh(a)\nreturn 1", "a = f()\na = g(a)\nh(a)\ndel a\nreturn 1"),
        ("for i in x:\n    a = i\nreturn 1", "for i in x:\n    a = i\nreturn 1"),
        ("a = f()\nfor i in x:\n    g(a)\nreturn 1", "a = f()\nfor i in x:\n    g(a)\ndel a\nreturn 1"),
        ("if x:\n    a = f()\ng(a)\nreturn 1", "if x:\n    a = f()\ng(a)\nreturn 1"),
        (
            "if x:\n    a = f()\n    b = g(a)\n    c = b\nelse:\n    b = 1\nreturn b",
            "if x:\n    a = f()\n    b = g(a)\n    del a\n    c = b\nelse:\n    b = 1\nreturn b",
        ),
        ("a = f()\nb = lambda: a\ng(b)\nreturn 1", "a = f()\nb = lambda: a\ng(b)\ndel b\nreturn 1"),
        ("a = f()\ng(a)\ndel a\nreturn 1", "a = f()\ng(a)\ndel a\nreturn 1"),
        ("a = f()\nif a:\n    return a\nreturn 1", "a = f()\nif a:\n    return a\ndel a\nreturn 1"),
        ("x = f(x)\nwhile y:\n    y = g(y)\nreturn 1", "x = f(x)\ndel x\nwhile y:\n    y = g(y)\nreturn 1"),
    ],
)
def test_variables_are_deleted_where_nothing_reads_them_later(given, want):
    assert shown(given) == want


def steps(x):
    for _ in range(12):
        x = (x * 2).sin() + 1
    return x.sum()


def peak(call):
    """Bytes at most while a call runs, without gradients."""
    gc.collect()
    tracemalloc.start()
    try:
        with torch.no_grad():
            call(torch.ones(1 << 20))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def loaded(function):
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(function, torch.ones(2)), file)
    file.seek(0)
    return torch.jit.load(file)


def test_a_loaded_program_keeps_alive_only_the_functions_objects():
    class Steps(torch.nn.Module):
        def forward(self, x):
            return steps(x)

    first, program = loaded(Steps()), loaded(Steps())
    for _ in range(3):  # imports what calls, recordings and replays need
        peak(first)
    peak(steps)
    assert max(peak(program) for _ in range(3)) <= 1.2 * peak(steps)


@pytest.mark.parametrize("trace", [
    lambda x: torch.jit.trace(steps, x, check_trace=False), lambda x: make_fx(steps)(x),
], ids=["jit", "fx"])  # fmt: skip
def test_a_trace_keeps_alive_only_the_functions_objects(trace):
    peak(trace)
    assert peak(trace) <= 2 * peak(steps)
