"""Dynamic shapes: groups captured calls that differ in argument sizes or numbers only.

Kernels take sizes as numbers, so a captured program holds for one size. Sizes do not count towards `recompile_limit`. A
rare size runs eagerly, a frequent one is captured, and their number is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from . import config

# Calls of a size before its capture: recording two calls takes the time of about thirty.
CALLS_BEFORE_CAPTURE = 16
# Maximum number of sizes per structure, on the CPU and on devices.
_MOST, _MOST_ON_DEVICES = 64, 8
_MAX_COUNTED_SIZES = 4096
_MAX_FAILURES = 8


class SizeVariant(NamedTuple):
    """Calls of one size: argument key, structure, shapes and strides."""

    key: Any
    structure: int
    shapes: tuple


class SizeVariants:
    """Sizes of one structure. `guard` returns True if argument tensors differ from the captured ones in sizes only."""

    def __init__(self, variant: Any, guard: Any, holds_memory: bool, needed: int = CALLS_BEFORE_CAPTURE) -> None:
        self.variant, self.guard = variant, guard
        self.max_variants = _MOST_ON_DEVICES if holds_memory else _MOST
        self.calls: dict[SizeVariant, int] = {}
        self.variants: OrderedDict[SizeVariant, None] = OrderedDict()
        self.needed = needed
        self.key: Any = None  # argument key of the calls that a program may serve together
        self.shared: Any = None  # that program
        self.dropped = self.failed = 0

    def has(self, tensors: list, modes: tuple) -> bool:
        """True if a call belongs to the structure."""
        return self.guard(*tensors) and modes == self.variant.modes and self.variant.is_same()

    def place_of(self, key: Any, tensors: list) -> SizeVariant:
        return SizeVariant(key, id(self), layouts_of(tensors))

    def is_frequent(self, place: SizeVariant) -> bool:
        """Count a call of a size; return True once it is frequent enough to capture."""
        return self.count(place) > self.needed and self.failed < _MAX_FAILURES

    def count(self, place: SizeVariant, calls: int = 1) -> int:
        """Count calls of a size and return their number."""
        if len(self.calls) >= _MAX_COUNTED_SIZES:
            self.calls.clear()
        count = self.calls[place] = self.calls.get(place, 0) + calls
        return count

    def is_due(self, place: SizeVariant) -> bool:
        """True if the next call of a size is frequent enough to capture."""
        return self.calls.get(place, 0) >= self.needed and self.failed < _MAX_FAILURES

    def keep(self, place: SizeVariant) -> SizeVariant | None:
        """Mark a size as recently used and return the size to evict. When more sizes are frequent than fit, raise the
        threshold.
        """
        self.variants[place] = None
        self.variants.move_to_end(place)
        if len(self.variants) <= self.max_variants:
            return None
        gone, _ = self.variants.popitem(last=False)
        self.calls.pop(gone, None)
        self.dropped += 1
        if self.dropped % self.max_variants == 0:
            self.needed = 2 * self.needed or 1
        return gone


def layouts_of(tensors: list) -> tuple:
    """Return the shapes and strides of tensors."""
    return tuple([(t._tl_array.shape, t._tl_array.strides) for t in tensors])


def structure_key(key: Any) -> Any:
    """Return an argument key without integers and floats."""
    if key.__class__ is tuple:
        if len(key) == 2 and key[0] in (int, float):
            return key[0]
        return tuple([structure_key(item) for item in key])
    return key


def dynamic_dims(tensor: Any, dynamic: bool | None) -> dict[int, tuple[int | None, int | None]]:
    """Return the dimensions of an argument that may change size, with minimum and maximum, as `mark_dynamic` and
    `mark_static` define. Raise ConstraintViolationError for a size outside the marked range.
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
