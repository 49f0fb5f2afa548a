"""Products with constant weights in loaded programs."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch.kernel_recorder import table_of
from torchlite._dynamo.constant_products import bind_constant_products
from torchlite._dynamo.program_ir import Program, Slot, Step
from torchlite.nn import functional as F

from .loaded_programs import replay

on_cc = pytest.mark.skipif(
    table_of(torch.device("cpu")).backend.engine() != "cc", reason="the engine cc has kernels for such products"
)
F4 = np.dtype("f4")


class Backend:
    """Binds linear layers."""

    def varying(self, shape, dtype):
        return shape, dtype

    def bind_kernel(self, name, args):
        assert name == "linear"
        _, weight, bias = args
        return None if len(weight) == 2 else lambda x: x @ weight.T + (0 if bias is None else bias)


X, PRODUCT, SUM, OTHER = map(Slot, range(4))
WEIGHT, VECTOR, WIDE, NARROW = map(Slot, range(4, 8))
HELD = {
    4: np.arange(12, dtype="f4").reshape(3, 4), 5: np.ones(4, "f4"), 6: np.ones((2, 4), "f4"),
    7: np.ones((3, 2), "f4"),
}  # fmt: skip
LAYOUTS = {0: ((2, 3), F4, True), 1: ((2, 4), F4, True), 2: ((2, 4), F4, True), 3: ((2, 4), F4, True)}


def bound(*steps, outputs=(2,)):
    return bind_constant_products(Program([*steps], [0], {}, [*outputs], HELD), LAYOUTS, Backend()).steps


def product(name="matmul", args=(X, WEIGHT), kernel=np.matmul, **more):
    return Step(name, kernel, args, more, PRODUCT)


@pytest.mark.parametrize("args", [(PRODUCT, VECTOR), (VECTOR, PRODUCT)])
@pytest.mark.parametrize("name", ["matmul", "mm"])
def test_a_constant_vector_becomes_the_bias(name, args):
    (step,) = bound(product(name), Step("add", np.add, args, {}, SUM))
    assert step.out == SUM and step.args == (X,)
    x = np.arange(6, dtype="f4").reshape(2, 3)
    np.testing.assert_array_equal(step.kernel(x), x @ HELD[4] + 1)


@pytest.mark.parametrize(
    "others",
    [
        [Step("add", np.add, (PRODUCT, WIDE), {}, SUM)],
        [Step("add", np.add, (PRODUCT, X), {}, SUM)],
        [Step("add", np.add, (PRODUCT, PRODUCT), {}, SUM)],
        [Step("add", np.add, (PRODUCT, VECTOR), {"alpha": 2}, SUM)],
        [Step("mul", np.multiply, (PRODUCT, VECTOR), {}, SUM)],
        [Step("add", np.add, (PRODUCT, VECTOR), {}, SUM), Step("neg", np.negative, (PRODUCT,), {}, OTHER)],
    ],
)
def test_other_steps_stay(others):
    steps = bound(product(), *others, outputs=(2, 3))
    assert [step.name for step in steps] == ["_constant_product", *(step.name for step in others)]
    assert steps[1:] == others


def test_a_product_that_is_returned_keeps_its_result():
    steps = bound(product(), Step("add", np.add, (PRODUCT, VECTOR), {}, SUM), outputs=(1, 2))
    assert [step.out for step in steps] == [PRODUCT, SUM]


@pytest.mark.parametrize(
    "step",
    [
        product(args=(WEIGHT, X)), product(args=(X, PRODUCT)), product(args=(X, VECTOR)), product(args=(X, NARROW)),
        product("addmm", (VECTOR, X, WEIGHT)), product("matmul", out=SUM),
    ],
)  # fmt: skip
def test_products_that_are_not_bound(step):
    """Others than rows times constant matrices, and those that the backend declines."""
    added = Step("add", np.add, (PRODUCT, VECTOR), {}, SUM)
    assert bound(step, added) == [step, added]


class Block(nn.Module):
    """A part of a transformer, with the sums apart from the products, as files of ONNX have them."""

    def __init__(self, width, inner):
        super().__init__()
        self.first, self.second = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        inner = F.gelu(x @ self.first.weight.T + self.first.bias)
        return self.norm(x + (inner @ self.second.weight.T + self.second.bias)), self.second(inner[:, 0])


@on_cc
@pytest.mark.parametrize("rows", [4, 20])
def test_chains_end_products(rows):
    torch.manual_seed(0)
    x = torch.randn(rows, 16, 64)
    text = replay(Block(64, 96), x)
    assert "_constant_product_chain_gelu" in text and "_constant_product_chain_add" in text
    assert text.count("_constant_product") >= 3 and " matmul" not in text and " linear" not in text


@on_cc
def test_a_write_of_the_input_stays_behind_the_product():
    """The sum runs after the write, the product before it."""

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(64, 64))

        def forward(self, cache, places, more):
            product = cache @ self.weight
            cache.index_copy_(0, places, more)
            return torch.sigmoid(product * 2 + cache) + 1

    torch.manual_seed(0)
    module = torch.jit.trace(Cache(), (torch.randn(64, 64), torch.tensor([1]), torch.randn(1, 64)))
    for _ in range(5):
        cache, places, more = torch.randn(64, 64), torch.tensor([1]), torch.randn(1, 64)
        product = cache @ module.weight
        with torch.no_grad():
            found = module(cache, places, more)
        torch.testing.assert_close(found, torch.sigmoid(product * 2 + cache) + 1)
