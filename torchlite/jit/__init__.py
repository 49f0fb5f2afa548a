"""`torch.jit`: script, trace, save, load and freeze TorchScript programs, run by Python."""

import contextlib
import importlib
import os
import warnings
from collections.abc import Iterator
from typing import Any, Final

from torchlite._settings.module_dir import make_module_dir

from .._dispatch.callbacks import register_lazily
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
    """Raised by tracing if a second run differs."""


_python_isinstance = isinstance  # this module defines its own


def __getattr__(name: str) -> Any:
    """Load `frontend` on access."""
    if name == "frontend":
        return importlib.import_module(f"{__name__}.frontend")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value; the type is for TorchScript.

    `the_type` has no effect in Python.
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's `isinstance` with support for typed containers.

    >>> torchlite.jit.isinstance([1, 2], list[int]), torchlite.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    return _isinstance(obj, target_type)


def fork(func: Any, *args: Any, **kwargs: Any) -> Future:
    """Call the function immediately; return a Future of its result."""
    future: Any = Future()
    try:
        future.set_result(func(*args, **kwargs))
    except Exception as error:  # raised by the future's wait
        future.set_exception(error)
    return future


def wait(future: Future) -> Any:
    """Return the result of a `fork`."""
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
    """Return the module of a `torch.jit.save` file, written by torchlite or PyTorch.

    f: a path or a binary file. map_location: the device of the tensors; by default the saved one. _extra_files: a
    dictionary whose values are filled from the file. Before the module is called, only `__setstate__` runs, with
    bounded work and only TorchScript's forms. Raise ValueError for a missing file, RuntimeError that names the part for
    a damaged one.
    """
    from . import _load

    return _load.load(f, map_location, _extra_files, _restore_shapes)


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write a scripted or traced module or function to a file (a path, or an object with `write`) for `torch.jit.load`,
    here and in PyTorch. _extra_files: names and contents to add. Raise AttributeError for other modules.
    """
    from . import _save

    _save.save(m, f, _extra_files)


def export_opnames(m: Any) -> list[str]:
    """Return the sorted names of the operators that a program calls."""
    from ._graph_text import operators_of

    return operators_of(m)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Return a frozen copy of a scripted module in eval mode. Weights and attributes become constants, submodule
    methods are inlined, dropout is removed, and batch norms are folded into preceding convolutions.

    preserved_attrs: attributes, submodules and methods to keep, besides `forward` and mutated values.
    optimize_numerics: fold batch norms. Raise RuntimeError for a module that is no ScriptModule or in training mode,
    and for an unknown name.

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
    """Return the frozen module; further optimizations do not exist. Raise RuntimeError for a module that is no
    ScriptModule.
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
    """Propagate constants, and fold batch norms with `optimize_numerics`, in a frozen module, in place.

    preserved_methods: methods besides `forward`. Raise RuntimeError for a module that is no ScriptModule.
    """
    if not _python_isinstance(mod, ScriptModule):
        freeze(mod)
    from . import _freeze

    _freeze.optimize(mod._actual_script_module, optimize_numerics, list(preserved_methods or ()))


_strategy = [("STATIC", 2), ("DYNAMIC", 10)]
_onednn = True


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Set TorchScript's fusion strategy and return the old one; has no effect."""
    global _strategy
    before, _strategy = _strategy, list(strategy)
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Set TorchScript's oneDNN fusion flag; has no effect."""
    global _onednn
    _onednn = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Return the flag of `enable_onednn_fusion`."""
    return _onednn


def last_executed_optimized_graph() -> None:
    """Return None: no optimized graphs are kept."""


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Context manager that sets TorchScript's optimization flag; has no effect.

    `should_optimize` has no effect: Python runs the program.
    """
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Context manager that selects TorchScript's fuser "fuser0" to "fuser3"; has no effect."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """TorchScript's strict fusion mode; warns in Python."""

    def __init__(self) -> None:
        warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self) -> None: ...

    def __exit__(self, type: Any, value: Any, tb: Any) -> None: ...


__dir__ = make_module_dir(globals(), "TopLevelTracedModule _get_trace_graph _script_if_tracing _unwrap_optional")
