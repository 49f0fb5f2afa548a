"""Saved-tensor hooks and other tools for the autograd graph."""

from __future__ import annotations

import abc
import contextlib
import threading
import weakref
from collections import defaultdict
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._device.streams import accelerator_for
from .._dispatch.autograd_graph import (
    PRE_WRITE_HOOKS,
    AccumulateGrad,
    accumulator_of,
    bump_version,
    edge_to_pair,
    gradient_edge,
    root_meta_of,
    to_python_node,
)
from .._dispatch.autograd_graph import Node as _Node
from .._dispatch.dispatch_state import change_counters
from .._dispatch.hooks import saved_tensor_hooks
from .._dispatch.interceptors import count_active
from .._settings import fork_locks
from .engine import CURRENT_PASSES, flatten_edges, node_of
from .grad_mode import is_multithreading_enabled
from .gradient_edge import GradientEdge


class Node(abc.ABC):
    """Abstract class of the nodes of the graph: a tensor's `grad_fn` and all in its `next_functions`.

    The library's nodes pass `isinstance` without deriving from it.

    Example:
        >>> y = torch.ones(2, requires_grad=True) * 3
        >>> isinstance(y.grad_fn, torch.autograd.graph.Node), y.grad_fn.name()
        (True, 'MulBackward0')
    """

    @abc.abstractmethod
    def name(self) -> str:
        """Returns the node's name, which is PyTorch's."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple:
        """A pair of node and output number for each input; the node is ``None`` for an input without a gradient."""

    @property
    @abc.abstractmethod
    def metadata(self) -> dict:
        """Dictionary for the user's values of the node."""

    @abc.abstractmethod
    def register_hook(self, fn):
        """Registers a function that is called after the node ran.

        Args:
            fn: Called as ``fn(grad_inputs, grad_outputs)``.

        Returns:
            A handle with ``remove()``.
        """

    @abc.abstractmethod
    def register_prehook(self, fn):
        """Registers a function that is called before the node runs.

        Args:
            fn: Called as ``fn(grad_outputs)``.

        Returns:
            A handle with ``remove()``.
        """

    @classmethod
    def __subclasshook__(cls, subclass) -> bool:
        return True if cls is Node and issubclass(subclass, _Node) else NotImplemented


class saved_tensors_hooks:
    """Packs each tensor that is saved for backward in a block, and unpacks it when backward needs it.

    Args:
        pack_hook: Called with the tensor when it is saved; its result is kept in place of the tensor.
        unpack_hook: Called in backward with that result; returns the tensor.

    Raises:
        RuntimeError: On entry, if `disable_saved_tensors_hooks` is active.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])

    See also:
        `save_on_cpu`.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        if saved_tensor_hooks.forbidden is not None:
            raise RuntimeError(saved_tensor_hooks.forbidden)
        saved_tensor_hooks.stack = [*saved_tensor_hooks.stack, (self.pack_hook, self.unpack_hook)]
        count_active(1)

    def __exit__(self, *exc):
        if saved_tensor_hooks.stack:
            saved_tensor_hooks.stack = saved_tensor_hooks.stack[:-1]
            count_active(-1)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str):
    """Forbids saved-tensor hooks in a block.

    Args:
        error_message: The text of the error.

    Raises:
        RuntimeError: Hooks are active on entry, or a block enters `saved_tensors_hooks`.

    Example:
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     with torch.autograd.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
        RuntimeError: no hooks here
    """
    if saved_tensor_hooks.stack:
        raise RuntimeError(error_message)
    before = saved_tensor_hooks.forbidden
    saved_tensor_hooks.forbidden = error_message
    try:
        yield
    finally:
        saved_tensor_hooks.forbidden = before


class save_on_cpu(saved_tensors_hooks):
    """Moves the tensors saved for backward in a block to the CPU, and back when backward needs them.

    It saves memory of the device at the cost of two copies.

    Args:
        pin_memory: Whether the copies are in page-locked memory, if the device of type ``device_type`` is there.
            Default: ``False``.
        device_type: The type of the device that page-locked memory is for. Default: ``"cuda"``.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack(tensor):
            copy = tensor.cpu()
            pins = pin_memory and not tensor.is_sparse and accelerator_for(device_type).is_available()
            return tensor.device, copy.pin_memory() if pins else copy

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


