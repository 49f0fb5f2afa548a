"""Reverse mode over the recorded graph: nodes run in the reverse of the order in which they were made."""

from __future__ import annotations

import heapq

from .._dispatch import call
from .._dispatch.graph import Node, OutputOf, bump, edge, freed, meta_of, version
from .._dispatch.hooks import Packed
from .._dispatch.runtime import LEAF, MODE, recording
from .._dispatch.slots import SLOTS
from .._dispatch.writing.backward import backward_function
from .._tensor import Parameter, Tensor
from .._types.layouts import Size


def changed(tensor_shape, scalar_name, node, have: int, expected: int):
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{scalar_name}Tensor {list(tensor_shape)}], which is needed by {node.name()}, is at version {have}; "
        f"expected version {expected} instead. Hint: enable anomaly detection to find the operation that failed to "
        "compute its gradient, with torch.autograd.set_detect_anomaly(True)."
    )


def get_raw(value, expected, node, index):
    """A saved value as a raw array, checked to be unchanged."""
    cls = value.__class__
    if cls is Tensor or cls is Parameter or isinstance(value, Tensor):
        if value._meta is not None and version(value) != expected:
            changed(value._data.shape, value.dtype.scalar_name, node, version(value), expected)
        return value._data
    if cls is tuple:
        return [get_raw(v, e, node, index) for v, e in zip(value, expected, strict=True)]
    if cls is Packed:
        return value.unpack(value.value)._data
    return value


def get_tensor(value, expected, node, index):
    """A saved value as a Tensor with its history, checked to be unchanged."""
    if isinstance(value, Tensor):
        get_raw(value, expected, node, index)
        return value
    if value.__class__ is tuple:
        return [get_tensor(v, e, node, index) for v, e in zip(value, expected, strict=True)]
    if value.__class__ is Packed:
        return _relink(value.unpack(value.value), node, index)
    return value


def _relink(tensor, node, index):
    """An unpacked tensor with the history that the packed one had."""
    if not isinstance(node.op, type):
        name = node.op.plan.saves[index][0]
        position = next((i for i, p in enumerate(node.op.tensor_params) if p.name == name), None)
        target = None if position is None else node.edges[position]
        if target is not None and target.__class__ is not tuple:
            tensor = tensor.detach()
            if isinstance(target, Tensor):
                return target
            tensor._node = target
    return tensor


def get_out_raw(node, index):
    if node.out is None:
        freed(node)
    if node.out[index].__class__ is not Packed and node.counter[index] is not None:
        found, expected = node.counter[index]
        have = found.n if found.root is None else found.root.n
        if have != expected:
            out = node.out[index]
            changed(out.shape, node.table.dtype_of(out).scalar_name, node, have, expected)
    value = node.out[index]
    return value.unpack(value.value)._data if value.__class__ is Packed else value


def get_out_tensor(node, index):
    tensor = call.wrap(node.table, get_out_raw(node, index))
    if node.op.hidden:
        tensor._node = node if index == 0 else None
    elif node.op.outputs is None and not node.op.several:
        tensor._node = node
    elif index not in node.op.nondiff:
        tensor._node = OutputOf(node, index)
    return tensor


class _RawMode:
    """Gradients as raw arrays: ordinary backward builds no Tensor."""

    differentiable = False

    @staticmethod
    def run(node, g):
        return (node.op._backward or backward_function(node.op))(node.table, g, node, get_raw, get_out_raw)

    @staticmethod
    def add(table, a, b):
        return table.add(a, b)

    @staticmethod
    def fit(table, g, shape):
        return sum_to(table, g, shape)

    @staticmethod
    def tensor(table, g):
        return call.wrap(table, g)

    @staticmethod
    def untensor(tensor):
        return tensor._data


class _TensorMode:
    """Gradients as Tensors with history, for create_graph."""

    differentiable = True

    @staticmethod
    def run(node, g):
        return backward_function(node.op)(SLOTS.F, g, node, get_tensor, get_out_tensor)

    @staticmethod
    def add(table, a, b):
        return SLOTS.F.add(a, b)

    @staticmethod
    def fit(table, g, shape):
        return sum_to(SLOTS.F, g, shape)

    @staticmethod
    def tensor(table, g):
        return g

    @staticmethod
    def untensor(tensor):
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


