"""Capture: runs one call of a function and records its kernels as a program."""

from __future__ import annotations

import math
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from torchlite._device.generators import THREADS_WITH_COPIES, unwrap_engine_copy
from torchlite._dispatch.autograd_graph import OutputEdge, base_of, grad_of, root_meta_of, why_view_is_not_writable
from torchlite._dispatch.backend import owner_of
from torchlite._dispatch.call import Parameter, Tensor
from torchlite._dispatch.dispatch_state import LEAF, MODE, REQUIRES_GRAD_DETACHED, SEQUENCE, recording
from torchlite._dispatch.kernel_recorder import KernelRecorder, UnrecordableError, table_of
from torchlite._dispatch.op_record import RANDOM, REGISTRY, UNINITIALIZED
from torchlite._settings.compiler_state import THREAD_STATE
from torchlite._types.devices import device
from torchlite._types.dtypes import dtype
from torchlite._types.layouts import layout, memory_format
from torchlite._types.quantized_levels import LevelsMatrix
from torchlite.optim.lbfgs import LBFGS
from torchlite.optim.optimizer import GLOBAL_STEP_HOOKS, Optimizer

from .array_ids import ArrayIds
from .captured_backward import GraphBoundary
from .exc import Unsupported
from .flatten_args import flatten_result, replace_in_list, replace_lazy_scalars
from .guards import SIMPLE_TYPES, ReachableState, is_known_module
from .lazy_scalars import LazyItemArray, LazyScalar, ReturnedList, ReturnedListArray, is_returned, to_number
from .program_ir import CapturedCall, Frame, Program, ResultSpec, Slot, Step, frames_within
from .side_effect_monitor import SideEffectMonitor, user_location
from .step_purity import is_pure, only_mutates_args
from .warning_replay import WarningRecorder

# Types of kernel arguments other than arrays.
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, dtype, device, layout, memory_format, np.dtype,
              type(Ellipsis), type, LevelsMatrix)  # fmt: skip
# Nodes of results without a backward pass: a view of a leaf that was made without gradients is one of them.
_GRADS = {None: "", LEAF: "leaf", REQUIRES_GRAD_DETACHED: "detached"}
# Maximum number of elements that Python code may read, and that a constant may have.
_READ, _CONSTANT = 1 << 12, 1 << 20


