"""CompiledFunction: dispatches calls of a `torch.compile` function to captured variants, or captures new ones."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import threading
import warnings
import weakref
from typing import Any

from torchlite._dispatch.dispatch_state import GLOBALS, MODE
from torchlite._dispatch.fallback import level_of_the_program
from torchlite._dispatch.hooks import saved_tensor_hooks
from torchlite._dispatch.interceptors import stack
from torchlite._dispatch.kernel_recorder import RECORDERS, UnrecordableError
from torchlite._settings.backend_flags import FLAGS
from torchlite._settings.compiler_state import THREAD_STATE
from torchlite._settings.thread_count import get_threads
from torchlite._types.devices import get_default_device
from torchlite._types.dtypes import get_default_dtype
from torchlite._types.python_source import is_identifier
from torchlite.amp.autocast_mode import current_state as autocast_in_force
from torchlite.amp.autocast_mode import is_only_autocast_active, without_cast_cache

from . import config, logs
from .capture import Capture, common_kernel_table_of, is_plain
from .constant_tensors import has_gradients
from .dynamic_shapes import CALLS_BEFORE_CAPTURE, SizeVariant, SizeVariants, dynamic_dims, layouts_of, structure_key
from .exc import FailOnRecompileLimitHit, NotYet, RecompileError, Unsupported
from .executed_code import ExecutedCode
from .flatten_args import find_containers, flatten_args, without_objects
from .guards import DYNAMIC_ACCESS, GLOBAL_MODULE_HOOKS, MODULE_ATTRIBUTES, ReachableState
from .marked_sizes import check_marked_sizes, has_marked_sizes
from .program_ir import CapturedCall, Frame, Step, is_same_program, is_same_step
from .python_codegen import ReplayMiss
from .recompile_reasons import RecordedArguments, arguments_of, limit_message, recompile_message
from .replay import ArrayReplay, compile_replay
from .replay_forms import ReplayForms
from .shared_program import SharedProgram
from .tensor_guards import TensorSource, compile_tensor_guard


def _dispatch_state() -> tuple:
    """Return the thread and process state that influences dispatch."""
    return (
        MODE.grad, MODE.inference, MODE.plain, MODE.transforms, get_default_dtype(), get_default_device(),
        FLAGS.deterministic, FLAGS.cudnn_enabled,
        autocast_in_force() if stack.items else None,
    )  # fmt: skip


def _read_preserved_state() -> tuple:
    """Return the state that a call must restore."""
    return (*_dispatch_state(), get_threads(), tuple(map(id, stack.items)), repr(vars(FLAGS)))


class CaptureVariant:
    """A captured call: recorded at the first call, replayed once a second recording is equal."""

    def __init__(self, modes: tuple, state: ReachableState, objects: list) -> None:
        self.modes, self.state, self.objects = modes, state, objects
        self.sources: list[TensorSource] = []
        self.is_same = state.is_same  # True if the reachable state is unchanged
        self.guard: Any = None
        self.captured: CapturedCall | None = None
        self.replay: Any = None
        self.forms: ReplayForms | None = None
        self.sizes: SizeVariants | None = None  # variants that differ in sizes only

    def find_replay(self, tensors: list, modes: tuple) -> Any:
        """Return the replay for a call with these tensors, None if the variant does not match. A variant that waits
        for its second recording gives True.
        """
        if modes != self.modes:
            return None
        if self.forms is None:
            return self.replay or True if self.guard(*tensors) and self.is_same() else None
        replay = self.forms.find(tensors)
        if replay is None or not self.is_same():
            return None
        self.replay = replay
        return replay

    def is_unchanged(self) -> bool:
        """True if a call now would do what the captured call did; derivatives use the captured record."""
        return _dispatch_state()[1:] == self.modes[1:] and self.is_same()

    def find_other_branch(self, captured: CapturedCall) -> CaptureVariant:
        """Return the variant of a call with equal arguments that took another branch."""
        other = CaptureVariant(self.modes, self.state, self.objects)
        other.sources, other.guard, other.captured = self.sources, self.guard, captured
        return other


class CompiledFunction:
    """Compiled function of `torch.compile`: `compiled(*args, **kwargs)` returns what the function returns.

    The first two calls with arguments of one kind run eagerly and are recorded. If both recordings are equal, later
    calls are replayed. A function that cannot be replayed runs eagerly after one warning, and raises Unsupported with
    `fullgraph`.
    """

    is_compiled = True
    needed = CALLS_BEFORE_CAPTURE  # calls of a size before its capture
    structure_key = staticmethod(structure_key)  # key shared by calls that differ in numbers only
    warns = True  # warn about functions that run eagerly
    most_steps = math.inf  # kernels of a call that is recorded
    is_part = False  # its calls are steps of another function's program
    keeps_logs = True  # a call may append to lists that it does not read
    keeps_reads = True  # reads of elements are guards or results, not graph breaks
    shares_sizes = True  # a program may serve several sizes
    splits = True  # a call that cannot be captured runs in parts
    is_of_inference = False  # replays without gradients have all passes, also without constants

    def __init__(
        self,
        function: Any,
        name: str,
        fullgraph: bool = False,
        limit: int | None = None,
        mode: str | None = None,
        dynamic: bool | None = None,
    ) -> None:
        self.function, self.name, self.fullgraph, self.limit, self.mode = function, name, fullgraph, limit, mode
        self.dynamic = dynamic
        self.variants: dict[Any, list[CaptureVariant]] = {}  # by argument key or SizeVariant
        self.structures: dict[Any, list[SizeVariants]] = {}  # by argument structure
        self.misses: dict[Any, tuple[int, int]] = {}  # earlier replays, and calls since that no variant matched
        self.reasons: list[str] = []  # reasons calls are not replayed
        self.postponed = ""  # the reason that the last calls were not recorded, where later ones may be
        self.gave_up = False
        self.eager: set[Any] = set()  # argument keys that run eagerly
        self.replays = 0
        self.dropped: dict[Any, int] = {}  # replays when a capture of another object was dropped, by `without_objects`
        self.discovery = ExecutedCode()
        self.changes = 0  # number of calls that changed long-lived objects
        self.tree: Any = None  # the parts, once a call cannot be captured
        self.part: Any = None  # of a part: the function that is split, and the part
        self.part_calls = 0  # calls in succession that ran in parts
        self.ignored: frozenset[str] = frozenset()  # attributes that only statements between the parts read or write
        self.is_within = False  # called by the parts of another one
        self.numbers: dict[str, set[float]] = {}  # values of a part's inputs
        self.failed: dict[Any, int] = {}  # calls of a part that raised an error, by key
        self.recorded: list[RecordedArguments] = []  # arguments of the calls that were recorded
        COMPILED_FUNCTIONS.add(self)

    def reset(self) -> None:
        """Discard all captures."""
        self.variants, self.reasons, self.gave_up, self.replays, self.postponed = {}, [], False, 0, ""
        self.structures, self.misses, self.eager, self.dropped = {}, {}, set(), {}
        self.discovery, self.changes, self.failed, self.recorded = ExecutedCode(), 0, {}, []
        if not self.is_within:
            self.tree, self.part_calls = None, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            (self.gave_up and not self.variants)
            or (RECORDERS and threading.get_ident() in RECORDERS)
            or config.disable
            or THREAD_STATE.stance == "force_eager"
            or GLOBALS["INTERCEPTORS"]
            and (saved_tensor_hooks.stack or stack.items and not is_only_autocast_active())
        ):
            return self.function(*args, **kwargs)
        if self.part_calls > _CALLS_BEFORE_PARTS:
            return self.tree.run(self.function, args, kwargs)
        tensors: list[Any] = []
        objects: list[Any] = []
        key = flatten_args(args, tensors, objects), flatten_args(kwargs, tensors, objects) if kwargs else None
        modes = _dispatch_state()
        found = self._replay_known_variant(key, tensors, modes, args, kwargs)
        if found is _NO_RESULT and self.structures and key not in self.eager:
            found = self._replay_settled_size(key, tensors, modes, args, kwargs)
        if found is _NO_RESULT and self.structures and key not in self.eager:
            found = self._call_with_dynamic_shape(key, tensors, objects, modes, args, kwargs)
        return self._run_new_key(key, tensors, objects, modes, args, kwargs) if found is _NO_RESULT else found

    def _replay_known_variant(self, key: Any, tensors: list, modes: tuple, args: tuple, kwargs: dict) -> Any:
        """Replay the variant of a key (or size) that matches the call, if there is one."""
        for variant in self.variants.get(key, ()):
            replay = variant.find_replay(tensors, modes)
            if replay is True:
                return self._record_second_call(key, variant, tensors, args, kwargs)
            if replay is None:
                continue
            try:
                result = replay((self.function, args, kwargs, variant), *tensors)
            except ReplayMiss:
                continue
            self.replays += 1
            return result
        return _NO_RESULT

    def _replay_settled_size(self, key: Any, tensors: list, modes: tuple, args: tuple, kwargs: dict) -> Any:
        """Replay the program that serves several sizes, for a size that gets no program of its own."""
        for variant in self.variants.get(key, ()):
            sizes = variant.sizes
            if sizes is not None and sizes.shared is not None:
                replay = sizes.shared.settled.get(layouts_of(tensors))
                if replay is not None and sizes.has(tensors, modes):
                    self.replays += 1
                    return replay((self.function, args, kwargs, variant), *tensors)
        return _NO_RESULT

    def find_array_replay(self, args: tuple) -> ArrayReplay | None:
        """Return the replay of a call as a function of arrays; None if the call is not replayed, or does more."""
        tensors: list[Any] = []
        key = flatten_args(args, tensors, []), None
        if len({id(tensor._tl_array) for tensor in tensors}) < len(tensors):
            return None
        modes = _dispatch_state()
        found = (variant.find_replay(tensors, modes) for variant in self.variants.get(key, ()))
        replay: Any = next(filter(None, found), True)
        return None if replay is True else replay.on_arrays()

    def _call_with_dynamic_shape(
        self, key: Any, tensors: list, objects: list, modes: tuple, args: tuple, kwargs: dict
    ) -> Any:
        """Replay a call that differs from a captured one in sizes or numbers only."""
        sizes = next((s for s in self.structures.get(self.structure_key(key), ()) if s.has(tensors, modes)), None)
        if sizes is None or any(v.find_replay(tensors, modes) for v in self.variants.get(key, ())):
            return _NO_RESULT
        place = sizes.place_of(key, tensors)
        if place in self.variants:
            sizes.keep(place)
            found = self._replay_known_variant(place, tensors, modes, args, kwargs)
            if found is not _NO_RESULT:
                return found
        elif sizes.shared is not None and place.key == sizes.key and place not in self.eager:
            found = self._call_shared_program(sizes, place, tensors, objects, modes, args, kwargs)
            if found is not _NO_RESULT:
                return found
        variants = len(self.variants.get(place, ()))
        if place in self.eager or THREAD_STATE.stance in _NO_RECOMPILE_STANCES or variants >= self._recompile_limit():
            return self.function(*args, **kwargs)
        if not variants:
            self._check_recompile(key, tensors, modes)
        if not variants and not sizes.is_frequent(place):
            if self.part is not None:
                self._note_numbers(args)
            return self._run_rare_size(sizes, place, args, kwargs)
        result = self._record_first_call(place, tensors, objects, modes, args, kwargs)
        if place in self.variants:
            gone = sizes.keep(place)
            if gone is not None:
                self.variants.pop(gone, None)
        else:
            sizes.failed += 1
        return result

    def _run_rare_size(self, sizes: SizeVariants, place: SizeVariant, args: tuple, kwargs: dict) -> Any:
        """Run a call of a size that is not frequent enough to capture."""
        return self.function(*args, **kwargs)

    def _call_shared_program(
        self, sizes: SizeVariants, place: SizeVariant, tensors: list, objects: list, modes: tuple, args: tuple,
        kwargs: dict,
    ) -> Any:  # fmt: skip
        """Replay the program that serves several sizes, or record the call for it."""
        shared: Any = sizes.shared
        if sizes.is_due(place) and shared.serves_for_now(tensors):
            return _NO_RESULT
        replay = shared.find(place, tensors)
        if replay is not None:
            if sizes.is_due(place):
                shared.settle(place, replay)
            sizes.count(place)
            try:
                result = replay((self.function, args, kwargs, sizes.variant), *tensors)
                self.replays += 1
                return result
            except Exception:  # whatever it is, the function raises it as well, or handles it
                if not shared.is_inferred(place):
                    raise
            return self.function(*args, **kwargs)
        if THREAD_STATE.stance in _NO_RECOMPILE_STANCES or not shared.wants(tensors, sizes.calls.get(place, 0)):
            return _NO_RESULT
        self._check_recompile(place.key, tensors, sizes.variant.modes)
        sizes.count(place)
        result = self._record_first_call(place, tensors, objects, modes, args, kwargs)
        for variant in self.variants.pop(place, ()):
            shared.add(place, tensors, variant)
        return result

    def _note_numbers(self, args: tuple) -> None:
        """Leave what reads a float out of a part if the float is another one in each call."""
        split, part = self.part
        for name, value in zip(part.inputs, args, strict=True):
            if value.__class__ is float:
                seen = self.numbers.setdefault(name, set())
                seen.add(value)
                if len(seen) > _MAX_NUMBERS:
                    split.leave_number(part, name)

    def _recompile_limit(self) -> int:
        return self.limit or config.recompile_limit

    # -- capturing --------------------------------------------------------------------------------

    def _run_new_key(self, key: Any, tensors: list, objects: list, modes: tuple, args: tuple, kwargs: dict) -> Any:
        """Run a call with a new argument key."""
        limit = self._recompile_limit()
        if objects and (len(self.eager) >= _MAX_BROKEN_KEYS or self._count_structures() >= limit):
            self._drop_other_object(without_objects(key))
        if self.tree is not None and not self.is_within and len(self.eager) >= _MAX_BROKEN_KEYS:
            return self._run_as_written(args, kwargs)
        if self.is_within and len(self.variants.get(key, ())) >= config.recompile_limit:
            self.eager.add(key)  # what it reads is different in each call
        if self.gave_up or key in self.eager or THREAD_STATE.stance == "eager_on_recompile":
            if self.gave_up and key in self.variants:
                self._record_miss(key)
            return self._run_as_written(args, kwargs)
        if THREAD_STATE.stance == "fail_on_recompile":
            raise RuntimeError(
                f"Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: '{self._definition()}'"
            )
        if self._count_structures() >= limit:
            self._reach_limit(limit, arguments_of(key, tensors, modes))
            return self.function(*args, **kwargs)
        self._check_recompile(key, tensors, modes)
        return self._record_first_call(key, tensors, objects, modes, args, kwargs)

    def _drop_other_object(self, kind: Any) -> None:
        """Drop the oldest capture of a key that differs from a new one in objects alone, such as an earlier cache of
        text generation, and forget which keys with objects run eagerly. Nothing is dropped if few calls were replayed
        since the last time.
        """
        if self.replays < self.dropped.get(kind, 0) + _REPLAYS_BEFORE_DROP:
            return
        self.dropped[kind] = self.replays
        self.eager = {key for key in self.eager if key.__class__ is SizeVariant or without_objects(key) == key}
        keys = (key for key in self.variants if key.__class__ is not SizeVariant and without_objects(key) == kind)
        oldest = next(keys, None)
        gone = self.variants.pop(oldest, ())
        for found in self.structures.values():
            for sizes in [one for one in found if one.variant in gone]:
                found.remove(sizes)
                for place in [p for p in self.variants if p.__class__ is SizeVariant and p.structure == id(sizes)]:
                    del self.variants[place]

    def _reach_limit(self, limit: int, now: RecordedArguments) -> None:
        """Record no more calls. Raise FailOnRecompileLimitHit where that is an error."""
        told = limit_message(self.function, limit, now, self.recorded)
        if config.fail_on_recompile_limit_hit or self.fullgraph:
            what = "fail_on_recompile_limit_hit" if config.fail_on_recompile_limit_hit else "fullgraph=True"
            raise FailOnRecompileLimitHit(f"Hard failure due to {what}") from Unsupported(told)
        self.gave_up = True
        self.reasons.append(f"it was captured {limit} times (recompile_limit)")
        logs.write_log("recompiles", told)
        if self.warns:
            warnings.warn(told, UserWarning, stacklevel=level_of_the_program())

    def _check_recompile(self, key: Any, tensors: list, modes: tuple) -> None:
        """Raise RecompileError if `error_on_recompile` is set and this is not the first recording."""
        if config.error_on_recompile and self.recorded and not self.is_within:
            now = arguments_of(key, tensors, modes)
            raise RecompileError(recompile_message(self.function, now, self.recorded))

    def _record_miss(self, key: Any) -> None:
        """Count a miss of a key; a key that misses most of the time is not captured again."""
        since, count = self.misses.get(key, (self.replays, 0))
        self.misses[key] = since, count + 1
        if count >= _MAX_MISSES:
            del self.misses[key]
            if self.replays - since < count:
                del self.variants[key]
                self.eager.add(key)

    def _count_structures(self) -> int:
        """Return the number of captures, not counting sizes."""
        captured = sum(len(found) for key, found in self.variants.items() if key.__class__ is not SizeVariant)
        return captured + sum(key.__class__ is not SizeVariant for key in self.eager)

    def _record_first_call(
        self, key: Any, tensors: list, objects: list, modes: tuple, args: tuple, kwargs: dict
    ) -> Any:
        """Record the first call of a variant."""
        why: Exception | None = None  # errors of the function are raised outside of handlers, so they have no context
        try:
            variant, outside = self._prepare_variant(tensors, objects, modes)
        except Unsupported as error:
            why = error
        if why is not None:
            return self._run_unprepared(key, why, args, kwargs)
        if self.failed.get(key, 0) > 1:
            return self.function(*args, **kwargs)
        if self.recorded and logs.is_enabled("recompiles"):
            now = arguments_of(key.key if key.__class__ is SizeVariant else key, tensors, modes)
            logs.write_log("recompiles", recompile_message(self.function, now, self.recorded))
        result, captured = self._capture_call(key, variant, outside, args, kwargs)
        if captured is not None:
            if has_marked_sizes(tensors) and not (captured.bumps or captured.grads or captured.logs):
                check_marked_sizes(self.function, args, kwargs)
            variant.captured = captured
            variant.guard = compile_tensor_guard(tensors, variant.sources, outside, captured)
            self.variants.setdefault(key, []).append(variant)
            if THREAD_STATE.programs is not None:
                self._compile_variant(variant, captured, outside, tensors)
            if len(self.recorded) < _MAX_RECORDED:
                self.recorded.append(arguments_of(key.key if key.__class__ is SizeVariant else key, tensors, modes))
            if key.__class__ is not SizeVariant and self.dynamic is not False:
                self._enable_dynamic_shapes(key, variant, tensors, outside)
        return result

    def _run_unprepared(self, key: Any, error: Exception, args: tuple, kwargs: dict) -> Any:
        """Run a call whose state is not understood."""
        is_early = error.__class__ is NotYet
        if not is_early and sys.getprofile() is not None:
            return self.function(
                *args, **kwargs
            )  # a profiler of the program, or the executed-code discovery of a caller
        if not is_early and not self.discovery.may_help():
            return self._give_up_and_run(key, str(error), self._definition(), args, kwargs)
        self.postponed = str(error)
        return self.function(*args, **kwargs) if is_early else self.discovery.call(self.function, args, kwargs)

    def _enable_dynamic_shapes(self, key: Any, variant: CaptureVariant, tensors: list, outside: list) -> None:
        """Group the variants that differ from a captured call in sizes or numbers only."""
        sizes_of = {k: dynamic_dims(t, self.dynamic) for k, t in enumerate(outside)}
        assert variant.captured is not None
        guard = compile_tensor_guard(tensors, variant.sources, outside, variant.captured, sizes_of)
        table: Any = common_kernel_table_of(outside)
        can_record = getattr(table.backend, "can_record", None)
        holds_memory = can_record is not None and can_record(self.mode or "default")
        sizes = variant.sizes = SizeVariants(variant, guard, holds_memory, self.needed)
        if self.shares_sizes and not self.is_within:
            sizes.key = key
            sizes.shared = SharedProgram(_make_identifier(self.name), self.mode or "default", table, variant, tensors)
        self.structures.setdefault(self.structure_key(key), []).append(sizes)

    def _prepare_variant(self, tensors: list, objects: list, modes: tuple) -> tuple[CaptureVariant, list]:
        """Return a new variant for a call and the tensors that exist before it."""
        state = self._find_state(objects)
        outside: list[Any] = []
        variant = CaptureVariant(modes, state, objects)
        seen: set[int] = set()
        for i, tensor in enumerate(tensors):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                is_state = id(tensor) in state.tensors
                outside.append(tensor)
                variant.sources.append(TensorSource(-1, tensor) if is_state else TensorSource(i))
        for tensor in state.tensors.values():
            if id(tensor) not in seen:
                outside.append(tensor)
                variant.sources.append(TensorSource(-1, tensor))
        if not all(map(is_plain, outside)):
            raise Unsupported("it gets a tensor of another class than Tensor and Parameter")
        return variant, outside

    def _find_state(self, objects: list) -> ReachableState:
        """Return the state that a call with these objects can reach."""
        if self.discovery.is_wanted:
            raise Unsupported("it runs other code in each call")
        roots = (self.function, *objects, *GLOBAL_MODULE_HOOKS)
        state = ReachableState(self.discovery.codes, self.ignored, self.keeps_logs).walk(*roots)
        while self.ignored and (used := self.ignored & state.reads()):
            self.ignored = frozenset() if used & DYNAMIC_ACCESS else self.ignored - used
            state = ReachableState(self.discovery.codes, self.ignored, self.keeps_logs).walk(*roots)
        return state

    def _outside_tensors(self, variant: CaptureVariant, tensors: list) -> list:
        return [tensors[s.argument] if s.argument >= 0 else s.held for s in variant.sources]

    def _capture_call(
        self, key: Any, variant: CaptureVariant, outside: list, args: tuple, kwargs: dict
    ) -> tuple[Any, CapturedCall | None]:
        """Record a call. Return its result and the captured call."""
        table = common_kernel_table_of(outside)
        if table is None:
            return self._give_up_and_run(key, "its tensors are on several devices, or on meta", "", args, kwargs), None
        if sys.getprofile() is not None:
            return self.function(*args, **kwargs), None
        settings = _read_preserved_state()
        capture = Capture(table, outside, variant.state, self.most_steps)
        capture.keeps_reads, capture.is_part = self.keeps_reads, self.keeps_reads and self.is_within
        given = capture.given = find_containers((args, kwargs))
        capture.lasting |= given.keys()
        is_busy = False
        try:
            with without_cast_cache():
                result, captured = capture.run(self.function, args, kwargs)
        except UnrecordableError:  # another thread records
            is_busy = True
        except Exception:
            if self.part is not None:
                self.failed[key] = self.failed.get(key, 0) + 1
            elif capture.failure is not None and not self.fullgraph:
                self._give_up(key, capture.failure, capture.place, capture.frames)
            raise
        if is_busy:
            return self.function(*args, **kwargs), None
        if captured is not None and not all(held.is_same() for held in given.values()):
            capture.fail_at("it changes a list, dictionary or dataclass that it gets", self._definition())
            captured = None
        if captured is not None and _read_preserved_state() != settings:
            capture.fail_at("it changes a mode or a setting", self._definition())
            captured = None
        self.keeps_logs = self.keeps_logs and not capture.reads_logs
        self.postponed = "" if captured is not None else capture.failure or ""
        if captured is None and not self._may_settle_next_call(capture):
            self._give_up(key, capture.failure or "", capture.place, capture.frames)
        if captured is not None and self.is_within:
            self._note_captured(captured)
        return result, captured

    def _note_captured(self, captured: CapturedCall) -> None:
        """Leave a part out that has hardly any kernels: its guards take longer than what a replay saves."""
        kernels = sum(step.kind == "kernel" for step in captured.program.steps)
        if self.keeps_reads and kernels < _MIN_KERNELS or not captured.program.steps:
            if self.part is None:
                self.tree.forget_attempt(self.function)
            else:
                split, part = self.part
                split.leave_out(part.key)

    def _may_settle_next_call(self, capture: Capture) -> bool:
        """True if the next call may be capturable. This call imported modules first, created lasting objects (at most
        twice), or ran code that no earlier call ran.
        """
        if capture.changes and self.changes < _MAX_SETTLING_CALLS:
            self.changes += 1
            return True
        return capture.loads or self.discovery.has_new_code(capture.watcher.libraries)

    def _record_second_call(self, key: Any, variant: CaptureVariant, tensors: list, args: tuple, kwargs: dict) -> Any:
        """Record the second call of a variant. If it equals the first, later calls are replayed. If it read other
        elements, it becomes a variant.
        """
        outside = self._outside_tensors(variant, tensors)
        result, captured = self._capture_call(key, variant, outside, args, kwargs)
        if captured is None:
            return result
        table: Any = common_kernel_table_of(outside)
        found = next(
            (
                v
                for v in self.variants[key]
                if v.guard is variant.guard and _is_same_capture(captured, v.captured, table)
            ),
            None,
        )
        reads = [_read_that_differs(captured, v.captured) for v in self.variants[key]] if found is None else []
        if any(reads):
            read = next(filter(None, reads))
            if self.splits and not self.fullgraph and read.expected.dtype.kind == "f" and read.expected.size == 1:
                self._give_up(key, "a number that differs from call to call is used", self._definition(), read.frames)
            elif len(self.variants[key]) >= self._recompile_limit():
                why = f"elements decided in {self._recompile_limit()} ways (recompile_limit) before one came again"
                self._give_up(key, why, self._definition(), read.frames)
            else:
                self.variants[key].append(variant.find_other_branch(captured))
            return result
        if found is None:
            self._give_up(key, "two calls with the same kind of arguments did different things", self._definition())
            return result
        found.captured, found.is_same = captured, found.state.test()
        found.replay, found.forms = self._compile_variant(found, captured, outside, tensors)
        return result

    def _compile_variant(
        self, variant: CaptureVariant, captured: CapturedCall, outside: list, tensors: list
    ) -> tuple[Any, ReplayForms | None]:
        """Return the replay of a captured call, and its other forms if it has no gradients."""
        make_replay = functools.partial(
            compile_replay, _make_identifier(self.name), captured, variant.sources, len(tensors),
            common_kernel_table_of(outside), self.mode or "default",
        )  # fmt: skip
        forms = None
        if variant.modes[0] and any(tensor._tl_node is not None for tensor in outside) or has_gradients(captured):
            replay = make_replay()
        else:
            forms = ReplayForms(make_replay, variant.guard, captured, variant.sources, self.is_of_inference)
            replay = forms.specialize(tensors)
        logs.write_program(replay.forward.text)
        return replay, forms

    # -- fallback to eager ----------------------------------------------------------------------

    def _run_as_written(self, args: tuple, kwargs: dict) -> Any:
        """Run a call that cannot be captured: what is between its graph breaks runs compiled."""
        if self.tree is None or self.part is not None:
            return self.function(*args, **kwargs)
        self.part_calls = 0 if self.variants else self.part_calls + 1
        return self.tree.run(self.function, args, kwargs)

    def _give_up_and_run(self, key: Any, why: str, place: str, args: tuple, kwargs: dict) -> Any:
        self._give_up(key, why, place)
        return self.function(*args, **kwargs)

    def _give_up(self, key: Any, why: str, place: str, frames: tuple[Frame, ...] = ()) -> None:
        """Run calls with this key eagerly from now on (None: all new keys), or in parts around what cannot be captured,
        and warn once. Raise Unsupported with `fullgraph`. frames: the calls in progress where the capture failed.
        """
        reason = f"{why} ({place})" if place else why
        is_new = reason not in self.reasons
        if key is not None:
            for variant in self.variants.pop(key, ()):
                if variant.sizes is not None:
                    self.structures[self.structure_key(key)].remove(variant.sizes)
            self.eager.add(key)
        self.reasons.append(reason)
        if self.fullgraph if THREAD_STATE.fails is None else THREAD_STATE.fails:
            from .unsupported_message import unsupported_message

            raise Unsupported(unsupported_message(why, place, frames))
        if is_new:
            logs.write_log("graph_breaks", f"{self.name}: {reason}")
        in_parts = key is not None and self._split(why, place, frames)
        if is_new and self.warns:
            self._warn(reason, in_parts)

    def _warn(self, reason: str, in_parts: bool) -> None:
        """Tell why the function, or a part of it, is not compiled."""
        level, what = level_of_the_program(), f"a part of {self.name}" if in_parts else self.name
        warnings.warn(f"torch.compile: {what} runs eagerly, because {reason}", UserWarning, stacklevel=level)

    def _split(self, why: str, place: str, frames: tuple[Frame, ...]) -> bool:
        """Split the function at a graph break. Return whether it runs in parts from now on."""
        if self.tree is None:
            if not self.splits:
                return False
            from .parted_function import PartTree

            tree = PartTree(self)
            if not tree.add_break(self, why, place, frames):
                return False
            self.tree = tree
            return True
        return self.tree.add_break(self, why, place, frames)

    def make_part(self, function: Any, tree: Any, part: Any) -> CompiledFunction:
        """Return the compiled function of a part, or of a function that a statement between parts calls."""
        made = self._make_part(function)
        made.tree, made.part, made.warns, made.is_within = tree, part, False, True
        return made

    def ignore_attributes(self, names: frozenset[str]) -> None:
        """Leave attributes out of the guards, where the code of a part does not name them."""
        self.ignored = (names - MODULE_ATTRIBUTES) | DYNAMIC_ACCESS

    def _make_part(self, function: Any) -> CompiledFunction:
        limit = max(self._recompile_limit(), PART_LIMIT)
        return CompiledFunction(function, self.name, False, limit, self.mode, self.dynamic)

    def _definition(self) -> str:
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _read_that_differs(a: CapturedCall, b: Any) -> Step | None:
    """Return the read of different elements up to which two captures are equal; None if there is none."""
    for x, y in zip(a.program.steps, b.program.steps, strict=False):
        if not is_same_step(x, y):
            return x if x.kind == y.kind == "read" and x.args == y.args else None
    return None


def _constant_bytes(raw: Any, table: Any) -> bytes:
    """Return a constant's bytes; a constant that is a result may be on the host."""
    return (table.to_numpy(raw) if raw.__class__ is table.array else raw).tobytes()


