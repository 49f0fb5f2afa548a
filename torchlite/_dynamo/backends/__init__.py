"""Registry of `torch.compile` backends by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._settings.compiler_state import PROCESS_STATE
from ..compile_options import compile_mode_of
from ..exc import InvalidBackend

# Backend names and their tags. "inductor" captures kernels. The "aot" names are aliases of it, for programs that bisect
# compiler errors.
_TAGS: dict[str, tuple[str, ...]] = {
    "inductor": (), "eager": ("debug",), "aot_eager": ("debug",), "aot_eager_decomp_partition": ("debug",),
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
# PyTorch's backends that torchlite lacks; functions run eagerly.
_UNSUPPORTED_BACKENDS = ("cudagraphs", "onnxrt", "openxla", "tvm", "aot_ts_nvfuser", "ipex")


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of the registered backends without those that have one of the tags.

    >>> torchlite.compiler.list_backends()
    ['inductor']
    """
    return sorted(name for name, tags in _TAGS.items() if not set(tags) & set(exclude_tags or ()))


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Register a function of (graph module, example inputs) as a backend. The function returns a callable that replaces
    the graph. The name is the function's own or `name`. Without the function, return a decorator.

    >>> @torchlite._dynamo.register_backend(tags=("debug",))
    ... def as_it_is(graph, inputs):
    ...     return graph.forward
    >>> torchlite.compile(lambda x: x + 1, backend="as_it_is")(torchlite.ones(1))
    tensor([2.])
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise AssertionError(f"a backend is a function, not {compiler_fn!r}")
    name = name or compiler_fn.__name__
    if name in _TAGS:
        raise AssertionError(f"duplicate name: {name}")
    _FUNCTIONS[name], _TAGS[name] = compiler_fn, tuple(tags)
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> Any:
    """Return the backend registered under a name; a function is returned as it is. Raise InvalidBackend for an unknown
    name.
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in _FUNCTIONS:
        return _FUNCTIONS[compiler_fn]
    if compiler_fn not in _TAGS:
        raise InvalidBackend(compiler_fn)
    return _interpret_eagerly


def _interpret_eagerly(gm: Any, fake_tensor_inputs: Any, **options: Any) -> Any:
    """Return a callable that interprets a graph op by op."""
    return gm.forward


def make_compiled_function(
    backend: Any,
    fullgraph: bool = False,
    limit: int | None = None,
    mode: str | None = None,
    options: Any = None,
    dynamic: bool | None = None,
) -> Any:
    """Return a function that makes compiled functions for a backend. Raise InvalidBackend for an unknown name."""
    backend = PROCESS_STATE.backend if backend is None else backend
    if backend in ("eager", *_UNSUPPORTED_BACKENDS):
        return lambda function: function
    if backend in _FUNCTIONS or callable(backend):
        compiler = lookup_backend(backend)
        given = {name: value for name, value in (("mode", mode), ("options", options)) if value is not None}
        if given:
            compiler = functools.partial(compiler, **given)
        return functools.partial(_make_graph_compiled_function, compiler, fullgraph, limit, dynamic)
    if backend not in _TAGS:
        raise InvalidBackend(backend)
    return functools.partial(_make_replaying_function, fullgraph, limit, compile_mode_of(mode, options), dynamic)


def _make_graph_compiled_function(
    compiler: Any, fullgraph: bool, limit: int | None, dynamic: bool | None, function: Any
) -> Any:
    from ..custom_backend import GraphCompiledFunction
    from ..flatten_args import callable_name

    return GraphCompiledFunction(function, callable_name(function), compiler, fullgraph, limit, dynamic)


def _make_replaying_function(
    fullgraph: bool, limit: int | None, mode: str | None, dynamic: bool | None, function: Any
) -> Any:
    from ..compiled_function import CompiledFunction
    from ..flatten_args import callable_name

    return CompiledFunction(function, callable_name(function), fullgraph, limit, mode, dynamic)