def _is_importing(frame: Any) -> bool:
    """True if a frame is part of an import; module finders can be Python code."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


class Capture(KernelRecorder):
    """Kernel recorder of one call. outside: the tensors that exist before the call. most: kernels that are recorded.
    keeps_reads: whether reads of elements are recorded; otherwise they end the capture.
    """

    keeps_reads = True
    is_part = False  # the call is a part of another one, which may ask for gradients of results by each other
    start = 0  # number of the call among nodes

    def __init__(self, table: Any, outside: list, state: ReachableState, most: float = math.inf) -> None:
        host = table_of(device("cpu"))
        super().__init__(table, None if table is host else host)
        self.outside, self.state, self.most = outside, state, most
        self.is_long = False  # True if the call runs more kernels
        self.place = ""
        self.frames: tuple[Frame, ...] = ()  # the calls in progress when the capture failed
        self._modules = len(sys.modules)
        self.loads = False  # True if modules were imported before the failure
        self.steps: list[Step] = []
        self.names = ArrayIds()
        self.count = 0  # number of slots
        self.published: dict[int, int | None] = {}  # gradients of outside tensors at the time an object is called
        self.constants: dict[int, Any] = {}
        self.lasting = {id(held.place) for held in state.held}  # containers that existed before the call
        self.given: dict[int, Any] = {}  # guards of the containers among the arguments
        self.changes = False  # True if the call changed objects that outlive it
        self.is_open = True  # True while the program's own code runs
        self.is_running = False  # True while it is called
        self.writes = False  # True once the call wrote memory or drew random numbers, which a later miss cannot undo
        self.apart: dict[int, int] = {}  # how often program objects changed outside memory
        self.number_arrays: dict[int, Any] = {}  # arrays made from Python numbers, and copies of them
        self.elements: list[Any] = []  # lazy scalars not read yet, with their slots
        self.logs = [(log, len(log)) for log in state.logs]
        self.reads_logs = False
        self.appends: Counter[int] = Counter()  # calls of their `append`, by id
        self.watcher = SideEffectMonitor(state.codes, self)
        self.inputs = [self.new_slot(t._tl_array).number for t in outside]
        # The gradients of outside tensors before the call, as weak references, and their layouts.
        self.first_grads = [None if grad is None else weakref.ref(grad) for grad in map(grad_of, outside)]
        self.gradients = [None if grad is None else grad._tl_array.strides for grad in map(grad_of, outside)]
        for i, grad in enumerate(map(grad_of, outside)):
            if grad is not None and grad._tl_array.__class__ is table.array:
                # Existing gradients get slots lazily: most programs never read them.
                if not self.is_known(grad._tl_array):
                    self.names.assign_slot(grad._tl_array, -1 - i)
        self.owners = set(self.names.memory.values())

    def fail_at(self, why: str, place: str) -> None:
        """Fail the capture at a source line of the program."""
        if self.failure is None:
            self.place = place
        self.fail(why)

    def fail(self, why: str) -> None:
        if self.failure is None:
            self.place = self.place or user_location(sys._getframe(1), self.state.codes)
            self.loads = len(sys.modules) > self._modules or _is_importing(sys._getframe(1))
            if self.is_running:
                self.frames = frames_within(sys._getframe(1), Capture.run.__code__)
        super().fail(why)

    def note(self, hook: Callable, *arguments: Any) -> Any:
        """Return the result of a method; None if recording has failed. The watcher does not see what it calls."""
        self.depth += 1
        try:
            return self.watcher.hide(super().note, hook, *arguments)
        finally:
            self.depth -= 1

    # -- arrays and slots ----------------------------------------------------------------------

    def new_slot(self, raw: Any) -> Slot:
        """Return a new slot for an array that was just created."""
        self.names.assign_slot(raw, self.count)
        self.count += 1
        return Slot(self.count - 1)

    def is_known(self, raw: Any) -> bool:
        """True if an array has a slot."""
        return id(raw) in self.names.slots

    def slot(self, raw: Any) -> Slot:
        """Return the slot of an array. Raise UnrecordableError for an array of unknown origin."""
        number = self.names.slots.get(id(raw))
        if number is not None:
            return Slot(number)
        made, constant = self.number_arrays.get(id(raw), (None, None))
        if made is not raw:
            raise UnrecordableError("it computes without kernels of its device")
        found = self.new_slot(raw)
        self.constants[found.number] = constant
        return found

    def keep_constant(self, tensor: Any) -> None:
        """Record the current value of a tensor made from Python numbers as a constant, should a kernel read it."""
        self.record_constant_array(tensor._tl_memory)

    def record_constant_array(self, raw: Any) -> None:
        is_ours = raw.__class__ is self.table.array
        if (
            not (is_ours or raw.__class__ is np.ndarray)
            or self.is_known(raw)
            or self.names.memory_of(raw) in self.owners
        ):
            return
        if raw.size <= _CONSTANT:
            self.depth += 1
            self.number_arrays[id(raw)] = raw, self.table.clone(raw) if is_ours else raw.copy("K")
            self.depth -= 1

    # -- constants on the host --------------------------------------------------------------------

    def computed_on_host(self, name: str, args: tuple, kwargs: dict, result: Any) -> None:
        """Record a result of the processor as a constant if it was computed from constants."""
        op = REGISTRY.get(name)
        arrays = [*self._find_arrays((args, *kwargs.values()))]
        if op is not None and op.tags & RANDOM:
            raise UnrecordableError("it draws random numbers of another device")
        if not is_pure(Step(name, None, args, kwargs, None)):
            memory = {id(owner_of(raw)) for raw in arrays}
            if any(
                id(owner_of(raw)) in memory for raw, _ in self.number_arrays.values() if raw.__class__ is np.ndarray
            ):
                raise UnrecordableError("it writes a constant of another device")
        elif (op is None or not op.tags & UNINITIALIZED) and all(map(self._is_constant, arrays)):
            for raw in self._find_arrays(result):
                self.record_constant_array(raw)

    def read_on_host(self, raw: Any) -> None:
        if not self._is_constant(raw):
            raise UnrecordableError("it computes without kernels of its device")

    def moved_from_host(self, raw: Any, result: Any) -> None:
        if self._is_constant(raw):
            self.record_constant_array(result)

    def _is_constant(self, raw: Any) -> bool:
        return self.number_arrays.get(id(raw), (None,))[0] is raw

    def _find_arrays(self, value: Any) -> Iterator[Any]:
        """Yield the processor's arrays in a value, and record that lazy scalars in it are used."""
        if isinstance(value, LazyScalar):
            value.look()
        elif value.__class__ is np.ndarray:
            yield value
        elif isinstance(value, (tuple, list)):
            for item in value:
                yield from self._find_arrays(item)
        elif value.__class__ is slice:
            yield from self._find_arrays((value.start, value.stop, value.step))

    def encode_argument(self, value: Any) -> Any:
        """Return a kernel argument with arrays replaced by Slots."""
        cls = value.__class__
        if cls is self.table.array:
            return self.slot(value)
        if isinstance(value, LazyScalar):
            value.look()
            return to_number(value)
        if isinstance(value, tuple) or cls is list:
            items = [self.encode_argument(item) for item in value]
            return items if cls is list else tuple(items)
        if cls is slice:
            return slice(*map(self.encode_argument, (value.start, value.stop, value.step)))
        if isinstance(value, _CONSTANTS):
            return value
        if self.is_known(value):
            return self.slot(value)
        if hasattr(value, "manual_seed"):
            return value
        raise UnrecordableError(f"a kernel gets an object of {cls.__module__}.{cls.__name__}")

    def decode_result(self, result: Any) -> Any:
        """Return a kernel's result with arrays replaced by Slots."""
        if result is None:
            return None
        if result.__class__ in (tuple, list):
            return tuple([self.decode_result(item) for item in result])
        if isinstance(result, (bool, int, float, complex, str)):
            raise UnrecordableError("a kernel answers with a number of Python's")
        return self.new_slot(result)

    # -- recording ------------------------------------------------------------------------------

    def called(self, name: str, kernel: Any, args: tuple, kwargs: dict, result: Any) -> None:
        if len(self.steps) >= self.most:
            self.is_long = True
            raise UnrecordableError(f"it runs more than {self.most} kernels")
        if THREADS_WITH_COPIES:
            args = tuple(map(unwrap_engine_copy, args))
        given = self.encode_argument(args), {name: self.encode_argument(value) for name, value in kwargs.items()}
        depends = name in _DATA_DEPENDENT_OPS or name == "_index" and any(map(_is_boolean_index, args[1]))
        if depends and not self.keeps_reads:
            raise UnrecordableError(f"the shape of what {name} gives depends on elements")
        if depends and (self.writes or not self.is_open):
            when = "after something was written or drawn" if self.writes else "in its backward pass"
            raise UnrecordableError(f"the shape of what {name} gives depends on elements, {when}")
        out = None if result is None else self.decode_result(result)
        step = Step(name, kernel, *given, out, user_location(sys._getframe(3), self.state.codes))
        self.writes = self.writes or not is_pure(step) and self._has_lasting_effect(step)
        self.steps.append(step)
        if depends:
            # A data-dependent shape is guarded as elements are: later steps hold for this shape only.
            for number in step.makes():
                shape = np.array(self.names.layouts[number][0], np.int64)
                self.steps.append(Step("shape", None, (Slot(number),), {}, None, kind="read", expected=shape))

    def _has_lasting_effect(self, step: Step) -> bool:
        """True if a step's side effect is visible outside the call."""
        return not only_mutates_args(step) or any(self.names.memory.get(n) in self.owners for n in step.uses())

    def read(self, raw: Any, found: Any, caller: Any) -> Any:
        if self.keeps_reads and (caller is _ITEM_CODE or caller is _TOLIST_CODE):
            frame: Any = sys._getframe()
            while frame.f_code is not caller:
                frame = frame.f_back
            frame = frame.f_back
            own = frame.f_back is not None and frame.f_back.f_code is Capture.run.__code__
            returned = own and is_returned(frame)
            if returned and caller is _TOLIST_CODE:
                self.slot(raw)
                return ReturnedListArray(found, lambda made: self._make_lazy_scalar(made, raw, found))
            if caller is _ITEM_CODE and (returned or not self.state.asks_for_classes):
                # Copy, so the value returned at the end is that of the time of reading.
                self.slot(raw)
                return LazyItemArray(found, lambda number: self._make_lazy_scalar(number, raw, found), returned)
        self._record_element_read(raw, found)
        return found

    def _record_element_read(self, raw: Any, found: Any) -> None:
        """Record a read: the program's control flow depends on these elements."""
        if not self.is_open:
            raise UnrecordableError("elements are read in its backward pass")
        if self.writes:
            raise UnrecordableError("elements are read after something was written or drawn")
        if raw.size > _READ or not self.keeps_reads:
            raise UnrecordableError("elements are read")
        frames = frames_within(sys._getframe(1), Capture.run.__code__)
        slot = self.slot(raw)
        self.steps.append(Step("read", None, (slot,), {}, None, kind="read", expected=np.array(found), frames=frames))

    def _make_lazy_scalar(self, number: Any, raw: Any, found: Any) -> Any:
        """Return a lazy scalar and the function to call when it is read."""
        if number is None:
            return lambda: self.note(self._record_element_read, raw, found)
        self.depth += 1
        kept, clone = self.table.clone(raw), self.table.clone
        self.depth -= 1
        step = Step("clone", clone.args[2], (self.slot(raw),), {}, self.new_slot(kept))
        self.steps.append(step)
        self.elements.append((number, step.out.number))
        frames = frames_within(sys._getframe(1), Capture.run.__code__)
        read = Step("read", None, (step.out,), {}, None, kind="read", expected=np.array(found), frames=frames)
        is_late = self.writes

        def observe_element() -> None:
            if self.is_open and self.failure is None:
                if is_late:
                    self.fail("elements are read after something was written or drawn")
                else:
                    self.steps.insert(1 + next(i for i, one in enumerate(self.steps) if one is step), read)

        return observe_element

    def check_backward_pass(self, run: Any) -> None:
        """Fail if a backward pass goes through nodes from before the call: another call may have others."""
        if self.is_open and any(node._seq <= self.start for node in run.order()):
            self.fail("a backward pass goes through a history from outside")

    def note_append(self, log: list) -> bool:
        """Note a call of a list's `append`. Return whether the list is a log, which the call only appends to."""
        is_log = any(log is one for one, _ in self.logs)
        self.appends[id(log)] += is_log
        return is_log

    def observe_all(self) -> None:
        """Record reads of all lazy scalars, as code that cannot be traced may use them."""
        for number, _ in self.elements:
            number.look()

    def as_one(self, call: Any, owner: Any, args: tuple, kwargs: dict) -> Any:
        """Record a call of an optimizer's or scheduler's step as one program step. It updates its own state, so a
        replay calls it again.
        """
        if not self.keeps_reads:
            self.fail(f"{owner.__class__.__name__} steps")
        given = [*args, *kwargs.values()]
        if len(given) == 1 and callable(given[0]) and _calls_closure_once(owner):
            with recording(True):
                loss = given[0]()
            self.as_one(call, owner, (), {})
            return loss
        if (
            self.failure is not None
            or id(owner) not in self.state.leaves
            or not all(isinstance(value, SIMPLE_TYPES) or id(value) in self.state.leaves for value in given)
        ):
            self.fail(f"{owner.__class__.__name__} steps that is not one of the function's own, or with a closure")
            self.depth += 1
            try:
                return call(owner, *args, **kwargs)
            finally:
                self.depth -= 1
        before = [root_meta_of(t).n for t in self.outside], [t._tl_array for t in self.outside]
        grads = []
        for i, tensor in enumerate(self.outside):
            grad = grad_of(tensor)
            known = self.published.get(i, -1)
            if known != -1 or not self._has_first_grad(i):
                slot = None if grad is None else self.slot(grad._tl_array)
                if known == -1 or known != (None if slot is None else slot.number):
                    grads.append((i, slot))
        self.writes, self.depth = True, 1
        args = tuple([to_number(value) if isinstance(value, LazyScalar) else value for value in args])
        try:
            result = call(owner, *args, **kwargs)
        finally:
            self.depth = 0
        if result is not None or any(t._tl_array is not raw for t, raw in zip(self.outside, before[1], strict=True)):
            self.fail("an optimizer's step that does more than write")
        for i, tensor in enumerate(self.outside):
            self.apart[i] = self.apart.get(i, 0) + root_meta_of(tensor).n - before[0][i]
        method = getattr(owner, call.__name__)
        self.steps.append(Step(call.__name__, method, args, kwargs, None, kind="object", grads=tuple(grads)))
        self.published.update((i, None if slot is None else slot.number) for i, slot in grads)
        return result

    def record_warning(self, warn: Any, given: tuple, outermost: Any) -> None:
        """Record a warning, emit it now and in each replay. outermost: the frame that calls the program."""
        frame = sys._getframe(2)
        self.steps.append(Step("warn", warn, given, {}, None, user_location(frame, self.state.codes), kind="warning"))
        self.writes, self.depth = True, 1
        try:
            warn(*given, outermost)
        finally:
            self.depth = 0

    # -- the call ------------------------------------------------------------------------------

    def run(self, function: Any, args: tuple, kwargs: dict) -> tuple[Any, CapturedCall | None]:
        """Call the function. Return its result and the captured call, None if it cannot be replayed (see `failure`)."""
        before = [(t._tl_node, t._tl_array, root_meta_of(t).n, _tensor_attributes(t)) for t in self.outside]
        versions = [0 if grad is None else root_meta_of(grad).n for grad in map(grad_of, self.outside)]
        start = self.start = next(SEQUENCE)
        with self:
            THREAD_STATE.captures += 1
            try:
                with WarningRecorder(self, Capture.run.__code__), self.watcher:
                    self.is_running = True
                    result = function(*args, **kwargs)
            except Exception as error:
                error.args = self._replace_lazy_scalars(error.args)
                raise
            finally:
                self.is_running = False
                THREAD_STATE.captures -= 1
            captured, self.is_open = None, False
            if self.failure is None:
                try:
                    captured = self._make_captured_call(result, before, versions, start)
                except (UnrecordableError, Unsupported) as error:
                    self.fail(str(error))
                except Exception as error:  # a missing derivative, for example: no backward pass has run yet
                    self.fail(f"its backward pass cannot be recorded: {error}")
        return self._replace_lazy_scalars(result), captured if self.failure is None else None

    def _replace_lazy_scalars(self, result: Any) -> Any:
        """Return the result with lazy scalars replaced by Python numbers."""
        if not self.elements:
            return result
        numbers, self.elements = self.elements, []
        result = replace_lazy_scalars(result)
        for log, n in self.logs:
            replace_in_list(log, n)
        for held in (*self.state.held, *self.given.values()):
            if not held.is_same():
                held.replace(replace_lazy_scalars)
        for place in self.state.empty:
            replace_lazy_scalars(place)
        for number, _ in numbers:
            to_number(number)
        return result

    def _make_captured_call(self, result: Any, before: list, versions: list[int], start: int) -> CapturedCall:
        for tensor, (node, data, _, fields) in zip(self.outside, before, strict=True):
            if tensor._tl_node is not node or tensor._tl_array is not data or _tensor_attributes(tensor) != fields:
                raise Unsupported("a tensor from outside gets another history, memory or attribute")
        if not self.state.is_same():
            self.changes = True
            raise Unsupported("it changes objects that live on")
        if self.logs and self.state.reads_logs(self.watcher.verdicts):
            self.changes = self.reads_logs = True
            raise Unsupported("it reads a list that it appends to")
        logs = tuple([log for log, n in self.logs if len(log) > n])
        if any(len(log) != n + self.appends[id(log)] for log, n in self.logs):
            raise Unsupported("a list is written by other code too")
        if logs:
            result = result, [log[n:] for log, n in self.logs if len(log) > n]
        leaves, rebuild, shape = flatten_result(result, self.state.leaves, self.lasting)
        results = [self._encode_result(t, leaves) for t in leaves]
        grads: dict[int, int | None] = {}
        for i, number in self.published.items():
            if number is not None and self._has_first_grad(i):
                if self.first_grads[i] is not None:
                    raise Unsupported("a gradient is taken away and comes back")
                grads[i] = None
        reads = bool(self.apart or self.watcher.reads_gradients)
        for i, tensor in enumerate(self.outside):
            grad = grad_of(tensor)
            if not self._has_first_grad(i):
                if grad is not None and (grad.__class__ is not Tensor or grad._tl_node is not None):
                    raise Unsupported("a gradient has a history")
                number = None if grad is None else self.slot(grad._tl_array).number
                reads = True
                if i not in self.published or self.published[i] != number:
                    grads[i] = number
        firsts = version_counter_groups(self.outside)
        bumps = {
            i: root_meta_of(t).n - n - self.apart.get(i, 0)
            for i, (t, (_, _, n, _)) in enumerate(zip(self.outside, before, strict=True))
            if root_meta_of(t).n != n + self.apart.get(i, 0) and firsts[i] == i
        }
        for i, (first, n) in enumerate(zip(self.first_grads, versions, strict=True)):
            grad = None if first is None else first()
            if grad is not None and root_meta_of(grad).n != n:
                bumps[-1 - i] = root_meta_of(grad).n - n
        boundary = GraphBoundary(self, start)
        backward = boundary.record_backward_passes(
            [t for t in leaves if isinstance(t, Tensor) and t._tl_node not in _GRADS], results, leaves
        )
        outputs = [r.slot for r in results if r.outside < 0] + [n for n in grads.values() if n is not None]
        if backward is not None:
            outputs += backward.saved
        program = Program(boundary.forward_steps, self.inputs, dict(self.constants), outputs)
        old = sorted(n for n in program.used() if n < 0)
        program.inputs = [*self.inputs, *old]
        reads = reads or bool(old) or any(i < 0 for i in bumps)
        names = self.names
        return CapturedCall(
            program, results, rebuild, shape, bumps, grads, reads, self.gradients, names.scalars, names.layouts,
            names.memory, backward, logs,
        )  # fmt: skip

    def _has_first_grad(self, i: int) -> bool:
        """True if an outside tensor still has the gradient (or None) that it had before the call."""
        first, grad = self.first_grads[i], grad_of(self.outside[i])
        return first is grad if first is None or grad is None else first() is grad

    def _encode_result(self, tensor: Any, leaves: list) -> ResultSpec:
        if isinstance(tensor, LazyScalar):
            kind = "tolist" if isinstance(tensor, ReturnedList) else "item"
            return ResultSpec(next(n for one, n in self.elements if one is tensor), kind=kind)
        for i, one in enumerate(self.outside):
            if one is tensor:
                return ResultSpec(outside=i)
        if tensor.__class__ is not Tensor and not tensor._tl_signs:
            raise Unsupported(f"it returns a new object of {tensor.__class__.__name__}")
        found = ResultSpec(
            self.slot(tensor._tl_memory).number,
            dtype=tensor.dtype,
            kind=why_view_is_not_writable(tensor),
            signs=tensor._tl_signs,
        )
        if tensor._tl_kernels is not self.table:  # a constant on the host
            found.table = tensor._tl_kernels
            if base_of(tensor) is not None or self.constants[found.slot].strides != tensor._tl_memory.strides:
                raise Unsupported("it returns a view of a constant of another device")
        found.is_view = base_of(tensor) is not None
        meta = tensor._tl_meta
        if meta is not None and meta.__class__ is not tuple:
            found.is_inference = meta.inference and not MODE.inference
            if (
                meta.hooks
                or meta.grad is not None
                or meta.retains
                or meta.tangents
                or meta.fixed
                or MODE.inference
                and not meta.inference
            ):
                raise Unsupported("it returns a tensor with hooks, a gradient or a mode's mark")
        node = tensor._tl_node
        found.grad = _GRADS.get(node, "node")
        owner = owner_of(tensor._tl_memory)
        base = base_of(tensor)
        for i, one in enumerate(self.outside):
            if owner_of(one._tl_array) is owner and (found.shares < 0 or root_meta_of(one) is root_meta_of(tensor)):
                found.shares = i
                if base is one or base is not None and base is base_of(one):
                    break
        if found.shares >= 0:
            source = self.outside[found.shares]
            if found.grad and base is None or base is not None and base is not source and base is not base_of(source):
                raise Unsupported("it returns a tensor in the memory of one from outside that is no view of it")
        alike = [t for t in leaves if isinstance(t, Tensor) and owner_of(t._tl_memory) is owner]
        if len(alike) > 1 and found.shares < 0:
            if any(t._tl_node is not None and why_view_is_not_writable(t) != "multi_output" for t in alike):
                raise Unsupported("it returns tensors with histories in one memory")
            found.group = self.slot(alike[0]._tl_memory).number
        return found


