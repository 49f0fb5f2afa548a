"""The docstrings of public functions: the record's text, with the arguments that many ops share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

# What a parameter of this name is, in every op whose own `Args` section does not say.
COMMON_ARGUMENTS = {
    "input": "The input tensor.",
    "other": "The second operand: a tensor that broadcasts with `input`, or a number.",
    "dim": "The dimension; negative values count from the last.",
    "keepdim": "Whether the result keeps the reduced dimensions with size 1.",
    "dtype": "The dtype of the result. Default: as the operands', or the default dtype where there are none.",
    "layout": "The layout of the result. Default: `torch.strided`.",
    "device": "The device of the result. Default: the input's, or the default device where there is none.",
    "requires_grad": "Whether autograd records operations on the result.",
    "pin_memory": "Whether a result on the CPU is in page-locked memory.",
    "memory_format": "The memory format of the result. Default: `torch.preserve_format`, the input's.",
    "generator": "The source of the random numbers. Default: the device's default generator.",
    "out": "The tensor that receives the result; it is returned. An op with several results takes a tuple of tensors.",
    "reduction": '`"none"` (a loss an element), `"mean"` or `"sum"` of these.',
    "size_average": "Deprecated: use `reduction`.",
    "reduce": "Deprecated: use `reduction`.",
    "inplace": "Whether the result is written into `input`.",
}
_HEADER = re.compile(r"^([A-Z][a-z]+(?: [a-z]+)?):$", re.MULTILINE)
_ITEM = re.compile(r"^    (?=\*{0,2}\w+(?:, \*{0,2}\w+)*: )", re.MULTILINE)


def sections(docstring: str) -> dict[str, str]:
    """The text of each section of a Google-style docstring, by its title; "" has what precedes the first."""
    parts = _HEADER.split(docstring)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def documented_arguments(text: str) -> dict[tuple[str, ...], str]:
    """The items of an `Args` section, by the names that each one is about."""
    items: dict[tuple[str, ...], str] = {}
    for item in _ITEM.split(text)[1:]:
        names, _, meaning = item.partition(": ")
        items[tuple(name.strip("* ") for name in names.split(","))] = meaning.rstrip()
    return items


def with_common_arguments(docstring: str, parameters: Iterable[str]) -> str:
    """The docstring with an `Args` section that has the common arguments too, in the order of the parameters."""
    found = sections(inspect.cleandoc(docstring))
    own = documented_arguments(found.pop("Args", ""))
    of_name = {name: names for names in own for name in names}
    lines, written = [], set()
    for name in parameters:
        names = of_name.get(name, (name,))
        meaning = own.get(names) or COMMON_ARGUMENTS.get(name)
        if meaning and names not in written:
            written.add(names)
            lines.append(f"    {', '.join(names)}: {meaning}")
    parts = [found.pop("").strip()]
    if lines:
        parts.append("\n".join(["Args:", *lines]))
    parts += [f"{title}:\n{text.strip(chr(10)).rstrip()}" for title, text in found.items()]
    return "\n\n".join(parts)
