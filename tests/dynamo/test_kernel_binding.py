"""Kernels that are bound to constant arguments."""

from __future__ import annotations

import numpy as np
import pytest

from torchlite._dynamo.kernel_binding import bind_kernels
from torchlite._dynamo.program_ir import Program, Slot, Step


class Backend:
    """Binds products, and counts them."""

    def __init__(self):
        self.bound = []

    def varying(self, shape, dtype):
        return shape, dtype

    def bind_kernel(self, name, args):
        if name != "mul":
            return None
        self.bound.append(args)
        return lambda x: x * args[1]


def test_equal_calls_share_a_function():
    weight, other, dtype = np.full(3, 2.0), np.full(3, 5.0), np.dtype("f8")
    layouts = dict.fromkeys(range(6), ((3,), dtype, True))
    steps = [
        Step("mul", np.multiply, (Slot(0), Slot(4)), {}, Slot(1)),
        Step("mul", np.multiply, (Slot(1), Slot(4)), {}, Slot(2)),
        Step("mul", np.multiply, (Slot(2), Slot(5)), {}, Slot(3)),
        Step("add", np.add, (Slot(3), Slot(5)), {}, Slot(6)),
    ]
    backend = Backend()
    found = bind_kernels(Program(steps, [0], {}, [6], {4: weight, 5: other}), layouts, backend)
    assert len(backend.bound) == 2 and found.steps[0].kernel is found.steps[1].kernel
    assert [step.args for step in found.steps] == [(Slot(0),), (Slot(1),), (Slot(2),), (Slot(3), Slot(5))]
    assert list(found.held) == [5]


class Layer:
    """A kernel of a layer that can run beside another one."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor, x + self.factor

    def beside(self, other):
        return (lambda x, y: (*self(x), *other(y))) if other.__class__ is Layer else None


@pytest.mark.parametrize(("given", "count"), [(0, 2), (1, 3)])
def test_independent_neighbours_are_one_step(given, count):
    """given: the slot that the second layer reads; the first one makes slot 1."""
    steps = [
        Step("layer", Layer(2.0), (Slot(0),), {}, (Slot(1), Slot(2))),
        Step("layer", Layer(3.0), (Slot(given),), {}, (Slot(3), None)),
        Step("add", np.add, (Slot(1), Slot(3)), {}, Slot(4)),
    ]
    found = bind_kernels(Program(steps, [0], {}, [4], {}), {}, Backend())
    assert len(found.steps) == count
    if count == 2:
        assert found.steps[0].args == (Slot(0), Slot(0)) and found.steps[0].out == (Slot(1), Slot(2), Slot(3), None)
        assert found.steps[0].kernel(1.0, 1.0) == (2.0, 3.0, 3.0, 4.0)
