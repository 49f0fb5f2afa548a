"""Helpers of passes over exported graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def _disable_aten_to_metadata_assertions() -> Iterator[None]:
    """Do nothing: exported graphs here have no nodes that assert what a conversion's input was."""
    yield


def _is_cia_op(op: Any) -> bool:
    """True if an overload is composed of others, which have the derivatives.

    >>> import torchlite as torch
    >>> from torchlite._export.utils import _is_cia_op
    >>> _is_cia_op(torch.ops.aten.linear.default), _is_cia_op(torch.ops.aten.mm.default)
    (True, False)
    """
    return bool(op.is_implicit)
