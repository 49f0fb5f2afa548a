"""Damaged checkpoints and random pickles, each a function of a random generator."""

from __future__ import annotations

import functools
import pickletools
import random
import struct
from collections.abc import Callable

from . import corpus
from .corpus import named, number, text

_EDGES = (0, 1, 2, 4, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**64 - 1)


@functools.cache
def _files() -> list[bytes]:
    return list(corpus.files().values())


@functools.cache
def _archives() -> list[dict[str, bytes]]:
    return [corpus.records(data) for name, data in corpus.files().items() if "old" not in name]


@functools.cache
def _harm() -> list[bytes]:
    found = [corpus.around(code) for code in corpus.harm().values()]
    return [*found, *corpus.old_harm().values(), corpus.overlapping()]


def harm(dice: random.Random, index: int) -> bytes:
    """Yield every handwritten file."""
    return _harm()[index % len(_harm())]


def changed_bytes(dice: random.Random, index: int) -> bytes:
    """Bytes of a file changed, cut out, put in, written twice."""
    return changed(dice, dice.choice(_files()), dice.randrange(1, 6))


def _fixed_width(dice: random.Random) -> bytes:
    form = dice.choice(("<I", "<Q", "<H", ">I"))
    return struct.pack(form, dice.choice(_EDGES) % (1 << 8 * struct.calcsize(form)))


def changed(
    dice: random.Random, data: bytes, times: int, packed: Callable[[random.Random], bytes] = _fixed_width
) -> bytes:
    """Bytes changed, cut out, put in, written twice; `packed` is a number at an edge, as the format writes numbers."""
    out = bytearray(data)
    for _ in range(times):
        at = dice.randrange(len(out) + 1)
        length = dice.choice((1, 1, 2, 4, 8, 64))
        match dice.randrange(7):
            case 0 if out:
                out[min(at, len(out) - 1)] ^= 1 << dice.randrange(8)
            case 1:
                out[at : at + length] = dice.randbytes(length)
            case 2:
                del out[at : at + length]
            case 3:
                out[at:at] = dice.randbytes(length)
            case 4:
                out[at:at] = out[at : at + length]
            case 5:
                piece = packed(dice)
                out[at : at + len(piece)] = piece
            case _:
                if dice.random() < 0.2:
                    del out[at:]
    return bytes(out)


def changed_record(dice: random.Random, index: int) -> bytes:
    """A record changed, left out, or of another length, in an archive that is otherwise right."""
    parts = dict(dice.choice(_archives()))
    name = dice.choice(list(parts))
    match dice.randrange(5):
        case 0:
            parts[name] = changed(dice, parts[name], 2)
        case 1:
            del parts[name]
        case 2:
            parts[name] = parts[name][: dice.randrange(len(parts[name]) + 1)]
        case 3:
            other = dice.choice(list(parts))
            parts[name], parts[other] = parts[other], parts[name]
        case _:
            parts["data.pkl"] = changed(dice, parts["data.pkl"], 3)
    return corpus.archive(parts)


