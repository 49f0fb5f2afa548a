"""Gradients that require a gradient in PyTorch's graph though they are constant.

The gradient of average pooling is linear in the incoming gradient. PyTorch computes it from the input too, so under
`create_graph` it requires a gradient, which is zero. An op's fact `zero_derivatives` lists such inputs. An edge to the
input is enough, and nothing is saved. Where PyTorch's gradient is undefined (`absent_derivatives`), there is no edge.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.autograd_graph import gradient_edge, make_node
from .._dispatch.op_record import REGISTRY
from .._tensor import Tensor


def add_zero_derivatives(node: Any, given: Any, gradients: tuple) -> tuple:
    """Return a node's gradients, recorded as functions of the inputs that the op's facts list. `given` are the
    gradients that the formulas got.
    """
    op, found = node._op, list(gradients)
    zero = op.zero_derivatives(node) if callable(op.zero_derivatives) else op.zero_derivatives
    edges = dict(zip([p.name for p in op.tensor_params], node._edges, strict=True))
    for place, name in enumerate(edges):
        gradient = found[place]
        if not isinstance(gradient, Tensor):
            continue
        for other in zero.get(name, ()):
            if edges[other] is not None:
                gradient = _record_dependence(gradient, given, edges[other], node._tl_kernels)
        wanted = [edges[other] for other in op.absent_derivatives.get(name, ()) if edges[other] is not None]
        if wanted and not gradient.requires_grad:
            gradient = _record_dependence(gradient, given, None, node._tl_kernels)
        found[place] = gradient
    return tuple(found)


def _record_dependence(gradient: Any, given: Any, edge: Any, table: Any) -> Any:
    """Return a gradient that has an edge more, to an input on which its elements do not depend."""
    if gradient is given or given.__class__ is list and any(gradient is each for each in given):
        gradient = gradient.view_as(gradient)  # the caller's keeps its history
    batch = gradient
    while batch._tl_level is not None:
        batch = batch._value
    before = None if batch._tl_node is None else gradient_edge(batch)
    made = batch._tl_node = make_node(REGISTRY["_depend_on"], (before, edge), (), (), table)
    made._shape = batch._tl_array.shape
    return gradient
