"""Optimizer steps of large parameters in parts, against the composites of the same records."""

import copy

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of
from torchlite._ops import fused_optim
from torchlite_backends.numpy import optim as kernels

CPU = table_of(torch.device("cpu"))
SHAPES = [[(40, 50), (3,)], [(1 << 17,), (300, 299), (5, 4)], [(9,)], [(131_073,)], [(0, 3)]]
ADAM = (3, 0.01, 0.9, 0.99, 1e-8)
CASES = {
    "adam": ("_fused_adam", 3, (*ADAM, 0.0, False, False)),
    "adam, decay, maximize": ("_fused_adam", 3, (*ADAM, 0.1, False, True)),
    "adamw": ("_fused_adam", 2, (*ADAM, 0.1, True, False)),
    "sgd": ("_fused_sgd", 0, (False, 0.1, 0.0, 0.0, 0.0, False, False)),
    "sgd, nesterov": ("_fused_sgd", 1, (False, 0.1, 0.9, 0.0, 0.01, True, False)),
    "sgd, first": ("_fused_sgd", 1, (True, 0.1, 0.9, 0.5, 0.0, False, True)),
    "rmsprop": ("_fused_rmsprop", 3, (0.01, 0.9, 1e-8, 0.5, 0.1, False)),
    "adagrad": ("_fused_adagrad", 1, (3, 0.1, 0.01, 1e-8, 0.1, True)),
}
SLOTS = {"_fused_adam": 3, "_fused_sgd": 1, "_fused_rmsprop": 3, "_fused_adagrad": 1}


def state(shapes, count, dtype):
    rng = np.random.default_rng(0)
    size = sum(int(np.prod(shape)) for shape in shapes)
    params, grads = ([rng.standard_normal(shape).astype(dtype) for shape in shapes] for _ in range(2))
    return params, grads, [(rng.random(size) + 0.5).astype(dtype) for _ in range(count)]


def stepped(run, name, count, options, shapes, dtype="float64"):
    params, grads, states = state(shapes, count, dtype)
    given = [grad.copy() for grad in grads]
    padded = states + [None] * (SLOTS[name] - count)
    more = () if name == "_fused_rmsprop" else (None, None)
    run(params, grads, *padded, {}, *options, *more)
    return params + states, given, grads


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("case", CASES)
def test_steps(case, shapes):
    name, count, options = CASES[case]
    mine, before, after = stepped(getattr(CPU, name), name, count, options, shapes)
    want, _, _ = stepped(lambda *args: REGISTRY[name].composite(CPU, *args), name, count, options, shapes)
    for found, right in zip(mine, want, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)
    for grad, given in zip(after, before, strict=True):
        assert np.array_equal(grad, given)  # the caller's gradients stay


@pytest.mark.parametrize("case", CASES)
def test_the_same_for_any_number_of_threads(case):
    name, count, options = CASES[case]
    threads, found = torch.get_num_threads(), []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            arrays, _, _ = stepped(getattr(CPU, name), name, count, options, SHAPES[1], "float32")
            found.append([array.tobytes() for array in arrays])
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1] == found[2]


def test_large_parameters_are_packed_among_themselves():
    def packs(*sizes):
        return fused_optim._partition_into_packs([torch.empty(size) for size in sizes])

    small, large = fused_optim.SMALL, fused_optim.SMALL + 1
    assert packs(5, large, 7, large) == [[1, 3], [0, 2]]
    assert packs(fused_optim.LARGE_TOGETHER, large, large) == [[0], [1, 2]]
    assert packs(*[small] * 5) == [[0, 1, 2, 3], [4]]
    assert kernels._MAX_SIZE_TO_CONCAT >= fused_optim.TOGETHER  # what is packed as small is gathered


def test_states_of_packed_parameters_are_saved_and_loaded():
    shapes = [(200, 100), (7,), (300, 80)]
    params = [torch.nn.Parameter(torch.ones(shape)) for shape in shapes]
    optimizer = torch.optim.AdamW(params, lr=0.1)
    for _ in range(2):
        for param in params:
            param.grad = torch.full(param.shape, 0.5)
        optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    assert [tuple(entry["exp_avg"].shape) for entry in saved["state"].values()] == shapes
    twins = [torch.nn.Parameter(param.detach().clone()) for param in params]
    other = torch.optim.AdamW(twins, lr=0.1)
    other.load_state_dict(saved)
    for chosen, who in ((params, optimizer), (twins, other)):
        for param in chosen:
            param.grad = torch.full(param.shape, -1.0)
        who.step()
    assert all(a.equal(b) for a, b in zip(params, twins, strict=True))
