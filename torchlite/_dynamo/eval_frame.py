"""`torch.compile`, and OptimizedModule for compiled modules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from torchlite.nn.modules.module import Module

from .backends import make_compiled_function
from .compile_options import check_options

__all__ = ["OptimizedModule", "compile", "is_dynamo_supported"]


C = TypeVar("C", bound=Callable[..., Any])

if TYPE_CHECKING:

    class _Options(TypedDict, total=False):
        fullgraph: bool
        dynamic: bool | None
        backend: Any
        mode: str | None
        options: dict[str, Any] | None
        name: str | None
        disable: bool
        recompile_limit: int | None
        isolate_recompiles: bool
        shapes_spec: Any


def is_dynamo_supported() -> bool:
    """True if functions can be compiled."""
    return True


def _compile_module_call(mod: Any, make: Any) -> Any:
    """Return the callable that replaces a module's call. In a distributed wrapper, compile the inner module:
    communication is not a kernel.
    """
    name = getattr(type(mod), "_compiled_part", None)
    if name is None:
        return make(mod)
    inner = getattr(mod, name)
    part = make(inner._call_impl)

    def call_compiled(*args: Any, **kwargs: Any) -> Any:
        attributes = inner.__dict__
        before = attributes.get("_compiled_call_impl")
        attributes["_compiled_call_impl"] = part
        try:
            return mod(*args, **kwargs)
        finally:
            if before is None:
                attributes.pop("_compiled_call_impl", None)
            else:
                attributes["_compiled_call_impl"] = before

    return call_compiled


class OptimizedModule(Module):
    """Compiled module: holds the original as `_orig_mod`, as in checkpoints, and forwards attributes. `dynamo_ctx`
    compiles further functions, for example other methods.
    """

    _orig_mod: Module

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training
        self._compile_forward(dynamo_ctx)

    def _compile_forward(self, make: Any) -> None:
        mod, attributes = self._orig_mod, self.__dict__
        attributes["_compiled"] = mod if make is None else _compile_module_call(mod, make)
        attributes["dynamo_ctx"] = None if make is None else functools.partial(_compile_function, make)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Attributes are set on the original module.
        if name in ("_orig_mod", "training") or "_orig_mod" not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __getstate__(self) -> Any:
        return {name: value for name, value in self.__dict__.items() if name not in ("_compiled", "dynamo_ctx")}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self._compile_forward(make_compiled_function(None))

    def train(self, mode: bool = True) -> OptimizedModule:
        super().train(mode)
        return self


@overload
def compile(model: C, **options: Unpack[_Options]) -> C: ...
@overload
def compile(model: None = None, **options: Unpack[_Options]) -> Callable[[C], C]: ...
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Compiles a function or module.

    The first two calls with arguments of one kind run eagerly and are recorded. From the third call on, the recorded
    kernels are replayed, forward and backward, without the Python code between them. Code that cannot be replayed
    (printing, reading tensors after writes, changing objects) runs as written, after one warning, and what is before
    and after it is recorded and replayed in parts.

    Args:
        model: A function or module. Default: none, which returns a decorator.
        fullgraph: Whether code that cannot be replayed raises an error. Default: ``False``.
        dynamic: ``True`` lets all sizes of arguments vary, ``False`` none. Default: ``None``, which follows
            `torch._dynamo.config` and `torch._dynamo.mark_dynamic`.
        backend: ``"inductor"``; ``"eager"``, the function itself; a name registered with
            `torch._dynamo.register_backend`; or a function ``(graph_module, example_inputs)`` that returns a callable.
            Default: ``"inductor"``.
        mode: A name of a set of options, such as ``"reduce-overhead"`` or ``"max-autotune"``. Default:
            ``None``.
        options: Dict of options of the backend. Not together with ``mode``.
        name: No effect.
        disable: Whether to return ``model`` unchanged. Default: ``False``.
        recompile_limit: Number of recordings that are kept. Default: that of `torch._dynamo.config`.
        isolate_recompiles: No effect.
        shapes_spec: No effect.

    Returns:
        The compiled function, or an `OptimizedModule` for a module; a decorator without ``model``.

    Raises:
        RuntimeError: ``mode`` and ``options`` are both given, or one is unknown.
        torch._dynamo.exc.Unsupported: With ``fullgraph``, on a call whose code cannot be replayed.

    Example:
        >>> double = torchlite.compile(lambda x: 2 * x)
        >>> double(4)
        8

    See also:
        `torch.compiler`.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None or options is not None:
        check_options(mode, options)
    if dynamic is not None and not isinstance(dynamic, bool):
        raise AssertionError(f"Expected enable to be a bool, got {type(dynamic)}")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, name=name,
            disable=disable, recompile_limit=recompile_limit,
        )  # fmt: skip
    if disable:
        return model
    make = make_compiled_function(backend, fullgraph, recompile_limit, mode, options, dynamic)
    if isinstance(model, Module):
        return OptimizedModule(model, make)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if isinstance(model, type):
        return model
    return _compile_function(make, model)


def innermost_fn(function: Any) -> Any:
    """Return the function or module that was compiled, or the argument itself if it is not compiled."""
    while True:
        inner = getattr(function, "_torchdynamo_orig_callable", None)
        if isinstance(function, OptimizedModule):
            inner = function._orig_mod
        if inner is None:
            return function
        function = inner


def _compile_function(make: Any, function: Any) -> Any:
    """Return a compiled version of a function."""
    compiled = make(innermost_fn(function))

    @functools.wraps(function, updated=("__dict__",) if hasattr(function, "__dict__") else ())
    def call_compiled(*args: Any, **kwargs: Any) -> Any:
        return compiled(*args, **kwargs)

    call_compiled._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    return call_compiled