class Run:
    """One backward pass."""

    def __init__(self, mode, retain_graph: bool, accumulate: bool):
        self.mode, self.retain, self.accumulate = mode, retain_graph, accumulate
        self.buffers: dict = {}
        self.heap: list = []
        self.captured: dict = {}
        self.wanted_nodes: dict = {}
        self.given: set = set()
        self.useful: set | None = None

    def send(self, target, g, table) -> None:
        """Add a gradient to what an edge has so far."""
        if target.__class__ is OutputOf:
            node, index = target.node, target.index
            shape = node.shape[index]
        elif target.__class__ is Node or isinstance(target, Node):
            node, index, shape = target, None, target.shape
        else:
            return self.leaf(target, g, table)
        if shape is not None and g.shape != shape:
            g = self.mode.fit(table, g, shape)
        buffers = self.buffers
        if index is None:
            if node in buffers:
                buffers[node] = self.mode.add(node.table, buffers[node], g)
                return None
            buffers[node] = g
        else:
            held = buffers.get(node)
            if held is None:
                held = buffers[node] = [None] * len(node.shape)
            else:
                held[index] = g if held[index] is None else self.mode.add(node.table, held[index], g)
                return None
            held[index] = g
        if self.useful is None or node in self.useful:
            heapq.heappush(self.heap, (-node.seq, node))
        return None

    def leaf(self, tensor, g, table) -> None:
        if g.shape != tensor._data.shape:
            g = self.mode.fit(table, g, tensor._data.shape)
        if self.mode.differentiable:
            if g.dtype is not tensor.dtype:
                g = SLOTS.F.to(g, tensor.dtype)
        elif g.dtype is not tensor._data.dtype and table.dtype_of(g) is not tensor.dtype:
            g = table.to(g, tensor.dtype)
        held = self.captured.get(tensor)
        self.captured[tensor] = g if held is None else self.mode.add(table, held, g)

    def go(self) -> None:
        """Run the nodes, latest first; the usual edge (to a node with one output) is served here,
        the others by `send`.
        """
        heap, buffers, run, send = self.heap, self.buffers, self.mode.run, self.send
        wanted, useful, retain, add = self.wanted_nodes, self.useful, self.retain, self.mode.add
        pop, push = heapq.heappop, heapq.heappush
        while heap:
            node = pop(heap)[1]
            g = buffers.pop(node)
            if node.hooks is None and node.trace is None and not node.is_custom and not wanted:
                grads = run(node, g)
            else:
                grads = self._with_hooks(node, g)
            edges, table = node.edges, node.table
            if not retain and (node.saved or node.out is not None) and node.op.keeps_tensors:
                node.saved = node.out = node.counter = None
            for target, grad in zip(edges, grads, strict=True):
                if target is None or grad is None:
                    continue
                if target.__class__ is Node:
                    if grad.shape != target.shape:
                        grad = self.mode.fit(table, grad, target.shape)
                    held = buffers.get(target)
                    if held is not None:
                        buffers[target] = add(target.table, held, grad)
                        continue
                    buffers[target] = grad
                    if useful is None or target in useful:
                        push(heap, (-target.seq, target))
                elif target.__class__ is tuple:
                    for one, part in zip(target, grad, strict=True):
                        if one is not None and part is not None:
                            send(one, part, table)
                else:
                    send(target, grad, table)

    def _with_hooks(self, node, g):
        """Run a node that has hooks, is a custom Function, was asked for by the caller, or is
        watched by anomaly mode.
        """
        if node.hooks is not None or node in self.wanted_nodes:
            g = self._before(node, g)
        if node.trace is not None:
            grads = self._traced(node, g)
        else:
            grads = node.apply(self, g) if node.is_custom else self.mode.run(node, g)
        if node.hooks is not None and node.hooks.post:
            grads = self._after(node, grads, g)
        return grads

    def _traced(self, node, g):
        """Anomaly mode: point at the forward line, and find NaN."""
        from .anomaly import checked

        return checked(self, node, g)

    def _before(self, node, g):
        """Tensor hooks, node prehooks and gradients that the caller asked for."""
        several = g.__class__ is list
        grads = list(g) if several else [g]
        hooks = node.hooks
        if hooks is not None:
            for index, functions in hooks.tensor.items():
                if grads[index] is None:
                    continue
                value = self.mode.tensor(node.table, grads[index])
                for hook in list(functions.values()):
                    answer = hook(value)
                    if answer is not None:
                        value = answer
                grads[index] = self.mode.untensor(value)
                self.given.add(id(grads[index]))
            if hooks.pre:
                values = tuple(None if x is None else self.mode.tensor(node.table, x) for x in grads)
                for hook in list(hooks.pre.values()):
                    answer = hook(values)
                    if answer is not None:
                        values = answer if isinstance(answer, tuple) else (answer,)
                grads = [None if v is None else self.mode.untensor(v) for v in values]
        for index in self.wanted_nodes.get(node, ()):
            self.captured[node, index] = grads[index]
        return grads if several else grads[0]

    def _after(self, node, grads, g):
        table, mode = node.table, self.mode
        inputs = tuple(None if x is None or x.__class__ in (tuple, list) else mode.tensor(table, x) for x in grads)
        outputs = tuple(None if x is None else mode.tensor(table, x) for x in (g if g.__class__ is list else [g]))
        for hook in list(node.hooks.post.values()):
            answer = hook(inputs, outputs)
            if answer is not None:
                inputs = answer if isinstance(answer, tuple) else (answer,)
        return tuple(None if v is None else mode.untensor(v) for v in inputs)

    def deposit(self) -> None:
        """Accumulate into `.grad` what reached the leaves."""
        given: set = set()
        for key, g in self.captured.items():
            if key.__class__ is tuple:
                continue
            tensor = key
            found = meta_of(tensor)
            if found.hooks:
                value = self.mode.tensor(tensor._table, g)
                for hook in list(found.hooks.values()):
                    answer = hook(value)
                    if answer is not None:
                        value = answer
                g = self.mode.untensor(value)
                given.add(id(g))  # a hook may have kept it
            self._accumulate(tensor, found, g, given)
            if found.post_hooks:
                for hook in list(found.post_hooks.values()):
                    hook(tensor)

    def _accumulate(self, tensor, found, g, given) -> None:
        table = tensor._table
        if self.mode.differentiable:
            found.grad = (
                g.clone()
                if found.grad is None and (g._node is None or id(g) in given or id(g) in self.given)
                else g
                if found.grad is None
                else SLOTS.F.add(found.grad, g)
            )
            given.add(id(g))
            return
        if found.grad is None:
            if g.__class__ is not table.array:
                g = table.as_array(g)
            if id(g) in given or id(g) in self.given or not table.owns(g):
                g = table.clone(g)
            given.add(id(g))
            self.given.add(id(g))
            found.grad = call.wrap(table, g, tensor.dtype)
        elif found.grad._node is None:
            # In place, as in PyTorch: what shares memory with `.grad` sees the sum.
            table.copy_into(found.grad._data, self.mode.add(table, found.grad._data, g))
            bump(found.grad)
        else:
            found.grad = SLOTS.F.add(found.grad, call.wrap(table, g))


