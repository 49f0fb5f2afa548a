"""The position of a chain of pipes: moved forward again after loading."""

from __future__ import annotations

import itertools
from typing import Any

from .._hook_iterator import _SnapshotState
from ..datapipe import IterDataPipe

__all__ = ["_simple_graph_snapshot_restoration"]


def _simple_graph_snapshot_restoration(datapipe: IterDataPipe, n_iterations: int, rng: Any = None) -> None:
    """Move a chain of pipes forward by items that it reads once more.

    rng: the generator of the seeds of its shuffled pipes.
    """
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if your graph "
            "has not been restored."
        )
    if rng is not None:
        from ...graph_settings import apply_random_seed

        apply_random_seed(datapipe, rng)
    datapipe.reset()
    items = iter(datapipe)
    for _ in itertools.islice(items, n_iterations):
        pass
    datapipe._snapshot_state = _SnapshotState.Restored
    datapipe._fast_forward_iterator = items  # type: ignore[attr-defined]
    datapipe._number_of_samples_yielded = n_iterations
