"""Tensors on the wire and arrays."""

import ml_dtypes
import numpy as np
import pytest

import torchlite as torch
from torchlite.serve import _wire
from torchlite.serve._errors import InvalidRequest, TooLarge

NUMERIC = [name for name in _wire.DTYPES if name != "BYTES"]


@pytest.mark.parametrize("datatype", NUMERIC)
def test_bytes_and_json_come_back(datatype):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(_wire.DTYPES[datatype])
    assert _wire.datatype_of(array.dtype) == datatype
    raw = _wire.array_to_bytes(array)
    assert len(raw) == array.nbytes
    for found in (
        _wire.array_from_bytes("x", datatype, (2, 3), raw),
        _wire.array_from_json("x", datatype, (2, 3), _wire.array_to_json(array)),
        _wire.array_from_json("x", datatype, (2, 3), np.array(_wire.array_to_json(array)).reshape(2, 3).tolist()),
    ):
        assert found.dtype == array.dtype and found.shape == (2, 3) and (found == array).all()
    tensor = _wire.tensor_of(array, "cpu")
    assert (_wire.array_of(tensor) == array).all() and _wire.datatype_of(tensor.dtype) == datatype


def test_bytes_are_little_endian():
    assert _wire.array_to_bytes(np.array([1], ">i4")) == b"\x01\0\0\0"
    assert _wire.array_from_bytes("x", "INT32", (1,), b"\x01\0\0\0").tolist() == [1]


def test_texts():
    array = np.array([b"a", "\u00e4\u00f6".encode(), b""], np.object_).reshape(3, 1)
    raw = _wire.array_to_bytes(array)
    assert raw[:5] == b"\x01\0\0\0a"
    found = _wire.array_from_bytes("x", "BYTES", (3, 1), raw)
    assert found.tolist() == array.tolist()
    assert _wire.array_to_json(array) == ["a", "\u00e4\u00f6", ""]
    assert _wire.array_from_json("x", "BYTES", (3, 1), [["a"], ["\u00e4\u00f6"], [""]]).tolist() == array.tolist()
    with pytest.raises(InvalidRequest, match="binary data"):
        _wire.array_to_json(np.array([b"\xff"], np.object_))


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "error"),
    [
        ("FP32", (2,), 1, "must be a list"),
        ("FP32", (2,), [1], "1 elements; the shape"),
        ("FP32", (2, 1), [[1, 2]], "nested as"),
        ("FP32", (2,), [[1], [2, 3]], "equally long lists"),
        ("FP32", (2,), ["a", "b"], "must be numbers"),
        ("FP32", (2,), [None, 1], "must be numbers"),
        ("FP32", (1,), [1e300], "beyond the range of FP32"),
        ("FP32", (1,), [10**400], "must be numbers"),
        ("FP16", (1,), [70000], "beyond the range of FP16"),
        ("INT8", (1,), [128], "from -128 to 127"),
        ("UINT8", (1,), [-1], "from 0 to 255"),
        ("INT64", (1,), [2**63], "must be whole numbers"),
        ("INT32", (1,), [1.5], "must be whole numbers"),
        ("INT32", (1,), [True], "must be whole numbers"),
        ("BOOL", (1,), [2], "true or false"),
        ("BYTES", (1,), [1], "must be texts"),
        ("BYTES", (2,), ["a"], "1 elements"),
        ("BYTES", (2,), [["a"], "b"], "mixes"),
    ],
)
def test_wrong_json_is_refused(datatype, shape, data, error):
    with pytest.raises(InvalidRequest, match=error):
        _wire.array_from_json("x", datatype, shape, data)


@pytest.mark.parametrize(
    ("datatype", "shape", "raw", "error"),
    [
        ("FP32", (2,), b"1234567", "7 bytes of data"),
        ("BOOL", (1,), b"\x02", "bytes 0 or 1"),
        ("BYTES", (1,), b"\x05\0\0\0a", "within an element"),
        ("BYTES", (1,), b"\x05\0", "within a length"),
        ("BYTES", (2,), b"\x01\0\0\0a", "has 1 elements"),
        ("BYTES", (0,), b"\x01\0\0\0a", "more elements"),
    ],
)
def test_wrong_bytes_are_refused(datatype, shape, raw, error):
    with pytest.raises(InvalidRequest, match=error):
        _wire.array_from_bytes("x", datatype, shape, raw)


@pytest.mark.parametrize(
    ("datatype", "shape", "error"),
    [
        ("FP31", [1], "unknown datatype"),
        ([], [1], "unknown datatype"),
        ("FP32", None, "list of whole numbers"),
        ("FP32", [-1], "list of whole numbers"),
        ("FP32", [1.0], "list of whole numbers"),
        ("FP32", [True], "list of whole numbers"),
        ("FP32", [1] * 33, "at most 32"),
    ],
)
def test_wrong_shapes_are_refused(datatype, shape, error):
    with pytest.raises(InvalidRequest, match=error):
        _wire.check_shape("x", datatype, shape, 1000)


@pytest.mark.parametrize("shape", [[251], [2**40, 2**40], [0, 2**62]])
def test_a_large_shape_is_refused_before_memory_is_taken(shape):
    with pytest.raises(TooLarge, match="over the limit of 1000 bytes"):
        _wire.check_shape("x", "FP32", shape, 1000)


def test_results_of_models():
    assert _wire.array_of(["a", "b"]).tolist() == [b"a", b"b"]
    assert _wire.array_of("a").tolist() == [b"a"]
    assert _wire.array_of(1.5).shape == ()
    assert _wire.array_of(torch.ones(2, dtype=torch.bfloat16)).dtype == ml_dtypes.bfloat16
    with pytest.raises(ValueError, match="no datatype"):
        _wire.datatype_of(torch.complex64)
