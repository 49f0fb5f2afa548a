"""Execution budget of `__setstate__` methods during loading: bounds on steps and memory.

These methods run before the user calls the program, so the file's length bounds their cost. Their functions are
compiled a second time, with `Budget` calls around each call and in each loop. Allowed tensor operators have cost linear
in their tensors.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from .._aten.allowlist import COUNT_ARGUMENTS, allowed_packet
from .._dispatch.call import Tensor
from ._inline_cache import _substitute_placeholders as filled
from ._insert_deletions import walk
from ._nontensor_ops import NONTENSOR_OPS
from ._runtime import GLOBALS, SCRIPTED, ClassConstructor, DeferredFunction, augmented_assign, call_method
from ._value_limits import count_visited

# Steps and bytes: a constant plus a multiple of the file size. A step takes about 4 us.
_FREE_STEPS, _STEPS_PER_BYTE = 1 << 16, 1
_FREE_BYTES, _BYTES_PER_BYTE = 32 << 20, 25
_BYTES_PER_ITEM = 40  # size of a list item with its value
_BYTES_PER_ELEMENT = 8  # of a tensor

# Operators on lists, dictionaries and strings with constant cost.
_CHEAP_METHODS = frozenset(
    "append len _set_item get setdefault __getitem__ pop insert popitem Delete clear __is__ __isnot__ __not__".split()
)
# Operators that create a tensor from sizes or a range.
_SIZED = frozenset(
    "zeros ones empty full rand randn new_zeros new_ones new_empty new_full empty_strided expand repeat tile".split()
)
_RANGES = frozenset(("arange", "range"))
# Operators with cost linear in their tensors, besides pointwise ops and views.
_LINEAR = frozenset(
    (
        "tensor as_tensor scalar_tensor clone contiguous to reshape flatten cat concat stack hstack vstack copy_ "
        "fill_ zero_ zeros_like ones_like empty_like full_like rand_like randn_like sum mean prod min max amin amax "
        "any all argmin argmax equal allclose item tolist is_nonzero type_as float double half int long short char "
        "byte bool bfloat16 cpu cuda where flip roll tril triu requires_grad_ requires_grad size dim numel stride "
        "is_contiguous is_floating_point is_complex is_signed get_device element_size storage_offset len device "
        "dtype Int Float Bool IntImplicit FloatImplicit ScalarImplicit NumToTensor data layout shape ndim list "
        "_shape_as_tensor str format print warn set_grad_enabled is_grad_enabled no_grad enable_grad inference_mode "
        "is_scripting is_tracing is_autocast_enabled percentFormat type is_cuda is_cpu is_sparse cumsum wait isnan "
        "isinf isfinite __contains__"
    ).split()
)
# Pointwise operators that are one NumPy function. Others consist of several or iterate per element.
_CHEAP = frozenset(
    (
        "abs add sub mul div true_divide neg square sqrt rsqrt reciprocal exp log sin cos tanh sigmoid relu clamp "
        "clamp_min clamp_max maximum minimum floor ceil round trunc sign eq ne lt le gt ge logical_and logical_or "
        "logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor __and__ __or__ __xor__ __invert__ "
        "__add__ __sub__ __mul__ __truediv__ __neg__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__"
    ).split()
)
_COSTLY = 64  # step factor of a costly operator
_NUMBERS = (int, float, bool, complex)
# Functions of constant cost, and functions whose callees count themselves.
_FREE_OPERATORS = frozenset(
    GLOBALS[name]
    for name in (
        "own.get own.set own.call own.invoke own.new own.context own.number own.fork plain.len plain.range "
        "plain.enumerate plain.zip plain.bool plain.hasattr plain.slice plain.int plain.float plain.complex"
    ).split()
)


class Budget:
    """Steps and bytes for the `__setstate__` methods of one file."""

    def __init__(self, size: int):
        self._steps = _FREE_STEPS + _STEPS_PER_BYTE * size
        self._bytes = _FREE_BYTES + _BYTES_PER_BYTE * size
        self.globals: Any = None  # the program's globals
        self.places: dict[Any, tuple[str, list, list]] = {}  # call sites: operator and arguments, by callee

    def step(self, count: int = 1) -> None:
        """Consume steps. Raise RuntimeError if exhausted."""
        self._steps -= count
        if self._steps < 0:
            raise RuntimeError("a __setstate__ of the file does more work than a file of this length can need")

    def take(self, count: float) -> None:
        """Consume bytes. Raise RuntimeError if exhausted."""
        if count > self._bytes:
            raise RuntimeError("a __setstate__ of the file makes more than a file of this length can need")
        self._bytes -= int(count)

    def call(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function or operator and count it."""
        self.step()
        given = [*args, *kwargs.values()]
        place = self.places.get(function)
        if place is not None:
            makes = self._charge_call_site(place, given)
        elif function is call_method and args[0].__class__ not in SCRIPTED:
            makes = self._charge_operator(args[1], [args[0], *given[2:]])
        elif function is augmented_assign:
            makes = self._charge_operator(args[0], given[1:])
        else:
            own = (
                function.__class__ in (DeferredFunction, ClassConstructor)
                or getattr(function, "__globals__", None) is self.globals
            )
            makes = not own and function not in _FREE_OPERATORS
            if makes:
                self._charge_plain_arguments(given)
        result = function(*args, **kwargs)
        if makes and result.__class__ in (list, tuple, dict) and not any(result is value for value in given):
            self.take(_BYTES_PER_ITEM * len(result))
        elif makes and result.__class__ is str:
            self.take(len(result))
        return result

    def _charge_call_site(self, place: tuple[str, list, list], given: list) -> bool:
        name, items, keywords = place
        values = iter(given)
        whole = [filled(item, values) for item in (*items, *(item for _, item in keywords))]
        return (not whole or whole[0].__class__ not in SCRIPTED) and self._charge_operator(name, whole)

    def item(self, value: Any, index: Any) -> Any:
        """Return `value[index]` and count it."""
        self.step()
        if isinstance(value, Tensor):
            parts = index if index.__class__ is tuple else (index,)
            if not all(part is None or part is Ellipsis or part.__class__ in (int, slice) for part in parts):
                self._raise_exhausted("index")
        made = operator.getitem(value, index)
        if index.__class__ is slice and not isinstance(made, Tensor):
            self.take(_BYTES_PER_ITEM * len(made))
        return made

    def _charge_plain_arguments(self, given: list) -> None:
        for value in given:
            if isinstance(value, Tensor):
                self.take(_BYTES_PER_ELEMENT * value.numel())
                self.step(max(value.shape, default=0))
        self.step(count_visited(*given, most=self._steps))

    def _charge_operator(self, name: str, given: list) -> bool:
        """Consume an operator's cost. Return True if its result is new memory."""
        first = given[0] if given else None
        if name in _CHEAP_METHODS and not isinstance(first, Tensor):
            self.step(len(first) >> 8 if first.__class__ is list else 0)
            return False
        tensors = [v for v in given if isinstance(v, Tensor)]
        if name in NONTENSOR_OPS and not isinstance(first, Tensor) and (not tensors or first.__class__ not in _NUMBERS):
            self._charge_plain_arguments(given)
            return True
        lists = [v for v in given if v.__class__ in (list, tuple)]
        tensors += [v for values in lists for v in values if isinstance(v, Tensor)]
        kind = _cost_class(name)
        if kind == "view":
            if "split" in name or "chunk" in name or "unbind" in name:
                self.step(int(min(2 * _max_result_count(name, given, tensors), self._steps + 1)))
            return True
        if kind is None:
            self._raise_exhausted(name)
        work: float = sum(math.prod(v.shape) for v in tensors)
        if len(tensors) > 1:
            work = max(work, math.prod(_broadcast_numel([v.shape for v in tensors])))
        if kind == "sized":
            sizes = _numbers_in([*(v for values in lists for v in values), *_scalar_sizes(name, given)])
            work = max(1, work) * math.prod(max(1, n) for n in sizes)
        elif kind == "range":  # any argument may be the step
            numbers = _numbers_in(given)
            work = max(numbers, default=0) / min([1, *filter(None, numbers)])
        else:
            self.step(count_visited(*lists, most=self._steps))
        self.take(_BYTES_PER_ELEMENT * work)
        self.step(int(work) + _COSTLY if kind == "costly" else int(work) >> 6)
        return True

    def _raise_exhausted(self, name: str) -> None:
        raise RuntimeError(
            f"a __setstate__ of the file calls aten::{name}, whose work may be more than that of reading its tensors: "
            "call it in another method"
        )


