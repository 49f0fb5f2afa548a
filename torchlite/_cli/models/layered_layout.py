"""Layered layout of a directed graph (Sugiyama, Tagawa and Toda 1981).

Edges over several layers run through dummy nodes in each layer; the order within a layer comes from barycentre sweeps.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

SWEEPS = 8
GAP = 18.0  # between two boxes of a layer, in pixels


@dataclasses.dataclass
class LayoutNode:
    """A box or a dummy node: its layer, centre, width, and successors."""

    layer: int
    width: float
    x: float = 0.0
    above: list[int] = dataclasses.field(default_factory=list)
    below: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Layout:
    """Result: `places[:n]` are the graph's nodes; `paths` has for each edge its nodes, ends included."""

    places: list[LayoutNode]
    paths: list[list[int]]
    width: float
    layers: int


def layout_boxes(widths: Sequence[float], edges: Sequence[tuple[int, int]]) -> Layout:
    """Lay out boxes of these widths (pixels), topologically sorted for the edges (from, to)."""
    places = [LayoutNode(layer, width) for layer, width in zip(_assign_layers(len(widths), edges), widths, strict=True)]
    paths = [_insert_dummy_nodes(places, start, end) for start, end in edges]
    rows: list[list[int]] = [[] for _ in range(1 + max((place.layer for place in places), default=-1))]
    for number, place in enumerate(places):
        rows[place.layer].append(number)
    for sweep in range(SWEEPS):
        _order_layers(places, rows, downwards=sweep % 2 == 0)
    for sweep in range(SWEEPS):
        _align_layers(places, rows, downwards=sweep % 2 == 0)
    left = min((place.x - place.width / 2 for place in places), default=0.0)
    for place in places:
        place.x -= left
    return Layout(places, paths, max((place.x + place.width / 2 for place in places), default=0.0), len(rows))


def _assign_layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return each node's layer by longest path. A source is directly above its first reader."""
    found, readers = [0] * count, [0] * count
    for start, end in sorted(edges, key=lambda edge: edge[1]):
        found[end] = max(found[end], found[start] + 1)
    targets = {end for _, end in edges}
    for start, end in edges:
        if start not in targets:
            readers[start] = min(readers[start] or found[end], found[end])
    return [readers[node] - 1 if readers[node] else layer for node, layer in enumerate(found)]


def _insert_dummy_nodes(places: list[LayoutNode], start: int, end: int) -> list[int]:
    """Return the nodes of an edge; adds dummy nodes in the layers that it crosses."""
    path = [start]
    for layer in range(places[start].layer + 1, places[end].layer):
        places.append(LayoutNode(layer, 0.0))
        path.append(len(places) - 1)
    path.append(end)
    for upper, lower in itertools.pairwise(path):
        places[upper].below.append(lower)
        places[lower].above.append(upper)
    return path


def _order_layers(places: list[LayoutNode], rows: list[list[int]], downwards: bool) -> None:
    """Sort each layer by the mean position of its neighbours in the previous one."""
    position = {number: float(index) for row in rows for index, number in enumerate(row)}
    for row in rows if downwards else reversed(rows):

        def mean_neighbour_position(number: int) -> float:
            near = places[number].above if downwards else places[number].below
            return sum(position[other] for other in near) / len(near) if near else position[number]

        row.sort(key=mean_neighbour_position)
        position.update((number, float(index)) for index, number in enumerate(row))


def _align_layers(places: list[LayoutNode], rows: list[list[int]], downwards: bool) -> None:
    """Move each layer's nodes towards the mean of their neighbours, without overlap."""
    for row in rows if downwards else reversed(rows):
        wanted = []
        for number in row:
            place = places[number]
            near = (place.above if downwards else place.below) or place.above or place.below
            wanted.append(sum(places[other].x for other in near) / len(near) if near else place.x)
        _place_row([places[number] for number in row], wanted)


def _place_row(row: list[LayoutNode], wanted: list[float]) -> None:
    """Place a row's nodes as near to the wanted centres as order and widths allow.

    Neighbours that would overlap form a block at the mean of its members' wanted centres (pool adjacent violators).
    """
    offsets = [0.0]
    for before, after in itertools.pairwise(row):
        offsets.append(offsets[-1] + (before.width + after.width) / 2 + GAP)
    blocks: list[tuple[float, int]] = []  # sum of the wished starts, members
    for want, offset in zip(wanted, offsets, strict=True):
        blocks.append((want - offset, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, members = blocks.pop()
            blocks[-1] = (blocks[-1][0] + total, blocks[-1][1] + members)
    starts = [total / members for total, members in blocks for _ in range(members)]
    for place, start, offset in zip(row, starts, offsets, strict=True):
        place.x = start + offset