def get_gradient_edge(tensor) -> GradientEdge:
    """Returns the edge of a tensor's gradient in the graph.

    Args:
        tensor: A tensor that requires grad.

    Returns:
        A `GradientEdge`.

    Raises:
        RuntimeError: The tensor does not require grad.

    Example:
        >>> y = torch.ones(2, requires_grad=True) * 3
        >>> edge = torch.autograd.graph.get_gradient_edge(y)
        >>> edge.node.name(), edge.output_nr
        ('MulBackward0', 0)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*edge_to_pair(gradient_edge(tensor)))


class _MultiHandle:
    """Handle that removes several hooks; also a context manager."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take all the hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode: str = "all"):
    """Registers a hook on the gradients of several tensors.

    Args:
        tensors: Tensors that require grad.
        fn: With mode ``"all"``, called as ``fn(gradients)``, a list with ``None`` for a gradient that the pass does not
            compute. With mode ``"any"``, called as ``fn(gradient)``.
        mode: ``"all"`` (default) calls ``fn`` once the pass computed all of its gradients, ``"any"`` with the first.

    Returns:
        A handle with ``remove()``; also a context manager.

    Raises:
        ValueError: ``mode`` is none of the two.
        AssertionError: A tensor does not require grad.

    Example:
        >>> a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> handle = torch.autograd.graph.register_multi_grad_hook((a, b), print)
        >>> (a * b).backward()
        [tensor([1.]), tensor([1.])]
        >>> handle.remove()
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if not all(t.requires_grad for t in tensors):
        raise AssertionError("Expected gradient function to be set")
    lock = fork_locks.acquire_before_fork(threading.RLock())
    found: dict[int, list] = {}  # by the pass
    # Weakly: the hooks that know them are theirs.
    nodes = [weakref.ref(node_of(gradient_edge(t)) or t) for t in tensors] if mode == "all" else []

    def hook_of(position):
        def all_of(gradient):
            run = CURRENT_PASSES.runs[-1]
            key = graph_task_id()
            with lock:
                if key not in found:
                    found[key] = [[None] * len(nodes), sum(run.executes(node()) for node in nodes)]
                gradients, left = found[key]
                gradients[position] = gradient
                found[key][1] = left - 1
                if left > 1:
                    return
                del found[key]
            fn(gradients)

        return all_of

    def first(gradient):
        key = graph_task_id()
        with lock:
            if key in found:
                return
            found[key] = []
        CURRENT_PASSES.runs[-1].callbacks += (lambda: found.pop(key, None),)
        fn(gradient)

    return _MultiHandle(t.register_hook(first if mode == "any" else hook_of(i)) for i, t in enumerate(tensors))


def graph_task_id() -> int:
    """Returns the number of the backward pass that this thread runs, or -1 outside of one."""
    return CURRENT_PASSES.runs[-1].identity if CURRENT_PASSES.runs else -1


_current_graph_task_id = graph_task_id


def _will_engine_execute_node(node) -> bool:
    """True if the backward pass that this thread is in runs a node, or adds to its leaf."""
    if not CURRENT_PASSES.runs:
        raise RuntimeError(
            "_will_engine_execute_node should only be called during the backward pass: there is none in this thread"
        )
    if not isinstance(node, _Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    run = CURRENT_PASSES.runs[-1]
    if isinstance(node, AccumulateGrad) and not run.adds:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported."
        )
    return run.executes(node)


def _current_graph_task_execution_order() -> list:
    """The nodes that the backward pass of this thread runs, in their order."""
    if not CURRENT_PASSES.runs:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if is_multithreading_enabled():
        raise RuntimeError(
            "_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled, e.g. by running:\n\nwith torch.autograd.set_multithreading_enabled(False):\n    ..."
        )
    run = CURRENT_PASSES.runs[-1]
    order: list[_Node] = []
    nodes = run.order()
    whole = {where: node for node in nodes for where in flatten_edges(node._edges) if hasattr(where, "_tl_array")}
    for node in nodes:
        order.append(to_python_node(node))
        order += [accumulator_of(leaf) for leaf, last in whole.items() if last is node and run.executes(leaf)]
    return order


def _current_autograd_node():
    """The node that runs now in this thread; None outside of a backward pass."""
    run = CURRENT_PASSES.runs[-1] if CURRENT_PASSES.runs else None
    return None if run is None or run.node is None else to_python_node(run.node)


def increment_version(tensor) -> None:
    """Adds 1 to the version counter of tensors, after a change that autograd did not see.

    Args:
        tensor: The tensor, or an iterable of tensors.

    Example:
        >>> x = torch.zeros(2)
        >>> x.numpy()[0] = 1.0
        >>> torch.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for item in (tensor,) if hasattr(tensor, "_tl_array") else tensor:
        bump_version(item)


