"""A model that answers through a handler of TorchServe's kind."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from . import _code
from ._errors import InvalidRequest, ModelFailed, ServeError
from ._handler_context import Context, HandlerRequest
from ._statistics import StageTimes


@dataclass
class HandlerModel:
    """A handler, its context and the folder of its modules. One call runs at a time."""

    handle: Callable[[list, Context], Any]
    context: Context
    folder: Path
    platform: str = "torchserve_handler"
    can_stay: ClassVar[bool] = False  # its code may wait for anything

    def without_code(self) -> HandlerModel:
        """Return the model as the server's process knows it, where worker processes compute."""
        return HandlerModel(None, None, self.folder, self.platform)  # type: ignore[arg-type]

    def run(self, requests: Sequence[HandlerRequest]) -> tuple[list[Any], StageTimes]:
        """Return the answer to each request."""
        start = time.perf_counter()
        answers = self.context.begin(list(requests))
        try:
            bodies = self.handle([request.data for request in requests], self.context)
            if hasattr(bodies, "__next__"):
                for parts in bodies:
                    self.context.send_parts(parts)
                bodies = [None] * len(requests)
        except ServeError:
            raise
        except Exception as error:  # whatever a handler raises is its request's answer
            text = " ".join(str(error).split())[:500]
            raise ModelFailed(f"the handler raised {type(error).__name__}: {text}") from error
        if not isinstance(bodies, list | tuple) or len(bodies) != len(requests):
            raise ModelFailed(f"the handler must return a list of {len(requests)} answers, one for each request")
        for answer, body in zip(answers, bodies, strict=True):
            answer.body = body
        return list(answers), StageTimes(compute_infer=time.perf_counter() - start)


def load_handler(word: str, folder: Path, context: Context) -> HandlerModel:
    """Return the model of `module`, `module.py` or `module:function`, after its `initialize`."""
    from . import _torchserve_names  # here: most servers have no handler

    _torchserve_names.install()
    name, _, function = word.partition(":")
    with _code.imports_from(folder):
        module = _code.load_module(name, folder)
        handle = getattr(module, function or "handle", None)
        if inspect.isfunction(handle):
            if len(inspect.signature(handle).parameters) != 2:
                raise ValueError(f"handler '{word}': the function must have the parameters data and context")
            handle(None, context)  # TorchServe's way to initialize a function
            return HandlerModel(handle, context, folder)
        instance = _handler_class(module, function, word)()
        if hasattr(instance, "initialize"):
            instance.initialize(context)
        return HandlerModel(_entry(instance, word), context, folder)


def _handler_class(module: Any, name: str, word: str) -> type:
    if name:
        found = [getattr(module, name)] if inspect.isclass(getattr(module, name, None)) else []
    else:
        classes = [v for v in vars(module).values() if inspect.isclass(v) and v.__module__ == module.__name__]
        found = [cls for cls in classes if hasattr(cls, "handle") or hasattr(cls, "inference")]
        # A class that another one derives from is a helper.
        found = [cls for cls in found if not any(cls in other.__mro__[1:] for other in found)]
    if len(found) != 1:
        raise ValueError(f"handler '{word}': wanted is one class with handle or inference, or a function handle")
    return found[0]


def _entry(instance: Any, word: str) -> Callable[[list, Context], Any]:
    """Return `handle`, or the chain of preprocess, inference and postprocess."""
    if hasattr(instance, "handle"):
        return instance.handle
    steps = [getattr(instance, step, None) for step in ("preprocess", "inference", "postprocess")]
    if steps[1] is None:
        raise ValueError(f"handler '{word}': it has neither handle nor inference")

    def handle(data: list, context: Context) -> Any:
        instance.context = context
        given = data if steps[0] is None else steps[0](data)
        if context.explains:
            if not hasattr(instance, "explain_handle"):
                raise InvalidRequest("the model's handler has no explain_handle")
            return instance.explain_handle(given, data)
        for step in steps[1:]:
            given = given if step is None else step(given)
        return given

    return handle
