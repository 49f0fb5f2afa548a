"""Table of a DTensor's sharding."""

from __future__ import annotations

import itertools
from typing import Any

from .._utils import local_ranges

__all__ = ["visualize_sharding"]


def _format_ranges(ranges: list[tuple[int, int]]) -> str:
    return ", ".join(f"{start}-{stop - 1}" for start, stop in ranges)


def visualize_sharding(dtensor: Any, header: str = "", use_rich: bool = False) -> None:
    """Prints the rows and columns of a DTensor that each process has, on the first process.

    Args:
        dtensor: A DTensor of one or two dimensions.
        header: A line above the table. Default: none.
        use_rich: Not supported.

    Raises:
        RuntimeError: The DTensor has more dimensions, or none.
        NotImplementedError: ``use_rich`` is set.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.tensor import Shard, distribute_tensor
        >>> from torchlite.distributed.tensor.debug import visualize_sharding
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> visualize_sharding(distribute_tensor(torch.ones(4, 2), dist.init_device_mesh("cpu", (1,)), [Shard(0)]))
                 Col 0-1
        Row 0-3  cpu:0
        >>> dist.destroy_process_group()
    """
    if use_rich:
        raise NotImplementedError("visualize_sharding(): use_rich=True; the table is plain text")
    if dtensor.numel() == 0:
        return
    if not 1 <= dtensor.ndim <= 2:
        raise RuntimeError("visualize sharding supports only 1D or 2D DTensor")
    mesh = dtensor.device_mesh
    place = mesh.get_coordinate()
    if place is None or any(place):
        return
    ranks = mesh.mesh
    cells: dict[tuple[str, str], list[str]] = {}
    for where in itertools.product(*(range(n) for n in mesh.shape)):
        ranges = local_ranges(dtensor.shape, mesh, dtensor.placements, where)
        if not all(ranges):
            continue
        names = [_format_ranges(part) for part in ranges]
        row, column = ("", names[0]) if dtensor.ndim == 1 else (names[0], names[1])
        cells.setdefault((row, column), []).append(f"{mesh.device_type}:{int(ranks[where])}")
    rows, columns = list(dict.fromkeys(r for r, _ in cells)), list(dict.fromkeys(c for _, c in cells))
    table = [["", *(f"Col {column}" for column in columns)]]
    for row in rows:
        first = f"Row {row}" if row else ""
        table.append([first, *(", ".join(cells.get((row, column), [])) for column in columns)])
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    if header:
        print(header)
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