class _Handle:
    """The value that a node stores in place of a saved tensor."""

    __slots__ = ("__weakref__",)


class _AllowMutationOnSavedContext:
    """State of `allow_mutation_on_saved_tensors`: the saved tensors, and copies of those changed since."""

    def __init__(self):
        self.cloned: Any = weakref.WeakKeyDictionary()
        self.original: Any = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: Any = weakref.WeakValueDictionary()
        self.sid_to_tid: Any = defaultdict(set)
        self.open = True

    def clear(self) -> None:
        for one in (self.cloned, self.original, self.tid_to_weakhandle, self.sid_to_tid):
            one.clear()

    def pack(self, tensor):
        """A handle in place of the tensor; the same one for the same tensor in the same version."""
        memory = root_meta_of(tensor)
        of_memory = (id(memory), memory.n)
        key = (*of_memory, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        handle = self.tid_to_weakhandle.get(key)
        if handle is None or self.original.get(handle) is None and self.cloned.get(handle) is None:
            handle = _Handle()
            self.tid_to_weakhandle[key] = handle
            self.original[handle] = tensor
            self.sid_to_tid[of_memory].add(key)
        return handle

    def unpack(self, handle):
        found = self.cloned.get(handle)
        if found is None:
            found = self.original.get(handle)
        if found is None or not self.open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded."
            )
        return found

    def before_write(self, target) -> None:
        """Copy the saved tensors on the memory that is about to change."""
        memory = root_meta_of(target)
        for key in self.sid_to_tid.pop((id(memory), memory.n), ()):
            handle = self.tid_to_weakhandle.get(key)
            if handle is not None and handle in self.original:
                kept = self.original.pop(handle)
                self.cloned[handle] = kept.clone()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Allows in-place changes of tensors that are saved for backward, in a block.

    A saved tensor is copied just before it changes. The backward pass must run in the block too.

    Yields:
        The context, which has ``clear()`` to drop what is saved.

    Raises:
        RuntimeError: The block is inside another one.
        AssertionError: Backward runs after the block ended. Raised by the backward pass.

    Example:
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     a = torch.ones(2, requires_grad=True)
        ...     b = a.clone()
        ...     out = (b ** 2).sum()
        ...     _ = b.sin_()
        ...     out.backward()
        >>> a.grad
        tensor([2., 2.])
    """
    if any(isinstance(getattr(look, "__self__", None), _AllowMutationOnSavedContext) for look in PRE_WRITE_HOOKS):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    look = context.before_write
    with saved_tensors_hooks(context.pack, context.unpack):
        PRE_WRITE_HOOKS.append(look)
        change_counters(WRITE_CHECKS=1)
        try:
            yield context
        finally:
            change_counters(WRITE_CHECKS=-1)
            PRE_WRITE_HOOKS.remove(look)
            context.clear()
            context.open = False


__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


__dir__ = make_module_dir(globals(), hidden="graph_task_id")
