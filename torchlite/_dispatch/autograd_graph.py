"""The autograd graph: nodes, edges, and the autograd metadata of tensors."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from typing import Any, NoReturn

import numpy as np

from .backend import owner_of
from .callbacks import CALLBACKS
from .dispatch_state import GLOBALS, LEAF, MODE, REQUIRES_GRAD_DETACHED, SEQUENCE, change_counters, recording
from .hooks import RemovableHandle
from .memory_overlap import check_no_internal_overlap
from .numpy_errors import run_quietly


class AutogradMeta:
    """Autograd metadata that only some tensors have: gradient, version counter, base of a view, hooks.

    `n` counts in-place changes of the memory. Tensors that share memory use the counter of one AutogradMeta, their
    `root`. `rebased` is the value of the global counter HISTORY_COUNTER when a write through a view last replaced the
    root's history; a view with an older `stamp` has to regenerate its grad_fn. A view starts with the tuple (base,
    stamp) or (base, stamp, kind), which `autograd_meta_of` expands at first use. `kind` is the reason in-place writes
    through this view are refused (see `argument_checks.raise_view_write_error`). Class attributes are the defaults, so
    that an instance sets only what differs.
    """

    n = 0
    root: Any = None  # an AutogradMeta
    base: Any = None
    kind: str | None = None
    stamp = rebased = 0
    grad: Any = None
    hooks: dict | None = None
    post_hooks: dict | None = None
    around: Any = None  # the NodeHooks of a leaf's AccumulateGrad
    accumulator: Any = None  # a weak reference to it
    name: str | None = None
    retains = False
    fixed = False  # of a root: other objects rely on the memory's address
    inference = False  # created in inference mode
    counts = False  # of such a tensor: it was detached outside that mode, and counts its changes
    late = False  # its tensor got a history by a write, and older views of it may have none
    tangents: dict | None = None  # by levels of forward-mode differentiation
    dual_primal: Any = None  # the tensor whose memory a dual tensor shares; `_base` of the dual tensor returns it
    storage: Any = None  # of a root: the storage's Python object
    apart = False  # of a view: its base has no part in its tangents
    memory: Any = None  # of a root: the root that counts all changes of the memory, if it is another one
    others = 0  # of such a root: changes that are not in its `n`
    lent = False  # of such a root: other objects may write without a count, such as NumPy arrays


class SeparateCounter(AutogradMeta):
    """The root of a tensor that shares memory with another one and has a version counter of its own, as `.data`."""

    changes = 0

    @property  # type: ignore[override]
    def n(self) -> int:
        return self.changes

    @n.setter
    def n(self, value: int) -> None:
        self.changes = value
        (self.memory or self).others += 1


class StorageCounter(SeparateCounter):
    """The root of the tensor of a storage's bytes. It does not keep the other tensor's root alive, which may hold the
    storage.
    """

    def __init__(self, source) -> None:
        self.source = weakref.ref(memory_counter_of(source))

    @property  # type: ignore[override]
    def memory(self) -> Any:
        return self.source()


def autograd_meta_of(tensor) -> AutogradMeta:
    """The tensor's AutogradMeta, created if absent."""
    found = tensor._tl_meta
    if found.__class__ is AutogradMeta:
        return found
    made = tensor._tl_meta = AutogradMeta()
    if found is not None:
        made.base, made.stamp = found[:2]
        if len(found) == 3:
            made.kind = found[2]
        made.root = root_meta_of(made.base)
    return made


def grad_of(tensor) -> Any:
    """The tensor's `.grad`, without the warning for a tensor that is no leaf."""
    return getattr(tensor._tl_meta, "grad", None)


def root_meta_of(tensor) -> AutogradMeta:
    """The AutogradMeta whose version counter covers the tensor's memory."""
    found = autograd_meta_of(tensor)
    return found if found.root is None else found.root


def memory_counter_of(tensor) -> AutogradMeta:
    """The AutogradMeta whose `n` and `others` together change with each write to the tensor's memory, unless it is
    `lent`.
    """
    root = root_meta_of(tensor)
    return root.memory or root


