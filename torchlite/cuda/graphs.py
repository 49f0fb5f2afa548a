"""CUDA graphs: work captured once and replayed as one launch, which saves the launch time of each kernel."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from .. import autograd
from .._device import generators as _random
from .._device.streams import CAPTURES
from .._dispatch import backend_registry
from .._dispatch.callbacks import CALLBACKS
from .._tensor import Tensor
from .._types.devices import device as device_type
from ._accelerator import cuda
from .streams import Stream, StreamContext

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_MODES = ("global", "thread_local", "relaxed")


def is_current_stream_capturing() -> bool:
    """True if the calling thread's work is being captured for a graph. Does not initialise a device."""
    return cuda.is_initialized() and cuda.runtime(cuda.current_device()).is_capturing()


def graph_pool_handle() -> Any:
    """A new pool of memory, for graphs that are replayed in the order in which they were recorded:
    they then share it.
    """
    return cuda.runtime(cuda.current_device()).new_pool()


class CUDAGraph:
    """Work on a CUDA device, captured once and replayed any number of times, always on the same memory: new inputs are
    copied into the old ones.

    `torch.cuda.graph` is a more convenient interface. Work that needs the host (`item()`, printing, copies from host
    memory) cannot be captured. `keep_graph` has no effect: the graph is always instantiated when capture ends.
    """

    def __init__(self, keep_graph: bool = False):
        self._graph: Any = None
        self._stream: Any = None
        self._drawn = 0

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Capture the calling thread's work in its stream from now on, instead of running it.

        pool: memory to use, from `graph_pool_handle()` or another graph's `pool()`. capture_error_mode: "global",
        "thread_local" or "relaxed": the threads in which calls that cannot be captured are refused. RuntimeError in the
        default stream, and if the graph has been captured already.
        """
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if self._graph is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        stream = cuda.current_stream()
        if stream == cuda.default_stream():
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. "
                "(However, after capture, it's ok to replay them on the default stream.)"
            )
        self._stream = stream
        self._drawn = self._engine_offset()
        cuda.runtime(stream.device_index).begin_capture(pool, capture_error_mode)
        CAPTURES.append(self)

    def _engine_offset(self) -> int:
        """Return the offset of the device's default engine, or 0 if it has none. Capture must not change it; replays
        advance it.
        """
        engine = _random.default_generator_of(
            backend_registry.table_of(device_type("cuda", self._stream.device_index))
        )._engine
        return engine.get_offset() if hasattr(engine, "get_offset") else 0

    def capture_end(self) -> None:
        """End the capture and allow `replay`. RuntimeError if no capture began, or it began in another stream."""
        if self._stream is None:
            raise RuntimeError("Called CUDAGraph::capture_end without a preceding capture_begin.")
        if cuda.current_stream() != self._stream:
            raise RuntimeError("Capture must end on the same stream it began on.")
        if self in CAPTURES:
            CAPTURES.remove(self)
        self._graph = cuda.runtime(self._stream.device_index).end_capture()
        if self._engine_offset() != self._drawn:
            self.reset()
            raise RuntimeError(
                "random numbers were drawn while a CUDA graph was recorded, in a way that would draw the same ones "
                "in every replay"
            )

    def instantiate(self) -> None:
        """Check that a graph was captured; it was instantiated when capture ended."""
        self._check_captured_graph("instantiate")

    def _check_captured_graph(self, what: str) -> Any:
        if self._graph is None:
            raise RuntimeError(f"Called CUDAGraph::{what} without a preceding successful capture.")
        return self._graph

    def replay(self) -> None:
        """Start everything that was recorded, in the current stream."""
        self._check_captured_graph("replay").replay()

    def reset(self) -> None:
        """Free the captured work; the object can capture again."""
        graph, self._graph, self._stream = self._graph, None, None
        if graph is not None:
            graph.reset()

    def pool(self) -> Any:
        """Return the memory pool of the graph's results, for other graphs to share."""
        return self._check_captured_graph("pool()").pool


