"""Reverse-mode engine: runs the nodes of the recorded graph in reverse order of their creation."""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import operator
import threading
from typing import Any

from .._dispatch import call
from .._dispatch.autograd_graph import (
    LEAF_HOOKS,
    AccumulateGrad,
    AutogradMeta,
    Node,
    OutputEdge,
    accumulate_in_place,
    autograd_meta_of,
    find_node_hooks,
    gradient_edge,
)
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.codegen.backward import backward_function
from .._dispatch.dispatch_state import GLOBALS, HAS_WRAPPERS, LEAF, MODE, NO_GRAD, recording, set_grad_mode
from .._dispatch.hooks import saved_tensor_hooks
from .._dispatch.interceptors import stack, take_over
from .._dispatch.memory_layout import is_dense, to_leaf_strides
from .._dispatch.numpy_errors import is_refusal, run_quietly
from .._dispatch.shapes import contiguous_strides
from .._settings import fork_locks
from .._tensor import Parameter, Tensor
from .._types.dtypes import COMPLEX, get_default_dtype
from .._types.layouts import Size, strided
from .hook_runner import CURRENT_PASSES, check_hook_result, run_posthooks, run_prehooks
from .saved_values import saved_output_raw, saved_output_tensor, saved_raw, saved_tensor
from .zero_derivatives import add_zero_derivatives

# A nested backward uses Python's stack. Beyond this nesting depth it runs in a new thread with a separate stack.
MAX_NESTED_DEPTH = 20
_identities = itertools.count(1)
# Protects additions to leaf gradients: passes of several threads may reach the same leaf.
_ACCUMULATE_LOCK = fork_locks.acquire_before_fork(threading.RLock())


_seq = operator.attrgetter("_seq")


def work_size(node, g):
    """Size used to choose the large-array kernels if a node's gradient is a number or the node has several outputs: the
    elements of the largest gradient or saved tensor.
    """
    most = 1
    if g.__class__ is list:
        most = max([0 if raw is None else raw.size for raw in g])
    for value in node._saved or ():
        if (value.__class__ is Tensor or value.__class__ is Parameter) and value._tl_array.size > most:
            most = value._tl_array.size
    return most


class RawMode:
    """Gradients as raw arrays: ordinary backward builds no Tensor."""

    differentiable = False
    takes_sparse = False  # whether gradients may be sparse

    @staticmethod
    def run(node, g):
        op = node._op
        backward = op._backward or backward_function(op)
        try:
            return RawMode._run_backward(backward, op, node, g)
        except RuntimeError as error:
            if not is_refusal(error):  # a formula may run twice
                raise
        return RawMode._run_backward(functools.partial(backward, run_=run_quietly), op, node, g)

    @staticmethod
    def _run_backward(backward, op, node, g):
        table = node._tl_kernels
        # The common case, a small gradient that is not half precision: one test replaces those below.
        if (
            g.__class__ is table.array
            and g.ndim
            and g.size < GLOBALS["LARGE"]
            and (table.backward_in_float32 is None or g.itemsize > 2)
        ):
            return backward(table, g, node, saved_raw, saved_output_raw)
        if table.backward_in_float32 is not None and g.__class__ is not list and g.itemsize == 2 and op.rounds:
            return table.backward_in_float32(backward, table, g, node, saved_raw, saved_output_raw)
        alone = g.__class__ is not list and (g.ndim or not op.saves_tensors)
        if (g.size if alone else work_size(node, g)) >= GLOBALS["LARGE"]:
            table = table.large
        return backward(table, g, node, saved_raw, saved_output_raw)

    @staticmethod
    def add(table, a, b):
        return run_quietly((table if a.size < GLOBALS["LARGE"] else table.large).add, a, b)

    @staticmethod
    def fit(table, g, shape):
        return run_quietly(sum_to, table.for_size(g), g, shape)

    @staticmethod
    def tensor(table, g):
        return call.wrap_array(table, g)

    @staticmethod
    def tensor_to_grad(tensor):
        return tensor._tl_array