def separate_meta(source) -> AutogradMeta:
    """The AutogradMeta of another tensor on the memory of `source`, with its own version counter."""
    made = AutogradMeta()
    made.root = root = SeparateCounter()
    root.memory = memory_counter_of(source)
    return made


def storage_meta(source) -> AutogradMeta:
    """The AutogradMeta of a flat tensor of the bytes under `source`."""
    made = AutogradMeta()
    made.root = StorageCounter(source)
    return made


def adopt_memory_counter(tensor, source) -> None:
    """Note that a tensor lies in the memory of `source` from now on. Its version counter stays its own."""
    before = root_meta_of(tensor)
    if base_of(tensor) is not None:  # its counter is that of its base, which keeps its memory
        lend_memory(tensor)
        lend_memory(source)
        return
    root = SeparateCounter()
    root.changes, root.memory = before.n, memory_counter_of(source)
    root.rebased, root.inference, root.counts = before.rebased, before.inference, before.counts
    root.fixed = root_meta_of(source).fixed
    tensor._tl_meta.root = root


def lend_memory(tensor) -> None:
    """Note that another object may write to the tensor's memory."""
    counter = memory_counter_of(tensor)
    if not counter.lent:
        counter.lent = True
        counter.others += 1


def alias_meta(source) -> AutogradMeta:
    """The AutogradMeta of another tensor on the memory of `source`, without its history."""
    made = AutogradMeta()
    made.root = root_meta_of(source)
    made.stamp = GLOBALS["HISTORY_COUNTER"]
    return made


def base_of(tensor) -> Any:
    """The tensor that a view is a view of; None for one that is no view."""
    found = tensor._tl_meta
    return None if found is None else found[0] if found.__class__ is tuple else found.base


def why_view_is_not_writable(tensor) -> str | None:
    """Reason in-place writes through this view are refused; None if they are allowed."""
    found = tensor._tl_meta
    if found.__class__ is tuple:
        return found[2] if len(found) == 3 else None
    return None if found is None else found.kind


def view_meta(source, kind: str | None = None) -> tuple:
    """Metadata of a view of `source`, as a tuple; `autograd_meta_of` turns it into an AutogradMeta."""
    base = base_of(source)
    kind = kind or why_view_is_not_writable(source)
    base = source if base is None else base
    return (base, GLOBALS["HISTORY_COUNTER"]) if kind is None else (base, GLOBALS["HISTORY_COUNTER"], kind)


def is_inference(tensor) -> bool:
    """True if the tensor, or the base of the view, was created in inference mode."""
    found = tensor._tl_meta
    if found.__class__ is tuple:
        found = found[0]._tl_meta
    return found is not None and (found.inference if found.root is None else found.root.inference)


def refuses_writes(tensor) -> bool:
    """True if a tensor was created in inference mode and has no version counter."""
    return is_inference(tensor) and not root_meta_of(tensor).counts


def version_of(tensor) -> int:
    """Number of in-place changes of the tensor's memory, through it or a view. RuntimeError for an inference tensor,
    which has no version counter.
    """
    found = tensor._tl_meta
    if found.__class__ is tuple:
        found = found[0]._tl_meta
    if found is None:
        return 0
    if found.root is not None:
        found = found.root
    if found.inference and not found.counts:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
            "it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
        )
    return found.n


def bump_version(tensor) -> None:
    """Count an in-place change."""
    root = tensor._tl_meta
    if root.__class__ is not AutogradMeta or root.root is not None:
        root = root_meta_of(tensor)
    if root.inference and not root.counts and not MODE.inference:
        raise_inference_write_error()
    root.n += 1


def write_raw(target, raw) -> None:
    """Write a raw array into a tensor's memory."""
    if target._tl_signs:
        target._write(raw)
    else:
        run_quietly(target._tl_kernels.copy_into, target._tl_array, raw)


def accumulate_in_place(table, target, raw, add) -> None:
    """Add a raw array of the same shape to a tensor without a history, and count the change."""
    have = target._tl_array
    kernel = getattr(table if raw.size < GLOBALS["LARGE"] else table.large, "add_", None)
    if have.base is not None:
        check_no_internal_overlap(target)
    if kernel is None or raw.dtype is not have.dtype or target._tl_signs:
        write_raw(target, add(table, have, raw))
    else:
        run_quietly(kernel, have, raw)
    bump_version(target)


