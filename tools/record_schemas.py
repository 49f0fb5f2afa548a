"""Record the schemas of PyTorch's library: torchlite/_aten/schemas.txt.

usage: python tools/record_schemas.py

It needs the extra `oracle`. A line is a name of the library and its overloads, in PyTorch's order, between tabs: the
overload's name (none for "default"), a colon, a letter for each of its tags and of its kinds
(torchlite/_aten/recorded_schemas.py
says which), and the schema from its parenthesis on. Recorded is each name that torchlite can call.
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PATH = ROOT / "torchlite" / "_aten" / "schemas.txt"
# What no value of a program here can be: types of TorchScript's own.
STRANGE = re.compile(r"\bt\b|\bt1\b|\btVal\b|RRef|Future|__torch__|Any|Dict|Storage|Stream|AnyEnum|QScheme|\.\.\.")


def flags(torch, schema) -> str:
    """The letters of an overload."""
    full = schema.name + f".{schema.overload_name}" * bool(schema.overload_name)
    packet = getattr(torch.ops.aten, schema.name.partition("::")[2])
    tags = getattr(packet, schema.overload_name or "default").tags
    letters = "".join(sorted(chr(ord("a") + int(tag)) for tag in tags))
    try:
        implicit = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd")
    except RuntimeError:  # known to TorchScript alone
        return letters + "J"
    return letters + "I" * implicit


def written_of(overloads: dict[str, tuple[str, str]]) -> list[str]:
    """The entries of a line, those that write to `out` what another overload returns without their schema."""
    from torchlite._aten.recorded_schemas import out_variant_schema

    known = {
        out_variant_schema(text): name for name, (_, text) in reversed(overloads.items()) if text.endswith("-> Tensor")
    }
    found = []
    for name, (letters, text) in overloads.items():
        base = known.get(text)
        found.append(f"{name}:{letters}" + (text if base is None else f"={base or 'default'}"))
    return found


def main() -> None:
    import torch

    from torchlite._aten.overload_impl import is_computable

    lines: dict[str, dict[str, tuple[str, str]]] = {}
    for schema in torch._C._jit_get_all_schemas():
        library, _, name = schema.name.partition("::")
        text = str(schema)
        if library != "aten" or not is_computable(name) or STRANGE.search(text[text.index("(") :]):
            continue
        lines.setdefault(name, {})[schema.overload_name] = flags(torch, schema), text[text.index("(") :]
    written = ["\t".join([name, *written_of(overloads)]) for name, overloads in sorted(lines.items())]
    PATH.write_text("\n".join(written) + "\n")
    print(f"{len(lines)} names, {sum(map(len, lines.values()))} overloads, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