def _numbers_in(values: list) -> list[float]:
    """Return absolute values of the numbers among values, including one-element tensors."""
    found = []
    for value in values:
        if isinstance(value, Tensor) and math.prod(value.shape) == 1 and not value.is_complex():
            value = value.item()
        if value.__class__ in (int, float):
            found.append(abs(value) if math.isfinite(value) else math.inf)
    return found


def _scalar_sizes(name: str, given: list) -> list:
    """Return possible sizes of a created tensor besides size lists: integers where allowed, and tensors."""
    name = name.removeprefix("torch.").removeprefix("ops.aten.")
    if "full" in name:  # without the fill value
        return []
    rest = given if name in ("zeros", "ones", "empty", "rand", "randn", "empty_strided") else given[1:]
    integers = name in ("expand", "repeat", "tile", "rand", "randn")
    return [v for v in rest if isinstance(v, Tensor) or integers and v.__class__ is int]


def _max_result_count(name: str, given: list, tensors: list) -> float:
    """Return the maximum number of tensors that an operator returns for one."""
    if not any(part in name for part in ("chunk", "tensor_split", "hsplit", "vsplit", "dsplit")):
        return max((max(v.shape, default=1) for v in tensors), default=0)
    lists = [len(v) for v in given if v.__class__ in (list, tuple)]
    return max([1, *_numbers_in(given[1:]), *lists, *(v.numel() for v in given[1:] if isinstance(v, Tensor))])


