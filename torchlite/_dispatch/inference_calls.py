"""InferenceCalls: the calls of a TorchScript or loaded program, optimized where no gradients are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .callbacks import CALLBACKS
from .dispatch_state import MODE


class InferenceCalls:
    """Calls `run(module, *args, **kwargs)`, from the second call without gradients on by an `InferenceFunction`
    (`_dynamo/inference_function.py`).

    A process that predicts once does not load the compiler. names: attributes of the module that the program reads
    besides tensors and submodules.
    """

    __slots__ = ("function", "is_called", "names", "run")

    def __init__(self, run: Callable, names: tuple[str, ...] = ()) -> None:
        self.run, self.names = run, names
        self.function: Any = None
        self.is_called = False

    def __call__(self, module: Any, args: tuple, kwargs: dict) -> Any:
        if MODE.grad:
            return self.run(module, *args, **kwargs)
        if self.function is None:
            if not self.is_called:
                self.is_called = True
                return self.run(module, *args, **kwargs)
            self.function = CALLBACKS.inference_function(module, self.run, self.names)
        return self.function(*args, **kwargs)
