"""Reads ONNX tensors as NumPy arrays, from the message or external files."""

from __future__ import annotations

import math
import os
import stat
from typing import Any

import numpy as np

import torchlite as torch

from .._serialization.atomic_files import open_regular
from .._types.layouts import MAX_DIMS
from ._element_types import NAMES, NARROW, unpack_sub_bytes
from ._protobuf import Message
from .errors import OnnxFileError

_EXTERNAL = 1  # value of data_location
_EMPTY = 1 << 20  # maximum product of the nonzero sizes of an empty tensor
_SHARED = 4  # number of tensors that may share external bytes, as tied weights do
# Fields with elements of tensors without raw data.
_FIELDS = {
    "float32": "float_data", "complex64": "float_data", "float64": "double_data", "complex128": "double_data",
    "int64": "int64_data", "uint32": "uint64_data", "uint64": "uint64_data", "string": "string_data",
}  # fmt: skip
_PLACES = (*dict.fromkeys(_FIELDS.values()), "int32_data", "raw_data")


def numpy_dtype(name: str) -> np.dtype:
    """Return the NumPy dtype of an element type."""
    return getattr(torch, name).np if name != "bool" else np.dtype(bool)


class TensorData:
    """Element source of a file's tensors: the file, or others in its folder (None if unknown)."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.named: dict[str, int] = {}  # bytes used, by path of an external file
        self._paths: dict[str, str] = {}  # paths by name in the model

    def array(self, tensor: Message) -> tuple[np.ndarray, str]:
        """Return a tensor's elements and type name: an array, of str objects for strings, in a wider dtype for narrow
        types. Raise OnnxFileError if they do not match the tensor's declaration.
        """
        where = f"the tensor {tensor.name[:200]!r}"
        if not 0 < tensor.data_type < len(NAMES):
            raise OnnxFileError(f"{where}: there is no type of elements {tensor.data_type}")
        name = NAMES[tensor.data_type]
        shape = tuple(int(n) for n in tensor.dims)
        if len(shape) > MAX_DIMS or any(n < 0 for n in shape) or math.prod(shape) >= 1 << 62:
            raise OnnxFileError(f"{where}: its shape is {str(list(shape))[:200]}")
        if 0 in shape and math.prod(n or 1 for n in shape) > _EMPTY:
            raise OnnxFileError(f"{where}: it has no elements, and its shape is {str(list(shape))[:200]}")
        if tensor.has("segment"):
            raise OnnxFileError(f"{where}: it is a segment of a larger one, which no program writes")
        if tensor.data_location not in (0, _EXTERNAL):
            raise OnnxFileError(f"{where}: there is no place of elements {tensor.data_location}")
        fields = [field for field in _PLACES if tensor.has(field)]
        if len(fields) > 1:
            raise OnnxFileError(f"{where}: its elements are in {fields[0]} and in {fields[1]}")
        if name == "string":
            return self._string_array(tensor, shape, where), name
        if tensor.data_location == _EXTERNAL:
            flat = self._array_of_bytes(self._read_external(tensor, _byte_size(name, shape), where), name, shape, where)
        elif tensor.has("raw_data"):
            flat = self._array_of_bytes(tensor.raw_data, name, shape, where)
        else:
            flat = _typed_field_data(tensor, name, shape, where)
        return flat.reshape(shape), name

    def _string_array(self, tensor: Message, shape: tuple, where: str) -> np.ndarray:
        values = tensor.string_data
        if len(values) != math.prod(shape):
            raise OnnxFileError(f"{where}: it has {len(values)} texts, and its shape {list(shape)}")
        out = np.empty(len(values), object)
        try:
            out[:] = [str(value, "utf-8") for value in values]
        except UnicodeDecodeError:
            raise OnnxFileError(f"{where}: its text is not UTF-8") from None
        return out.reshape(shape)

    def _array_of_bytes(self, data: Any, name: str, shape: tuple, where: str) -> np.ndarray:
        size = _byte_size(name, shape)
        if len(data) != size:
            raise OnnxFileError(f"{where}: it has {len(data)} bytes, and {name} of shape {list(shape)} has {size}")
        if name in NARROW:
            return unpack_sub_bytes(np.frombuffer(data, np.uint8), name, math.prod(shape))
        flat = np.frombuffer(data, np.uint8)
        return (flat != 0) if name == "bool" else flat.view(numpy_dtype(name))

    def _read_external(self, tensor: Message, size: int, where: str) -> Any:
        """Return bytes of an external file in the model's folder only."""
        about = {entry.key: entry.value for entry in tensor.external_data}
        name = about.get("location", "")
        if self.folder is None:
            raise OnnxFileError(f"{where}: its elements are in the file {name[:200]!r}, and the model has no folder")
        path = self._checked_path(name, where)
        offset, length = (_read_count(about, key, default, where) for key, default in (("offset", 0), ("length", size)))
        if length != size:
            raise OnnxFileError(f"{where}: {length} bytes of {name!r} are named, and it has {size}")
        with open_regular(path) as stream:
            end = os.fstat(stream.fileno()).st_size
            if offset + length > end:
                raise OnnxFileError(f"{where}: bytes {offset} to {offset + length} of {name!r}, which has {end}")
            self.named[path] = self.named.get(path, 0) + length
            if self.named[path] > _SHARED * end:
                raise OnnxFileError(f"{where}: {name!r} has {end} bytes, and tensors name {_SHARED} times as many")
            stream.seek(offset)
            data = np.empty(length, np.uint8)
            if stream.readinto(data.data) != length:
                raise OnnxFileError(f"{where}: {name!r} became shorter while it was read")
        return data

    def _checked_path(self, name: str, where: str) -> str:
        if name not in self._paths:
            self._paths[name] = self._find_in_folder(name, where)
        return self._paths[name]

    def _find_in_folder(self, name: str, where: str) -> str:
        folder = os.path.realpath(self.folder or "")
        parts = name.replace("\\", "/").split("/")
        if not name or "\0" in name or os.path.isabs(name) or os.path.splitdrive(name)[0] or ".." in parts:
            raise OnnxFileError(f"{where}: {name[:200]!r} is no file of the model's folder")
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.commonpath([folder, path]) != folder:
            raise OnnxFileError(f"{where}: {name[:200]!r} leads out of the model's folder")
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise OnnxFileError(f"{where}: {name[:200]!r} is no plain file")
        except OSError as error:
            raise OnnxFileError(f"{where}: {name[:200]!r}: {error.strerror}") from None
        return path


