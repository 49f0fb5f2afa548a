"""Activation checkpointing: a part of the model saves only its inputs and is recomputed in backward."""

from __future__ import annotations

import contextlib
import itertools
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .. import Tensor
from .._dispatch.interceptors import Interceptor
from .._dispatch.public_functions import torch
from ..accelerator import current_accelerator
from ..amp.autocast_mode import restore_current
from ..autograd import Function, backward
from ..autograd.grad_mode import enable_grad, is_grad_enabled, no_grad
from ..autograd.graph import graph_task_id, saved_tensors_hooks
from ..autograd.variable import Variable
from ._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)
from ._selective_checkpoint import _CachedTorchDispatchMode as _CachedTorchDispatchMode
from ._selective_checkpoint import _CachingTorchDispatchMode as _CachingTorchDispatchMode

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "SAC_IGNORED_OPS",
    "GraphExecGroup", "SelectiveCheckpointContext",
    "check_backward_validity", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
    "detach_variable", "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
]  # fmt: skip


class CheckpointError(RuntimeError):
    """Raised where the recomputation of a checkpointed function saves other tensors than the first run.

    Example:
        >>> from torchlite.utils.checkpoint import CheckpointError
        >>> issubclass(CheckpointError, RuntimeError)
        True
    """


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns inputs with their tensors detached from the graph, each requiring grad as before.

    Args:
        inputs: Tuple of tensors and other values.

    Raises:
        RuntimeError: ``inputs`` is no tuple.

    Example:
        >>> from torchlite.utils.checkpoint import detach_variable
        >>> x = torch.ones(2, requires_grad=True).exp()
        >>> detach_variable((x, 3))[0].is_leaf
        True
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(one.detach().requires_grad_(one.requires_grad) if isinstance(one, Tensor) else one for one in inputs)