def _is_same_capture(a: CapturedCall, b: Any, table: Any) -> bool:
    """True if two captures are equal."""
    if not is_same_program(a.program, b.program) or (a.backward is None) is not (b.backward is None):
        return False
    if (a.results, a.shape_of_results, a.bumps, a.grads) != (b.results, b.shape_of_results, b.bumps, b.grads):
        return False
    if [*map(id, a.logs)] != [*map(id, b.logs)]:
        return False
    for number, raw in a.program.constants.items():
        if _constant_bytes(raw, table) != _constant_bytes(b.program.constants[number], table):
            return False
    if a.backward is None or b.backward is None:
        return True
    if repr(a.backward.error) != repr(b.backward.error):
        return False
    passes = [(x.together, *x.apart) if x.together is not None else () for x in (a.backward, b.backward)]
    return (a.backward.wanted, a.backward.saved) == (b.backward.wanted, b.backward.saved) and all(
        is_same_program(x.program, y.program) and x.outputs == y.outputs for x, y in zip(*passes, strict=True)
    )


def _make_identifier(name: str) -> str:
    found = "".join(c if c.isalnum() else "_" for c in name.rpartition(".")[2])
    return found if is_identifier(found) else f"function_{found}"


_NO_RESULT = object()
_MAX_MISSES = 32
PART_LIMIT = 32  # recordings of a part: one that gets modules has one for each
_MAX_SETTLING_CALLS = 2
_MAX_NUMBERS = 2
_MAX_RECORDED = 32  # recordings whose arguments are told apart in messages
_MIN_KERNELS = 2  # of a part
_CALLS_BEFORE_PARTS = 16  # calls in parts before no other call is captured as a whole
_REPLAYS_BEFORE_DROP = 16  # replays that pay for recording calls with another object
_MAX_BROKEN_KEYS = 3  # after as many all new calls run in parts
_NO_RECOMPILE_STANCES = ("eager_on_recompile", "fail_on_recompile")
COMPILED_FUNCTIONS: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()  # all live compiled functions


def reset() -> None:
    """Discard all compiled code."""
    for function in list(COMPILED_FUNCTIONS):
        function.reset()