class TensorMode:
    """Gradients as Tensors: with history for create_graph, and inside `vmap`."""

    differentiable = True
    takes_sparse = False

    @staticmethod
    def run(node, g):
        op = node._op
        found = backward_function(op)(CALLBACKS.F, g, node, saved_tensor, saved_output_tensor)
        if (op.zero_derivatives or op.absent_derivatives) and MODE.grad:
            return add_zero_derivatives(node, g, found)
        return found

    @staticmethod
    def add(table, a, b):
        return CALLBACKS.F.add(a, b)

    @staticmethod
    def fit(table, g, shape):
        return sum_to(CALLBACKS.F, g, shape)

    @staticmethod
    def tensor(table, g):
        return g

    @staticmethod
    def tensor_to_grad(tensor):
        return tensor


def sum_to(F, g, shape):
    """Sum a gradient down to the shape that was broadcast to its own; one that is smaller is expanded."""
    have = tuple(g.shape)
    shape = tuple(shape)
    lead = len(have) - len(shape)
    if lead < 0 or any(n == 1 and m != 1 for n, m in zip(have[lead:], shape, strict=True)):
        return F.expand(g, shape)
    dims = tuple(range(lead)) + tuple(lead + d for d, n in enumerate(shape) if n == 1 and have[lead + d] != 1)
    if dims:
        g = F.sum(g, dims, True)  # not False: a sum to 0-d may come as a NumPy scalar
    return g if tuple(g.shape) == shape else F.reshape(g, shape)


class InterceptedMode(TensorMode):
    """Gradients as Tensors without history, by ops that modes and subclasses with `__torch_dispatch__` see."""


def select_mode(create_graph: bool, tensors) -> Any:
    """Choose raw-array or Tensor mode for this pass: interceptors of this thread may need its ops, and wrappers have no
    raw arrays.
    """
    if create_graph:
        return TensorMode
    wanted = None
    if GLOBALS["INTERCEPTORS"]:
        wanted = next((item.backward for item in reversed(stack.items) if item.backward is not None), None)
    if HAS_WRAPPERS and wanted is None:
        starts = [node_of(gradient_edge(t) if isinstance(t, Tensor) else edge_of(t)) for t in tensors]
        nodes = reachable([n for n in starts if n is not None])
        tables = [node._tl_kernels for node in nodes]
        tables += [
            edge._tl_kernels for node in nodes for edge in flatten_edges(node._edges) if isinstance(edge, Tensor)
        ]
        if any(table is not None and table.wraps for table in tables):
            wanted = "ops"
    return RawMode if wanted is None else InterceptedMode if wanted == "ops" else wanted


def _copy_for_leaf(tensor, g):
    """A recorded copy of a leaf's first gradient, in the leaf's strides if these are dense."""
    if g.layout is not strided:
        return g.clone()
    shape, strides = tuple(tensor.shape), tensor.stride()
    strides = strides if is_dense(shape, strides) else contiguous_strides(shape)
    return g.new_empty_strided(shape, strides).copy_(g)


class _AbsentEntry:
    """A place in a pass's order for a node that an undefined gradient leads to. It stands directly before the node's
    own place, and does nothing if the node has gradients by then.
    """

    __slots__ = ("node",)
    _hooks = True  # never None: `run` leaves it to `_with_hooks`

    def __init__(self, node: Node):
        self.node = node


