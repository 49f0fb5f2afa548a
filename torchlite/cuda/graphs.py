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
    """Returns whether this thread's work is captured for a graph. It does not initialize a device.

    Example:
        >>> torch.cuda.is_current_stream_capturing()
        False
    """
    return cuda.is_initialized() and cuda.runtime(cuda.current_device()).is_capturing()


def graph_pool_handle() -> Any:
    """Returns a new pool of memory, for graphs that are replayed in the order in which they were captured.

    Raises:
        RuntimeError: There is no device.

    Example:
        >>> if torch.cuda.is_available():
        ...     pool = torch.cuda.graph_pool_handle()
    """
    return cuda.runtime(cuda.current_device()).new_pool()


class CUDAGraph:
    """Work on a CUDA device that is captured once and replayed any number of times.

    A replay uses the same memory: copy new inputs into the old ones. `torch.cuda.graph` captures a block. Work that
    needs the
    host cannot be captured: `item()`, printing, copies from host memory.

    Args:
        keep_graph: Has no effect: the graph is ready when capture ends.

    Example:
        >>> torch.cuda.CUDAGraph().replay()
        Traceback (most recent call last):
        RuntimeError: Called CUDAGraph::replay without a preceding successful capture.
    """

    def __init__(self, keep_graph: bool = False):
        self._graph: Any = None
        self._stream: Any = None
        self._drawn = 0

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Captures this thread's work in its stream from now on, in place of running it.

        Args:
            pool: The memory to use, from `graph_pool_handle` or another graph's `pool`. Default: new memory.
            capture_error_mode: The threads in which calls that cannot be captured raise: ``"global"`` (default),
                ``"thread_local"`` or ``"relaxed"``.

        Raises:
            RuntimeError: The stream is the default one, the graph is captured already, or the mode is unknown.
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
        """Ends the capture.

        Raises:
            RuntimeError: No capture began, it began in another stream, or random numbers would repeat in every replay.
        """
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
        """Checks that the graph is captured.

        Raises:
            RuntimeError: It is not.
        """
        self._check_captured_graph("instantiate")

    def _check_captured_graph(self, what: str) -> Any:
        if self._graph is None:
            raise RuntimeError(f"Called CUDAGraph::{what} without a preceding successful capture.")
        return self._graph

    def replay(self) -> None:
        """Starts the captured work in the current stream.

        Raises:
            RuntimeError: The graph is not captured.
        """
        self._check_captured_graph("replay").replay()

    def reset(self) -> None:
        """Frees the captured work; the object can capture again."""
        graph, self._graph, self._stream = self._graph, None, None
        if graph is not None:
            graph.reset()

    def pool(self) -> Any:
        """Returns the memory of the graph, for others to share.

        Raises:
            RuntimeError: The graph is not captured.
        """
        return self._check_captured_graph("pool()").pool


class graph:
    """Captures a block into a `CUDAGraph`, without running it.

    Args:
        cuda_graph: The graph.
        pool: The memory to use, from `graph_pool_handle` or another graph's `pool`. Default: new memory.
        stream: The stream to capture in. Default: one made for this purpose.
        capture_error_mode: As for `CUDAGraph.capture_begin`.

    Raises:
        RuntimeError: There is no device, or the graph is captured already.

    Example:
        >>> if torch.cuda.is_available():
        ...     x = torch.zeros(3, device="cuda")
        ...     y = x * 2 + 1  # builds the kernels, which a capture cannot do
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
    """Replaces the forward and backward passes of functions or modules by replays of CUDA graphs.

    Modules change in place. There are no higher derivatives. Modules have no hooks, and no buffers that require grad.
    Autocast around it needs ``cache_enabled=False``.

    Args:
        callables: A function or module, or a tuple of those that run one after the other.
        sample_args: A tuple of tensors with the shapes, dtypes and `requires_grad` of later arguments, from whose
            memory the
            graphs read; for several callables, a tuple of such tuples.
        num_warmup_iters: Number of ordinary runs before capture. Default: 3.
        allow_unused_input: Whether an input may not affect the results. Default: ``False``.
        pool: Memory to share with other graphs. Default: new memory.

    Returns:
        The callable, or a tuple.

    Raises:
        RuntimeError: There is no device, or autocast keeps casts.
        AssertionError: A module has hooks or buffers that require grad, or an argument is not a tensor.

    Example:
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