def _calls_closure_once(owner: Any) -> bool:
    """True if an optimizer's step with a closure calls the closure exactly once before the update."""
    if not isinstance(owner, Optimizer) or isinstance(owner, LBFGS) or not is_known_module(owner.__class__.__module__):
        return False
    return not (owner._optimizer_step_pre_hooks or owner._optimizer_step_post_hooks or any(GLOBAL_STEP_HOOKS))


def _tensor_attributes(tensor: Any) -> dict:
    """Return the attributes and hooks that a program set on a tensor."""
    meta = tensor._tl_meta
    hooks = None if meta is None or meta.__class__ is tuple else (
        len(meta.hooks or ()), len(meta.post_hooks or ()), meta.retains, meta.inference, bool(meta.tangents)
    )  # fmt: skip
    node = tensor._tl_node.node if tensor._tl_node.__class__ is OutputEdge else tensor._tl_node
    of_node = getattr(node, "_hooks", None)
    if of_node is not None:
        counts = [*map(len, of_node.tensor.values()), *map(len, (of_node.retain, of_node.pre, of_node.post))]
    return {"hooks": (hooks or (0, 0, False, False, False), of_node and sum(counts)), **tensor.__dict__}


def version_counter_groups(tensors: list) -> list[int]:
    """Return, for each tensor, the first tensor that shares its version counter."""
    roots = [root_meta_of(tensor) for tensor in tensors]
    first: dict[int, int] = {}
    return [first.setdefault(id(root), i) for i, root in enumerate(roots)]


def _is_boolean_index(index: Any) -> bool:
    """True if an index is a Boolean mask."""
    return getattr(index, "dtype", None) in (np.bool_, np.uint8)


# Kernels with data-dependent result shapes.
_DATA_DEPENDENT_OPS = frozenset((
    "_nonzero_indices", "masked_select", "_unique_flat", "_unique_rows", "_unique_runs", "bincount",
    "_repeat_interleave_indices", "_loop", "_scan",
))  # fmt: skip


def common_kernel_table_of(tensors: list) -> Any:
    """Return the kernel table of the tensors' device, None for several devices or an unrecordable one."""
    from torchlite._types.devices import get_default_device

    found = {id(t._tl_kernels): t._tl_kernels for t in tensors}
    if len(found) > 1:
        return None
    table = next(iter(found.values()), None) or table_of(get_default_device())
    return None if table.device.type == "meta" else table


def is_plain(tensor: Any) -> bool:
    """True if a tensor's class is one that capture supports."""
    return (tensor.__class__ is Tensor or tensor.__class__ is Parameter) and not tensor._tl_signs


_ITEM_CODE, _TOLIST_CODE = Tensor.item.__code__, Tensor.tolist.__code__
