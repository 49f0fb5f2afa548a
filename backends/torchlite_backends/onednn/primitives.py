"""oneDNN primitives over torchlite's arrays, with reorders into and out of scratch memory for other layouts."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .library import Argument, Library

F32 = 3
# Argument indices of a primitive's operands, and the query for a memory descriptor.
SOURCE, TARGET, WEIGHTS, BIAS = 1, 17, 33, 41
D_SOURCE, D_TARGET, D_WEIGHTS, D_BIAS = 129, 145, 161, 169
_QUERIES = {SOURCE: 129, D_SOURCE: 130, WEIGHTS: 131, D_WEIGHTS: 132, TARGET: 133, D_TARGET: 134}
_RESULTS = (TARGET, D_SOURCE, D_WEIGHTS, D_BIAS)
_SCRATCH, _SCRATCH_QUESTION, _NAME_QUESTION = 80, 136, 8
# oneDNN's names of implementations that are slower than NumPy.
_SLOW_IMPLEMENTATIONS = ("ref", "gemm", "simple")
_ALIGNED = 64
# Bytes of scratch memory that the calling thread keeps, by their number: an array.
Scratch = Callable[[int, int], Any]
_SLOT, _SLOT_OF_READIED = 20, 21


class SlowImplementation(Exception):
    """oneDNN has only slow implementations for this."""


def data_address(array: Any) -> int:
    """Return the address of an array's first element."""
    return array.__array_interface__["data"][0]


