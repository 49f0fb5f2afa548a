"""Source of the generated functions: each step has its comment, no line is too long, everything compiles and is
shown.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import keyword
import linecache
import re

import pytest

import torchlite as torch
from torchlite._dispatch import GLOBALS, INPLACE, REGISTRY, function_for
from torchlite._dispatch.codegen.backward import backward_function, backward_text
from torchlite._dispatch.codegen.in_place_fast_path import has_fast_path, in_place_text
from torchlite._dispatch.codegen.public_function import function_text, operator_text, reflected_text
from torchlite._dispatch.codegen.source_builder import WIDTH, Listing, Source, generated_text, tuple_literal
from torchlite._dispatch.op_functions import binary_operator_for, in_place_fast_path, unintercepted_function_for

# Lines that begin a step of the generated text.
STEPS = (
    "try:", "if data_.__class__", "result_ = new(Tensor)", "node_.edges", "node_.saved", "node_.out", "node_.shape",
    "if NODE_CREATED_HOOK", "return slow_path(", "return without_interceptors(", "return wrap_and_record(",
    "bump_version(",
    "if saved is None", "raw_ = homogeneous_arrays",
)  # fmt: skip


def texts() -> dict[str, str]:
    """Every text that can be generated."""
    found = {}
    for op in REGISTRY.values():
        found[op.name] = function_text(op, "f")
        found[f"{op.name} below interceptors"] = function_text(op, "f", intercepted=False)
        found[f"{op.name} backward"] = backward_text(op)
        if has_fast_path(op):
            found[f"{op.name}_"] = in_place_text(op)
    for name in ("add", "div", "pow", "eq", "matmul"):
        found[f"{name} operator"] = operator_text(REGISTRY[name], "__op__")
    for name in ("add", "div", "pow"):
        found[f"{name} reflected"] = reflected_text(REGISTRY[name], "__rop__")
    return found


def test_every_text_compiles_and_is_no_wider_than_a_page():
    for name, text in texts().items():
        compile(text, name, "exec")
        assert max(map(len, text.splitlines())) <= WIDTH, name


def test_every_step_has_its_comment():
    for name, text in texts().items():
        lines = [line.strip() for line in text.splitlines()]
        for before, line in itertools.pairwise(lines):
            if line.startswith(STEPS):
                assert before.startswith("# "), f"{name}: {before!r} stands above {line!r}"
        comments = [line for line in lines if line.startswith("#")]
        assert all(re.fullmatch(r"# .*\.", comment) for comment in comments), name


def test_local_variables_cannot_be_arguments():
    """Names of local variables end in an underscore, those of arguments do not but for Python's keywords."""
    for name, text in texts().items():
        if name.endswith("backward"):
            continue
        (function,) = ast.parse(text).body
        given = function.args
        arguments = {a.arg for a in [*given.args, *given.kwonlyargs]}
        assigned = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        assert all(keyword.iskeyword(a[:-1]) for a in arguments if a.endswith("_")), name
        assert all(local.endswith("_") for local in assigned - arguments), name


def test_saved_values_have_distinct_names():
    for op in REGISTRY.values():
        plan = op.saved_variables
        (function,) = ast.parse(backward_text(op)).body
        assigned = [n.targets[0].id for n in function.body if isinstance(n, ast.Assign) and len(n.targets) == 1
                    and isinstance(n.targets[0], ast.Name)]  # fmt: skip
        assert (
            len(set(assigned))
            == len(assigned)
            == len(plan.saves) + len(plan.shapes) + len(plan.keeps) + len(op.formulas)
        ), op.name


def test_the_text_is_the_same_each_time():
    op = REGISTRY["_layer_norm"]
    assert function_text(op, "f") == function_text(op, "f")
    first = function_text(op, "f")
    assert first.index("weight_data_ =") < first.index("bias_data_ =")


