"""Bombs in checkpoints, in their metadata, in files of safetensors, and in the values of programs."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable

import numpy as np

from .bombs import Bomb
from .corpus import doubled, named, number, rebuilt, text, tuple_of
from .program_bombs import _archive, lines, script

BOMBS: dict[str, Bomb] = {}


def _checkpoint(name: str, code: bytes, deflated: bool = False) -> None:
    def make() -> bytes:
        records = {"data.pkl": b"\x80\x04" + code + b".", "byteorder": b"little", "version": b"3\n"}
        return _archive(records, ("data.pkl",) if deflated else ())  # type: ignore[arg-type]

    BOMBS[f"checkpoint: {name}"] = lambda: (make(), "torch.load(path)")


BOMBS["checkpoint: legacy lists"] = lambda: (b"]" * 2_000_000, "torch.load(path)")
BOMBS["checkpoint: legacy sets"] = lambda: (
    b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}." + b"\x80\x04" + b"\x8f" * 1_000_000 + b".",
    "torch.load(path)",
)
BOMBS["checkpoint: names of many"] = lambda: (
    _archive({"data.pkl": b"\x80\x02" + b"cos\nsystem\n" * 200_000 + b".", "version": b"3\n"}),
    "torch.serialization.get_unsafe_globals_in_checkpoint(path)",
)
BOMBS["checkpoint: a tar"] = lambda: (
    b"x" + bytes(156) + b"0" + bytes(99) + b"ustar" + bytes(1 << 18),
    "torch.load(path)",
)
_checkpoint("sets", b"(" + b"\x8f" * 1_000_000 + b"t")
_checkpoint("dicts", b"(" + b"}" * 1_000_000 + b"t")
_checkpoint("lists", b"(" + b"]" * 1_000_000 + b"t")
_checkpoint("marks", b"(" * 2_000_000)
_checkpoint("memo", b"N" + b"\x94" * 2_000_000)
_checkpoint("a deep tuple", b"N" + b"\x85" * 500_000)
_checkpoint("a long number", b"\x8b" + (1 << 20).to_bytes(4, "little") + b"\x7f" * (1 << 20))
_checkpoint("a declared length", b"\x8e" + (1 << 60).to_bytes(8, "little"))
_checkpoint("a memo's place", b"Nr\xff\xff\xff\xff")
_checkpoint("deflated", b"]" * 50_000_000, deflated=True)


# -- keys that meet each other in a table ------------------------------------------------------------


def _meeting(bits: int, dense: int, count: int) -> bytes:
    """A dict of `dense` integers that fill places in the order in which a search visits a table of 2**bits, and `count`
    floats whose searches begin before many of these. (A whole number below 2**53 is its own hash.)
    """
    mask = (1 << bits) - 1
    cycle = list(itertools.islice(itertools.accumulate(itertools.repeat(0), lambda i, _: (5 * i + 1) & mask), dense))
    turn = np.full(1 << bits, dense)
    turn[cycle] = np.arange(dense)
    source, found = np.random.default_rng(0), np.empty(0, np.int64)
    while len(found) < count:
        keys = source.integers(0, 1 << 53, 1_000_000)
        place, rest, filled = keys & mask, keys.copy(), turn[keys & mask] < dense
        for _ in range(11):  # five bits of a hash lead to each next place, until none are left
            rest >>= 5
            place = (5 * place + rest + 1) & mask
            filled &= turn[place] < dense
        found = np.append(found, keys[filled & (turn[place] < dense // 2)])
    numbers = b"".join(b"J" + struct.pack("<i", key) + b"N" for key in cycle)
    return b"}(" + numbers + b"".join(b"G" + struct.pack(">d", float(key)) + b"N" for key in found[:count]) + b"u"


def _dimensions(count: int) -> bytes:
    """Sizes of many dimensions: one number again and again."""
    return b"(" + number(1 << 61) + b"q\0" + b"h\0" * count + b"t"


_checkpoint("integers of one hash", b"}(" + b"".join(
    b"\x8a\x0a" + (k * (2**61 - 1)).to_bytes(10, "little") + b"N" for k in range(1, 50_000)
) + b"u")  # fmt: skip
_checkpoint("members of one hash", b"\x8f(" + b"".join(
    b"\x8a\x0a" + (k * (2**61 - 1)).to_bytes(10, "little") for k in range(1, 50_000)
) + b"\x90")  # fmt: skip
_checkpoint("sizes of 200,000 dimensions", rebuilt(_dimensions(200_000), b"h\0"))
_checkpoint(
    "sizes of 200,000 dimensions without elements",
    named("torch._utils", "_rebuild_meta_tensor_no_storage")
    + tuple_of(named("torch", "float32"), _dimensions(200_000) + b"q\1", b"h\1", b"\x89")
    + b"R",
)
BOMBS["checkpoint: floats that meet integers"] = lambda: (
    _archive({"data.pkl": b"\x80\x04" + _meeting(17, 70_000, 15_000) + b".", "version": b"3\n"}),
    "torch.load(path)",
)


def _frozen(levels: int) -> bytes:
    """A frozenset of two tuples around the one before it: two of them are compared by visiting all 2**levels."""
    made = b"(K\x07\x91"
    for level in range(levels):
        again = b"r" + struct.pack("<I", 1000 + level) + b"0"
        inner = b"j" + struct.pack("<I", 1000 + level)
        made += again + b"(" + inner + b"K\x01\x86" + inner + b"K\x02\x86\x91"
    return made


def _meeting_members() -> bytes:
    """Two frozensets of integers of one hash, in two orders: one is a key, and the other is put again and again."""
    members = [b"\x8a\x0a" + (k * (2**61 - 1) + 5).to_bytes(10, "little") for k in range(1, 1_900)]
    other = b"(" + b"".join(members[::-1]) + b"\x91" + b"r" + struct.pack("<I", 5)
    return other + b"0" + b"}((" + b"".join(members) + b"\x91N" + (b"j" + struct.pack("<I", 5) + b"N") * 2000 + b"u"


_checkpoint("frozensets of members that meet", _meeting_members())
_checkpoint("equal frozensets", b"}(" + (_frozen(60) + b"N") * 2 + b"u")
_checkpoint(
    "tables of one dict",
    b"]("
    + b"}("
    + b"".join(number(i) + b"N" for i in range(3000))
    + b"uq\0"
    + (named("collections", "OrderedDict") + b"h\0\x85R") * 3000
    + b"e",
)

# -- metadata of a folder, and safetensors -----------------------------------------------------------

_READ = "torch.distributed.checkpoint._metadata_file.read(open(path, 'rb').read(), {})"
_DESCRIBED = "torch.distributed.checkpoint.metadata"


def _metadata(name: str, code: bytes) -> None:
    BOMBS[f"metadata: {name}"] = lambda: (b"\x80\x04" + code + b".", _READ)


def _state(*pairs: tuple[str, bytes]) -> bytes:
    return b"}(" + b"".join(text(name) + value for name, value in pairs) + b"ub"


_INDEX = named(_DESCRIBED, "MetadataIndex") + b")\x81"
_metadata("a name that is a doubled tuple", b"}" + _INDEX + _state(("fqn", doubled(60)), ("offset", b"N")) + b"Ns")
_metadata("a deep name", b"}" + _INDEX + _state(("fqn", b")" + b"\x85" * 200_000), ("offset", b"N")) + b"Ns")
_metadata("a format that is a doubled tuple", named(_DESCRIBED, "_MEM_FORMAT_ENCODING") + doubled(60) + b"\x85R")
_metadata(
    "properties of a doubled tuple",
    named(_DESCRIBED, "TensorProperties") + b")\x81" + tuple_of(b"N", b"N", b"N", doubled(60), b"N") + b"b",
)
_metadata(
    "a function as __setstate__",
    named(_DESCRIBED, "Metadata")
    + b")\x81"
    + _state(("__setstate__", named("builtins", "set")))
    + doubled(60)
    + b"\x85b",
)


_PROPERTIES = named(_DESCRIBED, "TensorProperties") + b")\x81" + tuple_of(
    named("torch", "float32"), named("torch.serialization", "_get_layout") + text("torch.strided") + b"\x85R", b"\x89",
    named(_DESCRIBED, "_MEM_FORMAT_ENCODING") + b"K\x00\x85R", b"\x89",
) + b"b"  # fmt: skip
_SIZE = named("torch", "Size") + b"K\x01\x85\x85R"
_metadata(
    "parts under many names",
    named(_DESCRIBED, "Metadata") + b")\x81" + _state(
        ("planner_data", b"N"), ("storage_data", b"N"),
        ("state_dict_metadata", named(_DESCRIBED, "TensorStorageMetadata") + b")\x81" + _state(
            ("size", _SIZE + b"q\1"), ("properties", _PROPERTIES),
            ("chunks", b"](" + named(_DESCRIBED, "ChunkStorageMetadata") + b")\x81"
             + _state(("offsets", b"h\1"), ("sizes", b"h\1")) + b"q\2" + b"h\2" * 4000 + b"e"),
        ) + b"q\0" + b"0}(" + b"".join(text(str(i)) + b"h\0" for i in range(4000)) + b"u"),
    ),
)  # fmt: skip


def _safetensors(name: str, make: Callable[[], list[str]]) -> None:
    def bomb() -> tuple[bytes, str]:
        header = f'{{"a": {{"dtype": "F32", "shape": [{",".join(make())}], "data_offsets": [0, 0]}}}}'.encode()
        run = "torch.distributed.checkpoint._safetensors.read_header(open(path, 'rb'), 'a')"
        return struct.pack("<Q", len(header)) + header, run

    BOMBS[f"safetensors: {name}"] = bomb


_safetensors("a shape of 50,000 numbers", lambda: ["9" * 18] * 50_000 + ["0"])
_safetensors("a shape of long numbers", lambda: ["9" * 4200] * 1_000 + ["0"])

# -- keys of a program's own classes -----------------------------------------------------------------


def _keyed(key: bytes) -> bytes:
    """A program with a dict among its attributes: its one key is a named tuple around another value."""
    pair = named("__torch__", "NT") + tuple_of(key) + b"\x81"
    state = b"}(" + text("training") + b"\x89" + text("d") + b"}" + pair + b"Nsub"
    return script(
        lines("return x"), extra="class NT(NamedTuple):\n  f : Any\n", fields="  d : Any\n",
        data=b"\x80\x02" + named("__torch__", "M") + b")\x81" + state + b".",
    )  # fmt: skip


BOMBS["script: a key around a doubled tuple"] = lambda: (_keyed(doubled(60)), "torch.jit.load(path)")
BOMBS["script: a key around a deep tuple"] = lambda: (_keyed(b")" + b"\x85" * 200_000), "torch.jit.load(path)")