def changed_directory(dice: random.Random, index: int) -> bytes:
    """Numbers of an archive's headers changed: sizes, places, checksums, lengths of names, ways of compression."""
    data = bytearray(dice.choice([f for f in _files() if f[:2] == b"PK"]))
    for _ in range(dice.randrange(1, 4)):
        mark = dice.choice((b"PK\1\2", b"PK\1\2", b"PK\3\4", b"PK\5\6"))
        places = [at for at in range(len(data)) if data.startswith(mark, at)]
        at = dice.choice(places) + dice.randrange(4, 46 if mark == b"PK\1\2" else 30 if mark == b"PK\3\4" else 22)
        form = dice.choice(("<H", "<I", "<B"))
        width = struct.calcsize(form)
        old = int.from_bytes(data[at : at + width], "little")
        value = dice.choice((*_EDGES, old + 1, old - 1, old * 2, old // 2, len(data))) % (1 << 8 * width)
        data[at : at + width] = value.to_bytes(width, "little")
    return bytes(data)


def changed_opcodes(dice: random.Random, index: int) -> bytes:
    """Opcodes of a pickle left out, written twice, exchanged, with other numbers and names."""
    parts = dict(dice.choice(_archives()))
    code = parts["data.pkl"]
    places = [at for _, _, at in pickletools.genops(code)]
    steps = [code[a:b] for a, b in zip(places, [*places[1:], len(code)], strict=True)]
    for _ in range(dice.randrange(1, 5)):
        at, other = dice.randrange(len(steps)), dice.randrange(len(steps))
        match dice.randrange(6):
            case 0:
                del steps[at]
            case 1:
                steps.insert(other, steps[at])
            case 2:
                steps[at], steps[other] = steps[other], steps[at]
            case 3:
                steps[at] = number(dice.choice((-1, 1)) * dice.choice(_EDGES))
            case 4:
                steps[at] = _piece(dice)
            case _:
                steps.insert(at, _piece(dice))
    parts["data.pkl"] = b"".join(steps)
    return corpus.archive(parts)


_NAMES = (
    *(("torch._utils", f"_rebuild_{name}") for name in ("tensor", "tensor_v2", "tensor_v3", "parameter",
      "parameter_with_state", "meta_tensor_no_storage")),
    ("torch._tensor", "_rebuild_from_type_v2"), ("torch.serialization", "_get_layout"), ("torch", "Size"),
    ("torch", "Tensor"),
    ("torch", "device"), ("torch", "FloatStorage"), ("torch", "float32"), ("torch", "uint16"), ("torch", "HalfStorage"),
    ("torch.storage", "UntypedStorage"), ("torch.nn.parameter", "Parameter"), ("collections", "OrderedDict"),
    ("collections", "Counter"), ("builtins", "set"), ("builtins", "complex"), ("builtins", "bytearray"),
    ("_codecs", "encode"), ("os", "system"), ("builtins", "exec"), ("torch", "load"), ("numpy", "load"),
)  # fmt: skip
_TEXTS = ("storage", "module", "0", "1", "cpu", "meta", "neg", "conj", "latin1", "torch.strided", "os", "system", "")
_PLAIN = [bytes([c]) for c in b"()0122]}N\x88\x89.eua\x85\x86\x87stRb\x81Q\x8f\x90\x91\x93\x94dlo"]


def _piece(dice: random.Random) -> bytes:
    """Return one opcode, or a short sequence of opcodes."""
    match dice.randrange(12):
        case 0 | 1:
            return named(*dice.choice(_NAMES))
        case 2:
            return text(dice.choice(_TEXTS))
        case 3:
            return number(dice.choice((*_EDGES, -1, -(2**31))))
        case 4:
            return dice.choice((b"q", b"h", b"h")) + bytes([dice.randrange(4)])
        case 5:
            return corpus.tuple_of(*[number(dice.choice((0, 1, 2, 3, 2**40))) for _ in range(dice.randrange(4))])
        case 6:
            return corpus.storage(dice.choice("012"), dice.choice((4, 4, 4, 5, 2**40)))
        case 7:
            return corpus.rebuilt(_sizes(dice), _sizes(dice), dice.choice((0, 0, 1, 9)), dice.choice((b"", b"}")))
        case 8:
            return b"U" + bytes([3]) + dice.randbytes(3)
        case 9:
            return b"G" + dice.randbytes(8)
        case _:
            return dice.choice(_PLAIN)


def _sizes(dice: random.Random) -> bytes:
    return corpus.tuple_of(*[number(dice.choice((0, 1, 1, 2, 3, 4, -1, 2**50))) for _ in range(dice.randrange(3))])


def random_pickle(dice: random.Random, index: int) -> bytes:
    """Opcodes one after the other, which often have what they take from the stack."""
    return corpus.around(b"\x80\x02" + b"".join(_piece(dice) for _ in range(dice.randrange(2, 40))) + b".")


def call(dice: random.Random, index: int) -> bytes:
    """Something that a pickle may call, called with what it does not expect."""
    arguments = [_argument(dice, 3) for _ in range(dice.randrange(8))]
    code = named(*dice.choice(_NAMES)) + corpus.tuple_of(*arguments) + dice.choice((b"R", b"R", b"R", b"\x81"))
    state = _argument(dice, 3) + b"b" if dice.random() < 0.3 else b""
    return corpus.around(b"\x80\x02" + code + state + b".")


def _argument(dice: random.Random, depth: int) -> bytes:
    match dice.randrange(9 if depth else 6):
        case 0:
            return number(dice.choice((*_EDGES, -1)))
        case 1:
            return text(dice.choice(_TEXTS))
        case 2:
            return named(*dice.choice(_NAMES))
        case 3:
            return dice.choice((b"N", b"\x88", b"\x89", b"}", b"]", b")", b"\x8f", b"G\x7f\xf8" + bytes(6)))
        case 4:
            return corpus.storage(dice.choice("01"))
        case 5:
            return corpus.rebuilt(_sizes(dice), _sizes(dice))
        case 6 | 7:
            return corpus.tuple_of(*[_argument(dice, depth - 1) for _ in range(dice.randrange(5))])
        case _:
            pairs = b"".join(_argument(dice, 0) + _argument(dice, depth - 1) for _ in range(dice.randrange(3)))
            return b"}(" + pairs + b"u"


def changed_old(dice: random.Random, index: int) -> bytes:
    """Return a damaged checkpoint of the old format, or one with a random pickle."""
    if dice.random() < 0.6:
        return changed(dice, dice.choice([f for f in _files() if f[:2] != b"PK"]), dice.randrange(1, 4))
    code = b"".join(_piece(dice) for _ in range(dice.randrange(1, 20)))
    keys = dice.choice((b"]", b"]" + text("0") + b"a", _argument(dice, 2)))
    return corpus.old(code.replace(b"tQ", b"NtQ"), keys, struct.pack("<q", dice.choice(_EDGES) % 2**63) + bytes(16))


def names(dice: random.Random, index: int) -> bytes:
    """Names that come to STACK_GLOBAL in roundabout ways: beside decoys, from the memo, written again, by INST."""
    steps = []
    for _ in range(dice.randrange(1, 5)):
        module, name = dice.choice((*_NAMES, ("os", "system"), ("subprocess", "call")))
        decoy = text("collections") + text("OrderedDict")
        match dice.randrange(7):
            case 0:
                steps.append(text(module) + text(name) + decoy + b"00\x93")
            case 1:
                steps.append(decoy + b"00" + text(module) + b"q\x07" + text(name) + b"q\x08" + b"00h\x07h\x08\x93")
            case 2:
                steps.append(text("torch") + b"q\1" + text(module) + b"q\x01" + b"00" + b"h\1" + text(name) + b"\x93")
            case 3:
                steps.append(b"(" + f"i{module}\n{name}\n".encode())
            case 4:
                steps.append(text(module) + text(name) + b"(" + decoy + b"1\x93")
            case 5:
                steps.append(text(module) + b"\x94" + text(name) + b"\x94" + decoy + b"0000" + b"g0\ng1\n\x93")
            case _:
                steps.append(text(module) + b"20" + text(name) + b"p9\n0g9\n\x93")
    return corpus.around(b"\x80\x04" + b"0".join(steps) + b".")


WAYS = (
    harm, changed_bytes, changed_record, changed_directory, changed_opcodes, changed_opcodes, random_pickle, call, call,
    changed_old, names,
)  # fmt: skip


def file(seed: int, index: int) -> tuple[str, bytes]:
    """Return the file of a number: its description and its bytes."""
    way = WAYS[index % len(WAYS)]
    return way.__name__, way(random.Random(f"{seed} {index}"), index // len(WAYS))
