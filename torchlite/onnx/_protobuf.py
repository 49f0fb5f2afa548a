"""Protobuf parser and serializer for ONNX messages.

The parser checks all lengths, bounds nesting, and uses memory proportional to the input. It skips unknown fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._protobuf_schema import BY_NAME, BY_NUMBER, MESSAGES, ONE_OF, SCALARS, Field
from .errors import OnnxFileError

_DEEPEST = 100  # maximum nesting, as in protobuf
_DEFAULTS = {"int32": 0, "int64": 0, "uint64": 0, "float": 0.0, "double": 0.0, "string": "", "bytes": b""}
_FIXED = {"float": ("<f", 5, 4), "double": ("<d", 1, 8)}  # format, wire type and width


class Message:
    """Message of a kind with fields as attributes: `Message("Dimension", dim_value=3).dim_value`.

    An unset field is its type's zero, None for a message, an empty list if repeated.
    """

    __slots__ = ("_kind", "_set")
    _kind: str
    _set: dict[str, Any]

    def __init__(self, kind: str, **fields: Any) -> None:
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_set", {})
        for name, value in fields.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name in self._set:
            return self._set[name]
        field = BY_NAME[self._kind].get(name)
        if field is None:
            raise AttributeError(f"a message {self._kind} has no field {name}")
        return [] if field.repeats else _DEFAULTS.get(field.type)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in BY_NAME[self._kind]:
            raise AttributeError(f"a message {self._kind} has no field {name}")
        self._set[name] = value

    def has(self, name: str) -> bool:
        """True if a field is set."""
        return name in self._set

    def which(self, *names: str) -> str:
        """Return the first set field of these, "" for none."""
        return next((name for name in names if name in self._set), "")

    def __repr__(self) -> str:
        return f"<{self._kind}: {', '.join(self._set)}>"

    def __reduce__(self) -> Any:
        return _restore_message, (
            self._kind,
            {n: bytes(v) if isinstance(v, memoryview) else v for n, v in self._set.items()},
        )


def _restore_message(kind: str, fields: dict[str, Any]) -> Message:
    return Message(kind, **fields)


def parse_message(data: Any, kind: str = "Model") -> Message:
    """Parse a message; bytes fields share the input's memory. Raise OnnxFileError for invalid bytes."""
    view = memoryview(data).cast("B").toreadonly()
    return _parse_message(Message(kind), view, 0, len(view), kind, 0)