def as_int64_array(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


class MemoryDesc:
    """Memory descriptor: shape and strides in elements, or the primitive's preferred layout."""

    def __init__(self, library: Library, shape: Sequence[int], strides: Sequence[int] | None = None):
        if strides is None:
            made = library.make("memory_desc_create_with_tag", len(shape), as_int64_array(shape), F32, 1)
        else:
            made = library.make(
                "memory_desc_create_with_strides", len(shape), as_int64_array(shape), F32, as_int64_array(strides)
            )
        self.handle, self._library = made, library

    def __del__(self):
        if hasattr(self, "handle"):
            self._library.call("memory_desc_destroy", self.handle)


class Primitive:
    """Primitive of a primitive descriptor, which it owns, and its scratchpad size in bytes."""

    def __init__(self, library: Library, description: int):
        self._library, self.description = library, description
        self.handle = library.make_primitive(description)
        scratch = self.query_memory_desc(_SCRATCH)
        self.scratch = library.description_bytes(scratch) if scratch else 0

    def query_memory_desc(self, which: int) -> int:
        """Return the memory descriptor of an operand."""
        return _query_description(self._library, self.description, _QUERIES.get(which, _SCRATCH_QUESTION))

    def __del__(self):
        if hasattr(self, "handle"):
            self._library.call("primitive_destroy", self.handle)
        self._library.call("primitive_desc_destroy", self.description)


def _query_description(library: Library, description: int, question: int) -> int:
    found = ctypes.c_void_p()
    library.call("primitive_desc_query", description, question, 0, ctypes.byref(found))
    return found.value or 0


def query_implementation_name(library: Library, description: int) -> str:
    """Return oneDNN's name of an implementation: "jit:avx512_core", "ref:any" …"""
    found = ctypes.c_char_p()
    library.call("primitive_desc_query", description, _NAME_QUESTION, 0, ctypes.byref(found))
    return (found.value or b"").decode()


def is_fast(library: Library, description: int) -> bool:
    return not any(part in _SLOW_IMPLEMENTATIONS for part in query_implementation_name(library, description).split(":"))


class _Launch:
    """Primitive with memory objects for its operands; one thread uses it at a time."""

    def __init__(self, library: Library, primitive: Primitive, operands: Sequence[tuple[int, int]]):
        self._library, self._primitive = library, primitive
        self._arguments = (Argument * len(operands))()
        self.memories = []
        for argument, (which, description) in zip(self._arguments, operands, strict=True):
            argument.which = which
            argument.memory = library.make("memory_create", description, library.engine, None)
            self.memories.append(argument.memory)
        self._addresses = [0] * len(operands)

    def run(self, addresses: Sequence[int]) -> None:
        library, before = self._library, self._addresses
        for i, address in enumerate(addresses):
            if address != before[i]:
                library.set_handle(self.memories[i], address)
                before[i] = address
        status = library.execute(self._primitive.handle, library.stream, len(self.memories), self._arguments)
        if status:
            raise MemoryError("oneDNN ran out of memory") if status == 1 else RuntimeError(f"oneDNN: status {status}")

    def __del__(self):
        for memory in self.memories:
            self._library.call("memory_destroy", memory)


class Operand:
    """Operand of a task: its index, its plain descriptor, and `ready` if its memory already has the primitive's
    layout.
    """

    def __init__(self, which: int, plain: MemoryDesc, ready: bool = False):
        self.which, self.plain, self.ready = which, plain, ready


class Task:
    """Primitive with the reorders before and after it that its operands need.

    `run(addresses)` computes, given the operands' addresses in order. Any number of threads may run a task
    concurrently: each takes a set of launches; the task keeps as many as ever ran concurrently.
    """

    def __init__(self, library: Library, scratch: Scratch, primitive: Primitive, operands: Sequence[Operand]):
        self._library, self._primitive, self._operands = library, primitive, list(operands)
        self._memory = scratch
        self._idle: deque[tuple] = deque()
        self._bytes, self._offsets = 0, []
        self._before: list[tuple[int, Primitive]] = []
        self._behind: list[tuple[int, Primitive]] = []
        self._layouts: list[tuple[int, int]] = []
        for place, operand in enumerate(self._operands):
            plain = operand.plain.handle
            layout = primitive.query_memory_desc(operand.which) if operand.which in _QUERIES else plain
            self._layouts.append((operand.which, layout))
            if operand.ready or library.same_description(plain, layout):
                self._offsets.append(-1)
                continue
            self._offsets.append(self._reserve_scratch(library.description_bytes(layout)))
            result = operand.which in _RESULTS
            there_and_back = (layout, plain) if result else (plain, layout)
            (self._behind if result else self._before).append((place, _make_reorder(library, *there_and_back)))
        inner = max((p.scratch for _, p in self._before + self._behind), default=0)
        self._scratch = self._reserve_scratch(max(inner, primitive.scratch))
        if primitive.scratch:
            self._layouts.append((_SCRATCH, primitive.query_memory_desc(_SCRATCH)))

    def _reserve_scratch(self, count: int) -> int:
        """Reserve so many more bytes of scratch memory; return their offset."""
        offset = self._bytes
        self._bytes += -(-count // _ALIGNED) * _ALIGNED
        return offset

    def _list_launches(self) -> tuple:
        library, layouts = self._library, self._layouts

        def make_reorder_launch(place: int, reorder: Primitive, back: bool) -> _Launch:
            plain, wanted = self._operands[place].plain.handle, layouts[place][1]
            both = [(SOURCE, wanted), (TARGET, plain)] if back else [(SOURCE, plain), (TARGET, wanted)]
            scratch = [(_SCRATCH, reorder.query_memory_desc(_SCRATCH))] if reorder.scratch else []
            return _Launch(library, reorder, both + scratch)

        return (
            [make_reorder_launch(place, p, False) for place, p in self._before],
            _Launch(library, self._primitive, layouts),
            [make_reorder_launch(place, p, True) for place, p in self._behind],
        )

    def run(self, addresses: Sequence[int]) -> None:
        try:
            launches = self._idle.pop()
        except IndexError:
            launches = self._list_launches()
        try:
            self._run(launches, addresses)
        finally:
            self._idle.append(launches)

    def _run(self, launches: tuple, addresses: Sequence[int]) -> None:
        before, main, behind = launches
        memory = self._memory(_SLOT, self._bytes)
        base = data_address(memory)
        scratch = base + self._scratch
        inside = [a if o < 0 else base + o for a, o in zip(addresses, self._offsets, strict=True)]
        for launch, (place, _) in zip(before, self._before, strict=True):
            launch.run([addresses[place], inside[place], scratch][: len(launch.memories)])
        main.run(inside + [scratch] if self._primitive.scratch else inside)
        for launch, (place, _) in zip(behind, self._behind, strict=True):
            launch.run([inside[place], addresses[place], scratch][: len(launch.memories)])

    def has_same_layout(self, other: Task, place: int) -> bool:
        """True if it uses the same layout as another task for the operand at an index."""
        return bool(self._library.same_description(self._layouts[place][1], other._layouts[place][1]))

    def make_weight_reorder(self, place: int) -> WeightReorder | None:
        """Return the reorder for all runs of a task with a `ready` operand; None if the layout already fits."""
        operand, (_, wanted) = self._operands[place], self._layouts[place]
        if self._library.same_description(operand.plain.handle, wanted):
            return None
        return WeightReorder(self, self._library, self._memory, operand.plain, wanted)


class WeightReorder:
    """Reorder of an operand for a primitive, into scratch memory of the calling thread."""

    def __init__(self, owner: Task, library: Library, scratch: Scratch, plain: MemoryDesc, wanted: int):
        self._owner = owner  # owns the descriptor `wanted`
        self._memory = scratch
        self._bytes = library.description_bytes(wanted)
        self._plain, self._wanted, self._library = plain, wanted, library
        self._reorder = _make_reorder(library, plain.handle, wanted)
        self._idle: deque[_Launch] = deque()

    def run(self, address: int) -> tuple[Any, int]:
        """Return the reordered memory, to be kept alive while it is read, and its address."""
        scratch = self._reorder.scratch
        memory = self._memory(_SLOT_OF_READIED, self._bytes + _ALIGNED + scratch)
        base = data_address(memory)
        try:
            launch = self._idle.pop()
        except IndexError:
            more = [(_SCRATCH, self._reorder.query_memory_desc(_SCRATCH))] if scratch else []
            both = [(SOURCE, self._plain.handle), (TARGET, self._wanted)]
            launch = _Launch(self._library, self._reorder, both + more)
        after = base + -(-self._bytes // _ALIGNED) * _ALIGNED
        try:
            launch.run([address, base, after][: len(launch.memories)])
        finally:
            self._idle.append(launch)
        return memory, base


def _make_reorder(library: Library, source: int, target: int) -> Primitive:
    engine = library.engine
    made = library.make("reorder_primitive_desc_create", source, engine, target, engine, library.attributes)
    return Primitive(library, made)
