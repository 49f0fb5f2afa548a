"""Kernel data types by short names (kinds): storage and compute types, and corresponding kinds."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """Storage and compute type of a kind, as OpenCL type names."""

    numpy: str
    stored: str
    computed: str
    load: str = ""  # a macro's name; plain access when empty
    store: str = ""
    pack: str = ""  # the struct code of a scalar argument in the computed type


KINDS = {
    "b8": Kind("bool", "uchar", "uchar", pack="B"),
    "u8": Kind("uint8", "uchar", "uchar", pack="B"),
    "i8": Kind("int8", "char", "char", pack="b"),
    "i16": Kind("int16", "short", "short", pack="h"),
    "i32": Kind("int32", "int", "int", pack="i"),
    "i64": Kind("int64", "long", "long", pack="q"),
    "u16": Kind("uint16", "ushort", "ushort", pack="H"),
    "u32": Kind("uint32", "uint", "uint", pack="I"),
    "u64": Kind("uint64", "ulong", "ulong", pack="Q"),
    "f16": Kind("float16", "half", "float", "LD_HALF", "ST_HALF", pack="f"),
    "bf16": Kind("bfloat16", "ushort", "float", "LD_BF16", "ST_BF16", pack="f"),
    "f32": Kind("float32", "float", "float", pack="f"),
    "f64": Kind("float64", "double", "double", pack="d"),
    "c32": Kind("complex32", "uint", "float2", "LD_C32", "ST_C32", pack="ff"),
    "c64": Kind("complex64", "float2", "float2", pack="ff"),
    "c128": Kind("complex128", "double2", "double2", pack="dd"),
}

# Of each kind: f floating, i integer, b bool, c complex.
CATEGORY = {kind: "b" if kind == "b8" else "c" if kind[0] == "c" else "f" if "f" in kind else "i" for kind in KINDS}
# Kind of a complex kind's parts, and the reverse.
REAL_KIND = {"c32": "f16", "c64": "f32", "c128": "f64"}
COMPLEX_KIND = {"f32": "c64", "f64": "c128", "f16": "c32", "bf16": "c64"}