def _cost_class(name: str) -> str | None:
    """Return an operator's cost class, None if its cost is not linear in its tensors."""
    name = name.removeprefix("torch.")
    if name.startswith("ops."):
        space, _, name = name[4:].partition(".")
        if space == "prim":
            return "linear" if name in _LINEAR else None
        if space != "aten":
            return None if space == "torchlite" or allowed_packet(space, name) is None else "linear"  # a user's op
    if name in _SIZED:
        return "view" if name == "expand" else "sized"
    if name in _RANGES:
        return "range"
    if name in _LINEAR:
        return "linear"
    packet = allowed_packet("aten", name)
    if packet is None:
        return None
    if name.rstrip("_") in COUNT_ARGUMENTS:  # repeats its work by an argument
        return None
    overloads = [getattr(packet, overload) for overload in packet.overloads() if "out" not in overload]
    if overloads and all(overload.is_view for overload in overloads):
        return "view"
    if not any(tag.name == "pointwise" for overload in overloads for tag in overload.tags):
        return None
    return "pointwise" if name in _CHEAP or name.rstrip("_") in _CHEAP else "costly"


def _broadcast_numel(shapes: list) -> list[int]:
    longest = max(map(len, shapes))
    whole = [[1] * (longest - len(shape)) + list(shape) for shape in shapes]
    return [max(sizes) for sizes in zip(*whole, strict=True)]


def instrument(tree: ast.AST) -> None:
    """Instrument a translated function in place to count its work."""
    for node in [*walk(tree)][::-1]:  # inner nodes first
        for name, value in list(node.__dict__.items()):
            if isinstance(value, ast.Subscript):
                setattr(node, name, _counting_item(value))
            elif value.__class__ is list:
                value[:] = [_counting_item(part) if isinstance(part, ast.Subscript) else part for part in value]
        if isinstance(node, ast.Call):
            node.args = [node.func, *node.args]
            node.func = ast.Name("own.counted", ast.Load())
        elif isinstance(node, (ast.While, ast.For, ast.FunctionDef)):
            node.body.insert(0, ast.Expr(ast.Call(ast.Name("own.step", ast.Load()), [], [])))


def _counting_item(node: ast.Subscript) -> ast.expr:
    return ast.Call(ast.Name("own.item", ast.Load()), [node.value, _index_expression(node.slice)], [])


def _index_expression(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Slice):
        parts = [ast.Constant(None) if part is None else part for part in (node.lower, node.upper, node.step)]
        return ast.Call(ast.Name("own.slice", ast.Load()), parts, [])
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_index_expression(part) for part in node.elts], ast.Load())
    return node


@contextlib.contextmanager
def count_program(program: Any, budget: Budget) -> Iterator[None]:
    """Make functions of a program count their work within the context."""
    budget.globals = program.globals
    budget.places = {program.globals[made]: place for made, place in program.named_places.items()}
    program.globals |= {
        "own.counted": budget.call,
        "own.step": budget.step,
        "own.item": budget.item,
        "own.slice": slice,
    }
    plain = [(function, function.__code__) for function, _ in program.counted]
    try:
        for function, code in program.counted:
            function.__code__ = code
        yield
    finally:
        for function, code in plain:
            function.__code__ = code
        # Inner functions kept by the methods run without budget afterwards.
        program.globals |= {
            "own.counted": lambda run, *args, **kwargs: run(*args, **kwargs), "own.step": lambda: None,
            "own.item": operator.getitem,
        }  # fmt: skip