class graph:
    """Context manager that captures work into a CUDAGraph without running it.

    pool: memory to share (`graph_pool_handle()`, or another graph's `pool()`). stream: the stream to capture in; None
    uses one created for this purpose.

    >>> import torchlite as torch
    >>> if torch.cuda.is_available():
    ...     x = torch.zeros(3, device="cuda")
    ...     y = x * 2 + 1  # once before: kernels are built when they are first used, and building cannot be recorded
    ...     g = torch.cuda.CUDAGraph()
    ...     with torch.cuda.graph(g):
    ...         y = x * 2 + 1
    ...     x = x.fill_(4.0)
    ...     g.replay()
    ...     assert y.tolist() == [9.0, 9.0, 9.0]
    """

    _streams: dict[int, Stream] = {}  # by device

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None, capture_error_mode: str = "global"
    ):
        if stream is None:
            index = cuda.current_device()
            stream = self._streams[index] if index in self._streams else self._streams.setdefault(index, Stream(index))
        self.cuda_graph, self.pool, self.capture_stream, self.capture_error_mode = (
            cuda_graph,
            pool,
            stream,
            capture_error_mode,
        )
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        cuda.synchronize()
        gc.collect()  # memory in dead cycles, which the recording would otherwise free in its midst
        cuda.empty_cache()
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, capture_error_mode=self.capture_error_mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:
            if error is None:  # else the error inside the block is more specific
                raise
        finally:
            self._context.__exit__()


def _flatten_tensors(value: Any) -> tuple[list, Callable[[list], Any]]:
    """Return the tensors in nested tuples, lists and dictionaries, and a function that replaces them."""
    parts: list
    build: Callable[[list], Any]
    if isinstance(value, dict):
        parts, build = list(value.values()), lambda items: type(value)(zip(value, items, strict=True))
    elif isinstance(value, (tuple, list)):
        parts = list(value)
        build = (lambda items: type(value)(*items)) if hasattr(value, "_fields") else type(value)
    else:
        return [value], lambda items: items[0]
    flat = [_flatten_tensors(part) for part in parts]
    counts = [len(leaves) for leaves, _ in flat]

    def rebuilt(items: list) -> Any:
        rest = iter(items)
        return build([put([next(rest) for _ in range(n)]) for n, (_, put) in zip(counts, flat, strict=True)])

    return [leaf for leaves, _ in flat for leaf in leaves], rebuilt


