"""Other libraries' memory: DLPack's objects and capsules, the buffer protocol, `asarray`."""

import array
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite.utils.dlpack import from_dlpack, to_dlpack

HOST = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.float8_e5m2,
]  # fmt: skip


@pytest.mark.parametrize("dtype", HOST, ids=str)
def test_capsules_of_every_dtype(dtype):
    x = torch.arange(6).reshape(2, 3).to(dtype)
    for again in (from_dlpack(to_dlpack(x)), torch.from_dlpack(x), torch.from_dlpack(x.__dlpack__(max_version=(1, 0)))):
        assert again.dtype is dtype and again.data_ptr() == x.data_ptr() and again.stride() == (3, 1)
    view = torch.from_dlpack(x.t()[1:])
    assert view.storage_offset() == 0 and view.untyped_storage().nbytes() == 5 * dtype.itemsize
    with pytest.raises(RuntimeError, match="out of bounds"):
        view.as_strided((6,), (1,))


def test_a_capsule_is_taken_over_once():
    x = torch.ones(3)
    capsule = to_dlpack(x)
    from_dlpack(capsule)[0] = 5
    assert x[0] == 5
    for wrong in (capsule, 3):
        with pytest.raises(RuntimeError, match="invalid capsule"):
            from_dlpack(wrong)
    assert torch.asarray(to_dlpack(x)).data_ptr() == x.data_ptr() != torch.from_dlpack(x, copy=True).data_ptr()


def test_unsupported_exports_raise():
    x = torch.ones(3)
    for stream in (object(), True, "1"):
        with pytest.raises(TypeError, match="stream must be"):
            x.__dlpack__(stream=stream)
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        x.__dlpack__(stream=1)
    x.__dlpack__(stream=-1)
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        torch.ones(2, device="meta").__dlpack__()
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        torch.from_dlpack(x, device="meta")
    assert x.bfloat16().__dlpack_device__() == (1, 0)


class Exporter:
    """Another library's array."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


def test_exporters_of_other_libraries():
    x = torch.arange(4.0)
    for make, shared in ((torch.tensor, False), (torch.asarray, True), (torch.from_dlpack, True)):
        made = make(Exporter(x))
        assert made.tolist() == x.tolist() and (made.data_ptr() == x.data_ptr()) is shared


def test_arrays_that_run_backwards_are_not_shared():
    for exporter in (np.arange(3)[::-1], Exporter(np.arange(6).reshape(2, 3)[:, ::-1])):
        with pytest.raises(RuntimeError, match="negative strides .* cannot be shared"):
            torch.from_dlpack(exporter)


def test_frombuffer():
    data = bytearray(range(8))
    x = torch.frombuffer(data, dtype=torch.uint8, count=3, offset=2)
    x[0] = 99
    assert data[2] == 99 and x.tolist() == [99, 3, 4] and x.untyped_storage().nbytes() == 3
    assert torch.frombuffer(data, dtype=torch.int16, count=-2).shape == (4,)
    words = {
        (0, 0): r"both buffer length \(8\) and count \(0\) must not be 0",
        (-1, 8): r"offset \(8 bytes\) must be non-negative and no greater than buffer length \(8 bytes\) minus 1",
        (-1, -2): r"offset \(-2 bytes\) must be non-negative",
        (-1, 1): r"buffer length \(7 bytes\) after offset \(1 bytes\) must be a multiple of element size \(2\)",
        (5, 0): r"requested buffer length \(5 \* 2 bytes\) after offset \(0 bytes\) must not be greater than actual",
        (4, 2): r"requested buffer length \(4 \* 2 bytes\) after offset \(2 bytes\)",
    }
    for (count, offset), message in words.items():
        with pytest.raises(ValueError, match=message):
            torch.frombuffer(data, dtype=torch.int16, count=count, offset=offset)
    with pytest.raises(ValueError, match="object does not implement Python buffer protocol"):
        torch.frombuffer([1, 2], dtype=torch.int8)
    with pytest.raises(ValueError, match=r"both buffer length \(0\)"):
        torch.frombuffer(bytearray(0), dtype=torch.int8)
    with pytest.raises(RuntimeError, match="could not retrieve buffer"):
        torch.frombuffer(memoryview(data)[::2], dtype=torch.uint8)
    with pytest.raises(TypeError, match="argument 'dtype' must be torch.dtype, not int"):
        torch.frombuffer(data, dtype=3)
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        torch.frombuffer(b"abcd", dtype=torch.int16)


def test_asarray_of_buffers():
    data = bytearray(8)
    assert torch.asarray(data).tolist() == [0.0, 0.0]
    x = torch.asarray(memoryview(data), dtype=torch.uint8, copy=False)
    x[0] = 7
    assert data[0] == 7 and torch.asarray(data, dtype=torch.uint8, copy=True)[0] == 7
    assert torch.asarray(array.array("i", [1, 2]), dtype=torch.int32).tolist() == [1, 2]


def test_asarray_of_tensors_and_arrays():
    x, a = torch.ones(3), np.ones(3)
    assert torch.asarray(x) is x is torch.asarray(x, copy=False) and torch.asarray(x, copy=True) is not x
    assert torch.asarray(a).data_ptr() == a.ctypes.data and torch.asarray(a, copy=True).data_ptr() != a.ctypes.data
    assert torch.asarray([1, 2]).dtype is torch.int64 and torch.asarray(range(3)).tolist() == [0, 1, 2]
    assert torch.asarray(np.float64(0.5)).dtype is torch.float64 and torch.asarray(3.0).shape == ()
    for wrong, error, message in (
        (lambda: torch.asarray([1, 2], copy=False), ValueError, "can't alias arbitrary sequence into a tensor"),
        (lambda: torch.asarray(x, dtype=torch.float64, copy=False), ValueError, "dtype 'Float' into dtype 'Double'"),
        (lambda: torch.asarray(a, dtype=torch.float32, copy=False), ValueError, "dtype 'Double' into dtype 'Float'"),
        (lambda: torch.asarray(x, device="meta", copy=False), ValueError, "from device 'cpu' to 'meta'"),
        (lambda: torch.asarray(np.float64(1), copy=False), RuntimeError, "can't alias NumPy scalars"),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_asarray_and_gradients():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.asarray(y).grad_fn is not None
    assert torch.asarray(y, requires_grad=True).grad_fn is not None
    assert torch.asarray(y, requires_grad=False).grad_fn is None
    assert torch.asarray([1.0], requires_grad=True).requires_grad
