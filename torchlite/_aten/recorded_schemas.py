"""The recorded schemas of PyTorch's library, each read when it is first asked for.

`schemas.txt` has a line for each name: the name and its overloads, between tabs. An overload is its name (none for
"default"), a colon, letters, and its schema from the parenthesis on, or `=` and the overload whose result it writes to
`out`. The letters: `a` to `t` are the tags of `torch.Tag`
by their numbers, `I` is an op that is written in others (CompositeImplicitAutograd: neither modes nor autograd see it),
`J` one that TorchScript alone knows. `tools/record_schemas.py` writes the file.
"""

from __future__ import annotations

import functools
import pathlib
from typing import NamedTuple


class SchemaEntry(NamedTuple):
    """What the table says of an overload."""

    flags: str
    text: str  # the schema, without the name

    @property
    def is_implicit(self) -> bool:
        """Whether the op is written in others."""
        return "I" in self.flags

    @property
    def is_script(self) -> bool:
        """Whether TorchScript alone knows it."""
        return "J" in self.flags


@functools.cache
def _schema_text() -> str:
    return "\n" + pathlib.Path(__file__).with_name("schemas.txt").read_text()


@functools.cache
def schema_entries(name: str) -> dict[str, SchemaEntry]:
    """The overloads of a name of the library, in PyTorch's order; empty where there is none."""
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
    """The schema of an op that writes to `out` what another one returns."""
    arguments = text[: text.rindex(") ->")]
    star = "" if "*, " in arguments else "*, "
    return arguments + ", " * (arguments != "(") + f"{star}Tensor(a!) out) -> Tensor(a!)"


def all_names() -> list[str]:
    """All names of the table."""
    return [line.partition("\t")[0] for line in _schema_text().splitlines() if line]
