"""Tensors shared with other libraries, and pinned memory, on the fake backend."""

from __future__ import annotations

import types

import numpy as np
import pytest

import torchlite as torch

cuda = torch.cuda


class Numba:
    """Another library's array on a device, which has the older protocol alone."""

    def __init__(self, cells):
        self.cells = cells

    @property
    def __cuda_array_interface__(self):
        there = self.cells.__array_interface__
        return {
            "shape": there["shape"],
            "typestr": there["typestr"],
            "data": there["data"],
            "strides": there["strides"],
            "version": 3,
        }


class Cupy(Numba):
    """One that has DLPack too, on the second device."""

    def __dlpack_device__(self):
        return 2, 1

    def __dlpack__(self, **options):
        return self.cells.__dlpack__(**options)


def test_interface_of_a_tensor(fake):
    x = torch.arange(6.0, device="cuda").view(2, 3)
    there = x[:, 1].__cuda_array_interface__
    assert (
        there["shape"] == (2,) and there["typestr"] == "<f4" and there["strides"] == (12,) and there["data"][1] is False
    )
    assert there["data"][0] == x.__cuda_array_interface__["data"][0] + 4
    message = (
        r"Can't get __cuda_array_interface__ on non-CUDA tensor type: torch.FloatTensor "
        r"If CUDA data is required use tensor.cuda\(\)"
    )
    with pytest.raises(AttributeError, match=message):
        torch.ones(1).__cuda_array_interface__
    assert not hasattr(torch.ones(1), "__cuda_array_interface__") and hasattr(x, "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="Can't get __cuda_array_interface__ on Variable that requires grad"):
        x.requires_grad_().__cuda_array_interface__


def test_dlpack_of_a_tensor(fake):
    x = torch.ones(2, device="cuda:1")
    assert x.__dlpack_device__() == (2, 1) and torch.ones(1).__dlpack_device__() == (1, 0)
    assert type(x.__dlpack__(stream=7)).__name__ == "PyCapsule" and fake.exported_for == 7
    assert type(torch.to_dlpack(x)).__name__ == "PyCapsule" and fake.exported_for is None
    with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
        x.__dlpack__(stream=cuda.Stream())
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        x.requires_grad_().__dlpack__()
    with pytest.raises(AssertionError, match=r"stream should be None on cpu."):
        torch.ones(1).__dlpack__(stream=1)
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        torch.ones(1, device="meta").__dlpack__()
    with pytest.raises(ValueError, match="Unknown device type meta for Dlpack"):
        torch.ones(1, device="meta").__dlpack_device__()


@pytest.mark.parametrize(
    "take", [torch.as_tensor, torch.asarray, torch.from_dlpack, lambda a: torch.asarray(a, copy=False)]
)
def test_arrays_are_imported_without_a_copy(fake, take):
    cells = np.array([1.0, 2.0], np.float32)
    x = take(Cupy(cells))
    assert x.device == torch.device("cuda:1") and x.dtype is torch.float32
    cells[0] = 5
    assert x.tolist() == [5, 2]
    x.add_(1)
    assert cells.tolist() == [6, 3]


def test_the_older_protocol_alone(fake):
    cells = np.arange(6).reshape(2, 3)[:, ::2]
    x = torch.as_tensor(Numba(cells))
    assert x.device == torch.device("cuda:0") and x.dtype is torch.int64 and x.tolist() == [[0, 2], [3, 5]]
    x.zero_()
    assert not cells.any()


def test_tensor_and_dtype_conversion_copy(fake):
    cells = np.array([1.0, 2.0], np.float32)
    x, y = torch.tensor(Cupy(cells)), torch.as_tensor(Cupy(cells), dtype=torch.float64)
    z = torch.tensor(Numba(cells), device="cpu", requires_grad=True)
    cells[0] = 9
    assert (
        x.tolist() == y.tolist() == z.tolist() == [1, 2]
        and x.is_cuda
        and y.is_cuda
        and y.dtype is torch.float64
        and z.is_cpu
        and z.requires_grad
    )
    assert torch.from_dlpack(Cupy(cells), device="cpu").is_cpu
    with pytest.raises(BufferError, match="no backend for DLPack's device type 8"):
        torch.from_dlpack(types.SimpleNamespace(__dlpack_device__=lambda: (8, 0), __dlpack__=None))


# -- pinned memory ---------------------------------------------------------------------------------


def test_pinned_memory(fake):
    x = torch.arange(6.0).view(2, 3).t()
    pinned = x.pin_memory()
    assert (
        pinned.is_pinned()
        and pinned[0].is_pinned()
        and not x.is_pinned()
        and pinned.tolist() == x.tolist()
        and pinned.is_cpu
    )
    assert pinned.pin_memory() is pinned and pinned.cuda(non_blocking=True).tolist() == x.tolist()
    assert torch.empty(0).pin_memory().shape == (0,)
    there = x.cuda()
    assert not there.is_pinned()
    with pytest.raises(RuntimeError, match=r"cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"):
        there.pin_memory()


def test_loader_pins_batches(fake):
    items = [
        {"x": torch.tensor([float(i)]), "name": str(i), "pair": (torch.tensor(i), torch.tensor(-i))} for i in range(5)
    ]
    loader = torch.utils.data.DataLoader(items, batch_size=2, pin_memory=True)
    batches = list(loader)
    assert [b["x"].tolist() for b in batches] == [[[0], [1]], [[2], [3]], [[4]]] and batches[1]["name"] == ["2", "3"]
    assert all(b["x"].is_pinned() and all(t.is_pinned() for t in b["pair"]) for b in batches)
    assert not next(iter(torch.utils.data.DataLoader(items, batch_size=2)))["x"].is_pinned()
