"""Trade compute for memory: a part of the model keeps only its inputs and runs again in backward."""

from __future__ import annotations

import contextlib
from typing import Any

from .. import Tensor
from ..amp.autocast_mode import as_now
from ..autograd import Function, backward
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.graph import saved_tensors_hooks

__all__ = ["checkpoint", "checkpoint_sequential", "CheckpointError", "noop_context_fn"]


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not save what the first one did."""


def noop_context_fn() -> Any:
    """Two context managers that do nothing: for the first run and for the second."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Surroundings:
    """Autocast, and the states of the CPU's generator and of those of the arguments' devices, when made; inside
    `replay()` they are in force again.
    """

    def __init__(self, keep: bool, arguments: Any) -> None:
        from .._device.generators import default_generators

        tensors = [a for a in arguments if isinstance(a, Tensor)]
        self.states = [(g, g.get_state()) for g in default_generators(tensors)] if keep else []
        self.regions = as_now()

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


class _Reentrant(Function):
    """The whole part as one node, whose backward runs the part again with recording."""

    @staticmethod
    def forward(ctx: Any, run: Any, surroundings: Any, *args: Any) -> Tensor:
        ctx.run, ctx.surroundings = run, surroundings
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.is_tensor = [isinstance(a, Tensor) for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        with no_grad():
            return run(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        args = [next(saved) if t else o for t, o in zip(ctx.is_tensor, ctx.others, strict=True)]
        fresh = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in args]
        with enable_grad(), ctx.surroundings.replay():
            outs = ctx.run(*fresh)
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, g) for o, g in zip(outs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in fresh))


class _Recompute:
    """Saved tensors of one run of the function: numbered while it runs, made again at the first one that is needed."""

    def __init__(self, function: Any, args: Any, kwargs: Any, context_fn: Any, surroundings: Any) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.context_fn, self.surroundings = context_fn, surroundings
        self.count = 0
        self.found: dict[int, Tensor] = {}
        self.shapes: list = []

    def pack(self, tensor: Tensor) -> Any:
        self.shapes.append((tuple(tensor.shape), tensor.dtype))
        self.count += 1
        return self.count - 1

    def unpack(self, number: Any) -> Any:
        if number not in self.found:
            self.run_again()
        return self.found.pop(number)

    def run_again(self) -> Any:
        made: list[Tensor] = []

        def pack(tensor):
            made.append(tensor)
            return tensor

        with enable_grad(), self.surroundings.replay(), self.context_fn()[1], saved_tensors_hooks(pack, lambda t: t):
            self.function(*self.args, **self.kwargs)
        if len(made) != self.count:
            raise CheckpointError(
                f"torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors "
                f"saved during forward: {self.count}\nNumber of tensors saved during recomputation: {len(made)}."
            )
        for i, (tensor, (shape, dtype)) in enumerate(zip(made, self.shapes, strict=True)):
            if tuple(tensor.shape) != shape or tensor.dtype is not dtype:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
                    "than during the forward pass.\n"
                    f"tensor at position {i}:\n"
                    f"saved metadata: {shape}, {dtype}\n"
                    f"recomputed metadata: {tuple(tensor.shape)}, {tensor.dtype}"
                )
        self.found = dict(enumerate(made))


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: Any = None,
    context_fn: Any = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)` without keeping what backward needs: it runs again then.

    use_reentrant: True runs the part as one node (its inputs must require grad); False (the default) lets the part
    record itself and makes its saved tensors again when the first is needed. The random state is replayed unless
    `preserve_rng_state` is False. CheckpointError when the second run saves other tensors.

    >>> import torchlite as torch
    >>> from torchlite.utils.checkpoint import checkpoint
    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([2.7183, 2.7183])
    """
    surroundings = _Surroundings(preserve_rng_state, [*args, *kwargs.values()])
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return _Reentrant.apply(function, surroundings, *args)
    again = _Recompute(function, args, kwargs, context_fn, surroundings)
    with context_fn()[0], saved_tensors_hooks(again.pack, again.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: Any, input: Tensor, use_reentrant: Any = None, preserve_rng_state: bool = True
) -> Any:
    """A sequence of modules in `segments` parts, all but the last of them checkpointed."""
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
        input = checkpoint(run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return run(end, len(functions))(input)