class _GraphedCallable:
    """A callable, its two graphs, and the fixed tensors that they read and write."""

    def __init__(self, function: Callable, sample: tuple, allow_unused: bool):
        self.function, self.sample, self.allow_unused = function, sample, allow_unused
        is_module = isinstance(function, CALLBACKS.module_class)
        if is_module:
            _check_module(function)
        self.arguments = _flatten_tensors(sample)[0]
        if not all(isinstance(a, Tensor) for a in self.arguments):
            raise AssertionError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
            )
        self.parameters = tuple(function.parameters()) if is_module else ()  # type: ignore[attr-defined]
        self.inputs = (*self.arguments, *self.parameters)
        self.differentiable_inputs = tuple(t for t in self.inputs if t.requires_grad)
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        self.outputs: list[Tensor] = []
        self.grad_outputs: list[Tensor | None] = []
        self.grad_inputs: list[Tensor | None] = [None] * len(self.inputs)
        self.rebuilt: Callable[[list], Any] = tuple

    def gradients(self, outputs: list, grad_outputs: list) -> tuple:
        used = [(o, g) for o, g in zip(outputs, grad_outputs, strict=True) if o.requires_grad]
        return (
            autograd.grad(
                [o for o, _ in used], self.differentiable_inputs, [g for _, g in used], allow_unused=self.allow_unused
            )
            if used and self.differentiable_inputs
            else ()
        )

    def run_once(self) -> None:
        outputs = _flatten_tensors(self.function(*self.sample))[0]
        self.gradients(outputs, [o.detach().clone() for o in outputs])

    def capture_forward(self, pool: Any) -> None:
        with graph(self.forward, pool):
            found = self.function(*self.sample)
        self.outputs, self.rebuilt = _flatten_tensors(found)

    def capture_backward(self, pool: Any) -> None:
        self.grad_outputs = [o.detach().clone() if o.requires_grad else None for o in self.outputs]
        if not self.differentiable_inputs or not any(o.requires_grad for o in self.outputs):
            return
        # Gradients of parameters outlive the step, so their memory is not in the pool, which the next forward replay
        # may overwrite.
        kept = {
            i: t.detach().clone() for i, t in enumerate(self.inputs) if t.requires_grad and i >= len(self.arguments)
        }
        with graph(self.backward, pool):
            found = iter(self.gradients(self.outputs, self.grad_outputs))
            self.grad_inputs = [next(found) if t.requires_grad else None for t in self.inputs]
            for i, place in kept.items():
                gradient = self.grad_inputs[i]
                self.grad_inputs[i] = None if gradient is None else place.copy_(gradient)

    def replay_forward(self, arguments: tuple) -> tuple[Tensor, ...]:
        for fixed, given in zip(self.arguments, arguments, strict=False):
            if given is not fixed:
                fixed.copy_(given)
        self.forward.replay()
        return tuple(o.detach() for o in self.outputs)

    def replay_backward(self, gradients: tuple) -> tuple[Tensor | None, ...]:
        for fixed, given in zip(self.grad_outputs, gradients, strict=True):
            if fixed is not None and given is not fixed:
                fixed.copy_(given)
        count = len(self.arguments)
        for parameter, fixed in zip(self.parameters, self.grad_inputs[count:], strict=True):
            if fixed is not None and parameter.grad is not None and parameter.grad._tl_array is fixed._tl_array:
                parameter.grad = parameter.grad.clone()  # still needed: the replay is about to overwrite it
        self.backward.replay()
        # A parameter's `.grad` may alias the memory until the next replay. Others get views, which are copied where
        # they are stored.
        return tuple(
            None if g is None else g.detach() if i >= count else g.view(g.shape) for i, g in enumerate(self.grad_inputs)
        )

    def make_callable(self) -> Callable:
        """Replacement of a callable: one autograd node whose passes are replays."""
        me = self

        class Graphed(autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                return me.replay_forward(inputs)

            @staticmethod
            @autograd.function.once_differentiable
            def backward(ctx, *gradients):
                return me.replay_backward(gradients)

        def run(*args: Any) -> Any:
            given = _flatten_tensors(args)[0]
            if len(given) != len(me.arguments):
                raise RuntimeError(
                    f"the graph was recorded with {len(me.arguments)} tensor arguments, but {len(given)} were given"
                )
            return me.rebuilt(list(Graphed.apply(*given, *me.parameters)))

        return (
            run if not isinstance(self.function, CALLBACKS.module_class) else _make_graphed_forward(self.function, run)
        )


def _check_module(module: Any) -> None:
    if module._backward_hooks or module._forward_hooks or module._forward_pre_hooks:
        raise AssertionError(
            "Modules must not have hooks registered at the time they are passed. However, registering hooks on modules "
            "after passing them through make_graphed_callables is allowed."
        )
    if any(b.requires_grad for b in module.buffers()):
        raise AssertionError(
            "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may be "
            "trainable. All buffers must have ``requires_grad=False``."
        )


def _make_graphed_forward(module: Any, run: Callable) -> Any:
    """Return a forward that replays graphs while the module is in the mode (training or not) in which they were
    captured.
    """
    recorded, eager = module.training, module.forward
    module.forward = lambda *args, **kwargs: (run if module.training == recorded else eager)(*args, **kwargs)
    return module


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """Functions or modules whose forward and backward passes are replays of CUDA graphs; modules are changed in
    place.

    callables: one, or a tuple of those that run in sequence. sample_args: a tuple of tensors (for several callables: a
    tuple of such tuples) with the shapes, dtypes and `requires_grad` of later arguments; the graphs read from their
    memory. num_warmup_iters: ordinary runs before capture. allow_unused_input: whether an input may not affect the
    results. pool: memory to share with other graphs.

    No higher derivatives; modules without hooks, and without buffers that require grad; autocast around it needs
    `cache_enabled=False`.

    >>> import torchlite as torch
    >>> if torch.cuda.is_available():
    ...     layer = torch.nn.Linear(4, 4).to("cuda")
    ...     layer = torch.cuda.make_graphed_callables(layer, (torch.randn(2, 4, device="cuda"),))
    ...     layer(torch.randn(2, 4, device="cuda")).sum().backward()
    """
    from ..amp.autocast_mode import is_autocast_cache_enabled, is_autocast_enabled

    if is_autocast_enabled("cuda") and is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    several = isinstance(callables, tuple)
    pairs = zip(callables, sample_args, strict=True) if several else [(callables, sample_args)]
    graphed = [_GraphedCallable(function, tuple(sample), allow_unused_input) for function, sample in pairs]
    pool = graph_pool_handle() if pool is None else pool
    cuda.synchronize()
    with StreamContext(Stream()):
        for one in graphed:
            for _ in range(num_warmup_iters):
                one.run_once()
    cuda.synchronize()
    for (
        one
    ) in graphed:  # in the order of execution, since they share memory: forward passes, then backward ones in reverse
        one.capture_forward(pool)
    for one in reversed(graphed):
        one.capture_backward(pool)
    found = tuple(one.make_callable() for one in graphed)
    return found if several else found[0]
