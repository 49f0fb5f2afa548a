"""Side-effect monitor: profiles the executed code during a capture and fails it at impure calls.

User code must be code that the guards' walk found; torchlite's code must lie in modules that only compute. Anything
else that runs (printing, files, Python's random numbers, seeds) cannot be replayed.
"""

from __future__ import annotations

import builtins
import re
import threading
import types
from collections import OrderedDict, defaultdict, deque
from contextvars import ContextVar
from typing import Any

from torchlite._settings.compiler_state import PROCESS_STATE
from torchlite._types.devices import is_backend_module

from .guards import canonical_module_name
from .known_modules import COMPUTING_LIBRARIES, COMPUTING_MODULES, REFUSED_MODULES
from .sys_setprofile import ProfileHook

_REFUSED_NAMES = frozenset((
    "manual_seed", "seed", "initial_seed", "clone_state", "get_offset", "set_offset", "numpy", "__array__",
    "__array_ufunc__", "__array_function__", "__dlpack__",
    "data_ptr", "untyped_storage", "storage", "share_memory_", "graph_break", "set_", "resize_", "load_state_dict",
))  # fmt: skip
_GENERATOR_METHODS = frozenset(("manual_seed", "seed", "get_state", "set_state", "get_offset", "set_offset"))
# Functions that read no elements and change nothing.
_QUERY_FUNCTIONS = frozenset((
    "is_foreign", "offset_of", "<module>", "is_pinned", "step_and_note", "is_tracing", "is_scripting", "is_available",
    "is_initialized", "is_current_stream_capturing", "is_built", "device_count",
))  # fmt: skip
_PURE_BUILTINS = frozenset(
    getattr(builtins, name)
    for name in "len isinstance issubclass getattr hasattr setattr delattr abs min max sum sorted any all repr "
    "callable iter next divmod pow round ord chr format hash __build_class__".split()
)
_PURE_C_MODULES = frozenset(
    ("math", "cmath", "_operator", "_functools", "itertools", "_collections", "_contextvars", "_abc")
)
_PURE_CLASSES = frozenset(
    (list, dict, set, frozenset, str, tuple, bytes, int, float, complex, bool, OrderedDict, defaultdict, deque, slice,
     range, type({}.keys()), type({}.values()), type({}.items()), types.GeneratorType, types.MappingProxyType,
     re.Pattern, re.Match, type(threading.Lock()), type(threading.RLock()), ContextVar)
)  # fmt: skip

_CONTAINERS = (dict, list, set, frozenset, deque)


