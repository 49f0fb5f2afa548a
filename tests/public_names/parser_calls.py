"""Calls that show how a parser written in C takes a function's arguments: by position, by keyword, by NumPy's names.

`calls(name, forms)` derives the same calls from the recorded forms under PyTorch (tools/record_parameters.py) and here
(test_parameters.py). A call is taken or refused (TypeError); what it computes does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchlite._dispatch.arg_parser import Argument, Signature

# Names that some parser takes, which each function gets once in addition to its required arguments.
OTHER_NAMES = {
    "input": "Tensor", "self": "Tensor", "other": "Tensor", "x": "Tensor", "a": "Tensor", "x1": "Tensor",
    "x2": "Tensor", "tensor": "Tensor", "out": "Tensor", "dim": "int", "axis": "int", "dims": "ints", "axes": "ints",
    "size": "ints", "shape": "ints", "keepdim": "bool", "keepdims": "bool", "dtype": "dtype", "device": "device",
    "requires_grad": "bool", "alpha": "Number", "correction": "Number", "unbiased": "bool", "copy": "bool",
    "inplace": "bool", "generator": "generator", "unheard": "int",
}  # fmt: skip
NUMPY = {"dim": "axis", "keepdim": "keepdims", "input": "x", "other": "x2"}


def value(library: Any, kind: str) -> Any:
    """An argument of a type; KeyError for a type that no call gets."""
    made = {
        "Tensor": lambda: library.ones(2, 2),
        "Tensors": lambda: [library.ones(2, 2)],
        "Tensor?s": lambda: [library.zeros(1, dtype=library.int64)],
        "Number": lambda: 1,
        "int": lambda: 1,
        "ints": lambda: (1,),
        "float": lambda: 0.5,
        "floats": lambda: (0.5,),
        "Numbers": lambda: (1,),
        "bool": lambda: False,
        "str": lambda: "sum",
        "dtype": lambda: library.float32,
        "layout": lambda: library.strided,
        "device": lambda: "cpu",
        "generator": lambda: None,
        "memory_format": lambda: library.contiguous_format,
        "Any": lambda: 1,
    }
    return made[kind]()


Call = tuple[list[str], dict[str, str]]  # the types of positional arguments, and of keywords


def calls(forms: list[Signature]) -> list[Call]:
    """The calls of a function with these signatures, each once."""
    found: list[Call] = []
    for form in forms:
        for call in _of_form(form):
            if call not in found:
                found.append(call)
    required = _required(forms[0]) if forms else []
    for name, kind in OTHER_NAMES.items():
        call = ([], {**{a.name: a.type for a in required}, name: kind})
        if call not in found:
            found.append(call)
    return found


def _required(form: Signature) -> list[Argument]:
    return [a for a in form.arguments if not a.optional]


def _of_form(form: Signature) -> Iterator[Call]:
    positional = [a for a in form.arguments if not a.kwonly]
    only = {a.name: a.type for a in form.arguments if a.kwonly and not a.optional}
    required = [a for a in positional if not a.optional]
    for count in range(len(positional) + 1):  # some by position, the other required ones by keyword
        by_name = {a.name: a.type for a in positional[count:] if not a.optional}
        yield [a.type for a in positional[:count]], {**by_name, **only}
    yield [*(a.type for a in positional), "int"], only
    for a in form.arguments:
        if a.optional:  # one optional argument
            yield [b.type for b in required], {**only, a.name: a.type}
        if a.name in NUMPY:
            yield [], {**{b.name: b.type for b in required if b is not a}, **only, NUMPY[a.name]: a.type}
        if a.type == "ints" and positional and a is positional[-1]:  # numbers in place of one tuple
            before = [b.type for b in positional[:-1]]
            for count in range(1, 4):
                yield [*before, *["int"] * count], only


def is_taken(library: Any, name: str, call: Call) -> bool:
    """True if the function of a dotted name takes a call: any result or error other than a TypeError."""
    args = [value(library, kind) for kind in call[0]]
    kwargs = {key: value(library, kind) for key, kind in call[1].items()}
    *spaces, last = name.split(".")
    found = library
    for space in spaces if spaces != ["Tensor"] else ():
        found = getattr(found, space)
    function = getattr(library.ones(2, 2) if spaces == ["Tensor"] else found, last)
    try:
        function(*args, **kwargs)
    except TypeError:
        return False
    except Exception:
        return True
    return True


def shown(name: str, call: Call) -> str:
    """A call as text."""
    given = [*call[0], *(f"{key}={kind}" for key, kind in call[1].items())]
    return f"{name}({', '.join(given)})"
