"""Program: the intermediate representation of a captured call, kernels in order over numbered arrays ("slots")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any, NamedTuple


class Frame(NamedTuple):
    """A call in progress: its code, the place of the instruction, and its module."""

    code: CodeType
    place: int
    module: str


def frames_within(frame: Any, outermost: CodeType) -> tuple[Frame, ...]:
    """Return the calls in progress from the one that `outermost` makes to this frame."""
    found = []
    while frame is not None and frame.f_code is not outermost:
        found.append(Frame(frame.f_code, frame.f_lasti, str(frame.f_globals.get("__name__"))))
        frame = frame.f_back
    return tuple(reversed(found))


@dataclass(frozen=True)
class Slot:
    """Reference to an array of a program, by number."""

    number: int


@dataclass(frozen=True)
class SizeNumber:
    """Reference to an integer that a size gives to a program, by number (`shared_program.py`)."""

    number: int


@dataclass
class Step:
    """A kernel call. Arrays in `args` and `kwargs` are Slots; `out` is a Slot or a tuple of Slots and None.

    kind: "kernel"; "read", a guard on elements (`expected`) or on a data-dependent shape; "object", a call of a
    program's object such as an optimizer's step, with gradients `grads` set before it; "warning". frames: the calls in
    progress at a read.
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
    frames: tuple[Frame, ...] = ()

    def uses(self) -> list[int]:
        """Return the slots that the call reads."""
        found: list[int] = []
        _collect_slots(self.args, found)
        if self.kwargs:
            _collect_slots(self.kwargs.values(), found)
        if self.grads:
            _collect_slots([slot for _, slot in self.grads], found)
        return found

    def makes(self) -> list[int]:
        """Return the slots that the call defines."""
        return slots_in(self.out)


def slots_in(value: Any) -> list[int]:
    """Return the slot numbers in a value, including nested tuples, lists and slices."""
    found: list[int] = []
    _collect_slots((value,), found)
    return found


def _collect_slots(values: Iterable, found: list[int]) -> None:
    for value in values:
        cls = value.__class__
        if cls is Slot:
            found.append(value.number)
        elif cls is tuple or cls is list:
            _collect_slots(value, found)
        elif cls is slice:
            _collect_slots((value.start, value.stop, value.step), found)


def substitute_arrays(value: Any, arrays: dict[int, Any]) -> Any:
    """Return a value with slots replaced by arrays."""
    cls = value.__class__
    if cls is Slot:
        return arrays[value.number]
    if cls is tuple or cls is list:
        return cls([substitute_arrays(item, arrays) for item in value])
    if cls is slice:
        return slice(*[substitute_arrays(item, arrays) for item in (value.start, value.stop, value.step)])
    return value


def run_step(step: Step, arrays: dict[int, Any]) -> dict[int, Any]:
    """Call a step's kernel with arrays by slot. Return the arrays that it makes, by slot."""
    args, kwargs = substitute_arrays((step.args, tuple(step.kwargs.items())), arrays)
    result = step.kernel(*args, **dict(kwargs))
    if step.out is None:
        return {}
    if step.out.__class__ is Slot:
        return {step.out.number: result}
    return {slot.number: raw for slot, raw in zip(step.out, result, strict=True) if slot is not None}


@dataclass
class Program:
    """Steps, input slots, constants copied for each run, and output slots.

    held: constants that runs read without a copy.
    """

    steps: list[Step]
    inputs: list[int]
    constants: dict[int, Any]
    outputs: list[int]
    held: dict[int, Any] = field(default_factory=dict)

    def used(self) -> set[int]:
        """Return the slots that a step or the output uses."""
        return {number for step in self.steps for number in step.uses()} | set(self.outputs)

    def shown(self) -> set[int]:
        """Return the slots that escape: outputs and gradients for object calls."""
        return {*self.outputs, *(g.number for step in self.steps for _, g in step.grads if g is not None)}