class SideEffectMonitor:
    """Context manager that profiles this thread's calls. Calls the capture's `fail_at` at the first impure call, and
    `keep_constant` for each tensor made from Python numbers.
    """

    def __init__(self, codes: set, capture: Any) -> None:
        self.codes, self.capture = codes, capture
        self.constant: Any = None  # frame of a function whose result is assumed constant
        self.verdicts: dict[Any, str | None] = {}
        self.libraries: set = set()  # code of other libraries
        self.reads_gradients = False
        self.profile: ProfileHook | None = None

    def hide(self, call: Any, *args: Any) -> Any:
        """Return `call(*args)`, unseen."""
        return call(*args) if self.profile is None else self.profile.hide(call, *args)

    def __enter__(self) -> SideEffectMonitor:
        self.profile = ProfileHook(self._handle_profile_event)
        self.profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        assert self.profile is not None
        self.profile.__exit__(*error)

    def _handle_profile_event(self, frame: Any, event: str, argument: Any) -> None:
        code, depth = frame.f_code, self.capture.depth
        if depth and code is not _THREAD_START_CODE:  # inside kernels and calls that a replay repeats
            return
        if self.constant is not None:
            if event == "return" and frame is self.constant:
                self.constant = None
            return
        if event == "call" and (code in self.capture.state.constant_codes or code in self.capture.state.allowed_codes):
            self.constant = frame
            return
        if event == "call":
            if code is _BACKWARD:
                self.hide(self.capture.check_backward_pass, frame.f_locals["self"])
            if code not in self.verdicts:
                self.verdicts[code] = self._judge_call(
                    code, canonical_module_name(frame.f_globals.get("__name__") or "")
                )
            why = self.verdicts[code]
            if why is None and code is _THREAD_START_CODE and not depth:
                why = "it starts a thread"
            if why is not None and not (code in self.libraries and self._is_of_backend(frame)):
                self._refuse_side_effect(why, frame)
        elif event == "c_call":
            if code in self.codes:
                if argument.__name__ == "append" and self.capture.note_append(argument.__self__):
                    return
                self.capture.observe_all()
                why = None if id(argument) in PROCESS_STATE.allowed else _why_impure_builtin(argument)
                if why is not None:
                    self._refuse_side_effect(why, frame)
            elif argument is _WARN:
                self._refuse_side_effect("it warns", frame)
        elif event == "return" and code in _MAKERS and argument is not None:
            self.capture.observe_all()
            self.capture.keep_constant(argument)

    def _judge_call(self, code: Any, module: str) -> str | None:
        if code in self.capture.state.disabled_codes:
            reason = self.capture.state.disabled_codes[code]
            return (
                f"it calls {code.co_name}, which torch.compiler.disable keeps from it{f': {reason}' if reason else ''}"
            )
        if code in self.codes:
            return None
        of_backend = is_backend_module(module)
        if of_backend and code.co_name in _GENERATOR_METHODS:
            return f"it calls {code.co_name} of random numbers"
        if (
            of_backend
            or module.partition(".")[0] in COMPUTING_LIBRARIES
            or module.startswith("namedtuple_")
            or code.co_filename.startswith(("<frozen", "<TorchScript"))  # a script calls known functions alone
        ):
            return None
        if module == "torchlite" and code.co_name in (
            "__getattr__",
            "_load_attribute",
            "_resolve_sparse_module",
            "_resolve_quantized_module",
        ):  # lazy imports
            return None
        if module.startswith("torchlite"):
            if code is _GRAD:
                self.reads_gradients = True
            named = code.co_name in _REFUSED_NAMES and not module.startswith("torchlite._dispatch")
            if (named or module.startswith(REFUSED_MODULES)) and code.co_name not in _QUERY_FUNCTIONS:
                return f"it calls {module.replace('torchlite', 'torch', 1)}.{code.co_name}"
            if module.startswith(COMPUTING_MODULES) or code.co_name in _QUERY_FUNCTIONS:
                return None
        else:
            self.libraries.add(code)
        return f"it runs {code.co_name} of {module or code.co_filename}"

    def _is_of_backend(self, frame: Any) -> bool:
        """True if a backend called this frame, for example a compiler or a cache of binaries."""
        while frame is not None and frame.f_code not in self.codes:
            module = canonical_module_name(frame.f_globals.get("__name__") or "")
            if is_backend_module(module):
                return True
            if module.startswith("torchlite"):
                return False
            frame = frame.f_back
        return False

    def _refuse_side_effect(self, why: str, frame: Any) -> None:
        self.capture.fail_at(why, user_location(frame, self.codes))
        if self.profile is not None:
            self.profile.pause()


def user_location(frame: Any, codes: set) -> str:
    """Return the innermost source line of the program at a frame."""
    while frame is not None:
        if frame.f_code in codes:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _why_impure_builtin(function: Any) -> str | None:
    """Return why a C function cannot be replayed, None if it can."""
    if function in _PURE_BUILTINS:
        return None
    owner = getattr(function, "__self__", None)
    if owner.__class__ in _PURE_CLASSES or isinstance(owner, type) and owner in _PURE_CLASSES:
        return None
    if getattr(function, "__module__", None) in _PURE_C_MODULES:
        return None
    if owner is not None and canonical_module_name(owner.__class__.__module__).startswith("torchlite"):
        return None
    if isinstance(owner, (BaseException, *_CONTAINERS)):
        return None
    return f"it calls {getattr(function, '__qualname__', function)}"


_WARN: Any = None
_MAKERS: set = set()
_GRAD: Any = None
_BACKWARD: Any = None
_THREAD_START_CODE = threading.Thread.start.__code__


def _load_known_codes() -> None:
    """Fill the tables of known code objects."""
    global _WARN, _GRAD, _BACKWARD
    import _warnings

    from torchlite._tensor import creation
    from torchlite._tensor.tensor import Tensor
    from torchlite.autograd.engine import BackwardPass

    _WARN, _BACKWARD = _warnings.warn, BackwardPass.run.__code__
    _MAKERS.update(f.__code__ for f in (creation.tensor, creation.asarray))
    _GRAD = Tensor.grad.fget.__code__  # type: ignore[attr-defined]


_load_known_codes()
