"""Checkpoints as `torch.save` writes them, the sources of damaged ones, and malicious pieces of pickles."""

from __future__ import annotations

import collections
import io
import struct
import zipfile

import torchlite as torch


def _saved(value, **options) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def _values() -> dict[str, object]:
    x = torch.arange(12.0).reshape(3, 4)
    marked = torch.ones(2)
    marked.note = ["kept", {"a": (1, 2)}]
    parameter = torch.nn.Parameter(torch.ones(2, 2))
    parameter.scale = 2.0
    dtypes = ("float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool", "complex64", "uint16")
    return {
        "views": {"x": x, "rows": x[1:], "columns": x.t(), "wide": x[0, :1].expand(5)},
        "kinds": [torch.ones(3).to(getattr(torch, name)) for name in dtypes],
        "state": torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict(),
        "attributes": {"marked": marked, "parameter": parameter, "buffer": torch.nn.Buffer(torch.ones(1))},
        "plain": {
            "list": [1, -1, 2**40, 2**70, 0.5, None, True, "text", b"bytes", bytearray(b"more"), 1 + 2j],
            "sets": [{1, 2}, collections.Counter("aab"), collections.OrderedDict(a=1, b=(2, 3))],
            (1, (2, "k")): torch.Size([2, 3]),
            "torch": [torch.device("cpu"), torch.float32, torch.strided],
        },
        "others": [torch.empty(2, 3, device="meta"), torch.empty(0, 3), torch.tensor(1.5), x.untyped_storage()],
        "optimizer": torch.optim.Adam([torch.nn.Parameter(torch.ones(3))], lr=0.1).state_dict(),
    }


def files() -> dict[str, bytes]:
    """Whole checkpoints by name: every value in today's format and in the old one."""
    found = {}
    for name, value in _values().items():
        found[name] = _saved(value)
        found[f"{name}, old"] = _saved(value, _use_new_zipfile_serialization=False)
    for protocol in (3, 4, 5):
        found[f"plain, protocol {protocol}"] = _saved(_values()["plain"], pickle_protocol=protocol)
    return found


def records(data: bytes) -> dict[str, bytes]:
    """The records of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()}


def archive(parts: dict[str, bytes]) -> bytes:
    """An archive of records, with right checksums."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in parts.items():
            file.writestr(f"archive/{name}", data)
    return out.getvalue()


def around(pickled: bytes, storages: int = 2) -> bytes:
    """An archive of a pickle and some storages of 16 bytes."""
    return archive({"data.pkl": pickled, "version": b"3\n", **{f"data/{i}": bytes(16) for i in range(storages)}})


# -- pieces of pickles -------------------------------------------------------------------


def text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return (b"\x8a" + bytes([len(data)]) if len(data) < 256 else b"\x8b" + struct.pack("<i", len(data))) + data