def test_unintercepted_functions_skip_interceptors():
    text = generated_text(unintercepted_function_for(REGISTRY["mul"]))
    assert "INTERCEPTORS" not in text and "return without_interceptors(" in text and "return slow_path(" not in text
    assert "not INTERCEPTORS" in generated_text(function_for(REGISTRY["mul"]))


def test_unintercepted_function_can_be_created_first(monkeypatch):
    """Its slow path calls the public function, which may not have been created yet."""
    op = REGISTRY["to"]
    monkeypatch.setattr(op, "function", None)
    monkeypatch.setattr(op, "direct", None)
    monkeypatch.delitem(GLOBALS, "to__function", raising=False)

    class Plain(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Plain)
    assert unintercepted_function_for(op)(x, torch.float64).dtype is torch.float64


def test_each_function_of_an_op_shows_its_source():
    op = REGISTRY["pow"]
    functions = [
        function_for(op), unintercepted_function_for(op), binary_operator_for(op, "__op__"),
        binary_operator_for(op, "__rop__", reflected=True), backward_function(op)
    ]  # fmt: skip
    found = [generated_text(function) for function in functions]
    assert [text.partition("(")[0] for text in found] == [
        "def pow", "def pow", "def operator", "def operator", "def backward",
    ]  # fmt: skip
    assert len(set(found)) == 5 and "def operator(exponent, input):" in found[3]
    assert inspect.getsource(function_for(op)) == found[0]
    linecache.checkcache()
    assert generated_text(function_for(op)) == found[0]
    assert generated_text(print) == generated_text(test_the_text_is_the_same_each_time) == ""


@pytest.mark.parametrize("name", ["add", "exp"])
def test_in_place_fast_path(device, name):
    """It writes where nothing is in the way, and leaves everything else alone."""
    fast = in_place_fast_path(REGISTRY[name])
    others = () if name == "exp" else (2.0,)
    x = torch.ones(3, device=device)
    want = getattr(torch, name)(x, *others)
    version = x._version
    if not hasattr(x._tl_kernels, f"{name}_"):
        assert fast(x, *others) is None
        return
    assert fast(x, *others) is x and x._version == version + 1 and torch.equal(x, want)
    leaf = torch.ones(3, device=device, requires_grad=True)
    with torch.enable_grad():
        assert fast(leaf, *others) is None and leaf.tolist() == [1, 1, 1]
    if others:
        integers = torch.ones(3, dtype=torch.int64, device=device)
        assert (
            fast(integers, 2.5) is None and fast(x, integers) is None and fast(x, torch.ones(4, device=device)) is None
        )
        assert fast(integers, 2) is integers and integers.tolist() == [3, 3, 3]
        with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(4\)"):
            x += torch.ones(4, device=device)


def test_ops_without_a_fast_path():
    assert in_place_fast_path(REGISTRY["lerp"]) is None and in_place_fast_path(REGISTRY["add_alpha"]) is None
    assert REGISTRY["lerp"].tags & INPLACE


def test_the_writer_breaks_lines_where_they_are_too_long():
    source = Source()
    with source.block("def f():"):
        source.expression("x = ", ["a" * 60, "if " + "b" * 60, "else c"])
        source.write(Listing("g(", ["a" * 60, "b" * 30, "c" * 60]))
        source.write(tuple_literal(["d" * 130], "t = "))
        source.write(tuple_literal(["e"], "t = "))
        source.write(tuple_literal([], "t = "))
        with source.condition("if", ["p" * 80, ["q" * 60, "or r"]]):
            source.line("pass")
    assert source.text().splitlines() == [
        "def f():",
        "    x = (",
        "        " + "a" * 60,
        "        if " + "b" * 60,
        "        else c",
        "    )",
        "    g(",
        "        " + "a" * 60 + ", " + "b" * 30 + ",",
        "        " + "c" * 60 + ",",
        "    )",
        "    t = (",
        "        " + "d" * 130 + ",",
        "    )",
        "    t = (e,)",
        "    t = ()",
        "    if (",
        "        " + "p" * 80,
        "        and " + "q" * 60 + " or r",
        "    ):",
        "        pass",
    ]