class BackwardPass:
    """One backward pass."""

    captured: dict = {}  # gradients that the caller requested, by (node, output) or (leaf, None)
    wanted_nodes: dict = {}  # the outputs of nodes whose gradients the caller requested
    targets: set | None  # leaves and nodes that the caller requested
    needed: set | None = None  # the nodes that lead to the targets: None where these are
    useful: set | None = None  # these and the targets among the nodes
    callbacks: tuple = ()  # called when the pass is through
    ready: dict | None = None  # leaves with hooks, by the node after which their gradients are complete
    absent: Any = ()  # a set once undefined gradients lead to nodes
    adds = True  # whether gradients are added to the leaves'
    node: Node | None = None  # the one that runs
    _identity = 0
    _executed: set | None = None

    def __init__(self, mode, retain_graph: bool, roots: list):
        self.mode, self.retain, self.roots = mode, retain_graph, roots
        self.buffers: dict = {}
        self.heap: list = []
        self.leaves: dict = {}  # leaves and what reached them, by the leaf's identity
        self.given: set = set()
        self.targets = None

    @property
    def identity(self) -> int:
        """A unique number of this pass."""
        self._identity = self._identity or next(_identities)
        return self._identity

    def starts(self) -> list:
        """The nodes that the pass begins at."""
        return [node for node in (node_of(where) for where, _ in self.roots) if node is not None]

    def aim(self, targets: set) -> None:
        """Run only what leads to these leaves and nodes."""
        self.targets = targets
        self.needed = ancestors_of(self.starts(), targets)
        self.useful = self.needed | self.wanted_nodes.keys()

    def accumulate(self, target, g, table) -> None:
        """Add a gradient to the sum for an edge."""
        if target.__class__ is OutputEdge:
            node, index = target.node, target.index
            shape = node._shape[index]
        elif target.__class__ is Node or isinstance(target, Node):
            node, index, shape = target, None, target._shape
        else:
            return self.leaf(target, g, table)
        if shape is not None and g.shape != shape:
            g = self.mode.fit(table, g, shape)
        buffers = self.buffers
        if index is None:
            if node in buffers:
                buffers[node] = self.mode.add(node._tl_kernels, buffers[node], g)
                return None
            buffers[node] = g
        else:
            held = buffers.get(node)
            if held is None:
                held = buffers[node] = [None] * len(node._shape)
            else:
                held[index] = g if held[index] is None else self.mode.add(node._tl_kernels, held[index], g)
                return None
            held[index] = g
        if self.useful is None or node in self.useful:
            heapq.heappush(self.heap, (-node._seq, node))
        return None

    def leaf(self, tensor, g, table) -> None:
        if self.targets is not None and tensor not in self.targets:
            return
        if g.shape != tensor._tl_array.shape:
            g = self.mode.fit(table, g, tensor._tl_array.shape)
        if self.mode.differentiable:
            if g.dtype is not tensor.dtype:
                g = CALLBACKS.F.to(g, tensor.dtype)
        elif g.dtype is not tensor._tl_array.dtype and table.dtype_of(g) is not tensor.dtype:
            g = run_quietly(table.to, g, tensor.dtype)
        key, leaves = id(tensor), self.leaves
        held = leaves.get(key)
        leaves[key] = tensor, g if held is None else self.mode.add(table, held[1], g)

    def run(self) -> None:
        """Run the nodes, latest first; the usual edges (to a node with one output, to a parameter) are served here,
        the others by `send`.
        """
        heap, buffers, run, send, leaf = self.heap, self.buffers, self.mode.run, self.accumulate, self.leaf
        wanted, useful, retain, add = self.wanted_nodes, self.useful, self.retain, self.mode.add
        ready, watch = self.ready, GLOBALS["NODE_CREATED_HOOK"] is not None
        pop, push = heapq.heappop, heapq.heappush
        while heap:
            node = self.node = pop(heap)[1]
            if node._hooks is None and not node._is_custom and not wanted and not watch:
                grads = run(node, buffers.pop(node))
                if node._hooks is not None and node._hooks.post:  # set when a saved tensor is unpacked
                    grads = run_posthooks(self.mode, node, grads, None)
            else:
                grads = grad = held = part = None  # so that the node has the only reference to it
                grads = self._with_hooks(node)
                if grads is None:
                    continue
            edges, table = node._edges, node._tl_kernels
            if not retain and (node._saved or node._out is not None) and node._op.saves_tensors:
                node._saved = node._out = node._counter = None
            # The number of gradients is correct for generated formulas; hooks and custom Functions are checked.
            for target, grad in zip(edges, grads):  # noqa: B905 (`strict` costs 0.1 us a node)
                if target is None:
                    continue
                if grad is None:
                    self.reach(target)
                    continue
                kind = target.__class__
                if kind is Node:
                    if grad.shape != target._shape:
                        grad = self.mode.fit(table, grad, target._shape)
                    held = buffers.get(target)
                    if held is not None:
                        buffers[target] = add(target._tl_kernels, held, grad)
                        continue
                    buffers[target] = grad
                    if useful is None or target in useful:
                        push(heap, (-target._seq, target))
                elif kind is Parameter or kind is Tensor:
                    leaf(target, grad, table)
                elif kind is tuple:
                    for one, part in zip(target, grad, strict=True):
                        if part is None:
                            self.reach(one)
                        elif one is not None:
                            send(one, part, table)
                else:
                    send(target, grad, table)
            if ready is not None and node in ready:
                for tensor in ready[node]:
                    self.finish(tensor)

    def reach(self, target) -> None:
        """Let a node run that an undefined gradient leads to: it and those before it have hooks, or are custom
        Functions, which take zeros or None. Leaves need nothing: `ready` finishes those with hooks.
        """
        if target.__class__ is tuple:
            for one in target:
                self.reach(one)
            return
        node = target.node if target.__class__ is OutputEdge else target
        if not isinstance(node, Node) or node in self.buffers or node in self.absent:
            return
        if self.useful is None or node in self.useful:
            self.absent = self.absent or set()
            self.absent.add(node)
            heapq.heappush(self.heap, (-node._seq - 0.5, _AbsentEntry(node)))

    def _run_absent(self, node) -> None:
        """Run a node without any defined gradient."""
        if node in self.buffers:
            return
        self.node = node
        self.buffers[node] = [None] * len(node._shape) if node._is_multi_output else None
        grads = self._with_hooks(node)
        if grads is None:
            return
        if not self.retain and node._op.saves_tensors:
            node._saved = node._out = node._counter = None
        for target, grad in zip(flatten_edges(node._edges), flatten_edges(grads), strict=True):
            if grad is None:
                self.reach(target)
            elif target is not None:
                self.accumulate(target, grad, node._tl_kernels)
        for tensor in (self.ready or {}).get(node, ()):
            self.finish(tensor)

    def find_leaf_completion(self) -> None:
        """Find for each leaf with hooks the last node that runs before its gradient is complete."""
        last: dict = {}
        for node in reachable(self.starts()):
            if self.needed is None or node in self.needed:
                for e in flatten_edges(node._edges):
                    if isinstance(e, Tensor) and (e not in last or last[e]._seq > node._seq):
                        last[e] = node
        self.ready = {}
        for leaf, node in last.items():
            found = autograd_meta_of(leaf)
            wanted = self.targets is None or leaf in self.targets
            if wanted and (found.hooks or found.post_hooks or found.around is not None):
                self.ready.setdefault(node, []).append(leaf)

    def finish(self, leaf) -> None:
        """Process a leaf's complete gradient, or None for an undefined one: run its hooks, then capture or accumulate
        it.
        """
        _, g = self.leaves.pop(id(leaf), (leaf, None))
        found = autograd_meta_of(leaf)
        if found.hooks:
            g = self._run_gradient_hooks(found.hooks, leaf._tl_kernels, g)
        if self.targets is not None:
            self.captured[leaf, None] = g
        if self.adds:
            self.accumulate_grad(leaf, g)

    def _with_hooks(self, node):
        """Run a node that has hooks, is a custom Function, was requested by the caller, or is checked by anomaly mode.
        None if the node is only an end point that the caller requested.
        """
        if node.__class__ is _AbsentEntry:
            self._run_absent(node.node)
            return None
        hooks, g = node._hooks, self.buffers.pop(node)
        if hooks is not None and (hooks.tensor or hooks.retain):
            g = self._apply_tensor_hooks(node, hooks, g)
        for index in self.wanted_nodes.get(node, ()):
            self.captured[node, index] = g[index] if g.__class__ is list else g
        if self.needed is not None and node not in self.needed:
            return None
        if hooks is not None and hooks.pre:
            g = run_prehooks(self.mode, node, hooks.pre, g)
        kept = g if hooks is not None and hooks.post else None
        given = [g]
        del g  # a node may free it before it ends
        if not node._is_custom and is_absent(given[0]):
            grads = absent_inputs(node)
        elif GLOBALS["NODE_CREATED_HOOK"] is not None:
            grads = self._run_with_anomaly_check(node, given.pop())
        else:
            grads = node._run(self, given.pop()) if node._is_custom else self.mode.run(node, given.pop())
        if node._hooks is not None and node._hooks.post:
            grads = run_posthooks(self.mode, node, grads, kept)
        return grads

    def _run_with_anomaly_check(self, node, g):
        """Anomaly mode: point at the forward line, and find NaN."""
        from .anomaly_mode import run_checked

        return run_checked(self, node, g)

    def _apply_tensor_hooks(self, node, hooks, g):
        """Run the hooks of the node's output tensors, and set `grad` of those that retain it."""
        several = g.__class__ is list
        grads = list(g) if several else [g]
        for index, functions in list(hooks.tensor.items()):
            if grads[index] is None and node._skips_absent:
                continue
            grads[index] = self._run_gradient_hooks(functions, node._tl_kernels, grads[index])
        for index, who in list(hooks.retain.items()):
            tensor = who()
            if grads[index] is not None and tensor is not None:
                value = self.mode.tensor(node._tl_kernels, grads[index])
                self.given.add(id(grads[index]))
                found = autograd_meta_of(tensor)
                found.grad = value.clone() if found.grad is None else CALLBACKS.F.add(found.grad, value)
        return grads if several else grads[0]

    def _run_gradient_hooks(self, functions, table, g):
        """A gradient after hooks, which may keep a reference to it; None for an output without a gradient."""
        value = None if g is None else self.mode.tensor(table, g)
        for hook in list(functions.values()):
            answer = hook(value)
            if answer is not None:
                value = check_hook_result(value, answer, hook)
        if value is None:
            return None
        g = self.mode.tensor_to_grad(value)
        self.given.add(id(g))
        return g

    def write_leaf_grads(self) -> None:
        """Accumulate into `.grad` what reached the leaves."""
        hooked = []
        with _ACCUMULATE_LOCK:
            for tensor, g in list(self.leaves.values()):
                found = tensor._tl_meta
                if found.__class__ is not AutogradMeta:
                    found = autograd_meta_of(tensor)
                if LEAF_HOOKS and (found.hooks or found.around is not None or found.post_hooks):
                    hooked.append(tensor)
                elif tensor._tl_node is not None:  # else `requires_grad` was set to False after the forward pass
                    self.add_to_grad(tensor, found, g)
        for tensor in hooked:  # without the lock: hooks may wait for other threads
            self.finish(tensor)

    def accumulate_grad(self, tensor, g) -> None:
        """Add a gradient, if it is defined, to a leaf's, with the hooks around that."""
        if tensor._tl_node is None:
            return
        found, mode = autograd_meta_of(tensor), self.mode
        around = found.around
        if around is not None and around.pre:
            node = AccumulateGrad(tensor)
            g = run_prehooks(mode, node, around.pre, g)
        if g is not None:
            with _ACCUMULATE_LOCK:
                self.add_to_grad(tensor, found, g)
        if found.post_hooks:
            for hook in list(found.post_hooks.values()):
                result = hook(tensor)
                if result is not None and result is not tensor:
                    if not isinstance(result, Tensor):
                        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        if around is not None and around.post:
            run_posthooks(mode, AccumulateGrad(tensor), (), g)

    def add_to_grad(self, tensor, found, g) -> None:
        """Add to the gradient of a leaf. The caller has the lock `_ACCUMULATE_LOCK`."""
        table, add = tensor._tl_kernels, self.mode.add
        if self.mode is InterceptedMode and g.__class__ is Tensor and found.grad.__class__ in (Tensor, None.__class__):
            kept = id(g) in self.given
            g, table, add = g._tl_array, g._tl_kernels, RawMode.add
            self.given |= {id(g)} if kept else set()
        elif self.mode.differentiable:
            found.grad = _copy_for_leaf(tensor, g) if found.grad is None else CALLBACKS.F.add(found.grad, g)
            return
        if found.grad is None:
            if g.__class__ is not table.array:
                g = table.as_array(g)
            if taken := id(g) in self.given or not table.is_sole_owner(g):
                g = table.clone(g)
            if g.strides != tensor._tl_array.strides and (taken or MODE.grad_layout_policy):
                g = to_leaf_strides(table, g, tensor._tl_array)
            self.given.add(id(g))
            found.grad = call.wrap_array(table, g, tensor.dtype)
        else:
            # In place, as in PyTorch, with the history that `.grad` has: tensors that share its memory see the sum.
            accumulate_in_place(table, found.grad, g, add)

    def executes(self, what) -> bool:
        """True if the pass runs this node, or adds to this leaf."""
        if isinstance(what, AccumulateGrad):
            what = what.variable
        if self.targets is not None:
            return what in (self.needed or ()) if isinstance(what, Node) else what in self.targets
        if self._executed is None:
            nodes = reachable(self.starts())
            self._executed = {e for one in nodes for e in flatten_edges(one._edges) if isinstance(e, Tensor)}.union(
                nodes
            )
        return what in self._executed

    def order(self) -> list:
        """The nodes that the pass runs, in order; for a leaf its AccumulateGrad, at the point where its gradient is
        complete.
        """
        nodes = [n for n in reachable(self.starts()) if self.needed is None or n in self.needed]
        return sorted(nodes, key=_seq, reverse=True)