def _read_count(about: dict[str, str], key: str, default: int, where: str) -> int:
    text = about.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise OnnxFileError(f"{where}: its {key} is {text[:100]!r}")
    return int(text)


def _byte_size(name: str, shape: tuple) -> int:
    if name in NARROW:
        return -(-math.prod(shape) * NARROW[name][1] // 8)
    return math.prod(shape) * numpy_dtype(name).itemsize


def _typed_field_data(tensor: Message, name: str, shape: tuple, where: str) -> np.ndarray:
    """Return the elements of a typed repeated field."""
    field = _FIELDS.get(name, "int32_data")
    values = np.asarray(getattr(tensor, field), {"float_data": "<f4", "double_data": "<f8", "uint64_data": "<u8"}.get(
        field, "<i8"))  # fmt: skip
    count = math.prod(shape)
    expected_size = _byte_size(name, shape) if name in NARROW else count * (2 if name.startswith("complex") else 1)
    if values.size != expected_size:
        raise OnnxFileError(f"{where}: it has {values.size} numbers in {field}, and {name} of shape {list(shape)}")
    if name in NARROW:
        return unpack_sub_bytes((values & 255).astype(np.uint8), name, count)
    dtype = numpy_dtype(name)
    if name.startswith("complex"):
        return np.ascontiguousarray(values).view(dtype)
    bits = name == "float16" or dtype.kind == "V" or name.startswith(("bfloat", "float8"))
    found = values.astype(f"<u{dtype.itemsize}" if bits else dtype)
    if values.dtype.kind in "iu" and name != "bool" and (found != values).any():
        raise OnnxFileError(f"{where}: it has numbers that {name} does not")
    return found.view(dtype)
