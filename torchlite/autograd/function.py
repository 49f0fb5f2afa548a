"""Custom differentiable functions."""

from __future__ import annotations

import functools
from typing import Any

from .._dispatch import call
from .._dispatch.graph import Node, OutputOf, edge, freed, make_node, meta_of, version
from .._dispatch.hooks import pack
from .._dispatch.runtime import LEAF, MODE, recording
from .._tensor import Tensor


class FunctionCtx:
    """What `forward` leaves for `backward`. Attributes of your own may be set on it."""

    _node: Any
    _to_save: tuple
    _dirty: tuple
    _non_differentiable: tuple
    _materialize: bool
    _needs: tuple

    def save_for_backward(self, *tensors):
        """Keep tensors (inputs or outputs) for backward, where they are `ctx.saved_tensors`. Call at most once, in
        forward.
        """
        for item in tensors:
            if item is not None and not isinstance(item, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {tensors.index(item)} is of type "
                    f"{type(item).__name__}"
                )
        self._to_save = tensors

    save_for_forward = save_for_backward

    def mark_dirty(self, *tensors):
        """Say which inputs forward changed in place; they must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Say which outputs have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool):
        """Whether backward gets zeros (True, the default) or None for outputs without a gradient."""
        self._materialize = value

    @property
    def needs_input_grad(self):
        """For each argument of forward, whether its gradient is wanted."""
        return self._needs

    @property
    def saved_tensors(self):
        """What save_for_backward kept. RuntimeError once the graph was freed, or when one was
        changed in place since.
        """
        node = self._node
        if node.saved is None:
            freed(node)
        return tuple(_unpack(node, item, expected) for item, expected in zip(node.saved, node.versions, strict=True))

    saved_variables = saved_tensors

    def name(self) -> str:
        return self._node.name()


def _unpack(node, item, expected):
    from .engine import Packed, get_raw

    if item is None:
        return None
    if item.__class__ is Packed:
        return item.unpack(item.value)
    if item.__class__ is _SavedOutput:
        tensor = call.wrap(node.table, item.data, item.dtype)
        found = item.meta
        have = found.n if found.root is None else found.root.n
        if have != expected:
            from .engine import changed

            changed(item.data.shape, item.dtype.scalar_name, node, have, expected)
        tensor._node = node if item.index is None else OutputOf(node, item.index)
        return tensor
    get_raw(item, expected, node, 0)
    return item


class _SavedOutput:
    """An output kept by its own node: the data without the Tensor, which would be a cycle."""

    __slots__ = ("data", "dtype", "meta", "index")

    def __init__(self, tensor, index):
        self.data, self.dtype, self.meta, self.index = tensor._data, tensor.dtype, meta_of(tensor), index


class CustomNode(Node):
    """The node of a custom Function."""

    ctx: FunctionCtx
    cls: Any
    dtypes: tuple
    __slots__ = ("ctx", "cls", "dtypes")
    is_custom = True

    def name(self) -> str:
        return self.cls.__name__ + "Backward"

    def apply(self, run, g):
        """Call the Function's backward with Tensors, and hand its gradients to the engine in its own form."""
        mode, table, ctx = run.mode, self.table, self.ctx
        if self.saved is None:
            freed(self)
        several = g.__class__ is list
        grads = []
        for i, item in enumerate(g if several else [g]):
            if item is None and ctx._materialize and self.dtypes[i] is not None:
                shape = self.shape[i] if several else self.shape
                grads.append(call.wrap(table, table._full(shape, 0, self.dtypes[i])))
            else:
                grads.append(None if item is None else mode.tensor(table, item))
        with recording(mode.differentiable):
            found = self.cls.backward(ctx, *grads)
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        while len(found) > len(self.edges) and found[-1] is None:
            found = found[:-1]
        if len(found) != len(self.edges):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {len(self.edges)}, got "
                f"{len(found)})"
            )
        out = []
        for i, (item, target) in enumerate(zip(found, self.edges, strict=True)):
            if item is not None and not isinstance(item, Tensor):
                raise TypeError(
                    f"function {self.name()} returned a {type(item).__name__} as gradient {i}: expected Tensor or None"
                )
            out.append(None if item is None or target is None else mode.untensor(item))
        return tuple(out)


class _FunctionType(type):
    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._op = _OpOfFunction(cls)


class _OpOfFunction:
    """Stands in a node for the op record."""

    outputs = None
    several = False
    keeps_tensors = True
    nondiff: frozenset = frozenset()

    def __init__(self, cls):
        self.name = cls.__name__


