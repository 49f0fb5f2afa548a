"""`torch.jit`: script, trace, save, load and freeze TorchScript programs, run by Python."""

import contextlib
import importlib
import os
import warnings
from collections.abc import Iterator
from typing import Any, Final

from torchlite._settings.module_dir import make_module_dir

from .._dispatch.callbacks import register_lazily
from .._settings.compiler_state import THREAD_STATE
from ..futures import Future
from . import annotations as annotations
from ._callbacks import JIT_CALLBACKS
from ._function_modifiers import (
    Attribute,
    TracerWarning,
    _drop,
    _isinstance,
    _overload,
    _overload_method,
    export,
    ignore,
    is_scripting,
    unused,
)
from ._runtime import Error
from ._script import CompilationUnit, ScriptWarning, _unwrap_optional, interface, script, script_method
from ._script_modules import RecursiveScriptModule, ScriptFunction, ScriptModule, TopLevelTracedModule, TracedModule
from ._trace import _get_trace_graph, _script_if_tracing, is_tracing, trace, trace_module

register_lazily(JIT_CALLBACKS, globals(), {
    "compile_module": ("_recursive", "script_module"), "graph_of": ("_graph_text", "graph_of"),
    "module_handle": ("_module_handle", "ModuleHandle"), "save": ("_save", "save"), "to_bytes": ("_save", "to_bytes"),
})  # fmt: skip

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction",
    "ScriptModule", "ScriptWarning", "TracedModule", "TracerWarning", "TracingCheckError", "annotate",
    "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "fuser", "ignore", "interface",
    "is_scripting", "is_tracing", "isinstance", "last_executed_optimized_graph", "load", "onednn_fusion_enabled",
    "optimize_for_inference", "optimized_execution", "run_frozen_optimizations", "save", "script", "script_if_tracing",
    "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

script_if_tracing = _script_if_tracing


class TracingCheckError(Exception):
    """Raised where a second run of a traced function differs from the first.

    Example:
        >>> issubclass(torch.jit.TracingCheckError, Exception)
        True
    """


_python_isinstance = isinstance  # this module defines its own


def __getattr__(name: str) -> Any:
    """Load `frontend` on access."""
    if name == "frontend":
        return importlib.import_module(f"{__name__}.frontend")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns a value; TorchScript reads its type.

    Args:
        the_type: Has no effect in Python: the type, as an annotation.
        the_value: The value.

    Example:
        >>> torch.jit.annotate(list[int], [])
        []
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Returns whether an object is of a type, which may be a container type such as `list[int]`.

    Args:
        obj: Any object.
        target_type: A type, a ``list``, ``dict``, ``tuple`` or ``Optional`` of types, or a tuple of these.

    Returns:
        bool.

    Raises:
        RuntimeError: A container type has no type of its items.

    Example:
        >>> torchlite.jit.isinstance([1, 2], list[int]), torchlite.jit.isinstance([1, "a"], list[int])
        (True, False)
    """
    return _isinstance(obj, target_type)


def fork(func: Any, *args: Any, **kwargs: Any) -> Future:
    """Calls a function and returns a `Future` of its result.

    The function runs before `fork` returns. `wait` raises its error.

    Args:
        func: A function.
        *args: Its positional arguments.
        **kwargs: Its keyword arguments.

    Returns:
        A `torch.jit.Future`.

    Example:
        >>> future = torch.jit.fork(torch.add, torch.ones(2), 1)
        >>> torch.jit.wait(future)
        tensor([2., 2.])
    """
    future: Any = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:  # raised by the future's wait
        future.set_exception(error)
    return future


def wait(future: Future) -> Any:
    """Returns the result of a `fork`, or raises its error.

    Args:
        future: A `torch.jit.Future`.

    Example:
        >>> torch.jit.wait(torch.jit.fork(max, 2, 3))
        3
    """
    return future.wait()


_fork, _wait = fork, wait


def _make_unsupported_function(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"torch.jit.{name}: torchlite does not read or write flatbuffers; use torch.jit.save and torch.jit.load"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "NotImplementedError: torchlite does not read or write flatbuffers."
    return refuse


jit_module_from_flatbuffer, save_jit_module_to_flatbuffer = map(
    _make_unsupported_function, ("jit_module_from_flatbuffer", "save_jit_module_to_flatbuffer")
)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Loads a module or function from a `torch.jit.save` file, written by torchlite or PyTorch.

    While the file is loaded, only `__setstate__` methods run, with bounded work and only TorchScript's forms.

    Args:
        f: A path or a binary file.
        map_location: Device of the tensors. Default: the saved ones.

    Returns:
        A `ScriptModule`.

    Raises:
        ValueError: There is no file at the path.
        RuntimeError: The file is damaged. The message names the part.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.jit.save(torch.jit.script(torch.nn.ReLU()), file)
        >>> _ = file.seek(0)
        >>> torch.jit.load(file)(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    from . import _load

    return _load.load(f, map_location, _extra_files, _restore_shapes)


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Writes a scripted or traced module or function for `torch.jit.load`, here and in PyTorch.

    Args:
        m: A `ScriptModule` or `ScriptFunction`.
        f: A path, or an object with ``write``.

    Raises:
        AttributeError: ``m`` is neither scripted nor traced.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.jit.save(torch.jit.trace(torch.sin, torch.ones(2)), file)
        >>> _ = file.seek(0)
        >>> torch.jit.load(file)(torch.zeros(2))
        tensor([0., 0.])
    """
    from . import _save

    _save.save(m, f, _extra_files)


