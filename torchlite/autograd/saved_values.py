"""Values that nodes saved, as formulas read them: raw arrays or tensors, checked to be unchanged."""

from __future__ import annotations

from .._dispatch import call
from .._dispatch.autograd_graph import (
    AutogradMeta,
    Node,
    OutputEdge,
    autograd_meta_of,
    gradient_edge,
    make_node,
    raise_freed_error,
    version_of,
)
from .._dispatch.hooks import PackedTensor
from .._dispatch.op_record import REGISTRY
from .._tensor import Parameter, Tensor


def raise_modified_error(value, node, have: int, expected: int):
    """The error for a saved tensor that was written to since."""
    where = gradient_edge(value) if isinstance(value, Tensor) else node  # a view's, by what was written since
    index = where.index if where.__class__ is OutputEdge else 0
    where = where.node if where.__class__ is OutputEdge else where
    origin = ""
    if isinstance(where, Node):
        name = where.name()
        origin = f", which is output {index} of {name.rpartition('Backward')[0] or name},"
    d = value.dtype if isinstance(value, Tensor) else node._tl_kernels.dtype_of(value)
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{d.scalar_name}Tensor {list(value.shape)}]{origin} is at version {have}; expected version {expected} "
        "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def saved_raw(value, expected, node, index):
    """A saved value as a raw array, checked to be unchanged."""
    cls = value.__class__
    if cls is Tensor or cls is Parameter or isinstance(value, Tensor):
        found = value._tl_meta
        # `version`, without its call where the tensor keeps its own count.
        if found is not None and (
            (found.n if found.__class__ is AutogradMeta and found.root is None else version_of(value)) != expected
        ):
            raise_modified_error(value, node, version_of(value), expected)
        return value._tl_array
    if cls is tuple:
        return [saved_raw(v, e, node, index) for v, e in zip(value, expected, strict=True)]
    if cls is PackedTensor:
        return value.open()._tl_array
    return value


def saved_tensor(value, expected, node, index):
    """A saved value as a Tensor with its history, checked to be unchanged."""
    if isinstance(value, Tensor):
        saved_raw(value, expected, node, index)
        return value
    if value.__class__ is tuple:
        return [saved_tensor(v, e, node, index) for v, e in zip(value, expected, strict=True)]
    if value.__class__ is PackedTensor:
        return restore_history(value, node)
    return value


def restore_history(packed, node):
    """An unpacked tensor with the history that the packed one had."""
    tensor, target = packed.open(), packed.edge
    if target is None:
        return tensor
    if target.__class__ is int:
        target = node if target < 0 else OutputEdge(node, target)
    if not tensor._tl_dispatches:  # tensors of `__torch_dispatch__` subclasses are new objects already
        tensor = tensor.detach()
    if not isinstance(target, Tensor):
        tensor._tl_node = target
    elif tensor._tl_array is target._tl_array:
        return target
    else:  # what it leads to is a leaf: through a node that does nothing
        tensor._tl_node = make_node(REGISTRY["_identity"], (target,), (), (), tensor._tl_kernels)
        tensor._tl_node._shape = tensor._tl_array.shape
    return tensor


def saved_output_raw(node, index):
    if node._out is None:
        raise_freed_error(node)
    if node._out[index].__class__ is not PackedTensor and node._counter[index] is not None:
        found, expected = node._counter[index]
        have = found.n if found.root is None else found.root.n
        if have != expected:
            if node._op.repeatable:
                return _recompute_output(node)
            raise_modified_error(node._out[index], node, have, expected)
    value = node._out[index]
    return value.open()._tl_array if value.__class__ is PackedTensor else value


def _recompute_output(node):
    """The raw result of a node's op, recomputed from its saved values."""
    saved = {}
    for i, (name, kind, _) in enumerate(node._op.saved_variables.saves):
        value = node._saved[i]
        saved[name] = saved_raw(value, node._versions[i], node, i) if kind == "value" else value
    return call.call_kernel(node._op, node._tl_kernels, [saved[p.name] for p in node._op.params], ())


def saved_output_tensor(node, index):
    kept = None if node._out is None else node._out[index]
    if kept.__class__ is PackedTensor and getattr(kept.value, "_tl_dispatches", False):
        return restore_history(kept, node)
    tensor = call.wrap_array(node._tl_kernels, saved_output_raw(node, index))
    if kept.__class__ is not PackedTensor and node._counter[index] is not None:
        tangents = node._counter[index][0].tangents
        if tangents:
            autograd_meta_of(tensor).tangents = dict(tangents)
    if node._op.aux_outputs:
        tensor._tl_node = node if index == 0 else None
    elif node._op.outputs is None and not node._op.multi_output:
        tensor._tl_node = node
    elif index not in node._op.nondiff:
        tensor._tl_node = OutputEdge(node, index)
    return tensor