def raise_inference_write_error() -> NoReturn:
    """The error for a write into an inference tensor outside inference mode."""
    raise RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
        "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
    )


class Node:
    """One recorded op: its edges to inputs and the values that its derivative needs.

    `_edges` has one entry per tensor argument: None, a Node, an OutputEdge, a leaf Tensor, or a tuple of these for a
    list argument. The names begin with an underscore because the node of a custom Function is its `ctx`, on which users
    set attributes.
    """

    _op: Any
    _edges: tuple
    _saved: Any
    _versions: tuple
    _out: Any
    _counter: Any
    _shape: Any
    _tl_kernels: Any
    _seq: int
    _hooks: NodeHooks | None
    _trace: list[str] | None
    _shown: Any  # of a composite's result: the composite's call and the number of the result (`node_names.py`)
    __slots__ = (
        "_op", "_edges", "_saved", "_versions", "_out", "_counter", "_shape", "_tl_kernels", "_seq", "_hooks", "_trace",
        "_shown", "__weakref__",
    )  # fmt: skip
    _is_custom = False
    _skips_absent = False  # no hooks of outputs without a gradient: they are of several nodes in eager mode

    def __repr__(self) -> str:
        return f"<{'torch.autograd.function.' if self._is_custom else ''}{self.name()} object at {id(self):#x}>"

    def __call__(self, *grads, **others):
        """The gradients of the inputs for gradients of the outputs. Saved values are not freed."""
        if others:
            raise TypeError("keyword arguments are not supported")
        return CALLBACKS.run_node(self, grads)

    def name(self) -> str:
        """PyTorch's name for the node, e.g. MulBackward0."""
        return CALLBACKS.node_name(self)

    @property
    def _is_multi_output(self) -> bool:
        """True if the node has several outputs; then `shape` is a tuple of shapes."""
        return bool(self._shape) and not isinstance(self._shape[0], int)

    @property
    def next_functions(self):
        """((node, output index), ...) of the inputs, as in PyTorch."""
        if (
            self._op is CALLBACKS.copy_slices
            and not hasattr(self, "_shown")
            and isinstance(self._edges[1], Node)
            and self._edges[1]._edges
        ):
            write = self._edges[1]  # PyTorch has no separate node for the write
            return ((None, 0) if self._edges[0] is None else edge_to_pair(self._edges[0]), *write.next_functions[1:])
        return CALLBACKS.next_functions(self)

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def metadata(self) -> dict:
        """Dictionary for arbitrary user annotations of the node."""
        return find_node_hooks(self).metadata

    def _sequence_nr(self) -> int:
        return self._seq

    def _set_sequence_nr(self, number: int) -> None:
        self._seq = number

    def register_hook(self, hook):
        """Register `hook(grad_inputs, grad_outputs)` to run after this node; its result replaces grad_inputs. Returns a
        handle with `remove()`.
        """
        return RemovableHandle(find_node_hooks(self).post, hook)

    def register_prehook(self, hook):
        """Register `hook(grad_outputs)` to run before this node; its result replaces grad_outputs. Returns a handle
        with `remove()`.
        """
        return RemovableHandle(find_node_hooks(self).pre, hook)


class NodeHooks:
    """Hooks of a node: on the gradient of one output (tensor hooks, and tensors that retain it), before and after the
    node; and the node's `metadata`.
    """

    __slots__ = ("tensor", "retain", "pre", "post", "metadata")

    def __init__(self):
        self.tensor: dict[int, dict] = {}
        self.retain: dict[int, Any] = {}  # weak references to the tensors
        self.pre: dict = OrderedDict()
        self.post: dict = OrderedDict()
        self.metadata: dict = {}


def find_node_hooks(node: Node) -> NodeHooks:
    if node._hooks is None:
        node._hooks = NodeHooks()
    return node._hooks


class OutputEdge:
    """Output `index` of a node with several."""

    __slots__ = ("node", "index")

    def __init__(self, node: Node, index: int):
        self.node, self.index = node, index