def export_opnames(m: Any) -> list[str]:
    """Returns the sorted names of the operators that a program calls.

    Args:
        m: A `ScriptModule` or `ScriptFunction`.

    Example:
        >>> torch.jit.export_opnames(torch.jit.script(torch.nn.ReLU()))
        ['aten::relu']
    """
    from ._graph_text import operators_of

    return operators_of(m)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Returns a frozen copy of a scripted module in eval mode.

    Weights and attributes become constants, methods of submodules are inlined, dropout is removed, and batch norms are
    folded into preceding convolutions.

    Args:
        mod: A `ScriptModule` in eval mode.
        preserved_attrs: Names of attributes, submodules and methods to keep, besides ``forward`` and values that the
            program changes. Default: none.
        optimize_numerics: Whether to fold batch norms. Default: ``True``.

    Returns:
        The frozen `ScriptModule`.

    Raises:
        RuntimeError: ``mod`` is no `ScriptModule` or is in training mode, or a name is unknown.

    Example:
        >>> import torchlite as torch
        >>> frozen = torch.jit.freeze(torch.jit.script(torch.nn.Linear(2, 1).eval()))
        >>> print(frozen.code)
        def forward(self, input: Tensor) -> Tensor:
            return torch.linear(input, CONSTANTS.c0, CONSTANTS.c1)
        <BLANKLINE>
    """
    if not _python_isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before "
            "freezing."
        )
    from . import _freeze

    return _freeze.freeze(mod._actual_script_module, list(preserved_attrs or ()), optimize_numerics)


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Returns the frozen module. Its calls without gradients are optimized as those of other modules.

    Args:
        mod: A `ScriptModule`.
        other_methods: Names of methods to keep besides ``forward``. Default: none.

    Returns:
        The frozen `ScriptModule`.

    Raises:
        RuntimeError: ``mod`` is no `ScriptModule`.

    Example:
        >>> module = torch.jit.optimize_for_inference(torch.jit.script(torch.nn.Linear(2, 1).eval()))
        >>> len(list(module.parameters()))
        0
    """
    if not _python_isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to "
            "script your 'nn.Module'."
        )
    if next(mod.parameters(), None) is not None or "training" in mod._actual_script_module._script.types:
        return freeze(mod.eval(), preserved_attrs=other_methods)
    return mod


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Propagates constants in a frozen module and folds its batch norms, in place.

    Args:
        mod: A frozen `ScriptModule`.
        optimize_numerics: Whether to fold batch norms. Default: ``True``.
        preserved_methods: Names of methods besides ``forward``. Default: none.

    Raises:
        RuntimeError: ``mod`` is no `ScriptModule`.

    Example:
        >>> frozen = torch.jit.freeze(torch.jit.script(torch.nn.Linear(2, 1).eval()))
        >>> torch.jit.run_frozen_optimizations(frozen)
        >>> frozen(torch.ones(1, 2)).shape
        torch.Size([1, 1])
    """
    if not _python_isinstance(mod, ScriptModule):
        freeze(mod)
    from . import _freeze

    _freeze.optimize(mod._actual_script_module, optimize_numerics, list(preserved_methods or ()))


_strategy = [("STATIC", 2), ("DYNAMIC", 10)]
_onednn = True


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sets TorchScript's fusion strategy, which has no effect: Python runs the programs.

    Args:
        strategy: List of pairs ``("STATIC" or "DYNAMIC", depth)``.

    Returns:
        The old strategy.

    Example:
        >>> before = torch.jit.set_fusion_strategy([("STATIC", 1)])
        >>> torch.jit.set_fusion_strategy(before)
        [('STATIC', 1)]
    """
    global _strategy
    before, _strategy = _strategy, list(strategy)
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Sets TorchScript's oneDNN fusion flag, which has no effect.

    Args:
        enabled: The flag.

    Example:
        >>> torch.jit.enable_onednn_fusion(True)
        >>> torch.jit.onednn_fusion_enabled()
        True
    """
    global _onednn
    _onednn = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Returns the flag of `enable_onednn_fusion`.

    Example:
        >>> torch.jit.onednn_fusion_enabled()
        True
    """
    return _onednn


def last_executed_optimized_graph() -> None:
    """Returns None: no optimized graphs are kept.

    Example:
        >>> torch.jit.last_executed_optimized_graph()
    """


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Context manager that sets whether this thread optimizes the calls of TorchScript and loaded modules.

    Without gradients, the second and third call of such a module (also of ``.pt2`` and ONNX files) are recorded. Later
    ones are replayed, with its weights as constants.

    Args:
        should_optimize: Whether these calls are optimized. Default outside of the context manager: ``True``.

    Example:
        >>> with torch.jit.optimized_execution(False):
        ...     torch.jit.script(torch.nn.ReLU())(torch.ones(1))
        tensor([1.])
    """
    before, THREAD_STATE.optimizes_loaded = THREAD_STATE.optimizes_loaded, should_optimize
    try:
        yield
    finally:
        THREAD_STATE.optimizes_loaded = before


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Context manager that selects TorchScript's fuser, which has no effect.

    Args:
        name: ``"fuser0"`` to ``"fuser3"``, or ``"none"``.

    Raises:
        Exception: The name is another one.

    Example:
        >>> with torch.jit.fuser("fuser1"):
        ...     torch.jit.script(torch.nn.ReLU())(torch.ones(1))
        tensor([1.])
    """
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """TorchScript's strict fusion mode; in Python it warns and has no effect.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"), torch.jit.strict_fusion():
        ...     torch.ones(1) + 1
        tensor([2.])
    """

    def __init__(self) -> None:
        warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self) -> None: ...

    def __exit__(self, type: Any, value: Any, tb: Any) -> None: ...


__dir__ = make_module_dir(globals(), "TopLevelTracedModule _get_trace_graph _script_if_tracing _unwrap_optional")