def reachable(roots, targets) -> set:
    """The nodes on a path from the roots to a target (a leaf tensor or a node)."""
    order, seen, pending = [], set(), list(roots)
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        pending += [n for n in (_node_of(e) for e in _flat(node.edges)) if n is not None and n not in seen]
    order.sort(key=lambda node: node.seq)
    useful = set()
    for node in order:
        if node in targets or any(
            _node_of(e) in useful if isinstance(e, (Node, OutputOf)) else e in targets
            for e in _flat(node.edges)
            if e is not None
        ):
            useful.add(node)
    return useful


def _flat(edges):
    for item in edges:
        if item.__class__ is tuple:
            yield from item
        else:
            yield item


def _node_of(item):
    return item.node if item.__class__ is OutputOf else item if isinstance(item, Node) else None


def start(tensor, g, mode):
    """The first gradient of a root, checked."""
    if tensor._node is None:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if g is None:
        if tensor.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if tensor.dtype.is_complex:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {tensor.dtype}")
        g = tensor._table._full(tensor._data.shape, 1, tensor.dtype)
        return call.wrap(tensor._table, g) if mode.differentiable else g
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g._data.shape != tensor._data.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {Size(g.shape)} and output[0] has a shape of "
            f"{Size(tensor.shape)}."
        )
    if g.dtype.is_complex != tensor.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
            f"dtype: grad_output[0] has a dtype of {g.dtype} and output[0] has a dtype of {tensor.dtype}."
        )
    if g.dtype is not tensor.dtype:
        g = g.to(tensor.dtype)
    return g if mode.differentiable else g._data


def run_backward(tensors, grads, retain_graph, create_graph, inputs=None, accumulate=True):
    """Run backward from `tensors`. With `inputs`, only towards them; their gradients are returned (or accumulated)."""
    mode = _TensorMode if create_graph else _RawMode
    run = Run(mode, retain_graph, accumulate)
    roots = []
    with recording(create_graph):
        firsts = [(tensor, start(tensor, g, mode)) for tensor, g in zip(tensors, grads, strict=True)]
        targets = None
        if inputs is not None:
            targets = _targets(run, inputs)
            roots = [n for n in (_node_of(edge(t)) for t in tensors) if n is not None]
            run.useful = reachable(roots, targets)
        for tensor, g in firsts:
            run.given.add(id(g))
            run.send(edge(tensor), g, tensor._table)
        run.go()
        if accumulate and inputs is None:
            run.deposit()
            return None
        return _collect(run, inputs, accumulate)


def _targets(run, inputs) -> set:
    targets = set()
    for item in inputs:
        where = edge(item) if item._node is not LEAF else item
        if isinstance(where, (Node, OutputOf)):
            node, index = (where.node, where.index) if where.__class__ is OutputOf else (where, 0)
            run.wanted_nodes.setdefault(node, []).append(index)
            targets.add(node)
        else:
            targets.add(item)
    return targets


def _collect(run, inputs, accumulate):
    found = []
    for item in inputs:
        where = edge(item)
        if isinstance(where, (Node, OutputOf)):
            g = run.captured.get((where.node, where.index) if where.__class__ is OutputOf else (where, 0))
        else:
            g = run.captured.get(item)
            if g is not None and getattr(item._meta, "hooks", None):
                value = run.mode.tensor(item._table, g)
                for hook in list(item._meta.hooks.values()):
                    answer = hook(value)
                    value = value if answer is None else answer
                g = run.mode.untensor(value)
        found.append(None if g is None else run.mode.tensor(item._table, g))
    if accumulate:
        given: set = set()
        for item, g in zip(inputs, found, strict=True):
            if g is not None:
                run._accumulate(item, meta_of(item), run.mode.untensor(g), given)
    return found


__all__ = ["MODE", "Run", "run_backward"]
