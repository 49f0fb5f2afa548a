"""`torch.compile` where nothing compiles."""

from __future__ import annotations

import functools
from typing import Any

from torchlite.nn.modules.module import Module

__all__ = ["OptimizedModule", "compile", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Whether functions can be compiled: not yet."""
    return False


class OptimizedModule(Module):
    """What `torch.compile` makes of a module: it holds the module as `_orig_mod`, as checkpoints name it, and has its
    attributes.
    """

    _orig_mod: Module

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def train(self, mode: bool = True) -> OptimizedModule:
        super().train(mode)
        return self


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
    """A function or module that does what `model` does: torchlite compiles nothing yet, and runs it as it is written.
    Without `model` a decorator. RuntimeError for both `mode` and `options`.

    >>> double = torchlite.compile(lambda x: 2 * x)
    >>> double(4)
    8
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model)
    if not callable(model):
        raise AssertionError(f"torch.compile expects a function or a module, but got {type(model).__name__}")

    @functools.wraps(model, updated=() if isinstance(model, type) else ("__dict__",))
    def run(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    run._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return run