def named(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def tuple_of(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def storage(key: str = "0", numel: int = 4, kind: str = "FloatStorage", location: str = "cpu") -> bytes:
    return tuple_of(text("storage"), named("torch", kind), text(key), text(location), number(numel)) + b"Q"


def rebuilt(size: bytes, stride: bytes, offset: int = 0, metadata: bytes = b"", of: bytes | None = None) -> bytes:
    """Pickle of a tensor of four numbers with an unshared storage."""
    parts = (storage() if of is None else of, number(offset), size, stride, b"\x89", b"}", metadata)
    return named("torch._utils", "_rebuild_tensor_v2") + tuple_of(*parts) + b"R"


def nested(depth: int, around: bytes = b"\x85", core: bytes = b")") -> bytes:
    return core + around * depth


def doubled(times: int) -> bytes:
    """A tuple of two tuples that are the same, and so on: 2**times at the end, in two bytes each."""
    return b")" + b"2\x86" * times


def harm() -> dict[str, bytes]:
    """Pickles that ask for work, memory or depth that is not in them, or for what no checkpoint needs."""
    one, many = tuple_of(number(1)), tuple_of(*[number(2**31)] * 3)
    wide = rebuilt(tuple_of(number(2**38)), tuple_of(number(0)), metadata=b"}" + text("neg") + b"\x88s")
    same = [number(k * (2**61 - 1)) + b"N" for k in range(1, 30_000)]
    signs = b"(" + b"".join(tuple_of(*[number(-1 - (i >> j & 1)) for j in range(14)]) for i in range(1 << 14)) + b"\x90"
    deep = nested(100_000)
    meta = named("torch._utils", "_rebuild_meta_tensor_no_storage")
    from_type = named("torch._tensor", "_rebuild_from_type_v2")
    pickles = {
        "deep key": b"}" + deep + b"Ns",
        "deep member": b"\x8f(" + deep + b"\x90",
        "deep frozen": b"(" + deep + b"\x91",
        "deep counter": named("collections", "Counter") + b"}" + deep + b"Ns\x85R",
        "deep list": b"]" * 100_000 + b"a" * 99_999,
        "deep function": deep + b")R",
        "deep id": deep + b"Q",
        "deep id of a storage": tuple_of(text("storage"), deep, deep, deep, deep) + b"Q",
        "deep size": rebuilt(deep, deep),
        "deep class": deep + b")\x81",
        "deep state": b"}" + deep + b"b",
        "deep layout": named("torch.serialization", "_get_layout") + deep + b"\x85R",
        "deep device": named("torch", "device") + deep + b"\x85R",
        "deep torch.Size": named("torch", "Size") + deep + b"\x85R",
        "deep module": deep + deep + b"\x93",
        "doubled key": b"}" + doubled(60) + b"Ns",
        "doubled member": b"\x8f(" + doubled(60) + b"\x90",
        "doubled function": doubled(60) + b")R",
        "doubled id": tuple_of(text("storage"), doubled(60), text("0"), text("cpu"), number(4)) + b"Q",
        "doubled size": rebuilt(doubled(60), one),
        "doubled argument": named("torch", "device") + doubled(60) + b"\x85R",
        "doubled keys": b"(" + b"".join(doubled(14) + number(i) + b"\x86N" for i in range(500)) + b"d",
        "many doubled keys": b"}(" + b"".join(doubled(14) + number(i) + b"\x86N" for i in range(500)) + b"u",
        "keys of one hash": b"}(" + b"".join(same) + b"u",
        "members of one hash": b"\x8f" + signs,
        "long number as a key": number(2**500_000) + b"q\0" + b"}(" + b"h\0N" * 30_000 + b"u",
        "sets of a list": b"](" + b"K\x01" * 10_000 + b"eq\0" + (named("builtins", "set") + b"h\0\x85R") * 3000,
        "copies of text": text("a" * 100_000)
        + b"q\0"
        + (named("builtins", "bytearray") + b"h\0" + text("latin1") + b"\x86R") * 3000,
        "neg of one number seen often": wide,
        "conj": wide.replace(b"\x03\0\0\0neg", b"\x04\0\0\0conj"),
        "tensors in five bytes each": rebuilt(one, one)[:-1] + b"q\1" + b"0q\0](" + b"h\0h\1R" * 30_000 + b"e",
        "a long name": text("a" * 10_000) + text("b" * 10_000) + b"\x93",
        "Tensor(n)": from_type
        + tuple_of(
            from_type,
            named("torch", "Tensor"),
            tuple_of(named("torch", "Tensor"), named("torch", "Tensor"), tuple_of(number(2**33)), b"}"),
            b"}",
        )
        + b"R",
        "Parameter(n)": named("torch.nn.parameter", "Parameter") + number(2**33) + b"\x85\x81",
        "huge size": rebuilt(many, many),
        "sizes of zero strides": rebuilt(many, tuple_of(*[number(0)] * 3)),
        "long offset": rebuilt(one, one, 2**61),
        "negative offset": rebuilt(one, one, -1),
        "long number as an offset": rebuilt(one, one, 2**5000),
        "negative size": rebuilt(tuple_of(number(-1)), one),
        "negative stride": rebuilt(one, tuple_of(number(-4))),
        "hundred dimensions": rebuilt(tuple_of(*[number(1)] * 100), tuple_of(*[number(1)] * 100)),
        "numel of a storage": rebuilt(one, one, of=storage(numel=2**62)),
        "numel below zero": rebuilt(one, one, of=storage(numel=-1)),
        "long numel": rebuilt(one, one, of=storage(numel=2**70_000)),
        "no such storage": rebuilt(one, one, of=storage("9")),
        "storage elsewhere": rebuilt(one, one, of=storage("../../etc/passwd")),
        "device that is not": rebuilt(one, one, of=storage(location="nowhere")),
        "meta of text": meta + tuple_of(text("float32"), one, one, b"\x89") + b"R",
        "meta of strides": meta + tuple_of(named("torch", "float32"), one, many, b"\x89") + b"R",
        "meta of sizes": meta + tuple_of(named("torch", "float32"), many, many, b"\x89") + b"R",
        "meta of deep sizes": meta + tuple_of(named("torch", "float32"), deep, one, b"\x89") + b"R",
        "bytearray(n)": named("builtins", "bytearray") + number(2**40) + b"\x85R",
        "bytes(n)": named("builtins", "bytes") + number(2**40) + b"\x85R",
        "false length": b"B\xff\xff\xff\x7fabc",
        "false long length": b"\x8e" + b"\xff" * 7 + b"\x7fabc",
        "false text": b"\x8d" + b"\xff" * 7 + b"\x7fabc",
        "bytes that are no text": b"X\x02\0\0\0\xff\xfe",
        "system": named("os", "system") + text("true") + b"\x85R",
        "eval": named("builtins", "eval") + text("1") + b"\x85R",
        "INST": b"(" + text("true") + b"ios\nsystem\n",
        "by STACK_GLOBAL": text("os") + text("system") + b"\x93",
        "mark as a result": b"(",
        "nothing": b"",
        "no mark": b"t",
        "memo that is not there": b"h\x05",
        "mark remembered": b"(q\0h\0h\0t",
        "mark in a list": b"](a",
        "mark twice": b"(2t",
    }
    return {name: b"\x80\x02" + code + b"." for name, code in pickles.items()}


def old(object_: bytes, keys: bytes = b"]", after: bytes = b"") -> bytes:
    """A checkpoint of the old format around two of its pickles."""
    begin = _saved(None, _use_new_zipfile_serialization=False)
    head = begin[: begin.rindex(b"\x80\x02N.")]
    return head + b"\x80\x02" + object_ + b".\x80\x02" + keys + b"." + after


def old_harm() -> dict[str, bytes]:
    """Checkpoints of the old format that do the same."""

    def held(numel: int, key: bytes = text("0"), view: bytes = b"N") -> bytes:
        return tuple_of(text("storage"), named("torch", "FloatStorage"), key, text("cpu"), number(numel), view) + b"Q"

    four = struct.pack("<q", 4) + bytes(16)
    return {
        "numel": old(held(2**31)),
        "numel twice": old(held(2**62)),
        "many storages": old(b"(" + b"".join(held(2**20, text(str(i))) for i in range(99)) + b"l"),
        "keys are a number": old(held(4), b"K\x05", four),
        "a key is a list": old(held(4), b"]]a", four),
        "a key is deep": old(held(4), b"]" + nested(100_000) + b"a", four),
        "a key is not there": old(held(4), b"]" + text("7") + b"a", four),
        "numel of the bytes": old(held(4), b"]" + text("0") + b"a", struct.pack("<q", 2**61) + bytes(16)),
        "too few bytes": old(held(4), b"]" + text("0") + b"a", four[:-3]),
        "deep key of a storage": old(held(4, nested(100_000))),
        "a view": old(held(4, view=tuple_of(text("v"), number(3), number(2)))),
        "a module": old(tuple_of(text("module"), named("os", "system"), text("a"), text("b")) + b"Q"),
        "no keys": old(b"N", b""),
        "nothing": b"",
        "magic": b"\x80\x02K\x05.",
        "deep magic": b"\x80\x02" + nested(100_000) + b".",
        "doubled version": _saved(None, _use_new_zipfile_serialization=False).replace(
            b"M\xe9\x03.", doubled(60) + b".", 1
        ),
    }


def overlapping() -> bytes:
    """An archive whose directory has a thousand records on one place of 100 kB, each of which is a storage."""
    loads = b"(" + b"".join(storage(str(i), 25_000) for i in range(1000)) + b"l"
    data = archive({"version": b"3\n", "data.pkl": b"\x80\x02" + loads + b".", "data/0": bytes(100_000)})
    start = struct.unpack("<L", data[-6:-2])[0]
    entries, last = data[start:-22], data.rindex(b"PK\1\2")
    entry = data[last:-22]
    for i in range(1, 1000):
        name = f"archive/data/{i}".encode()
        entries += entry[:28] + struct.pack("<H", len(name)) + entry[30:46] + name
    count = len(entries) and 1002
    return data[:start] + entries + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(entries), start, 0)
