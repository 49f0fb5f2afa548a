"""A captured call: kernels in their order over numbered arrays ("slots"), and what becomes of tensors at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Slot:
    """An array of a program, by its number."""

    number: int


@dataclass
class Step:
    """A kernel's call. `args` and `kwargs` have Slots in the places of arrays; `out` is a Slot, or a tuple of Slots and
    of None for what is no array.

    kind: "kernel"; "read", of an array whose elements Python looked at and which has to have these again
    (`expected`), or whose shape has to be this; "object", a call of an object of the program's (an optimizer's step),
    before which `grads` are published; "warning".
    """

    name: str
    kernel: Any
    args: tuple
    kwargs: dict[str, Any]
    out: Any
    line: str = ""
    kind: str = "kernel"
    expected: Any = None
    grads: tuple = ()

    def uses(self) -> Iterator[int]:
        """The slots that the call gets."""
        yield from slots_in((self.args, tuple(self.kwargs.values()), tuple(g for _, g in self.grads)))

    def makes(self) -> Iterator[int]:
        """The slots that it fills."""
        yield from slots_in(self.out)


def slots_in(value: Any) -> Iterator[int]:
    """The numbers of the slots in a value, or in tuples, lists and slices of them."""
    if value.__class__ is Slot:
        yield value.number
    elif value.__class__ in (tuple, list):
        for item in value:
            yield from slots_in(item)
    elif value.__class__ is slice:
        yield from slots_in((value.start, value.stop, value.step))


def substitute_arrays(value: Any, arrays: dict[Slot, Any]) -> Any:
    """A value with arrays in the places of slots."""
    cls = value.__class__
    if cls is Slot:
        return arrays[value]
    if cls is tuple or cls is list:
        return cls([substitute_arrays(item, arrays) for item in value])
    if cls is slice:
        return slice(*[substitute_arrays(item, arrays) for item in (value.start, value.stop, value.step)])
    return value


@dataclass
class Program:
    """Steps, the slots that are given, those that are constants (arrays, copied for each run), and those returned.

    held: constants that every run reads as they are.
    """

    steps: list[Step]
    inputs: list[int]
    constants: dict[int, Any]
    outputs: list[int]
    held: dict[int, Any] = field(default_factory=dict)

    def used(self) -> set[int]:
        """The slots that some step gets, or that are returned."""
        return {number for step in self.steps for number in step.uses()} | set(self.outputs)

    def shown(self) -> set[int]:
        """The slots whose arrays others get: those that are returned, and gradients for objects that are called."""
        return {*self.outputs, *(g.number for step in self.steps for _, g in step.grads if g is not None)}


def comparison_key(value: Any) -> Any:
    """What two captures' arguments must agree in: numbers and texts by what they are, objects by which they are."""
    if value.__class__ is Slot:
        return value
    if value.__class__ in (tuple, list):
        return (value.__class__, *map(comparison_key, value))
    if value.__class__ is dict:
        return tuple((name, comparison_key(item)) for name, item in value.items())
    if value.__class__ is slice:
        return (slice, comparison_key(value.start), comparison_key(value.stop), comparison_key(value.step))
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None), tuple)):
        return (value.__class__, repr(value))
    return id(value)


def is_same_program(a: Program, b: Program) -> bool:
    """Whether two captures did the same."""
    if len(a.steps) != len(b.steps) or a.inputs != b.inputs or a.outputs != b.outputs:
        return False
    if a.constants.keys() != b.constants.keys():
        return False
    return all(is_same_step(x, y) for x, y in zip(a.steps, b.steps, strict=True))


def is_same_step(x: Step, y: Step) -> bool:
    """Whether two steps are one."""
    if x.kernel is not y.kernel and not _is_same_method(x.kernel, y.kernel):
        return False
    if (x.name, x.kind, x.out, x.grads) != (y.name, y.kind, y.out, y.grads):
        return False
    if x.kind == "read" and x.expected.tobytes() != y.expected.tobytes():
        return False
    return comparison_key(x.args) == comparison_key(y.args) and comparison_key(x.kwargs) == comparison_key(y.kwargs)


def _is_same_method(a: Any, b: Any) -> bool:
    return getattr(a, "__self__", a) is getattr(b, "__self__", b) and getattr(a, "__func__", a) is getattr(
        b, "__func__", b
    )


# A layout is (shape, NumPy's dtype, whether it is contiguous); of arrays that have one, by slot.
Layouts = dict[int, tuple[tuple, Any, bool]]


@dataclass
class ResultSpec:
    """A tensor that the function returned: how its replay is made.

    index: of the tensor outside that it is; else `slot` has its array. base: of the tensor outside, or of the other
    result, that it is a view of.
    """

    slot: int = -1
    outside: int = -1
    dtype: Any = None
    grad: str = ""  # "", "leaf" or "node"
    shares: int = -1  # the tensor outside in whose memory it lies
    is_view: bool = False
    is_inference: bool = False  # made in inference mode by a function that left it
    group: int = -1  # of results that lie in one memory
    signs: int = 0  # of a view of conjugates or negatives
    table: Any = None  # of another device than the program's
    kind: str | None = None  # of a view; "item" of a number that is read at the end


@dataclass
class CapturedCall:
    """What one call did: its program, what it returned, and what it left behind. Tensors outside are named by their
    places; their gradients by -1 less the place.
    """

    program: Program
    results: list[ResultSpec]
    rebuild: Callable[[list], Any]
    shape_of_results: Any
    bumps: dict[int, int]  # how often the memory of a tensor outside was changed
    grads: dict[int, int | None]  # of tensors outside, whose `.grad` is another now: its slot
    # Whether it depends on the gradients that tensors outside have, and how these lie in memory (None: there is none).
    reads_gradients: bool
    gradients: list[tuple | None]
    scalars: set[int]  # slots of arrays without dimensions
    layouts: Layouts
    memory: dict[int, int]  # slots whose arrays lie in one memory have one number
    backward: Any = None


def variable_name(number: int) -> str:
    """The name of a slot's array in a text."""
    return f"v{number}" if number >= 0 else f"g{-1 - number}"