def nodes_created_since(start: int, tensors: list) -> list[Node]:
    """The nodes in tensors' histories that are newer than a value of SEQUENCE."""
    found: dict[Node, None] = {}
    pending = [t._tl_node for t in tensors]
    for where in pending:  # which grows
        node = where.node if where.__class__ is OutputEdge else where
        if isinstance(node, Node) and node._seq > start and node not in found:
            found[node] = None
            pending += _find_leaves(node._edges)
    return list(found)


def saved_values_of(node: Node) -> list:
    """The values that a node saved for its derivative: tensors, arrays, numbers and others."""
    return [*_find_leaves(node._saved or ()), *_find_leaves(node._out or ())]


def _find_leaves(items: Any) -> list:
    return [leaf for item in items for leaf in (_find_leaves(item) if item.__class__ is tuple else (item,))]


# Not empty once a leaf has hooks. Then backward passes run a leaf's hooks as soon as its gradient is complete.
LEAF_HOOKS: list[None] = []


class AccumulateGrad(Node):
    """Represents a leaf in `next_functions`. The engine uses the leaf tensor itself, which has the hooks."""

    __slots__ = ("variable",)

    def __init__(self, variable):
        self.variable = variable
        self._edges = self._saved = self._versions = ()
        self._op = self._out = self._counter = self._trace = None
        self._shape, self._tl_kernels = variable._tl_array.shape, variable._tl_kernels
        self._seq = (1 << 64) - 1
        found = autograd_meta_of(variable)
        if found.around is None:
            found.around = NodeHooks()
        self._hooks = found.around

    def register_hook(self, hook):
        LEAF_HOOKS[:] = [None]
        return super().register_hook(hook)

    def register_prehook(self, hook):
        LEAF_HOOKS[:] = [None]
        return super().register_prehook(hook)

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"


def accumulator_of(leaf) -> AccumulateGrad:
    """The leaf's AccumulateGrad; the same object as long as a reference to it exists."""
    found = autograd_meta_of(leaf)
    made = found.accumulator and found.accumulator()
    if made is None:
        made = AccumulateGrad(leaf)
        found.accumulator = weakref.ref(made)
    return made


def edge_to_pair(where) -> tuple:
    """(node, output index) of an edge, as PyTorch shows them."""
    where = skip_transparent(where)
    if where.__class__ is OutputEdge:
        return to_python_node(where.node), shown_index(where.node, where.index)
    return (to_python_node(where), shown_index(where, 0)) if isinstance(where, Node) else (accumulator_of(where), 0)


# The name of nodes that are not shown, and the mark of one such node of another op.
TRANSPARENT = "(input)"


def skip_transparent(where: Any) -> Any:
    """The edge that is shown: below nodes that PyTorch does not have, such as those of casts before an op."""
    while where.__class__ is Node:
        mark = getattr(where, "_shown", None)
        if mark is not TRANSPARENT and (mark is not None or where._op.node_name is not TRANSPARENT):
            return where
        where = where._edges[0]
    return where


def shown_index(node: Node, index: int) -> int:
    """The number of a node's output as PyTorch shows it: another one where a composite is shown as one node."""
    if not hasattr(node, "_shown"):
        return index
    return CALLBACKS.shown_output(node, index)


def to_python_node(node: Node) -> Node:
    """The node, to be shown: an object of a class with PyTorch's name for it. The engine needs no such classes."""
    if node.__class__ is Node:
        node.__class__ = make_python_class(node.name(), _PythonNode)
    return node


class _PythonNode(Node):
    """Class of nodes that Python code has accessed. Only these have saved values by name, because a class with
    `__getattr__` has slower attributes.
    """

    __slots__ = ()
    _full_name: str

    def name(self) -> str:
        return self._full_name

    def __getattr__(self, name: str):
        if name[:7] not in ("_saved_", "_raw_sa"):
            raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")
        return CALLBACKS.saved_value(self, name)

    def __dir__(self):
        return [*super().__dir__(), *CALLBACKS.saved_names(self)]


@functools.cache
def make_python_class(name: str, base: type) -> type:
    """The class of nodes of a name."""
    body = {"__slots__": (), "__module__": "builtins", "_full_name": name}
    return type(name.rpartition("::")[2], (base,), body)


