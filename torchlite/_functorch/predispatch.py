"""`vmap` primitives of exported graphs under PyTorch's private module name."""

from ..func._predispatch import (
    _add_batch_dim,
    _remove_batch_dim,
    _vmap_decrement_nesting,
    _vmap_increment_nesting,
    lazy_load_decompositions,
)

__all__ = [
    "_add_batch_dim", "_remove_batch_dim", "_vmap_decrement_nesting", "_vmap_increment_nesting",
    "lazy_load_decompositions",
]  # fmt: skip
