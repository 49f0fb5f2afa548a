"""Lists of tensors in one call: clipping gradients, and the kernels below, against an op for each tensor."""

import numpy as np
import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dispatch import REGISTRY, table_of
from torchlite._ops import multi_tensor_clip

CPU = table_of(torch.device("cpu"))
SIZES = [[(3,)], [(2, 3), (), (5, 1, 2)], [(300,)] * 40, [(5000,), (7,), (400, 300), (1 << 15,), (0, 4)]]


def arrays_of(shapes, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape), dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", SIZES)
def test_kernels_and_composites(shapes, dtype):
    norm = CPU._total_norm(arrays_of(shapes, dtype))
    want = np.sqrt(sum((a.astype("f8") ** 2).sum() for a in arrays_of(shapes, dtype)))
    assert norm.dtype == dtype
    np.testing.assert_allclose(norm, want, rtol=1e-6)
    np.testing.assert_allclose(REGISTRY["_total_norm"].composite(CPU, arrays_of(shapes, dtype)), want, rtol=1e-5)
    for name, arguments, plain in (
        ("_scale_all", (np.asarray(0.3, dtype),), lambda a: a * np.asarray(0.3, dtype)),
        ("_clamp_all", (-0.5, 0.7), lambda a: np.minimum(np.maximum(a, -0.5), 0.7).astype(dtype)),
    ):
        mine, composite = arrays_of(shapes, dtype), arrays_of(shapes, dtype)
        getattr(CPU, name)(mine, *arguments)
        REGISTRY[name].composite(CPU, composite, *arguments)
        for found, other, before in zip(mine, composite, arrays_of(shapes, dtype), strict=True):
            np.testing.assert_array_equal(found, plain(before))
            np.testing.assert_array_equal(other, plain(before))


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("size", [5, 100_000])
def test_numbers_that_are_none(odd, size):
    arrays = [np.ones(3, "f4"), np.ones(size, "f4")]
    arrays[1][size // 2] = odd
    assert str(float(CPU._total_norm(arrays))) == str(abs(odd))
    CPU._clamp_all(arrays, -2.0, 2.0)
    assert str(arrays[1][size // 2]) == str(np.clip(np.float32(odd), -2, 2))
    CPU._scale_all(arrays, np.float32("nan"))
    assert all(np.isnan(a).all() for a in arrays)


def test_the_same_for_any_number_of_threads():
    before, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            arrays = arrays_of(SIZES[-1] + [(999, 1001)])
            norm = CPU._total_norm(arrays)
            CPU._scale_all(arrays, norm)
            found.append([norm.tobytes(), *(a.tobytes() for a in arrays)])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


def with_gradients(shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    params = [nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in shapes]
    for param in params:
        param.grad = torch.randn(param.shape, generator=generator, dtype=dtype)
    return params


def test_clipping_writes_views_and_counts_changes():
    params = with_gradients([(4, 3), (5, 5), (6,)])
    whole = torch.ones(8, 10)
    params[0].grad = whole[::2, 1:7:2]  # neither contiguous nor all of its memory
    params[1].grad = params[1].grad.t()
    wanted = [p.grad.clone() for p in params]
    versions = [p.grad._version for p in params]
    norm = nn.utils.clip_grad_norm_(params, 0.5)
    torch.testing.assert_close(norm, torch.cat([w.flatten() for w in wanted]).norm())
    for param, want, version in zip(params, wanted, versions, strict=True):
        torch.testing.assert_close(param.grad, want * (0.5 / (norm + 1e-6)))
        assert param.grad._version == version + 1
    assert whole[::2, 1:7:2].equal(params[0].grad) and whole[1::2].eq(1).all()
    nn.utils.clip_grad_value_(params, 0.01)
    assert all(p.grad.abs().max() <= 0.01 for p in params) and whole._version == 2


def test_a_norm_within_its_limit_changes_no_number():
    params = with_gradients([(3,), (70_000,)])
    wanted = [p.grad.clone() for p in params]
    nn.utils.clip_grad_norm_(params, 1e9)
    assert all(p.grad.equal(want) for p, want in zip(params, wanted, strict=True))


@pytest.mark.parametrize("kind", ["two dtypes", "half", "subclass", "mode", "wants a gradient"])
def test_unsupported_tensors_are_updated_one_by_one(kind):
    params = with_gradients([(3,), (2, 2)])
    if kind == "two dtypes":
        params += with_gradients([(4,)], torch.float64)
    elif kind == "half":
        params = with_gradients([(3,)], torch.bfloat16)
    elif kind == "subclass":

        class Own(torch.Tensor):
            pass

        params[0].grad = params[0].grad.as_subclass(Own)
    elif kind == "wants a gradient":
        params[0].grad.requires_grad_()
        assert multi_tensor_clip.norm_of_all([p.grad for p in params]) is None
    norms = [p.grad.detach().double().norm() for p in params]
    wanted = torch.stack(norms).norm()
    if kind == "mode":
        with torch.autograd.graph.save_on_cpu():
            found = nn.utils.clip_grad_norm_(params, 1.0)
    else:
        found = nn.utils.clip_grad_norm_(params, 1.0)
    torch.testing.assert_close(found.double(), wanted.as_subclass(torch.Tensor), rtol=1e-2, atol=0.0)
    after = torch.stack([p.grad.detach().double().norm() for p in params]).norm()
    assert float(after) == pytest.approx(1.0, rel=1e-2)
