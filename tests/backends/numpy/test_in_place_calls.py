"""Generated NumPy calls in place against the same formulas as NumPy computes them with new arrays."""

import random

import numpy as np
import pytest

from torchlite._types.python_source import evaluate, parse
from torchlite_backends.numpy.in_place_calls import InPlaceCalls, compile_block, write_where

UNARY = ("exp", "sqrt", "negative", "reciprocal")


def expression(choose, names, depth):
    """A random expression over names."""
    if depth == 0 or choose.random() < 0.2:
        return choose.choice([*names, "0.5", "2"])
    first, second = (expression(choose, names, depth - 1) for _ in range(2))
    if not {*names} & {*first.replace("(", " ").replace(")", " ").replace(",", " ").split()}:
        first = names[0]
    kind = choose.randrange(6)
    if kind == 0:
        return f"{choose.choice(UNARY)}({first})"
    if kind == 1:
        return f"{choose.choice(['maximum', 'minimum'])}({first}, {second})"
    if kind == 2:
        return f"where({first} > 0.25, {second}, {choose.choice([first, f'{first} * n', *names])})"
    return f"({first} {choose.choice('+-*/')} {second})"


@pytest.mark.parametrize("number", range(200))
def test_random_formulas(number):
    choose, rng = random.Random(number), np.random.default_rng(number)
    names, lines = ["x", "y"], []
    for i in range(choose.randrange(3)):
        lines.append(f"v{i} = {choose.choice([f'{expression(choose, names, 2)} + x', *names])}")
        names.append(f"v{i}")
    lines.append(f"out = {expression(choose, names, 3)} * y")
    arrays = {name: rng.random(50) + 0.1 for name in "xy"}
    given = {name: array.copy() for name, array in arrays.items()}
    space = {name: getattr(np, name) for name in (*UNARY, "maximum", "minimum", "where")} | arrays | {"n": 3.0}
    with np.errstate(all="ignore"):
        for line in lines:
            name, text = line.split(" = ")
            space[name] = evaluate(text, dict(space))
        out = np.empty(50)
        compile_block("test", "\n".join(lines), "x y", "n")(out.dtype)(out, arrays["x"], arrays["y"], 3.0)
    np.testing.assert_array_equal(out, np.broadcast_to(space["out"], 50), err_msg="\n".join(lines))
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, given[name])


def test_calls_reuse_the_buffers_of_dead_values():
    statements = parse("gate = reciprocal(exp(-x) + 1)\nout = ((1 - gate) * x + 1) * gate * grad").body
    calls = InPlaceCalls(statements, {"x": None, "grad": None}, ["out"], temporaries=1)
    calls.finish(statements[-1].value, "out")
    assert calls.lines[:4] == ["negative(x, out)", "exp(out, out)", "add(out, c0, out)", "reciprocal(out, out)"]
    assert calls.lines[-2:] == ["multiply(s0, out, s0)", "multiply(s0, grad, out)"]
    assert calls.constants() == {"c0": 1}


def test_a_formula_with_too_few_buffers_is_refused():
    statements = parse("out = (x + 1) * (x + 2)").body
    calls = InPlaceCalls(statements, {"x": None}, ["out"])
    with pytest.raises(ValueError, match="needs more buffers"):
        calls.finish(statements[-1].value, "out")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4"])
@pytest.mark.parametrize("size", [0, 7, 5000])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
def test_a_choice_by_bits_is_a_copy_where(dtype, size, share):
    rng = np.random.default_rng(0)
    out, value = (rng.uniform(-9, 9, 2 * size).astype(dtype)[::2] for _ in range(2))
    if size and dtype != "i4":
        out[::5], value[::7], value[1::7] = np.nan, -0.0, np.inf
    mask = rng.random(size) < share
    for chosen in (value, 3.5, np.array(-0.0).astype(dtype)):
        found, expected = out.copy(), out.copy()
        write_where(found, chosen, mask)
        np.copyto(expected, chosen, where=mask, casting="unsafe")
        assert found.tobytes() == expected.tobytes()
