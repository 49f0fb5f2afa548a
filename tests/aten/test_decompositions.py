"""Decompositions: each gives what its op gives, in other ops of the library."""

from __future__ import annotations

import pytest

import torchlite as torch
from tests.aten.test_overload_calls import OTHERS, RANDOM, overload, recorded, same, value
from torchlite._aten.decompositions import find_decomposition, is_core
from torchlite._decomp import (
    core_aten_decompositions,
    get_decompositions,
    register_decomposition,
    remove_decompositions,
)
from torchlite.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
# Nothing is computed: a dtype, or an op that TorchScript alone knows.
PLAIN = {"promote_types.default", "result_type.Tensor", "is_same_size.default", "is_set_to.default"}


class Seeing(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def names():
    chosen = sorted(set(recorded()) - OTHERS - PLAIN)
    return [name for name in chosen if find_decomposition(overload(name)) is not None]


@pytest.mark.parametrize("name", names())
def test_decompositions_match_the_op(name):
    args, kwargs, result, after = recorded()[name]
    args = value(args)
    with Seeing() as mode:
        found = find_decomposition(overload(name))(*args, **value(kwargs))
    assert overload(name) not in mode.seen and all(hasattr(func, "entry") for func in mode.seen)
    drawn = any(word in name for word in RANDOM)
    same(found, value(result), drawn)
    if after is not None:
        same(args, value(after), drawn)


def test_the_table_of_the_core():
    table = core_aten_decompositions()
    assert len(table) > 600 and [str(op) for op in table if is_core(op)] == ["aten.squeeze.dim"]  # as in PyTorch's
    x = torch.rand(3, 4)

    class Decomposing(Seeing):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func in table:
                with self:
                    return table[func](*args, **(kwargs or {}))
            return super().__torch_dispatch__(func, types, args, kwargs)

    layer = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.SiLU(), torch.nn.Linear(5, 2))
    with Decomposing() as mode:
        found = torch.nn.functional.mse_loss(layer(x), torch.zeros(3, 2))
    assert torch.allclose(found, layer(x).square().mean()) and all(map(is_core, mode.seen))


def test_registered_decompositions_take_precedence():
    def twice(x):
        return x * 2

    op, registry = aten.sinh.default, {}
    register_decomposition(op, registry)(twice)
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.sinh.default"):
        register_decomposition(op, registry)(twice)
    assert registry == {op: twice} and op not in get_decompositions([aten.sinh])
    register_decomposition(op)(twice)
    try:
        assert get_decompositions([aten.sinh])[op] is twice and core_aten_decompositions()[op] is twice
    finally:
        from torchlite._decomp import decomposition_table

        remove_decompositions(decomposition_table, [op])
    with pytest.raises(TypeError, match="Expected an OpOverload"):
        get_decompositions(["sinh"])
