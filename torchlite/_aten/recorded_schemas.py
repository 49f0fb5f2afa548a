"""Schemas of PyTorch's library, recorded in `schemas.txt` and parsed on demand.

A line has a name and its overloads, separated by tabs. An overload is its name (empty for "default"), a colon, flag
letters, and its schema from the parenthesis on, or `=` and the overload of which it is the out variant. Letters `a` to
`t` are `torch.Tag`s by number, `I` is CompositeImplicitAutograd (neither modes nor autograd see the op), `J` an op of
TorchScript only. `tools/record_schemas.py` writes the file.
"""

from __future__ import annotations

import functools
import pathlib
from typing import NamedTuple


class SchemaEntry(NamedTuple):
    """Entry of an overload in the table."""

    flags: str
    text: str  # the schema without the name

    @property
    def is_implicit(self) -> bool:
        """True if the op is CompositeImplicitAutograd."""
        return "I" in self.flags

    @property
    def is_script(self) -> bool:
        """True if the op exists in TorchScript only."""
        return "J" in self.flags


@functools.cache
def _schema_text() -> str:
    return "\n" + pathlib.Path(__file__).with_name("schemas.txt").read_text()


@functools.cache
def schema_entries(name: str) -> dict[str, SchemaEntry]:
    """Return the overloads of a name in PyTorch's order, an empty sequence if there is none."""
    text = _schema_text()
    start = text.find(f"\n{name}\t")
    if start < 0:
        return {}
    found = {}
    for part in text[start + 2 + len(name) : text.index("\n", start + 1)].split("\t"):
        head, parenthesis, rest = part.partition("(")
        overload, _, flags = head.partition(":")
        flags, _, base = flags.partition("=")
        found[overload or "default"] = SchemaEntry(flags, parenthesis + rest or f"={base}")
    for overload, entry in found.items():
        if entry.text[0] == "=":
            found[overload] = SchemaEntry(entry.flags, out_variant_schema(found[entry.text[1:]].text))
    return found


def out_variant_schema(text: str) -> str:
    """Return the schema of an op's out variant."""
    arguments = text[: text.rindex(") ->")]
    star = "" if "*, " in arguments else "*, "
    return arguments + ", " * (arguments != "(") + f"{star}Tensor(a!) out) -> Tensor(a!)"


def all_names() -> list[str]:
    """Return all names in the table."""
    return [line.partition("\t")[0] for line in _schema_text().splitlines() if line]