def gradient_edge(tensor) -> Any:
    """The edge of this tensor's gradient: None, its node, or the tensor itself if it is a leaf."""
    if is_stale_view(tensor):
        regenerate_grad_fn(tensor)
    node = tensor._tl_node
    return tensor if node is LEAF else None if node is REQUIRES_GRAD_DETACHED else node


def is_stale_view(view) -> bool:
    """True if the grad_fn of a view's base changed after the view's was computed."""
    found = view._tl_meta
    if found is None:
        return False
    if found.__class__ is tuple:
        stamp = found[1]
        found = found[0]._tl_meta
        if found is None:
            return False
        return (found.rebased if found.root is None else found.root.rebased) > stamp
    return found.base is not None and found.root.rebased > found.stamp


def regenerate_grad_fn(view) -> None:
    """Replace a view's grad_fn by one that selects its elements from its base's new history."""
    found = autograd_meta_of(view)
    if found.base._tl_node is not None:
        if found.kind is not None:
            from .shape_and_value_checks import raise_view_write_error

            raise_view_write_error(found.kind, view, "its base or another view of its base has been")
        F, base, old = CALLBACKS.F, found.base, view._tl_node
        with recording(True):
            elements = F._view_of_base(base, flat_view_indices(view), view.dtype)
            signs = view._tl_signs ^ base._tl_signs
            view._tl_node = (CALLBACKS.view_with_bits(elements, signs) if signs else elements)._tl_node
        if found.retains:
            move_retain_grad(view, view._tl_node, old)
    found.stamp = GLOBALS["HISTORY_COUNTER"]


def regenerate_stale_views(values) -> bool:
    """Regenerate the grad_fn of those tensors whose base got one after they were created. Return True if there was
    one.
    """
    some = False
    for value in values:
        if isinstance(value, (tuple, list)):
            some = regenerate_stale_views(value) or some
        elif (
            hasattr(value, "_tl_node")
            and value._tl_node is None
            and value._tl_meta is not None
            and is_stale_view(value)
        ):
            regenerate_grad_fn(value)
            some = some or value._tl_node is not None
    return some


def invalidate_views(tensor) -> None:
    """Invalidate cached grad_fns of all views of this storage."""
    GLOBALS["HISTORY_COUNTER"] += 1
    root_meta_of(tensor).rebased = GLOBALS["HISTORY_COUNTER"]
    if base_of(tensor) is not None:
        autograd_meta_of(tensor).stamp = GLOBALS["HISTORY_COUNTER"]


def move_retain_grad(tensor, node, old=None) -> None:
    """Move a tensor's retain_grad to its new node."""
    if not getattr(tensor._tl_meta, "retains", False) or node is None:
        return
    for where, put in ((old or tensor._tl_node, False), (node, True)):
        at, index = (where.node, where.index) if where.__class__ is OutputEdge else (where, 0)
        if put:
            find_node_hooks(at).retain[index] = weakref.ref(tensor)
        elif at._hooks is not None:
            at._hooks.retain.pop(index, None)


def copy_without_hooks(where) -> Any:
    """grad_fn for an in-place write; the view's hooks stay on the old one."""
    node = where.node if where.__class__ is OutputEdge else where
    if node is None or node is LEAF or node is REQUIRES_GRAD_DETACHED or node._hooks is None or node._is_custom:
        return where
    fresh = make_node(node._op, node._edges, node._saved, node._versions, node._tl_kernels)
    fresh._shape, fresh._out, fresh._counter = node._shape, node._out, node._counter
    return OutputEdge(fresh, where.index) if where.__class__ is OutputEdge else fresh


def track_stale_views(tensor) -> None:
    """Let ops check for stale views among their inputs until the tensor is freed."""
    change_counters(STALE_VIEW_CHECKS=1, WRITE_CHECKS=1)
    weakref.finalize(tensor, change_counters, STALE_VIEW_CHECKS=-1, WRITE_CHECKS=-1).atexit = False


