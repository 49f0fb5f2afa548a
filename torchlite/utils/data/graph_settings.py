"""Settings of all pipes of a graph: shuffling, seeds, workers."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import torchlite as torch

from .datapipes.iter.sharding import SHARDING_PRIORITIES
from .graph import traverse_dps

__all__ = [
    "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes",
]  # fmt: skip


def get_all_graph_pipes(graph: dict[int, tuple[Any, dict]]) -> list[Any]:
    """Returns the pipes of a graph, each once.

    Args:
        graph: The graph, of `traverse_dps`.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> from torchlite.utils.data.graph import traverse_dps
        >>> from torchlite.utils.data.graph_settings import get_all_graph_pipes
        >>> get_all_graph_pipes(traverse_dps(IterableWrapper([1]).batch(2)))
        [BatcherIterDataPipe, IterableWrapperIterDataPipe]
    """
    found: dict[int, Any] = {}

    def collect(part: dict[int, tuple[Any, dict]]) -> None:
        for number, (pipe, inner) in part.items():
            found.setdefault(number, pipe)
            collect(inner)

    collect(graph)
    return list(found.values())


def _can(pipe: Any, *names: str) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
) -> Any:
    """Sets the workers of all sharding pipes that a pipe reads.

    Args:
        datapipe: The pipe.
        num_of_instances: Number of workers.
        instance_id: Number of the worker that reads.
        sharding_group: The kind of workers. Default: ``SHARDING_PRIORITIES.DEFAULT``.

    Returns:
        The pipe.

    Raises:
        RuntimeError: One sharding pipe reads another one.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> from torchlite.utils.data.graph_settings import apply_sharding
        >>> list(apply_sharding(IterableWrapper(range(4)).sharding_filter(), 2, 0))
        [0, 2]
    """

    def apply(graph: dict[int, tuple[Any, dict]], above: Any) -> None:
        for pipe, inner in graph.values():
            below = above
            if _can(pipe, "apply_sharding"):
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding "
                        f"already applied to {above} while trying to apply to {pipe}"
                    )
                given = len(inspect.signature(pipe.apply_sharding).parameters)
                extra = () if given < 3 else (sharding_group,)
                pipe.apply_sharding(num_of_instances, instance_id, *extra)
                below = pipe
            apply(inner, below)

    apply(traverse_dps(datapipe), None)
    return datapipe


def _is_shuffler(pipe: Any) -> bool:
    return _can(pipe, "set_shuffle", "set_seed")


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Sets whether the shuffling pipes that a pipe reads shuffle.

    Args:
        datapipe: The pipe.
        shuffle: Whether they do; ``True`` adds one at the end if there is none. Default: unchanged.

    Returns:
        The pipe, or the one that was added.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> from torchlite.utils.data.graph_settings import apply_shuffle_settings
        >>> list(apply_shuffle_settings(IterableWrapper(range(4)).shuffle(), shuffle=False))
        [0, 1, 2, 3]
    """
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffler(pipe)]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware "
            "that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """Seeds all pipes that a pipe reads: `apply_random_seed`, by its former name.

    Args:
        datapipe: The pipe.
        rng: The generator of the seeds.

    Returns:
        The pipe.
    """
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases.\nPlease use "
        "`apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Seeds all pipes that a pipe reads and that have a method `set_seed`.

    Args:
        datapipe: The pipe.
        rng: The generator of the seeds.

    Returns:
        The pipe.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import IterableWrapper
        >>> from torchlite.utils.data.graph_settings import apply_random_seed
        >>> pipe = IterableWrapper(range(9)).shuffle()
        >>> orders = [list(apply_random_seed(pipe, torch.Generator().manual_seed(1))) for _ in range(2)]
        >>> orders[0] == orders[1]
        True
    """
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _can(pipe, "set_seed"):
            pipe.set_seed(int(torch.empty((), dtype=torch.int64).random_(generator=rng).item()))
    return datapipe
