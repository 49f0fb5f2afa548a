"""NumPy as a partner: shared memory, NumPy functions on Tensors, mixed arithmetic, DLPack, the Array-API namespace."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlite as torch


def test_from_numpy_and_numpy_share_memory():
    a = np.arange(4.0)
    t = torch.from_numpy(a)
    t[0] = 9
    a[1] = 8
    assert a[0] == 9 and t[1].item() == 8 and t.numpy() is not None and np.shares_memory(t.numpy(), a)
    assert t[::2].numpy().strides == (16,)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"],
)
def test_dtypes_round_trip(dtype):
    a = np.zeros((2, 3), dtype)
    t = torch.from_numpy(a)
    assert str(t.dtype) == f"torch.{dtype}" and t.numpy().dtype == a.dtype


def test_from_numpy_rejects_unsupported_arrays():
    with pytest.raises(TypeError, match="expected np.ndarray"):
        torch.from_numpy([1, 2])
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.arange(3)[::-1])
    with pytest.raises(TypeError, match="can't convert np.ndarray of type"):
        torch.from_numpy(np.array(["a"]))


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("make", [torch.from_numpy, torch.as_tensor, torch.asarray])
def test_read_only_arrays_are_shared_and_written(make):
    for frozen in (np.arange(3.0), np.arange(6.0)[::2], np.arange(6.0).reshape(2, 3).T):
        frozen.flags.writeable = False
        with pytest.warns(UserWarning, match="not writable"):
            x = make(frozen)
        x[...] = 7
        assert (frozen == 7).all()
        assert x.numpy().flags.writeable and np.shares_memory(x.numpy(), frozen)
        assert x.stride() == tuple(s // 8 for s in frozen.strides) and x.storage_offset() == 0
    shown = make(np.broadcast_to(np.arange(3.0), (2, 3)))
    assert shown.tolist() == [[0, 1, 2], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        shown += 1


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_read_only_buffers_stay_protected():
    text = b"abcdefgh"
    for x in (torch.from_numpy(np.frombuffer(text, np.uint8)), torch.from_numpy(np.frombuffer(text, np.uint8)[2:])):
        with pytest.raises(ValueError, match="read-only"):
            x.fill_(0)
    copy = torch.as_tensor(np.frombuffer(text, np.uint8))
    copy.fill_(0)
    assert text == b"abcdefgh"


def test_arrays_that_no_tensor_can_hold():
    backwards, swapped = np.arange(3.0)[::-1], np.arange(3.0).astype(">f8")
    for make in (torch.tensor, torch.as_tensor, torch.from_numpy):
        with pytest.raises(ValueError, match="negative"):
            make(backwards)
        with pytest.raises(ValueError, match="byte order"):
            make(swapped)
        for array, name in (
            (np.array(["a"]), "numpy.str_"),
            (np.array([1, None]), "numpy.object_"),
            (np.zeros(2, [("x", "f4")]), "numpy.void"),
            (np.zeros(2, "M8[s]"), "numpy.datetime64"),
        ):
            with pytest.raises(TypeError, match=f"can't convert np.ndarray of type {name}. The only supported"):
                make(array)
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got numpy.float64\)"):
        torch.from_numpy(np.float64(3))
    # In a call with a tensor they are copied.
    t = torch.ones(3, dtype=torch.float64)
    assert (t + backwards).tolist() == [3, 2, 1] and (swapped * t).tolist() == [0, 1, 2]
    assert np.add(t, backwards).tolist() == [3, 2, 1] and np.dot(t, swapped).item() == 3
    assert t[np.array([0, 2])[::-1]].shape == (2,)


def test_python_numbers_from_tensors():
    several, none = torch.zeros(3), torch.zeros(0)
    for convert in (float, int, complex, math.isfinite):
        for t in (several, none):
            with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
                convert(t)
    for convert, name in ((float, "double"), (int, "int64_t")):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
            convert(torch.tensor(1 + 2j))
        assert convert(torch.tensor(3 + 0j)) == 3
    assert complex(torch.tensor([1 + 2j])) == 1 + 2j


def test_numpy_functions_that_libraries_call():
    """scipy and matplotlib bring their arguments to arrays by these, and go on with arrays' methods."""
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    for found in (np.atleast_1d(t), np.ravel(t), *np.broadcast_arrays(t, [1.0, 2.0])):
        assert type(found) is np.ndarray
    assert np.ravel(t.clone().requires_grad_()).requires_grad
    first, second = np.broadcast_arrays(t, np.array(None))
    assert first.shape == second.shape == (2, 2) and second.dtype == object
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        assert np.dtype(t.dtype) == np.float64 and np.issubdtype(t.dtype, np.inexact)
    assert isinstance(np.spacing(t), torch.Tensor)