def flat_view_indices(view) -> Any:
    """The position of each element of a view in the flattened base, as a raw int64 array of the view's shape. If only
    one of the two is complex, positions count real numbers: a complex view of a real base has two for each element,
    in an extra last dimension. RuntimeError for a view (by `as_strided`) of memory outside the base.
    """
    table, whole = view._tl_kernels, autograd_meta_of(view).base
    size = min(view.dtype.itemsize, whole.dtype.itemsize)
    data, base = _layout_in_cells(size, view), _layout_in_cells(size, whole)
    start = (_byte_offset(table, view._tl_memory) - _byte_offset(table, whole._tl_memory)) // size
    ends = [
        at + sum([(n - 1) * s for n, s in zip(*x, strict=True)]) if 0 not in x[0] else at - 1
        for at, x in ((0, base), (start, data))
    ]
    low, high = min(0, start), max(ends)
    memory = np.full(max(high - low + 1, 0), -1, np.int64)
    inside = _strided_cells(memory, base, -low)
    inside[...] = np.arange(inside.size).reshape(inside.shape)
    found = _strided_cells(memory, data, start - low).copy()
    if found.size and found.min() < 0:
        raise RuntimeError(
            "in-place changes, with gradients, where a view by as_strided reaches beyond its base are not supported; "
            "write out of place"
        )
    from .kernel_recorder import record_constant

    return record_constant(table.from_numpy(found))


def _byte_offset(table, array) -> int:
    """The bytes before an array's first element in its storage."""
    owner = owner_of(array)
    return 0 if owner is array else table.offset_between(array, owner)


def _layout_in_cells(size: int, tensor) -> tuple:
    """(shape, strides) of a tensor's memory in cells of `size` bytes; elements of several have one more dimension."""
    array, each = tensor._tl_memory, tensor.dtype.itemsize // size
    shape, strides = tuple(array.shape), tuple(s // size for s in array.strides)
    return (shape, strides) if each == 1 else ((*shape, each), (*strides, 1))


def _strided_cells(memory: np.ndarray, layout: tuple, start: int) -> np.ndarray:
    """The elements of `memory` from `start` on with this shape and these strides."""
    shape, strides = layout
    if 0 in shape:
        return np.empty(shape, memory.dtype)
    each = memory.itemsize
    return np.ndarray(shape, memory.dtype, memory, start * each, [s * each for s in strides])


def edge_shape(where) -> Any:
    """The shape of the tensor at an edge."""
    if where is None:
        return None
    if where.__class__ is Node:
        return where._shape
    if where.__class__ is OutputEdge:
        return where.node._shape[where.index]
    return where._shape if isinstance(where, Node) else where._tl_array.shape


def make_node(op, edges, saved, versions, table) -> Node:
    node = Node()
    node._op, node._edges, node._saved, node._versions, node._tl_kernels = op, edges, saved, versions, table
    node._out = node._counter = node._hooks = node._trace = node._shape = None
    node._seq = next(SEQUENCE)
    return node


def raise_freed_error(node: Node) -> NoReturn:
    """The error for a node whose saved tensors are gone."""
    raise RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
        "you need to access saved tensors after calling backward."
    )


# Called with the target before a write, while WRITE_CHECKS is up.
PRE_WRITE_HOOKS: list[Any] = []


def run_pre_write_hooks(target) -> None:
    """Run all callbacks that precede a write to a tensor's memory, or the hand-out of a writable reference to it."""
    for look in PRE_WRITE_HOOKS:
        look(target)


def check_before_write(target) -> bool:
    """Before a write, check whether the target has a history, possibly a stale one of a view. RuntimeError for an
    inference tensor outside inference mode.
    """
    if not MODE.inference and refuses_writes(target):
        raise_inference_write_error()
    if MODE.grad:
        regenerate_stale_views((target,))
    run_pre_write_hooks(target)
    return target._tl_node is not None and MODE.grad


def check_in_place_autograd(target) -> None:
    """Raise PyTorch's errors for in-place ops on leaves, and torchlite's for writes that `rebase_history` does not
    support, before anything is written.
    """
    kind = why_view_is_not_writable(target)
    if kind is not None:
        from .shape_and_value_checks import raise_view_write_error

        raise_view_write_error(kind, target, "is being")
    base = base_of(target)
    if base is not None and (base._tl_node is LEAF or base._tl_node is None and target._tl_node is LEAF):
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if target._tl_node is LEAF:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