def reachable(roots) -> list:
    """The nodes that the roots lead to."""
    seen, pending = set(roots), list(roots)
    for node in pending:  # which grows
        for e in node._edges:
            for part in e if e.__class__ is tuple else (e,):
                one = part.node if part.__class__ is OutputEdge else part
                if isinstance(one, Node) and one not in seen:
                    seen.add(one)
                    pending.append(one)
    return pending


def ancestors_of(roots, targets) -> set:
    """The nodes from which an edge leads to a target (a leaf tensor or a node)."""
    found: set = set()
    nodes = reachable(roots)
    nodes.sort(key=_seq)
    for node in nodes:
        for e in node._edges:
            for part in e if e.__class__ is tuple else (e,):
                one = part.node if part.__class__ is OutputEdge else part
                if one is not None and (one in targets or one in found):
                    found.add(node)
    return found


def is_absent(g) -> bool:
    """True if a node has no defined gradient."""
    return g is None or g.__class__ is list and all(one is None for one in g)


def absent_inputs(node) -> tuple:
    """Undefined gradients of all inputs of a node."""
    return tuple([(None,) * len(e) if e.__class__ is tuple else None for e in node._edges])


def flatten_edges(edges):
    for item in edges:
        if item.__class__ is tuple:
            yield from item
        else:
            yield item


