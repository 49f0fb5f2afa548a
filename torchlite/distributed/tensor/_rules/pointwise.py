"""Ops on elements: any dimension may be cut, in all arguments alike."""

from __future__ import annotations

from collections.abc import Iterator

from torchlite._dispatch import REGISTRY
from torchlite._dispatch.op_record import POINTWISE

from .._dispatch import RULES, Call, R, Rule, Way, ways_of
from .common import aligned, cutters, partials


def pointwise(found: Call, number: int) -> Iterator[Way]:
    """Each dimension cut."""
    shapes = [tuple(t.shape) for t in found.tensors]
    for cut in cutters(found, number):
        yield from aligned(shapes, cut)


# Of each what may be a summand, where the op is linear in it: all of these together.
_LINEAR = {
    "neg": ("input",), "add": ("input", "other"), "sub": ("input", "other"), "positive": ("input",),
    "conj": ("input",), "conj_physical": ("input",), "imag": ("input",), "real": ("input",),
    "_choose": ("input", "other"),
}  # fmt: skip


def _linear(found: Call, number: int) -> Iterator[Way]:
    """Sums too."""
    yield from pointwise(found, number)
    names = _LINEAR[found.op.name]
    if not all(any(found[name] is t for t in found.tensors) for name in names):
        return  # a number beside a sum would be added on every process
    ids = {id(found[name]) for name in names}
    for partial in partials(found, number):
        yield [partial if id(t) in ids else R for t in found.tensors], partial


def _products(found: Call, number: int) -> Iterator[Way]:
    """A sum times, or through, what is the same on all processes."""
    yield from pointwise(found, number)
    either = found.op.name == "mul"
    for partial in partials(found, number):
        for i, tensor in enumerate(found.tensors):
            if (either or tensor is found["input"]) and not (either and found["input"] is found["other"]):
                yield [partial if j == i else R for j in range(len(found.tensors))], partial


for _name, _record in REGISTRY.items():
    if _record.tags & POINTWISE and not _record.is_implicit:
        RULES[_name] = Rule(pointwise)
for _name in _LINEAR:
    if _name in REGISTRY:
        RULES[_name] = Rule(_linear)
RULES["mul"] = RULES["div"] = Rule(_products)


@ways_of("_bce", "_random_fill", "_masked_fill", "_masked_fill_tensor", "complex", "polar", "angle", "_ldexp", "frexp",
         "_prelu", "where")  # fmt: skip
def _on_elements(found: Call, number: int) -> Iterator[Way]:
    yield from pointwise(found, number)


@ways_of("to", "clone", "contiguous", "alias", "_cow_clone", "_detach")
def _copies(found: Call, number: int) -> Iterator[Way]:
    """Copies and casts: as it lies. Casting a sum that is rounded is not the sum of the casts."""
    for cut in cutters(found, number):
        yield from aligned([tuple(found.tensors[0].shape)], cut)
    if found.op.name != "to" or found["dtype"].category >= 2:
        for partial in partials(found, number):
            yield [partial], partial
