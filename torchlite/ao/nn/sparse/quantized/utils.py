"""The size of the blocks of sparse weights."""

from __future__ import annotations

import threading
from typing import Any

from torchlite._settings import fork_locks

__all__ = ["LinearBlockSparsePattern"]


def _is_valid_linear_block_sparse_pattern(row_block_size: int, col_block_size: int) -> bool:
    return (row_block_size, col_block_size) in ((1, 4), (8, 1))


class LinearBlockSparsePattern:
    """A context within which dynamic linear layers are made with blocks of a size.

    Args:
        row_block_size: The rows of a block. Default: 1.
        col_block_size: Its columns. Default: 4.

    Raises:
        AssertionError: Blocks have neither 1 x 4 nor 8 x 1 elements.

    Example:
        >>> from torchlite.ao.nn.sparse.quantized.utils import LinearBlockSparsePattern
        >>> with LinearBlockSparsePattern(8, 1):
        ...     LinearBlockSparsePattern.block_size()
        (8, 1)
    """

    rlock = fork_locks.reinit_after_fork(threading.RLock())
    row_block_size = 1
    col_block_size = 4
    prev_row_block_size = 1
    prev_col_block_size = 4

    def __init__(self, row_block_size: int = 1, col_block_size: int = 4) -> None:
        if not _is_valid_linear_block_sparse_pattern(row_block_size, col_block_size):
            raise AssertionError(
                f"Invalid linear block sparse pattern: row_block_size={row_block_size}, col_block_size={col_block_size}"
            )
        pattern = LinearBlockSparsePattern
        pattern.rlock.acquire()
        pattern.prev_row_block_size, pattern.prev_col_block_size = pattern.block_size()
        pattern.row_block_size, pattern.col_block_size = row_block_size, col_block_size

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pattern = LinearBlockSparsePattern
        pattern.row_block_size, pattern.col_block_size = pattern.prev_row_block_size, pattern.prev_col_block_size
        pattern.rlock.release()

    @staticmethod
    def block_size() -> tuple[int, int]:
        """The rows and columns of a block."""
        return LinearBlockSparsePattern.row_block_size, LinearBlockSparsePattern.col_block_size