def _parse_varint(view: memoryview, at: int, end: int, where: str) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= end or shift > 63:
            what = "a number of more than ten bytes" if shift > 63 else "it ends inside a number"
            raise OnnxFileError(f"no ONNX model: {where}: {what}")
        byte = view[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _parse_message(out: Message, view: memoryview, at: int, end: int, where: str, depth: int) -> Message:
    if depth > _DEEPEST:
        raise OnnxFileError(f"no ONNX model: messages inside more than {_DEEPEST} others ({where[:60]} ...)")
    fields, found, alternatives = BY_NUMBER[out._kind], out._set, ONE_OF.get(out._kind, ())
    while at < end:
        # Most tags and lengths are one byte, which is read here.
        tag = view[at]
        if tag < 128:
            at += 1
        else:
            tag, at = _parse_varint(view, at, end, where)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise OnnxFileError(f"no ONNX model: {where}: a field has the number {number}")
        if wire == 2 and at < end and (length := view[at]) < 128 and length < end - at:
            start = at + 1
            at = start + length
        else:
            start, at = _field_extent(view, at, end, wire, number, where, depth)
        field = fields.get(number)
        if field is None:
            continue
        name, repeats = field.name, field.repeats
        value = _parse_value(field, wire, view, start, at, where, depth, found.get(name))
        if value is None:
            continue
        for other in alternatives if name in alternatives else ():
            if other != name:
                found.pop(other, None)
        if repeats:
            _append_to_repeated(found, name, value)
        else:
            found[name] = value
    return out


def _append_to_repeated(found: dict[str, Any], name: str, value: Any) -> None:
    """Append to a repeated field: one element, or an array of packed ones."""
    kept = found.get(name)
    if kept is None:
        found[name] = value if isinstance(value, np.ndarray) else [value]
        return
    if isinstance(kept, np.ndarray):
        kept = found[name] = kept.tolist()
    kept.extend(value.tolist() if isinstance(value, np.ndarray) else (value,))


def _field_extent(
    view: memoryview, at: int, end: int, wire: int, number: int, where: str, depth: int
) -> tuple[int, int]:
    """Return begin and end of a field's content."""
    if wire == 0:
        return at, _parse_varint(view, at, end, where)[1]
    if wire == 2:
        length, at = _parse_varint(view, at, end, where)
    elif wire in (1, 5):
        length = 8 if wire == 1 else 4
    elif wire == 3:
        return at, _skip_group(view, at, end, number, where, depth + 1)
    else:
        raise OnnxFileError(f"no ONNX model: {where}: field {number} has the wire type {wire}")
    if length > end - at:
        raise OnnxFileError(f"no ONNX model: {where}: field {number} has {length} bytes, and {end - at} are left")
    return at, at + length


def _skip_group(view: memoryview, at: int, end: int, number: int, where: str, depth: int) -> int:
    """Return the end of a group (deprecated wire type)."""
    if depth > _DEEPEST:
        raise OnnxFileError(f"no ONNX model: {where}: groups inside more than {_DEEPEST} others")
    while True:
        tag, at = _parse_varint(view, at, end, where)
        if tag & 7 == 4:
            if tag >> 3 != number:
                raise OnnxFileError(f"no ONNX model: {where}: the end of another group")
            return at
        at = _field_extent(view, at, end, tag & 7, tag >> 3, where, depth)[1]


def _parse_value(
    field: Field, wire: int, view: memoryview, at: int, end: int, where: str, depth: int, before: Any
) -> Any:
    """Return a field's value, None if its wire type does not match; protobuf treats it as unknown. `where` is the
    place of the message.
    """
    type = field.type
    if type == "string":
        if wire != 2:
            return None
        try:
            return str(view[at:end], "utf-8")
        except UnicodeDecodeError:
            raise OnnxFileError(f"no ONNX model: {where}.{field.name}: the text is not UTF-8") from None
    where = f"{where}.{field.name}"
    if type not in SCALARS:
        if wire != 2:
            return None
        whole = before if before is not None and not field.repeats else Message(type)
        return _parse_message(whole, view, at, end, where, depth + 1)
    if type == "bytes":
        return view[at:end] if wire == 2 else None
    if wire == 2:
        return _parse_packed(type, view[at:end], where) if field.repeats else None
    if type in _FIXED:
        form, expected, _ = _FIXED[type]
        return struct.unpack(form, view[at:end])[0] if wire == expected else None
    if wire:
        return None
    return view[at] if end == at + 1 else _to_signed(type, _parse_varint(view, at, end, where)[0])


def _to_signed(type: str, value: int) -> int:
    if type == "int32":
        value &= 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value
    return value - (1 << 64) if type == "int64" and value >> 63 else value


def _parse_packed(type: str, part: memoryview, where: str) -> np.ndarray:
    """Return packed numbers."""
    if type in _FIXED:
        form, _, width = _FIXED[type]
        if len(part) % width:
            raise OnnxFileError(f"no ONNX model: {where}: {len(part)} bytes are no numbers of {width}")
        return np.frombuffer(part, form)
    data = np.frombuffer(part, np.uint8)
    ends = np.flatnonzero(data < 128)
    if data.size and (not ends.size or ends[-1] != data.size - 1):
        raise OnnxFileError(f"no ONNX model: {where}: it ends inside a number")
    starts = np.concatenate([[0], ends[:-1] + 1]) if ends.size else ends
    lengths = ends - starts + 1
    if ends.size and lengths.max() > 10:
        raise OnnxFileError(f"no ONNX model: {where}: a number of more than ten bytes")
    out = np.zeros(ends.size, np.uint64)
    for step in range(int(lengths.max()) if ends.size else 0):
        here = np.flatnonzero(lengths > step)
        out[here] |= (data[starts[here] + step] & 127).astype(np.uint64) << np.uint64(7 * step)
    return out.astype(np.int32) if type == "int32" else out.view(np.int64) if type == "int64" else out


def encode_message(message: Message) -> list[Any]:
    """Return a serialized message in parts, without copies of large ones."""
    return list(_encode_pieces(message))


def _encode_pieces(message: Message) -> Iterator[Any]:
    for field in MESSAGES[message._kind]:
        if not message.has(field.name):
            continue
        value = getattr(message, field.name)
        if field.packed:
            yield from _encode_packed(field, value)
        else:
            for item in value if field.repeats else (value,):
                yield from _encode_field(field, item)


def _encode_varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _encode_field(field: Field, value: Any) -> Iterator[Any]:
    if field.type in _FIXED:
        form, wire, _ = _FIXED[field.type]
        yield _encode_varint(field.number << 3 | wire) + struct.pack(form, value)
    elif field.type in SCALARS and field.type not in ("string", "bytes"):
        yield _encode_varint(field.number << 3) + _encode_varint(int(value))
    else:
        text = (
            [value.encode()] if field.type == "string" else [value] if field.type == "bytes" else encode_message(value)
        )
        yield _encode_varint(field.number << 3 | 2) + _encode_varint(sum(memoryview(piece).nbytes for piece in text))
        yield from text


def _encode_packed(field: Field, values: Any) -> Iterator[Any]:
    if field.type in _FIXED:
        part = np.ascontiguousarray(values, _FIXED[field.type][0]).tobytes()
    else:
        part = b"".join(_encode_varint(int(value)) for value in values)
    if part:
        yield _encode_varint(field.number << 3 | 2) + _encode_varint(len(part)) + part