def test_asarray_and_dtype():
    t = torch.ones(2, 3)
    assert np.asarray(t) is not None and np.shares_memory(np.asarray(t), t.numpy())
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(t, copy=True), t.numpy())
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.asarray(torch.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    "name", ["sin", "exp", "tanh", "sqrt", "negative", "absolute", "log1p", "floor", "isnan", "square"]
)
def test_ufuncs_give_tensors(device, name):
    t = torch.tensor([0.5, 1.5], device=device)
    r = getattr(np, name)(t)
    assert isinstance(r, torch.Tensor)
    np.testing.assert_allclose(r.cpu().numpy(), getattr(np, name)(t.cpu().numpy()), rtol=1e-6)


def test_ufuncs_are_differentiable(device):
    t = torch.tensor([0.5, 1.5], device=device, requires_grad=True)
    np.multiply(np.sin(t), 2).sum().backward()
    assert torch.allclose(t.grad, 2 * torch.cos(t.detach()))


def test_mixed_arithmetic_gives_tensors(device):
    a = np.array([1.0, 2.0], dtype=np.float32)
    t = torch.tensor([3.0, 4.0], device=device, requires_grad=True)
    for r, want in (
        (a * t, [3, 8]),
        (t * a, [3, 8]),
        (a + t, [4, 6]),
        (t - a, [2, 2]),
        (a - t, [-2, -2]),
        (a / t, [1 / 3, 0.5]),
        (np.float32(2) * t, [6, 8]),
    ):
        assert isinstance(r, torch.Tensor) and r.requires_grad
        assert r.tolist() == pytest.approx(want)
    (a * t).sum().backward()
    assert t.grad.tolist() == [1, 2]
    assert isinstance(a @ t, torch.Tensor) and (a > t).tolist() == [False, False]


def test_functions(device):
    t = torch.arange(6.0, device=device).reshape(2, 3)
    n = t.cpu().numpy()
    for f in (
        lambda x: np.concatenate([x, x]),
        lambda x: np.stack([x, x], axis=1),
        lambda x: np.sum(x, axis=1),
        lambda x: np.mean(x),
        lambda x: np.transpose(x),
        lambda x: np.reshape(x, (3, 2)),
        lambda x: np.max(x, axis=0),
        lambda x: np.argmax(x),
        lambda x: np.where(x > 2, x, 0),
        lambda x: np.clip(x, 1, 3),
        lambda x: np.dot(x, x.T),
        lambda x: np.std(x, axis=0),
        lambda x: np.cumsum(x, axis=1),
        lambda x: np.squeeze(x[None]),
        lambda x: np.expand_dims(x, 0),
        lambda x: np.zeros_like(x),
        lambda x: np.linalg.norm(x),
        lambda x: np.add.reduce(x, axis=0),
        lambda x: np.swapaxes(x, 0, 1),
        lambda x: np.sort(x, axis=1),
    ):
        have = f(t)
        have = have[0] if isinstance(have, tuple) else have
        np.testing.assert_allclose(have.cpu().numpy(), f(n), rtol=1e-6)
    assert isinstance(np.concatenate([t, t]), torch.Tensor)


def test_out_of_a_ufunc():
    out = np.zeros(2)
    np.add(torch.ones(2), torch.ones(2), out=out)
    assert out.tolist() == [2, 2]


def test_dlpack_import_and_export():
    t = torch.arange(4.0)
    a = np.from_dlpack(t)
    t[0] = 7  # and not a[0]: what NumPy 2.1 imports is read-only there
    assert a[0] == 7
    back = torch.from_dlpack(np.arange(3))
    assert back.tolist() == [0, 1, 2]
    with pytest.raises(BufferError):
        np.from_dlpack(torch.ones(1, requires_grad=True))


def test_array_namespace():
    t = torch.tensor([3.0, 1.0, 2.0])
    xp = t.__array_namespace__()
    assert xp.sum(t, axis=0).item() == 6 and xp.max(t).item() == 3 and xp.astype(t, xp.int64).dtype is torch.int64
    assert xp.isdtype(t.dtype, "real floating") and xp.permute_dims(t.reshape(1, 3), (1, 0)).shape == (3, 1)


def test_numpy_scalars_and_arrays_in_calls(device):
    t = torch.ones(2, device=device)
    assert (t * np.float64(2)).dtype is torch.float32
    assert torch.add(t, np.ones(2, np.float32)).tolist() == [2, 2]


def test_numpys_warnings_are_unchanged():
    """torchlite is silent about division by zero as PyTorch is, and leaves NumPy's warnings alone."""
    assert torch.tensor([1.0]).div(0).isinf().all()
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.array([1.0]) / 0
