"""Reader and writer of safetensors files: the header's length in eight bytes, the JSON header, the elements."""

from __future__ import annotations

import json
import math
import struct
from typing import IO, Any, NamedTuple

import torchlite as torch
from torchlite._types.layouts import are_valid_sizes

SUFFIX = ".safetensors"
_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "U16": torch.uint16,
    "U32": torch.uint32, "U64": torch.uint64, "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu, "F4": torch.float4_e2m1fn_x2,
    "C64": torch.complex64,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LONGEST = 100_000_000  # bytes of a header


class TensorEntry(NamedTuple):
    """A tensor of a file: dtype, shape, and byte range."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def read_header(stream: IO[bytes], name: str) -> tuple[dict[str, TensorEntry], dict[str, str]]:
    """Return the tensors of a file by name, and its metadata. ValueError for a damaged file."""
    try:
        return _read_header(stream)
    except (struct.error, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no whole file of safetensors: {error}") from None


def _read_header(stream: IO[bytes]) -> tuple[dict[str, TensorEntry], dict[str, str]]:
    size = stream.seek(0, 2)
    stream.seek(0)
    (length,) = struct.unpack("<Q", stream.read(8))
    if length > min(_LONGEST, size - 8):
        raise ValueError(f"its header has {length} bytes")
    found = json.loads(stream.read(length), object_pairs_hook=_check_unique_keys)
    words = found.pop("__metadata__", {})
    if type(words) is not dict or not all(type(word) is str for word in words.values()):
        raise ValueError("what it says of itself is no table of texts")
    places: dict[str, TensorEntry] = {}
    for name, about in found.items():
        dtype, shape = _DTYPES[about["dtype"]], tuple(about["shape"])
        begin, end = about["data_offsets"]
        if not are_valid_sizes(shape) or not are_valid_sizes((begin, end)):
            raise ValueError(f"{name!r} has a shape or a place that is none")
        if end - begin != math.prod(shape) * dtype.itemsize or 8 + length + end > size:
            raise ValueError(f"{name!r} does not lie in it")
        places[name] = TensorEntry(dtype, shape, 8 + length + begin, 8 + length + end)
    after = 8 + length
    for begin, end, name in sorted((place.begin, place.end, name) for name, place in places.items()):
        if begin != after:
            raise ValueError(f"{name!r} does not begin where the tensor before it ends")
        after = end
    if after != size:
        raise ValueError(f"{size - after} bytes at its end belong to no tensor")
    return places, words


def _check_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object after checking that its keys are unique."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def read_tensor(stream: IO[bytes], place: TensorEntry) -> torch.Tensor:
    """Read the tensor of an entry."""
    made = torch.empty(math.prod(place.shape) * place.dtype.itemsize, dtype=torch.uint8)
    stream.seek(place.begin)
    if made.numel() and stream.readinto(made.numpy().data) != made.numel():  # type: ignore[attr-defined]
        raise ValueError("the file has become shorter")
    return made.view(place.dtype).view(place.shape) if made.numel() else torch.empty(place.shape, dtype=place.dtype)


def write_safetensors(
    stream: IO[bytes], tensors: dict[str, torch.Tensor], words: dict[str, str] | None = None
) -> dict[str, TensorEntry]:
    """Write host tensors and metadata. TypeError for a dtype that the format lacks."""
    header: dict[str, Any] = {} if words is None else {"__metadata__": words}
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)  # all are aligned then
    begin, places = 0, {}
    for name in order:
        tensor = tensors[name]
        if tensor.dtype not in _NAMES:
            raise TypeError(f"safetensors has no dtype for {name!r}, which is of {tensor.dtype}")
        place = TensorEntry(tensor.dtype, tuple(tensor.shape), begin, begin + tensor.nbytes)
        header[name] = {
            "dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [place.begin, place.end]
        }  # fmt: skip
        begin, places[name] = place.end, place
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    stream.write(struct.pack("<Q", len(text)) + text)
    for name in order:
        tensor = tensors[name].detach().contiguous().reshape(-1)
        if tensor.numel():
            stream.write(tensor.view(torch.uint8).numpy().data)
    start = 8 + len(text)
    return {name: place._replace(begin=start + place.begin, end=start + place.end) for name, place in places.items()}