def node_of(item):
    return item.node if item.__class__ is OutputEdge else item if isinstance(item, Node) else None


def edge_of(item):
    """The graph edge of a tensor or a GradientEdge."""
    if isinstance(item, Tensor):
        return gradient_edge(item)
    node, index = item.node, item.output_nr
    if isinstance(node, AccumulateGrad):
        return node.variable
    return OutputEdge(node, index) if node._is_multi_output else node


class _EdgeRoot:
    """A GradientEdge as a root of a pass, with the attributes of a tensor that the engine reads."""

    def __init__(self, where):
        node = node_of(where)
        self._tl_kernels = where._tl_kernels if node is None else node._tl_kernels
        self._tl_array = self  # acts as both the Tensor and its array
        if node is None:
            self.shape, self.dtype = where._tl_array.shape, where.dtype
        else:
            self.shape, self.dtype = node._shape if where is node else node._shape[where.index], get_default_dtype()

    def numel(self) -> int:
        return math.prod(self.shape)


def initial_gradient(tensor, where, g, mode, position: int = 0):
    """The first gradient of a root, checked."""
    if where is None:
        raise RuntimeError(f"element {position} of tensors does not require grad and does not have a grad_fn")
    end = tensor if isinstance(tensor, Tensor) else _EdgeRoot(where)
    if g is None:
        if (end._tl_array.size if end.__class__ is Tensor else end.numel()) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if end.dtype.category == COMPLEX:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {end.dtype}")
        if tensor.__class__ is not Tensor and getattr(tensor, "_tl_dispatches", False):
            return CALLBACKS.F._ones_like(tensor)
        g = end._tl_kernels._full(end._tl_array.shape, 1, end.dtype)
        return call.wrap_array(end._tl_kernels, g) if mode.differentiable else g
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g._tl_array.shape != end._tl_array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {Size(g.shape)} and output[{position}] has a "
            f"shape of {Size(end.shape)}."
        )
    if end is tensor:
        if g.dtype.is_complex != end.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{position}] has a dtype of {g.dtype} and output[{position}] has a dtype of "
                f"{end.dtype}."
            )
        if g.dtype is not end.dtype:
            g = g.to(end.dtype)
    return g if mode.differentiable else g._tl_array


