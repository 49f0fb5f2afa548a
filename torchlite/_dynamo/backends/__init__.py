"""The compilers by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..._settings.compiler_state import PROCESS_STATE
from ..compile_options import mode_of
from ..exc import InvalidBackend

# Names, and what they are filed under. Compilers of a program's own are functions; of the others "inductor" is what
# captures kernels, and those of "aot" other names for it, for programs that look for what a compiler does wrong.
_TAGS: dict[str, tuple[str, ...]] = {
    "inductor": (), "eager": ("debug",), "aot_eager": ("debug",), "aot_eager_decomp_partition": ("debug",),
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
# Compilers of PyTorch's that torchlite lacks: functions run as they are written.
_UNSUPPORTED_BACKENDS = ("cudagraphs", "onnxrt", "openxla", "tvm", "aot_ts_nvfuser", "ipex")


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of the compilers that there are, without those that are filed under one of the tags.

    >>> torchlite.compiler.list_backends()
    ['inductor']
    """
    return sorted(name for name, tags in _TAGS.items() if not set(tags) & set(exclude_tags or ()))


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Give a function of (graph module, example inputs), which returns what is called in the graph's place, a name for
    `backend=`: its own, or `name`. A decorator without the function.

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
    """The function that a name stands for; a function is itself. InvalidBackend for a name that is none."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in _FUNCTIONS:
        return _FUNCTIONS[compiler_fn]
    if compiler_fn not in _TAGS:
        raise InvalidBackend(compiler_fn)
    return _eager


def _eager(gm: Any, fake_tensor_inputs: Any, **options: Any) -> Any:
    """What runs a graph op by op."""
    return gm.forward


def make_compiled_function(
    backend: Any,
    fullgraph: bool = False,
    limit: int | None = None,
    mode: str | None = None,
    options: Any = None,
    dynamic: bool | None = None,
) -> Any:
    """What makes a compiled function of a function. InvalidBackend for a name that is none."""
    backend = PROCESS_STATE.backend if backend is None else backend
    if backend in ("eager", *_UNSUPPORTED_BACKENDS):
        return lambda function: function
    if backend in _FUNCTIONS or callable(backend):
        compiler = lookup_backend(backend)
        given = {name: value for name, value in (("mode", mode), ("options", options)) if value is not None}
        return functools.partial(_make_graph_compiled_function, functools.partial(compiler, **given) if given else compiler,
                                 fullgraph, limit, dynamic)  # fmt: skip
    if backend not in _TAGS:
        raise InvalidBackend(backend)
    return functools.partial(_make_replaying_function, fullgraph, limit, mode_of(mode, options), dynamic)


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
