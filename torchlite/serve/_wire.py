"""Tensors on the wire and arrays: the one translation that REST, gRPC and TorchServe's API share."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

import torchlite as torch

from ._errors import InvalidRequest, TooLarge


class _Dtypes(dict[str, Any]):
    """NumPy's dtypes by the protocol's names. That of bfloat16 is ml_dtypes', which is imported when it is read."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(name) or torch.bfloat16.np


DTYPES: dict[str, np.dtype] = _Dtypes({
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "BF16": None,
    "BYTES": np.dtype(np.object_),
})  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items() if dtype is not None}
MOST_DIMENSIONS = 32  # NumPy 2.1 has 64; no model needs more
_LENGTH = struct.Struct("<I")  # before each element of BYTES


def is_bfloat16(dtype: np.dtype) -> bool:
    """True for the dtype of bfloat16."""
    return dtype.kind == "V" and dtype == DTYPES["BF16"]


def datatype_of(dtype: Any) -> str:
    """Return the protocol's name of a dtype of torchlite or NumPy. ValueError if it has none."""
    if isinstance(dtype, torch.dtype):
        word = str(dtype).rpartition(".")[2]
        dtype = DTYPES["BF16"] if word == "bfloat16" else word
    try:
        found = np.dtype(dtype)
        return "BF16" if is_bfloat16(found) else _NAMES[found]
    except (KeyError, TypeError):
        raise ValueError(f"the protocol has no datatype for {dtype}") from None


def check_shape(name: str, datatype: Any, shape: Any, most_bytes: int) -> tuple[int, ...]:
    """Return the shape of a tensor that a client describes, before memory is taken for it."""
    if not isinstance(datatype, str) or datatype not in DTYPES:
        raise InvalidRequest(f"input '{name}': unknown datatype {datatype!r}; known are {', '.join(DTYPES)}")
    if not isinstance(shape, list | tuple) or not all(type(size) is int and size >= 0 for size in shape):
        raise InvalidRequest(f"input '{name}': shape must be a list of whole numbers of at least 0")
    if len(shape) > MOST_DIMENSIONS:
        raise InvalidRequest(f"input '{name}': shape has {len(shape)} sizes; at most {MOST_DIMENSIONS} are allowed")
    least = 4 if datatype == "BYTES" else DTYPES[datatype].itemsize
    # A size of 0 makes the tensor empty, but NumPy still multiplies the others.
    if math.prod(size or 1 for size in shape) * least > most_bytes:
        raise TooLarge(f"input '{name}': a tensor of shape {list(shape)} is over the limit of {most_bytes} bytes")
    return tuple(shape)


# -- JSON ----------------------------------------------------------------------------------


def array_from_json(name: str, datatype: str, shape: tuple[int, ...], data: Any) -> np.ndarray:
    """Return the array of a list of elements, nested by the shape or flat."""
    if not isinstance(data, list):
        raise InvalidRequest(f"input '{name}': data must be a list")
    if datatype == "BYTES":
        return _texts_from_json(name, shape, data)
    try:
        found = np.array(data)
    except (ValueError, OverflowError, TypeError):
        raise InvalidRequest(f"input '{name}': data is no list of equally long lists of numbers") from None
    _check_count(name, shape, found)
    dtype = DTYPES[datatype]
    if found.size == 0:
        return np.empty(shape, dtype)
    _check_elements(name, datatype, dtype, found)
    if dtype.kind not in "biu":
        _check_range(name, datatype, dtype, found)
    made = np.empty(shape, dtype)  # an array with memory of its own is a tensor at once
    made.reshape(-1)[:] = found.reshape(-1)
    return made


def _check_range(name: str, datatype: str, dtype: np.dtype, found: np.ndarray) -> None:
    """Raise InvalidRequest for a finite number that would become infinite."""
    most = torch.finfo(torch.bfloat16).max if is_bfloat16(dtype) else float(np.finfo(dtype).max)
    least, largest = np.minimum.reduce(found, axis=None), np.maximum.reduce(found, axis=None)  # faster than the methods
    if -most <= least and largest <= most:  # False for NaN
        return
    wide = np.abs(found, dtype=np.float64)
    if np.any((wide > most) & (wide < np.inf)):
        raise InvalidRequest(f"input '{name}': an element is beyond the range of {datatype}")


def _check_count(name: str, shape: tuple[int, ...], found: np.ndarray) -> None:
    if found.size != math.prod(shape):
        raise InvalidRequest(
            f"input '{name}': data has {found.size} elements; the shape {list(shape)} has {math.prod(shape)}"
        )
    if found.ndim != 1 and found.shape != shape and found.size:
        raise InvalidRequest(f"input '{name}': data is nested as {list(found.shape)}; the shape is {list(shape)}")


def _check_elements(name: str, datatype: str, dtype: np.dtype, found: np.ndarray) -> None:
    """Raise InvalidRequest for elements that are not of a datatype."""
    kind = found.dtype.kind
    if datatype == "BOOL":
        fits = kind == "b" or (kind in "iu" and bool(((found == 0) | (found == 1)).all()))
        wanted = "true or false"
    elif dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = kind in "iu" and int(found.min()) >= limits.min and int(found.max()) <= limits.max
        wanted = f"whole numbers from {limits.min} to {limits.max}"
    else:
        fits = kind in "iuf"
        wanted = "numbers"
    if not fits:
        raise InvalidRequest(f"input '{name}': elements of {datatype} must be {wanted}")