def run_backward(tensors, grads, retain_graph, create_graph, inputs=None, accumulate=True):
    """Run backward from `tensors`. With `inputs`, only towards them; their gradients are returned (or accumulated)."""
    outer = CURRENT_PASSES.runs
    if outer and len(outer) - CURRENT_PASSES.base >= MAX_NESTED_DEPTH:
        return _run_in_thread(tensors, grads, retain_graph, create_graph, inputs, accumulate)
    # Batched gradients inside `vmap` have no raw array.
    batched = GLOBALS["INTERCEPTORS"] and any(isinstance(g, Tensor) and g._tl_level is not None for g in grads)
    mode, runs = select_mode(create_graph or batched, tensors), BackwardPass
    if GLOBALS["SPARSE"]:
        mode, runs = CALLBACKS.sparse("sparse_backward_mode")(mode)
    run = runs(mode, retain_graph, [])
    recorded = MODE.grad
    try:
        set_grad_mode(create_graph)
        for position, (tensor, g) in enumerate(zip(tensors, grads, strict=True)):
            where = gradient_edge(tensor) if isinstance(tensor, Tensor) else edge_of(tensor)
            g = initial_gradient(tensor, where, g, mode, position)
            run.given.add(id(g))
            run.roots.append((where, g))
        CURRENT_PASSES.runs = (*outer, run)
        if inputs is not None:
            run.adds = accumulate
            ends = _input_edges(run, inputs, accumulate)
        if LEAF_HOOKS:
            run.find_leaf_completion()
        for where, g in run.roots:
            run.accumulate(where, g, where._tl_kernels if where.__class__ is not OutputEdge else where.node._tl_kernels)
        run.run()
        found = None
        if inputs is None:
            run.write_leaf_grads()
        else:
            found = _collect_input_grads(run, ends, accumulate)
        while run.callbacks:
            first, *rest = run.callbacks
            run.callbacks = tuple(rest)
            first()
    finally:
        CURRENT_PASSES.runs = outer
        if MODE.grad is not recorded:  # as `set_grad`, whose first step an interrupt may forestall
            if recorded:
                MODE.grad = True
                NO_GRAD.pop()
            else:
                NO_GRAD.append(None)
                MODE.grad = False
    return found


