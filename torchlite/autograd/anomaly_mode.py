"""Anomaly detection: an error in backward reports the forward line that caused it, and NaN gradients are errors."""

from __future__ import annotations

import sys
import traceback
import warnings

from torchlite._settings.module_dir import make_module_dir

from .._dispatch.dispatch_state import GLOBALS
from .hook_runner import CURRENT_PASSES

_state = {"on": False, "nan": True}


class _Trace(list):
    """The lines of a traceback; `parent` is the node whose backward created the node, if any."""

    parent = None


def _record_traceback(node) -> None:
    node._trace = _Trace(line for line in traceback.format_stack(sys._getframe(1)) if "<torchlite op" not in line)
    if CURRENT_PASSES.runs:
        node._trace.parent = CURRENT_PASSES.runs[-1].node


def _set_mode(on: bool, check_nan: bool) -> None:
    _state.update(on=on, nan=check_nan)
    GLOBALS["NODE_CREATED_HOOK"] = _record_traceback if on else None


class detect_anomaly:
    """Runs a block with anomaly detection: an error in backward shows the forward call that caused it.

    Each op recorded in the block stores the traceback of its call. When its backward raises, or returns NaN, a warning
    shows that traceback. Recording is slow; use it to debug only.

    Args:
        check_nan: Whether a NaN in a gradient raises. Default: ``True``.

    Raises:
        RuntimeError: A node of backward returned NaN and ``check_nan`` is set. Raised by the backward pass.

    Example:
        >>> import warnings
        >>> x = torch.tensor(0.0, requires_grad=True)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     with torch.autograd.detect_anomaly():
        ...         y = torch.sqrt(x) * 0
        ...         y.backward()
        Traceback (most recent call last):
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.

    See also:
        `set_detect_anomaly`.
    """

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )
        self.check_nan = check_nan

    def __enter__(self):
        self.before = dict(_state)
        _set_mode(True, self.check_nan)

    def __exit__(self, *exc):
        _set_mode(self.before["on"], self.before["nan"])


class set_detect_anomaly:
    """Turns anomaly detection on or off, at once; as a context manager, for a block.

    Args:
        mode: Whether to turn it on.
        check_nan: Whether a NaN in a gradient raises. Default: ``True``.

    Example:
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     torch.is_anomaly_enabled()
        True
        >>> torch.is_anomaly_enabled()
        False

    See also:
        `detect_anomaly`, which says what is detected.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self.before = dict(_state)
        _set_mode(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        _set_mode(self.before["on"], self.before["nan"])


def is_anomaly_enabled() -> bool:
    """Returns whether anomaly detection is on.

    Example:
        >>> torch.is_anomaly_enabled()
        False
    """
    return _state["on"]


def is_anomaly_check_nan_enabled() -> bool:
    """Returns whether anomaly detection raises at a NaN, once it is on.

    Example:
        >>> torch.is_anomaly_check_nan_enabled()
        True
    """
    return _state["nan"]


def run_checked(run, node, g):
    """Run a node; for an error or a NaN report the forward line that created it."""
    try:
        grads = node._run(run, g) if node._is_custom else run.mode.run(node, g)
    except Exception:
        _warn_of_forward(node)
        raise
    if _state["nan"]:
        for i, item in enumerate(grads):
            for part in item if item.__class__ in (tuple, list) else (item,):
                if part is not None and _has_nan(run, node._tl_kernels, part):
                    _warn_of_forward(node)
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    return grads


def _has_nan(run, table, g) -> bool:
    tensor = run.mode.tensor(table, g)
    return bool(tensor.detach().isnan().any())


def _warn_of_forward(node) -> None:
    """Warn of the place, and of those that led to it; where warnings are errors, on stderr, since an error is on its
    way already.
    """
    name, none = node.name(), "No forward pass information available. Enable detect anomaly during forward pass for "
    text = f"Error detected in {name}. "
    while node is not None:
        if node._trace is None:
            _warn_with_forward_traceback(f"{text}{none}more information.")
            return
        _warn_with_forward_traceback(f"{text}Traceback of forward call that caused the error:\n{''.join(node._trace)}")
        node = node._trace.parent
        if node is not None:
            text = f"\n\nPrevious calculation was induced by {node.name()}. "


def _warn_with_forward_traceback(text: str) -> None:
    try:
        warnings.warn(text, stacklevel=4)
    except Warning:
        print(text, file=sys.stderr)


__dir__ = make_module_dir(globals(), hidden="run_checked")
