"""Node metadata propagation: stack traces and `meta` for nodes created during a run."""

from __future__ import annotations

import copy
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ._compatibility import compatibility
from ._node_source import NodeSource, NodeSourceAction
from .node import Node

__all__ = [
    "NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack", "get_current_meta",
    "has_preserved_node_meta", "preserve_node_meta",
    "set_current_meta", "set_grad_fn_seq_nr", "reset_grad_fn_seq_nr", "set_stack_trace",
]  # fmt: skip

# Metadata fields copied from the running node.
_COPY_META_FIELDS = [
    "nn_module_stack",
    "torch_fn",
    "source_fn_stack",
    "original_aten",
    "recompute",
    "from_node",
    "quantization_tag",
    "custom",
]


class _State(threading.local):
    def __init__(self) -> None:
        self.current_meta: dict[str, Any] = {}
        self.should_preserve_node_meta = False


_STATE = _State()


def __getattr__(name: str) -> Any:
    if name in ("current_meta", "should_preserve_node_meta"):
        return getattr(_STATE, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


@compatibility(is_backward_compatible=False)
@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Copy `meta` of interpreted nodes to the nodes created, within the context."""
    before, before_meta = _STATE.should_preserve_node_meta, _STATE.current_meta
    try:
        _STATE.should_preserve_node_meta, _STATE.current_meta = enable, _STATE.current_meta.copy()
        yield
    finally:
        _STATE.should_preserve_node_meta, _STATE.current_meta = before, before_meta


@compatibility(is_backward_compatible=False)
def has_preserved_node_meta() -> bool:
    """True if new nodes inherit metadata."""
    return _STATE.should_preserve_node_meta


@compatibility(is_backward_compatible=False)
def set_stack_trace(stack: list[str]) -> None:
    """Set the stack trace of new nodes."""
    if _STATE.should_preserve_node_meta and stack:
        _STATE.current_meta["stack_trace"] = "".join(stack)


@compatibility(is_backward_compatible=False)
@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Add these keys to `meta["custom"]` of new nodes within the context."""
    before = _STATE.current_meta.get("custom")
    had = "custom" in _STATE.current_meta
    try:
        _STATE.current_meta["custom"] = {**(before or {}), **annotation_dict}
        yield
    finally:
        if had:
            _STATE.current_meta["custom"] = before
        else:
            _STATE.current_meta.pop("custom", None)


@compatibility(is_backward_compatible=False)
def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that applies `annotate` to a function's calls."""
    from functools import wraps

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return wrapped

    return decorated


@compatibility(is_backward_compatible=False)
def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Set the sequence number of the autograd node that runs backward."""
    if _STATE.should_preserve_node_meta:
        _STATE.current_meta["grad_fn_seq_nr"] = [*_STATE.current_meta.get("grad_fn_seq_nr", []), seq_nr]
        _STATE.current_meta["in_grad_fn"] = _STATE.current_meta.get("in_grad_fn", 0) + 1


@compatibility(is_backward_compatible=False)
def reset_grad_fn_seq_nr() -> None:
    """Undo the last `set_grad_fn_seq_nr`."""
    if _STATE.should_preserve_node_meta:
        level = _STATE.current_meta.get("in_grad_fn", 0)
        if level <= 0:
            raise AssertionError(f"Expected current_level > 0, got {level}")
        _STATE.current_meta["grad_fn_seq_nr"] = _STATE.current_meta["grad_fn_seq_nr"][:-1]
        _STATE.current_meta["in_grad_fn"] = level - 1
        if level == 1:
            del _STATE.current_meta["in_grad_fn"], _STATE.current_meta["grad_fn_seq_nr"]


@compatibility(is_backward_compatible=False)
def format_stack() -> list[str]:
    """Return the stack trace set, else the Python stack."""
    if _STATE.should_preserve_node_meta:
        return [_STATE.current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@compatibility(is_backward_compatible=False)
@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Make a node the current one within the context: nodes that are created then name it and the pass as source."""
    if not (_STATE.should_preserve_node_meta and node.meta):
        yield
        return
    before = _STATE.current_meta
    try:
        _STATE.current_meta = node.meta.copy()
        _STATE.current_meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
        yield
    finally:
        _STATE.current_meta = before


@compatibility(is_backward_compatible=False)
def get_current_meta() -> dict[str, Any]:
    """Return the current node's metadata."""
    return _STATE.current_meta


def kept(node: Node) -> None:
    """Copy the current node's metadata to a new node."""
    if _STATE.current_meta.get("stack_trace"):
        node.stack_trace = _STATE.current_meta["stack_trace"]
    for field in _COPY_META_FIELDS:
        if field in _STATE.current_meta:
            node.meta[field] = copy.copy(_STATE.current_meta[field])
    if _STATE.current_meta.get("in_grad_fn", 0) > 0:
        node.meta["seq_nr"] = _STATE.current_meta["grad_fn_seq_nr"][-1]


__dir__ = make_module_dir(globals(), hidden="kept")