def comparison_key(value: Any) -> Any:
    """Return the key under which two captures' arguments are compared: numbers and strings by value, objects by
    identity.
    """
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
    """True if two captured programs are equal."""
    if len(a.steps) != len(b.steps) or a.inputs != b.inputs or a.outputs != b.outputs:
        return False
    if a.constants.keys() != b.constants.keys():
        return False
    return all(is_same_step(x, y) for x, y in zip(a.steps, b.steps, strict=True))


def is_same_step(x: Step, y: Step) -> bool:
    """True if two steps are equal."""
    if not is_same_kernel(x.kernel, y.kernel):
        return False
    if (x.name, x.kind, x.out, x.grads) != (y.name, y.kind, y.out, y.grads):
        return False
    if x.kind == "read" and x.expected.tobytes() != y.expected.tobytes():
        return False
    return comparison_key(x.args) == comparison_key(y.args) and comparison_key(x.kwargs) == comparison_key(y.kwargs)


def is_same_kernel(a: Any, b: Any) -> bool:
    """True if two kernels are one function, or one method of one object."""
    return (
        a is b
        or getattr(a, "__self__", a) is getattr(b, "__self__", b)
        and getattr(a, "__func__", a) is getattr(b, "__func__", b)
    )


# Layout of an array: (shape, NumPy's dtype, True if contiguous), by slot.
Layouts = dict[int, tuple[tuple, Any, bool]]


# Kinds of results that are Python values: a number and a list that are read at the end.
HOST_VALUES = ("item", "tolist")


@dataclass
class ResultSpec:
    """Recipe for a tensor that a replay returns.

    index: the outside tensor that is returned itself; else `slot` has the array. base: the outside tensor or result
    that this one is a view of.
    """

    slot: int = -1
    outside: int = -1
    dtype: Any = None
    grad: str = ""  # "", "leaf" or "node"
    shares: int = -1  # the outside tensor whose memory it shares
    is_view: bool = False
    is_inference: bool = False  # created in inference mode by a function that left the mode
    group: int = -1  # group of results that share memory
    signs: int = 0  # conjugate or negative bits of the view
    table: Any = None  # kernel table if on another device than the program
    kind: str | None = None  # kind of view; one of `HOST_VALUES`


@dataclass
class CapturedCall:
    """A captured call: its program, results and lasting effects. Outside tensors are named by position, their gradients
    by -1 - position.
    """

    program: Program
    results: list[ResultSpec]
    rebuild: Callable[[list], Any]
    shape_of_results: Any
    bumps: dict[int, int]  # version increments, by outside tensor
    grads: dict[int, int | None]  # slots of new `.grad` values, by outside tensor
    # True if the program reads gradients of outside tensors. Next, the layouts of these gradients (None: no gradient).
    reads_gradients: bool
    gradients: list[tuple | None]
    scalars: set[int]  # slots of zero-dimensional arrays
    layouts: Layouts
    memory: dict[int, int]  # memory numbers by slot; equal numbers share memory
    backward: Any = None
    logs: tuple[list, ...] = ()  # lists that the call appends to: `rebuild` gives the result and what is appended


def variable_name(number: int) -> str:
    """Return the variable name of a slot in generated source."""
    return f"v{number}" if number >= 0 else f"g{-1 - number}"


def rename_slots(step: Step, names: dict[int, Slot]) -> Step:
    """Return the step with renamed input slots."""
    if not names or not any(n in names for n in step.uses()):
        return step
    args, kwargs, grads = (
        _rename_in_value(value, names) for value in (step.args, tuple(step.kwargs.items()), step.grads)
    )
    return replace(step, args=args, kwargs=dict(kwargs), grads=grads)


def _rename_in_value(value: Any, names: dict[int, Slot]) -> Any:
    cls = value.__class__
    if cls is Slot:
        return names.get(value.number, value)
    if cls is tuple or cls is list:
        return cls([_rename_in_value(item, names) for item in value])
    if cls is slice:
        return slice(*[_rename_in_value(item, names) for item in (value.start, value.stop, value.step)])
    return value