def _run_in_thread(*arguments):
    """Run the pass in a thread with a separate stack, with this thread's modes."""
    names = ("inference", "plain", "grad_layout_policy")
    modes = [getattr(MODE, name) for name in names]
    others = (MODE.grad, stack.items, saved_tensor_hooks.stack, CURRENT_PASSES.runs)
    result: list = []

    def body():
        set_grad_mode(others[0])
        take_over(others[1])
        saved_tensor_hooks.stack, CURRENT_PASSES.runs = others[2:]
        for name, mode in zip(names, modes, strict=True):
            setattr(MODE, name, mode)
        CURRENT_PASSES.base = len(CURRENT_PASSES.runs)
        try:
            result.append((run_backward(*arguments), None))
        except BaseException as error:  # raised again in the thread that waits
            result.append((None, error))
        finally:
            set_grad_mode(True)
            result.append((stack.items, stack.active))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    take_over(*result.pop())  # a hook may have entered or left a mode
    found, error = result.pop()
    if error is not None:
        try:
            raise error
        finally:
            del error
    return found


def _input_edges(run, inputs, accumulate: bool) -> list:
    """The edges of the inputs' gradients, each (leaf, None) or (node, output). The pass runs only the nodes that lead
    to them. To accumulate, a node runs and its tensor retains the gradient; else the gradient is captured before
    that.
    """
    ends: list[tuple[Any, int | None]] = []
    run.captured, run.wanted_nodes = {}, {}
    for item in inputs:
        where = gradient_edge(item) if isinstance(item, Tensor) else edge_of(item)
        end: tuple[Any, int | None]
        if where.__class__ is OutputEdge:
            end = where.node, where.index
        else:
            end = where, 0 if isinstance(where, Node) else None
        if accumulate and isinstance(item, Tensor) and (end[1] is not None or where is None):
            item.retain_grad()
        elif end[1] is not None:
            run.wanted_nodes.setdefault(end[0], set()).add(end[1])
        ends.append(end)
    run.aim({end for end, _ in ends if end is not None})
    if accumulate and run.needed is not None:
        run.needed |= {end for end, index in ends if index is not None}
        run.useful = run.needed
    return ends


