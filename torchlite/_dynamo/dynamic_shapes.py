"""Calls that differ from a captured one in the sizes of their arguments, or in numbers, alone.

Kernels are called with sizes as numbers, so a captured program holds for one size. Sizes do not count for
`recompile_limit`; one that comes seldom runs as it is written, one that comes again and again is captured, and only so
many are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from . import config

# Calls of one size before it is captured: two calls that are recorded take the time of some thirty.
CALLS_BEFORE_CAPTURE = 16
# Sizes that are kept, where programs hold no memory and where they do.
_MOST, _MOST_ON_DEVICES = 64, 8
_MAX_COUNTED_SIZES = 4096
_MAX_FAILURES = 8


class SizeVariant(NamedTuple):
    """The calls of one size: the key of their arguments, the structure that they belong to, shapes and strides."""

    key: Any
    structure: int
    shapes: tuple


class SizeVariants:
    """The sizes of one structure. `guard` says of argument tensors whether they differ from those of the captured call
    in their sizes alone.
    """

    def __init__(self, variant: Any, guard: Any, holds_memory: bool, needed: int = CALLS_BEFORE_CAPTURE) -> None:
        self.variant, self.guard = variant, guard
        self.most = _MOST_ON_DEVICES if holds_memory else _MOST
        self.calls: dict[SizeVariant, int] = {}
        self.kept: OrderedDict[SizeVariant, None] = OrderedDict()
        self.needed = needed
        self.dropped = self.failed = 0

    def has(self, tensors: list, modes: tuple) -> bool:
        """Whether a call belongs to the structure."""
        return self.guard(*tensors) and modes == self.variant.modes and self.variant.is_same()

    def place_of(self, key: Any, tensors: list) -> SizeVariant:
        return SizeVariant(key, id(self), tuple([(t._tl_array.shape, t._tl_array.strides) for t in tensors]))

    def is_frequent(self, place: SizeVariant) -> bool:
        """Count a call of a size; whether there were enough for capturing it to be worth its time."""
        if len(self.calls) >= _MAX_COUNTED_SIZES:
            self.calls.clear()
        count = self.calls[place] = self.calls.get(place, 0) + 1
        return count > self.needed and self.failed < _MAX_FAILURES

    def keep(self, place: SizeVariant) -> SizeVariant | None:
        """Keep a size that was used just now; the one that has to go for it. Where more sizes come often than are kept,
        each has to come more often.
        """
        self.kept[place] = None
        self.kept.move_to_end(place)
        if len(self.kept) <= self.most:
            return None
        gone, _ = self.kept.popitem(last=False)
        self.calls.pop(gone, None)
        self.dropped += 1
        if self.dropped % self.most == 0:
            self.needed = 2 * self.needed or 1
        return gone


def structure_key(key: Any) -> Any:
    """A key of arguments with whole numbers and fractions left out."""
    if key.__class__ is tuple:
        if len(key) == 2 and key[0] in (int, float):
            return key[0]
        return tuple([structure_key(item) for item in key])
    return key


def dynamic_dims(tensor: Any, dynamic: bool | None) -> dict[int, tuple[int | None, int | None]]:
    """The dimensions of an argument whose sizes may be others in a call of the same structure, with the least and the
    largest of each, as `mark_dynamic` and `mark_static` have it. ConstraintViolationError for a size that is none of
    those that it was marked with.
    """
    if dynamic is False:
        return {}
    marks, rank = tensor.__dict__, tensor.dim()
    found: dict[int, tuple[int | None, int | None]] = {}
    if dynamic or config.automatic_dynamic_shapes and config.dynamic_shapes or not config.assume_static_by_default:
        found = dict.fromkeys(range(rank), (None, None))
    for name in ("_dynamo_weak_dynamic_indices", "_dynamo_dynamic_indices"):
        found.update(dict.fromkeys((dim % rank for dim in marks.get(name, ()) if dim < rank), (None, None)))
    for dim, least, largest in marks.get("_dynamo_dynamic_range", ()):
        if dim < rank:
            size = tensor.shape[dim]
            if not (least is None or size >= least) or not (largest is None or size <= largest):
                from torchlite.fx.experimental.symbolic_shapes import ConstraintViolationError

                raise ConstraintViolationError(
                    f"{size} not in range [{least or 0}, {'int_oo' if largest is None else largest}]"
                )
            found[dim % rank] = (least, largest)
    for dim in marks.get("_dynamo_static_indices", ()):
        found.pop(dim % rank if rank else dim, None)
    return found
