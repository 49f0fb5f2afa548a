"""The recorded graph: nodes, edges, and what tensors know besides their data."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .backend import owner_of
from .hooks import RemovableHandle
from .runtime import GLOBALS, LEAF, SEQUENCE
from .slots import SLOTS

new = object.__new__


class Meta:
    """What only some tensors have: gradient, version counter, base of a view, hooks.

    `n` counts in-place changes of the memory; a tensor that shares another's memory counts on that one's Meta, its
    `root`. `rebased` is the value of the program-wide counter REBASED when the root's history was last replaced through
    a view; a view whose `stamp` is older has to renew its own. A view's Meta begins as the pair (base, stamp) and is
    made when somebody asks for it. Defaults live on the class: making one sets only what differs.
    """

    n = 0
    root: Any = None  # a Meta
    base: Any = None
    stamp = rebased = 0
    grad: Any = None
    hooks: dict | None = None
    post_hooks: dict | None = None
    name: str | None = None
    retains = False
    fixed = False  # of a root: somebody else relies on the memory staying where it is


def meta_of(tensor) -> Meta:
    """The tensor's Meta, made when absent."""
    found = tensor._meta
    if found.__class__ is Meta:
        return found
    made = tensor._meta = new(Meta)
    if found is not None:
        made.base, made.stamp = found
        made.root = root_of(made.base)
    return made


def root_of(tensor) -> Meta:
    """The Meta that counts for the tensor's memory."""
    found = meta_of(tensor)
    return found if found.root is None else found.root


def alias_meta(source) -> Meta:
    """The Meta of another tensor on the memory of `source`, without its history."""
    made = new(Meta)
    made.root = root_of(source)
    made.stamp = GLOBALS["REBASED"]
    return made


def base_of(tensor) -> Any:
    """The tensor that a view is a view of; None for one that is no view."""
    found = tensor._meta
    return None if found is None else found[0] if found.__class__ is tuple else found.base


def view_meta(source) -> tuple:
    """What a view made from `source` keeps until its Meta is asked for."""
    base = base_of(source)
    return (source if base is None else base, GLOBALS["REBASED"])


def version(tensor) -> int:
    """How often the tensor's memory was changed in place through it or a view of it."""
    found = tensor._meta
    if found.__class__ is tuple:
        found = found[0]._meta
    if found is None:
        return 0
    return found.n if found.root is None else found.root.n


def bump(tensor) -> None:
    """Count an in-place change."""
    root_of(tensor).n += 1


class Node:
    """One recorded op: its inputs' edges and what its derivative needs.

    `edges` has one entry a tensor argument: None, a Node, an OutputOf, a leaf Tensor, or a tuple of these for a list
    argument.
    """

    op: Any
    edges: tuple
    saved: Any
    versions: tuple
    out: Any
    counter: Any
    shape: Any
    table: Any
    seq: int
    hooks: NodeHooks | None
    trace: list[str] | None
    __slots__ = (
        "op", "edges", "saved", "versions", "out", "counter", "shape", "table", "seq", "hooks", "trace", "__weakref__",
    )  # fmt: skip
    is_custom = False

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    def name(self) -> str:
        """PyTorch's name for the node, e.g. MulBackward0."""
        return "".join(word[:1].upper() + word[1:] for word in self.op.name.split("_")) + "Backward0"

    @property
    def next_functions(self):
        """((node, output index), ...) of the inputs, as in PyTorch."""
        flat = [e for edge in self.edges for e in (edge if edge.__class__ is tuple else (edge,))]
        return tuple(
            (None, 0)
            if e is None
            else (AccumulateGrad(e), 0)
            if not isinstance(e, (Node, OutputOf))
            else (e.node, e.index)
            if e.__class__ is OutputOf
            else (e, 0)
            for e in flat
        )

    @property
    def metadata(self) -> dict:
        return {}

    def register_hook(self, hook):
        """Call `hook(grad_inputs, grad_outputs)` after this node ran; what it returns replaces the gradients. Returns a
        handle with `remove()`.
        """
        return RemovableHandle(node_hooks(self).post, hook)

    def register_prehook(self, hook):
        """Call `hook(grad_outputs)` before this node runs; what it returns replaces them. Returns a handle with
        `remove()`.
        """
        return RemovableHandle(node_hooks(self).pre, hook)