def check_backward_validity(inputs: Any) -> None:
    """Warns if no input requires grad.

    Args:
        inputs: The inputs.

    Example:
        >>> from torchlite.utils.checkpoint import check_backward_validity
        >>> check_backward_validity([torch.ones(2, requires_grad=True)])
    """
    if not any(one.requires_grad for one in inputs if isinstance(one, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class DefaultDeviceType:
    """The device type whose generator states a checkpoint saves if no argument is on a device.

    Example:
        >>> from torchlite.utils.checkpoint import DefaultDeviceType
        >>> before = DefaultDeviceType.get_device_type()
        >>> DefaultDeviceType.set_device_type("cpu")
        >>> DefaultDeviceType.get_device_type()
        'cpu'
        >>> DefaultDeviceType.set_device_type(before)
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the device type.

        Args:
            device: Name of the type. Default: ``"cuda"``.
        """
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type that was set, else the accelerator's, else "cpu"."""
        if not DefaultDeviceType._default_device_type:
            found = current_accelerator()
            DefaultDeviceType._default_device_type = "cpu" if found is None else found.type
        return DefaultDeviceType._default_device_type


def _infer_device_type(*args: Any) -> str:
    """Returns the device type of the tensors in the arguments, the CPU aside: "cuda" or the first one, with a warning
    if there are several.
    """
    from ._pytree import tree_leaves

    found = [one.device.type for one in tree_leaves(args) if isinstance(one, Tensor) and one.device.type != "cpu"]
    if len(set(found)) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of devices. Random numbers "
            f"are restored for one of them only.\nDevice types: {sorted(set(found))} first device type: {found[0]}",
            stacklevel=2,
        )
    if not found:
        return DefaultDeviceType.get_device_type()
    return "cuda" if "cuda" in found else found[0]


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices of the tensors in the arguments, the CPU aside, and the states of their random numbers."""
    from ..accelerator import get_device_module
    from ._pytree import tree_leaves

    devices = {one.device for one in tree_leaves(args) if isinstance(one, Tensor)}
    used = sorted((d for d in devices if d.type not in ("cpu", "meta")), key=lambda d: (d.type, d.index or 0))
    return [d.index or 0 for d in used], [get_device_module(d).get_rng_state(d) for d in used]


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Restore the generator states of devices of one type, by default the accelerator's."""
    if device_type == "meta" or not devices:
        return
    from ..accelerator import current_accelerator, get_device_module

    where = device_type or str(current_accelerator())
    for index, state in zip(devices, states, strict=True):
        get_device_module(where).set_rng_state(state, f"{where}:{index}")


class _StopRecomputationError(Exception):
    """Stops a recomputation that has produced all needed tensors."""


class _Overrides:
    """Values set by `set_checkpoint_early_stop` and `set_checkpoint_debug_enabled`; None leaves the choice to the
    caller.
    """

    early_stop: bool | None = None
    debug: bool | None = None


@contextlib.contextmanager
def _deprecated_override(name: str, value: bool | None) -> Any:
    before = getattr(_Overrides, name)
    setattr(_Overrides, name, value)
    try:
        yield
    finally:
        setattr(_Overrides, name, before)


def set_checkpoint_early_stop(enable: bool) -> Any:
    """Context manager that sets whether recomputations stop once all tensors that backward needs exist.

    Args:
        enable: Whether they stop. It overrides `checkpoint`'s ``early_stop``.

    Example:
        >>> import torchlite as torch
        >>> from torchlite.utils.checkpoint import checkpoint, set_checkpoint_early_stop
        >>> x = torch.ones(2, requires_grad=True)
        >>> with set_checkpoint_early_stop(False):
        ...     y = checkpoint(torch.exp, x, use_reentrant=False)
        >>> y.sum().backward()
    """
    return _deprecated_override("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> Any:
    """Context manager that overrides the `debug` argument of `checkpoint`.

    Args:
        enabled: The value; ``None`` leaves each call its own.

    Example:
        >>> from torchlite.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
        >>> x = torch.ones(2, requires_grad=True)
        >>> with set_checkpoint_debug_enabled(True):
        ...     checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
        >>> x.grad
        tensor([2.7183, 2.7183])
    """
    return _deprecated_override("debug", enabled)


def noop_context_fn() -> Any:
    """Returns two context managers that do nothing: for the first run and for the recomputation.

    Example:
        >>> from torchlite.utils.checkpoint import noop_context_fn
        >>> first, second = noop_context_fn()
        >>> with first:
        ...     torch.ones(2) + 1
        tensor([2., 2.])
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class _AmbientState:
    """A snapshot of autocast and of the generator states of the CPU and of the arguments' devices; `replay()` restores
    it.
    """

    def __init__(self, keep: bool, arguments: Any) -> None:
        from .._device.generators import default_generators

        tensors = [a for a in arguments if isinstance(a, Tensor)]
        self.states = [(g, g.get_state()) for g in default_generators(tensors)] if keep else []
        self.regions = restore_current()

    @contextlib.contextmanager
    def replay(self) -> Any:
        now = [(generator, generator.get_state()) for generator, _ in self.states]
        for generator, state in self.states:
            generator.set_state(state)
        try:
            with contextlib.ExitStack() as regions:
                for region in self.regions:
                    regions.enter_context(region)
                yield
        finally:
            for generator, state in now:
                generator.set_state(state)


class CheckpointFunction(Function):
    """A checkpointed part as one autograd node, whose backward runs the part again with recording.

    `checkpoint(use_reentrant=True)` applies it.

    Args:
        *args: No effect; it is applied and not called.
        **kwargs: No effect.

    Example:
        >>> from torchlite.utils.checkpoint import checkpoint
        >>> x = torch.ones(2, requires_grad=True)
        >>> checkpoint(torch.exp, x, use_reentrant=True).grad_fn.name()
        'CheckpointFunctionBackward'
    """

    @staticmethod
    def forward(ctx: Any, run: Any, surroundings: Any, *args: Any) -> Any:
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)
        ctx.run_function, ctx.surroundings = run, surroundings
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [isinstance(a, Tensor) for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        with no_grad():
            return run(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not Variable._execution_engine.is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if t else o for t, o in zip(ctx.places, ctx.others, strict=True)]
        fresh = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in args]
        with enable_grad(), ctx.surroundings.replay():
            outs = ctx.run_function(*fresh)
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in fresh))


class GraphExecGroup:
    """Context manager in which checkpointed parts are recomputed at most once, in any number of backward passes.

    Each saved tensor serves one pass. It works for parts with `use_reentrant=False`.

    Raises:
        RuntimeError: It is entered inside another one.

    Example:
        >>> import torchlite as torch
        >>> from torchlite.utils.checkpoint import GraphExecGroup, checkpoint
        >>> x = torch.ones(2, requires_grad=True)
        >>> a, b = checkpoint(lambda x: (x.exp(), x.sin()), x, use_reentrant=False)
        >>> with GraphExecGroup():
        ...     a.sum().backward()
        ...     b.sum().backward()
    """

    def __enter__(self) -> GraphExecGroup:
        if _ACTIVE_GROUP.current is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {_ACTIVE_GROUP.current}"
            )
        _ACTIVE_GROUP.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        _ACTIVE_GROUP.current = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _ACTIVE_GROUP.current


class _ActiveGroup(threading.local):
    current: GraphExecGroup | None = None


_ACTIVE_GROUP = _ActiveGroup()
_OVERLAP_ERROR = (
    "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute gradients) "
    "is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
)


class _NoopSaveInputs(Function):
    """A node that saves the arguments, through the saved-tensor hooks around it."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, others: list, *tensors: Tensor) -> Tensor:
        ctx.others = others
        ctx.save_for_backward(*tensors)
        return torch.empty((0,))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("nothing leads here")


class _OpLogger(Interceptor):
    """Logs the names of the ops called inside."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        self.called.append(op.name)
        return function(*args, **kwargs)


class _Holder:
    """Placeholder of one saved tensor. `recomputed` maps each backward pass to its tensor (None once taken)."""

    __slots__ = ("recomputed", "__weakref__")

    def __init__(self) -> None:
        self.recomputed: dict[Any, Tensor | None] = {}


def _tensor_metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


# The properties of a saved tensor that both runs must share, by `determinism_check`.
_DETERMINISM_CHECKS: dict[str, Any] = {"default": _tensor_metadata, "none": lambda tensor: None}
_passes = itertools.count(-2, -1)  # for tensors that are read outside of a backward pass


class _CheckpointFrame:
    """The saved tensors of one run of the function: placeholders in forward, recomputed on first use."""

    def __init__(self, function: Any, args: Any, kwargs: Any, context: Any, surroundings: Any, check: Any) -> None:
        self.function, self.context, self.surroundings, self.check = function, context, surroundings, check
        self.early_stop = True
        self.names: list[_OpLogger] = []  # for debugging, the ops of the first run and of the second
        self.complete = False  # whether the first run came to its end
        self.places: list[Any] = []
        self.saved: list[Any] = []
        self.runs: dict[Any, list] = {}  # by pass, the tensors saved in the recomputation
        values = [*args, *kwargs.values()]
        tensors = [v for v in values if isinstance(v, Tensor)]
        spots = [None if isinstance(v, Tensor) else (v,) for v in values]
        anchor = torch.empty((0,), requires_grad=True)
        self.form = (len(args), list(kwargs))
        with enable_grad():
            self.inputs = _NoopSaveInputs.apply(anchor, spots, *tensors).grad_fn

    def arguments(self) -> Any:
        tensors = iter(self.inputs.saved_tensors)
        values = [next(tensors) if spot is None else spot[0] for spot in self.inputs.others]
        count, names = self.form
        return values[:count], dict(zip(names, values[count:], strict=True))

    def pack(self, tensor: Tensor) -> Any:
        place = _Holder()
        self.places.append(weakref.ref(place))
        self.saved.append(self.check(tensor))
        return place

    def unpack(self, place: _Holder) -> Any:
        inside = graph_task_id()
        group = _ACTIVE_GROUP.current
        key = group if group is not None else next(_passes) if inside == -1 else inside
        if key not in self.runs:
            self.run_again(key)
        if key not in place.recomputed:
            raise CheckpointError("torch.utils.checkpoint: the second run did not save what the first one did.")
        found = place.recomputed[key]
        if found is None:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{'' if group is None else _OVERLAP_ERROR}If you are calling ctx.saved_tensors in backward, make "
                f"sure to do "
                "so only once. Otherwise please open an issue with details on your use case."
            )
        place.recomputed[key] = None
        if inside == -1 and group is None:
            for other in self.places:
                if other() is not None:
                    other().recomputed.pop(key, None)
            del self.runs[key]
        return found

    def run_again(self, key: Any) -> None:
        recomputed = self.runs[key] = []
        frame = self

        def pack(tensor):
            tensor = tensor.detach() if tensor.requires_grad else tensor
            number = len(recomputed)
            if number < len(frame.places):
                place = frame.places[number]()
                if place is not None:
                    place.recomputed[key] = tensor
            elif not frame.complete:
                return tensor  # a backward within the first run sees only a part of it
            recomputed.append(frame.check(tensor))
            if frame.early_stop and len(recomputed) == len(frame.places):
                raise _StopRecomputationError
            return tensor

        args, kwargs = self.arguments()
        stop = contextlib.suppress(_StopRecomputationError)
        hooks = saved_tensors_hooks(pack, lambda tensor: tensor)
        with stop, hooks, enable_grad(), self.surroundings.replay(), self.context, self.log_ops():
            self.function(*args, **kwargs)
        self.compare(recomputed)

    def log_ops(self) -> Any:
        """Note the ops of a run, for debugging."""
        if not self.names:
            return contextlib.nullcontext()
        self.names[1:] = [_OpLogger()]
        return self.names[-1]

    def debug_hint(self) -> str:
        if not self.names:
            return _TIP
        first, second = (", ".join(names.called) for names in self.names)
        return f"\n\nOps of the original forward: {first}\nOps of the recomputation: {second}\n"

    def compare(self, made: list) -> None:
        """CheckpointError unless the recomputation saved the same tensors as the first run."""
        if len(made) != len(self.saved):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.saved)}\nNumber of tensors saved "
                f"during recomputation: {len(made)}.{self.debug_hint()}"
            )
        other = [
            f"tensor at position {i}:\nsaved metadata: {first}\nrecomputed metadata: {second}\n"
            for i, (first, second) in enumerate(zip(self.saved, made, strict=True))
            if first != second
        ]
        if other:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{''.join(other)}.{self.debug_hint()}"
            )


_TIP = (
    "\n\nTip: To see a more detailed error message, either pass `debug=True` to\n"
    "`torch.utils.checkpoint.checkpoint(...)` or wrap the code block\n"
    "with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\n"
    "enable checkpoint-debug mode globally.\n"
)


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: Any = None,
    context_fn: Any = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Returns `function(*args, **kwargs)` without saving its intermediate tensors: backward runs it again.

    It trades time for memory. Random numbers are the same in both runs.

    Args:
        function: The function, or a module.
        *args: Its positional arguments.
        use_reentrant: ``False`` records the part and recomputes its saved tensors when the first is needed. ``True``
            runs the part as one node: an input must require grad, and ``grad`` and ``backward(inputs=)`` are refused.
            Give it explicitly; the default warns and is ``True``.
        context_fn: Function that returns two context managers, for the first run and for the recomputation. Default:
            none.
        determinism_check: ``"default"`` compares the tensors that both runs save, ``"none"`` does not.
        debug: Whether errors name the ops of both runs. Default: ``False``.
        early_stop: Whether the recomputation stops after the last tensor that is needed. Default: ``True``.
        **kwargs: Keyword arguments of the function, and ``preserve_rng_state`` (default ``True``), whether random
            numbers are the same in both runs.

    Returns:
        The function's result.

    Raises:
        ValueError: An argument does not go with ``use_reentrant=True``, or ``determinism_check`` is unknown.
        CheckpointError: In backward, where the recomputation saves other tensors.

    Example:
        >>> import torchlite as torch
        >>> from torchlite.utils.checkpoint import checkpoint
        >>> x = torch.ones(2, requires_grad=True)
        >>> checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
        >>> x.grad
        tensor([2.7183, 2.7183])

    References:
        - T. Chen, B. Xu, C. Zhang, C. Guestrin. Training Deep Nets with Sublinear Memory Cost. 2016.

    See also:
        `checkpoint_sequential`, `create_selective_checkpoint_contexts`.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        _warn_of_default(
            "", "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception."
        )
        use_reentrant = True
    surroundings = _AmbientState(preserve, [*args, *kwargs.values()])
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, surroundings, *args)
    if determinism_check not in _DETERMINISM_CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_DETERMINISM_CHECKS)}, but got {determinism_check}")
    first, second = context_fn()
    if not is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    again = _CheckpointFrame(function, args, kwargs, second, surroundings, _DETERMINISM_CHECKS[determinism_check])
    again.early_stop = early_stop if _Overrides.early_stop is None else _Overrides.early_stop
    if debug if _Overrides.debug is None else _Overrides.debug:
        again.names.append(_OpLogger())
    with recompute_context(again, first):
        return function(*args, **kwargs)


@contextlib.contextmanager
def recompute_context(again: _CheckpointFrame, first: Any) -> Iterator[None]:
    """Return a context for a part whose saved tensors `again` recomputes in backward."""
    watch = again.names[0] if again.names else contextlib.nullcontext()
    with saved_tensors_hooks(again.pack, again.unpack), first, watch:
        yield
    again.complete = True


def checkpoint_context(
    function: Any, args: Any, kwargs: Any, context_fn: Any, preserve_rng_state: bool, determinism_check: str
) -> Any:
    """Return the context of a first run, entered by the caller; `function` is the recomputation."""
    first, second = context_fn()
    surroundings = _AmbientState(preserve_rng_state, [*args, *kwargs.values()])
    return recompute_context(
        _CheckpointFrame(function, args, kwargs, second, surroundings, _DETERMINISM_CHECKS[determinism_check]), first
    )


def _warn_of_default(name: str, when: str) -> None:
    warnings.warn(
        f"torch.utils.checkpoint{name}: the use_reentrant parameter should be passed explicitly. {when} "
        "use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can pass "
        "use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
        stacklevel=3,
    )


def checkpoint_sequential(
    functions: Any, segments: Any, input: Tensor, use_reentrant: Any = None, **kwargs: Any
) -> Any:
    """Runs a sequence of modules in parts, all of which but the last are checkpointed.

    Args:
        functions: A `torch.nn.Sequential`, or a list of functions.
        segments: Number of parts.
        input: Input of the first module.
        use_reentrant: As in `checkpoint`.
        **kwargs: ``preserve_rng_state``, as in `checkpoint`.

    Returns:
        The result of the last module.

    Raises:
        ValueError: There are other keyword arguments.

    Example:
        >>> from torchlite.utils.checkpoint import checkpoint_sequential
        >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        >>> checkpoint_sequential(net, 2, torch.ones(5, 3), use_reentrant=False).shape
        torch.Size([5, 2])
    """
    if use_reentrant is None:
        _warn_of_default(
            ".checkpoint_sequential", "In version 2.9 we will raise an exception if use_reentrant is not passed."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments

    def run(start, end):
        def part(value):
            for function in functions[start:end]:
                value = function(value)
            return value

        return part

    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(end, len(functions))(input)


__dir__ = make_module_dir(globals(), hidden="checkpoint_context recompute_context")