def _texts_from_json(name: str, shape: tuple[int, ...], data: list) -> np.ndarray:
    """Return an object array of the UTF-8 bytes of texts."""
    flat = data
    while flat and isinstance(flat[0], list):
        if not all(isinstance(row, list) for row in flat):
            raise InvalidRequest(f"input '{name}': data mixes texts and lists")
        flat = [element for row in flat for element in row]
    if not all(isinstance(element, str) for element in flat):
        raise InvalidRequest(f"input '{name}': elements of BYTES must be texts")
    if len(flat) != math.prod(shape):
        raise InvalidRequest(
            f"input '{name}': data has {len(flat)} elements; the shape {list(shape)} has {math.prod(shape)}"
        )
    return _object_array(shape, [element.encode("utf-8", "surrogatepass") for element in flat])


def array_to_json(array: np.ndarray) -> list:
    """Return the elements of an array as a flat list. InvalidRequest for bytes that are no text."""
    if array.dtype == np.object_:
        try:
            return [element.decode() if isinstance(element, bytes) else str(element) for element in array.ravel()]
        except UnicodeDecodeError:
            raise InvalidRequest("an output holds bytes that are no UTF-8 text: ask for it as binary data") from None
    if is_bfloat16(array.dtype):
        array = array.astype(np.float32)
    return array.ravel().tolist()


# -- bytes ---------------------------------------------------------------------------------


def array_from_bytes(name: str, datatype: str, shape: tuple[int, ...], raw: Any) -> np.ndarray:
    """Return the array of little-endian elements in row-major order; it may share the memory of `raw`."""
    if datatype == "BYTES":
        return _texts_from_bytes(name, shape, bytes(raw))
    dtype = DTYPES[datatype]
    wanted = math.prod(shape) * dtype.itemsize
    if len(raw) != wanted:
        raise InvalidRequest(
            f"input '{name}': {len(raw)} bytes of data; {datatype} of shape {list(shape)} has {wanted}"
        )
    if datatype == "BOOL":
        levels = np.frombuffer(raw, np.uint8)
        if levels.size and levels.max() > 1:
            raise InvalidRequest(f"input '{name}': elements of BOOL must be the bytes 0 or 1")
        return levels.view(np.bool_).reshape(shape)
    if datatype == "BF16":  # not a dtype with a byte order
        return np.frombuffer(raw, "<u2").astype(np.uint16).view(dtype).reshape(shape)
    return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


def _texts_from_bytes(name: str, shape: tuple[int, ...], raw: bytes) -> np.ndarray:
    found: list[bytes] = []
    place, count = 0, math.prod(shape)
    while place < len(raw):
        if place + _LENGTH.size > len(raw):
            raise InvalidRequest(f"input '{name}': data ends within a length of BYTES")
        (length,) = _LENGTH.unpack_from(raw, place)
        place += _LENGTH.size
        if place + length > len(raw):
            raise InvalidRequest(f"input '{name}': data ends within an element of BYTES")
        if len(found) == count:
            raise InvalidRequest(f"input '{name}': data has more elements than the shape {list(shape)}")
        found.append(raw[place : place + length])
        place += length
    if len(found) != count:
        raise InvalidRequest(f"input '{name}': data has {len(found)} elements; the shape {list(shape)} has {count}")
    return _object_array(shape, found)


def _object_array(shape: tuple[int, ...], elements: list[bytes]) -> np.ndarray:
    made = np.empty(len(elements), np.object_)
    made[:] = elements
    return made.reshape(shape)


def array_to_bytes(array: np.ndarray) -> bytes:
    """Return the little-endian elements of an array in row-major order."""
    if array.dtype == np.object_:
        parts = []
        for element in array.ravel():
            raw = element if isinstance(element, bytes) else str(element).encode()
            parts += [_LENGTH.pack(len(raw)), raw]
        return b"".join(parts)
    if is_bfloat16(array.dtype):
        return array.view(np.uint16).astype("<u2").tobytes()
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


# -- tensors -------------------------------------------------------------------------------


def tensor_of(array: np.ndarray, device: str) -> Any:
    """Return a model's input: a tensor on the device, or an object array of texts as it is."""
    if array.dtype == np.object_:
        return array
    if not array.flags.writeable:
        array = array.copy()
    made = torch.from_numpy(array)
    return made if device == "cpu" else made.to(device)


def array_of(value: Any) -> np.ndarray:
    """Return the array of a model's result: a tensor, an array, a number, a text or a list of these."""
    if isinstance(value, torch.Tensor):
        found = value if value.device.type == "cpu" and not value.requires_grad else value.detach().cpu()
        if found.dtype is torch.bfloat16:  # NumPy has it through ml_dtypes alone
            return found.contiguous().view(torch.int16).numpy().view(DTYPES["BF16"])
        return found.numpy()
    if isinstance(value, str | bytes):
        return _object_array((1,), [value.encode() if isinstance(value, str) else value])
    made = np.asarray(value)
    if made.dtype.kind in "US":
        texts = made.ravel().tolist()
        return _object_array(made.shape, [text.encode() if isinstance(text, str) else text for text in texts])
    return made
