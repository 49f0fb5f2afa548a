"""The recorded graph: nodes, edges, and what tensors know besides their data."""
from __future__ import annotations

from typing import Any

from .runtime import GLOBALS, LEAF, SEQUENCE

new = object.__new__


class Meta:
    """What only some tensors have: gradient, version counter, base of a view, hooks.

    `n` is the version (of a view: its root's counts). `replay` is the chain of view ops from the base: (op, args after the input, earlier chain).
    Defaults live on the class, so that making one for a view sets only what differs.
    """

    n = 0
    root: Any = None  # a Meta
    base: Any = None
    replay: Any = None
    stamp = rebased = 0
    grad: Any = None
    hooks: dict | None = None
    post_hooks: dict | None = None
    name: str | None = None
    retains = False


def alias_meta(source: Meta) -> Meta:
    """The Meta of another tensor on the same memory, without its history."""
    made = new(Meta)
    made.root = source if source.root is None else source.root
    made.stamp = made.root.rebased
    return made


def meta_of(tensor) -> Meta:
    """The tensor's Meta, made when absent."""
    found = tensor._meta
    if found is None:
        found = tensor._meta = Meta()
    return found


def version(tensor) -> int:
    """How often the tensor's memory was changed in place through it or a view of it."""
    found = tensor._meta
    if found is None:
        return 0
    return found.n if found.root is None else found.root.n


def bump(tensor) -> None:
    """Count an in-place change."""
    found = meta_of(tensor)
    root = found if found.root is None else found.root
    root.n += 1


def view_meta(source, op, args) -> Meta:
    """The Meta of a view that `op(source, *args)` made."""
    found = source._meta
    made = new(Meta)
    if found is None:
        made.root = source._meta = new(Meta)
        made.base = source
        made.replay = (op, args, None)
        return made
    if found.base is not None:
        root, made.base, made.replay = found.root, found.base, (op, args, found.replay)
    else:
        root, made.base, made.replay = found if found.root is None else found.root, source, (op, args, None)
    made.root = root
    if root.rebased:
        made.stamp = root.rebased
    return made


class Node:
    """One recorded op: its inputs' edges and what its derivative needs.

    `edges` has one entry a tensor argument: None, a Node, an OutputOf, a leaf Tensor, or a tuple of these for a list argument.
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
    __slots__ = ("op", "edges", "saved", "versions", "out", "counter", "shape", "table", "seq", "hooks", "trace", "__weakref__")
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
        return tuple((None, 0) if e is None else (AccumulateGrad(e), 0) if not isinstance(e, (Node, OutputOf)) else
                     (e.node, e.index) if e.__class__ is OutputOf else (e, 0) for e in flat)

    @property
    def metadata(self) -> dict:
        return {}

    def register_hook(self, hook):
        """Call `hook(grad_inputs, grad_outputs)` after this node ran; what it returns replaces the gradients. Returns a handle with `remove()`."""
        from ..utils.hooks import RemovableHandle
        return RemovableHandle(node_hooks(self).post, hook)

    def register_prehook(self, hook):
        """Call `hook(grad_outputs)` before this node runs; what it returns replaces them. Returns a handle with `remove()`."""
        from ..utils.hooks import RemovableHandle
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
    node = tensor._node
    found = tensor._meta
    if found is not None and found.base is not None and found.stamp != found.root.rebased:
        refresh_view(tensor)
        node = tensor._node
    return tensor if node is LEAF else node


def refresh_view(tensor) -> None:
    """Redo a view's history after its base was changed in place through another view."""
    found = tensor._meta
    found.stamp = found.root.rebased
    if tensor._node is LEAF or found.replay is None:
        return
    chain, step = [], found.replay
    while step is not None:
        chain.append(step)
        step = step[2]
    replayed = found.base
    call = GLOBALS["F"]
    for op, args, _ in reversed(chain):
        replayed = getattr(call, op.name)(replayed, *args)
    tensor._node = replayed._node


def make_node(op, edges, saved, versions, table) -> Node:
    node = new(Node)
    node.op, node.edges, node.saved, node.versions, node.table = op, edges, saved, versions, table
    node.out = node.counter = node.hooks = node.trace = node.shape = None
    node.seq = next(SEQUENCE)
    return node