def _collect_input_grads(run, ends, accumulate):
    """The gradients that reached the ends, as Tensors or added to `.grad`."""
    found: dict = {}
    for end in ends:
        if end in found or end[0] is None:
            continue
        if end[1] is None and id(end[0]) in run.leaves:  # else hooks made it complete, or nothing reached it
            run.finish(end[0])
        found[end] = run.captured.get(end)
    if accumulate:
        return None
    input_grads = []
    for end in ends:
        g = found.get(end)
        input_grads.append(None if g is None else run.mode.tensor(end[0]._tl_kernels, g))
    return input_grads


def run_node(node, grads):
    """Implements a call of a node: run its backward with the given gradients."""
    count = len(node._shape) if node._is_multi_output else 1
    if len(grads) != count:
        raise TypeError(f"expected {count} arguments, got {len(grads)} instead")
    if isinstance(node, AccumulateGrad):
        run = BackwardPass(RawMode, True, [])
        run.accumulate_grad(node.variable, grads[0]._tl_array)
        return None
    mode = TensorMode if MODE.grad else RawMode
    run = BackwardPass(mode, True, [])
    given = [None if g is None else mode.tensor_to_grad(g) for g in grads]
    g = given if node._is_multi_output else given[0]
    with recording(mode.differentiable):
        if not node._is_custom and is_absent(g):
            found = absent_inputs(node)
        else:
            found = node._run(run, g) if node._is_custom else mode.run(node, g)
    out = tuple(None if x is None else mode.tensor(node._tl_kernels, x) for x in flatten_edges(found))
    return out[0] if len(out) == 1 else out


__all__ = ["LEAF", "MODE", "BackwardPass", "find_node_hooks", "run_backward"]
