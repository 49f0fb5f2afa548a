"""`annotate`: sets the type of a traced value."""

from __future__ import annotations

from typing import Any

from ._compatibility import compatibility
from .proxy import Proxy

__all__ = ["annotate"]


@compatibility(is_backward_compatible=False)
def annotate(val: Any, type: Any) -> Any:
    """Return the value; set the type of a Proxy's node. Raise TypeError if it has another type already.

    >>> import torchlite as torch
    >>> from torchlite.fx.annotate import annotate
    >>> module = torch.fx.symbolic_trace(lambda x: annotate(x + 1, int))
    >>> [node.type for node in module.graph.nodes]
    [None, <class 'int'>, None]
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise TypeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new "
                f"type is {type}. This could happen if you tried to annotate a function parameter value (in which "
                "case you should use the type slot on the function signature) or you called annotate on the same "
                "value twice"
            )
        val.node.type = type
    return val