class Function(metaclass=_FunctionType):
    """A differentiable function of your own: static methods `forward(ctx, *args)` and `backward(ctx, *grads)`; call it
    with `apply`.

    In newer style `forward(*args)` takes no ctx and `setup_context(ctx, inputs, output)` saves what backward needs.

    >>> import torchlite as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> x = torch.tensor(1.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """

    generate_vmap_rule = False

    @staticmethod
    def forward(*args, **kwargs):
        """The function; override it."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save what backward needs, when `forward` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Gradients of the inputs given those of the outputs; override it."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Tangents of the outputs given those of the inputs; override it for forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward and record the Function."""
        if "vjp" in cls.__dict__ and "backward" not in cls.__dict__:
            cls.backward = vars(cls)["vjp"]  # type: ignore[method-assign]
        tensors = [a for a in args if isinstance(a, Tensor)]
        wants = MODE.grad and any(t._node is not None for t in tensors)
        ctx = FunctionCtx()
        ctx._to_save, ctx._dirty, ctx._non_differentiable, ctx._materialize = (), (), (), True
        ctx._needs = tuple(wants and isinstance(a, Tensor) and a._node is not None for a in args)
        node = None
        if wants:
            node = CustomNode.__new__(CustomNode)
            base = make_node(
                cls._op,
                tuple(edge(a) if need else None for a, need in zip(args, ctx._needs, strict=True)),
                (),
                (),
                tensors[0]._table,
            )
            for slot in (
                "op",
                "edges",
                "saved",
                "versions",
                "out",
                "counter",
                "shape",
                "table",
                "seq",
                "hooks",
                "trace",
            ):
                setattr(node, slot, getattr(base, slot))
            node.ctx, node.cls = ctx, cls
            ctx._node = node
        else:
            ctx._node = _Unrecorded(cls)
        with recording(False):
            if cls.setup_context is Function.setup_context:
                result = cls.forward(ctx, *args, **kwargs)
            else:
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, result)
        return _finish(cls, ctx, node, args, result)


class _Unrecorded:
    """In place of a node when nothing is recorded."""

    saved: tuple = ()
    versions: tuple = ()

    def __init__(self, cls):
        self.cls = cls

    def name(self) -> str:
        return self.cls.__name__ + "Backward"


def _finish(cls, ctx, node, args, result):
    several = isinstance(result, (tuple, list))
    outs = list(result) if several else [result]
    for dirty in ctx._dirty:
        from .._dispatch.graph import bump

        bump(dirty)
        if node is not None and dirty._node is LEAF:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if node is None:
        return result
    inputs = {id(a) for a in args if isinstance(a, Tensor)}
    dirty = {id(d) for d in ctx._dirty}
    fixed = {id(t) for t in ctx._non_differentiable}
    saved_ids = {id(t): t for t in ctx._to_save if t is not None}
    final = []
    for out in outs:
        if isinstance(out, Tensor) and id(out) in inputs and id(out) not in dirty:
            # An input returned as it is becomes an output of its own.
            fresh = out.detach()
            if id(out) in saved_ids:
                ctx._to_save = tuple(t if t is not out else out for t in ctx._to_save)
            out = fresh
        final.append(out)
    positions = {}
    for i, out in enumerate(final):
        if isinstance(out, Tensor) and out.dtype.category >= 2 and id(out) not in fixed:
            if id(out) in dirty:
                plain = out
                plain._node = None
            positions[id(out)] = i
    node.dtypes = tuple(o.dtype if isinstance(o, Tensor) and id(o) in positions else None for o in final)
    if several:
        node.shape = tuple(o._data.shape if isinstance(o, Tensor) else None for o in final)
    else:
        node.shape = final[0]._data.shape if isinstance(final[0], Tensor) else None
    _save(ctx, node, positions, several)
    for key, i in positions.items():
        out = final[i]
        assert id(out) == key
        out._node = OutputOf(node, i) if several else node
    return tuple(final) if several else final[0]


def _save(ctx, node, positions, several) -> None:
    saved: list[Any] = []
    versions: list[int] = []
    for item in ctx._to_save:
        if item is None:
            saved.append(None)
            versions.append(0)
            continue
        packed = pack(item)
        if packed is not None:
            saved.append(packed)
        elif id(item) in positions:
            saved.append(_SavedOutput(item, positions[id(item)] if several else None))
        else:
            saved.append(item)
        versions.append(version(item))
    node.saved, node.versions = tuple(saved), tuple(versions)
    ctx._to_save = ()


def once_differentiable(function):
    """Mark a `backward` that cannot be differentiated itself: a second derivative is an error in place of a wrong
    number.
    """

    @functools.wraps(function)
    def once(ctx, *grads):
        with recording(False):
            found = function(ctx, *grads)
        if not MODE.grad or not any(isinstance(g, Tensor) and g._node is not None for g in grads):
            return found
        parts = found if isinstance(found, tuple) else (found,)
        refused = tuple(_Refuse.apply(p.detach().requires_grad_()) if isinstance(p, Tensor) else p for p in parts)
        return refused if isinstance(found, tuple) else refused[0]

    return once


class _Refuse(Function):
    """Raises when it is differentiated."""

    @staticmethod
    def forward(ctx, value):
        return value

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