class NodeHooks:
    """Hooks of a node: on the gradient of one output (tensor hooks), before and after the node."""

    __slots__ = ("tensor", "pre", "post")

    def __init__(self):
        self.tensor: dict[int, dict] = {}
        self.pre: dict = {}
        self.post: dict = {}


def node_hooks(node: Node) -> NodeHooks:
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


class OutputOf:
    """Output `index` of a node with several."""

    __slots__ = ("node", "index")

    def __init__(self, node: Node, index: int):
        self.node, self.index = node, index


class AccumulateGrad:
    """Stands for a leaf in `next_functions`."""

    __slots__ = ("variable",)

    def __init__(self, variable):
        self.variable = variable

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def next_functions(self):
        return ()

    def __eq__(self, other) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return hash(id(self.variable))

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self.variable):#x}>"


def edge(tensor) -> Any:
    """Where a gradient for this tensor goes: None, its node, or the tensor itself when it is a leaf."""
    if is_stale(tensor):
        renew_history(tensor)
    node = tensor._node
    return tensor if node is LEAF else node


def is_stale(view) -> bool:
    """Whether the history of a view's base was replaced since the view got its own."""
    found = view._meta
    if found is None:
        return False
    if found.__class__ is tuple:
        base, stamp = found
        found = base._meta
        if found is None:
            return False
        return (found.rebased if found.root is None else found.root.rebased) > stamp
    return found.base is not None and found.root.rebased > found.stamp


def renew_history(view) -> None:
    """Let a view's history run through its base's new one: it takes its elements from there."""
    found = meta_of(view)
    found.stamp = GLOBALS["REBASED"]
    if view._node is LEAF:
        return
    F, base = SLOTS.F, found.base
    view._node = F._index(F.reshape(base, (-1,)), (positions(view),))._node


def positions(view) -> Any:
    """For each element of a view its position in the flattened base, as a raw int64 array of the view's shape.
    RuntimeError for a view (by `as_strided`) of memory beside its base.
    """
    data, base, table = view._data, meta_of(view).base._data, view._table
    size = view.dtype.itemsize
    start = (_start(table, data) - _start(table, base)) // size
    ends = [
        at + sum([(n - 1) * s // size for n, s in zip(x.shape, x.strides, strict=True)]) if 0 not in x.shape else at - 1
        for at, x in ((0, base), (start, data))
    ]
    low, high = min(0, start), max(ends)
    memory = np.full(max(high - low + 1, 0), -1, np.int64)
    inside = _laid_out(memory, base, -low, size)
    inside[...] = np.arange(inside.size).reshape(base.shape)
    found = _laid_out(memory, data, start - low, size).copy()
    if found.size and found.min() < 0:
        raise RuntimeError(
            "in-place changes, with gradients, where a view by as_strided reaches beyond its base are not supported; "
            "write out of place"
        )
    return table.from_numpy(found)


def _start(table, array) -> int:
    """The bytes before an array's first element in its storage."""
    owner = owner_of(array)
    return 0 if owner is array else table.offset_between(array, owner)


def _laid_out(memory: np.ndarray, array, start: int, size: int) -> np.ndarray:
    """The cells of `memory` from `start` on that lie as the elements of an array do."""
    if 0 in array.shape:
        return np.empty(array.shape, memory.dtype)
    strides = [s // size * memory.itemsize for s in array.strides]
    return np.ndarray(array.shape, memory.dtype, memory, start * memory.itemsize, strides)


def shape_of(where) -> Any:
    """The shape of the tensor at an edge."""
    if where is None:
        return None
    if where.__class__ is OutputOf:
        return where.node.shape[where.index]
    return where.shape if isinstance(where, Node) else where._data.shape


def make_node(op, edges, saved, versions, table) -> Node:
    node = new(Node)
    node.op, node.edges, node.saved, node.versions, node.table = op, edges, saved, versions, table
    node.out = node.counter = node.hooks = node.trace = node.shape = None
    node.seq = next(SEQUENCE)
    return node


def freed(node: Node) -> NoReturn:
    """The error for a node whose saved tensors are gone."""
    raise RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
        "you need to access saved tensors after calling backward."
    )
