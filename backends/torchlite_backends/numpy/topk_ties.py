"""The order of equal elements in `topk`: that of libstdc++'s algorithms, with which PyTorch selects on the CPU.

Each function works on a list of pairs (rank, index) and compares ranks alone.
"""

from __future__ import annotations

import numpy as np

from torchlite_backends.array.sort import bfloat16_to_float32, take_along_last

_Pairs = list[tuple[int, int]]
_SHORT = 16  # elements that are sorted by insertion


def order_ties(x: np.ndarray, largest: bool, values: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and places of the first elements along the last dimension, equal ones in PyTorch's order."""
    length, k = x.shape[-1], values.shape[-1]
    wide, firsts = bfloat16_to_float32(x), bfloat16_to_float32(values)
    before, after = (np.greater, np.greater_equal) if largest else (np.less, np.less_equal)
    if before(firsts[..., :-1], firsts[..., 1:]).all():
        if np.count_nonzero(after(wide, firsts[..., -1:])) == values.size:
            return values, places  # no ties, and no NaN
    rows, chosen = wide.reshape(-1, length), places.copy().reshape(-1, k)
    for number, row in enumerate(rows):
        ranks = np.unique(row, return_inverse=True)[1]  # NaN counts as the greatest
        chosen[number] = first_pairs((-ranks if largest else ranks).tolist(), k)
    ordered = chosen.reshape(places.shape)
    return take_along_last(x, ordered), ordered


def first_pairs(ranks: list[int], k: int) -> list[int]:
    """Return the indices of the `k` least ranks, in PyTorch's order."""
    pairs = list(zip(ranks, range(len(ranks)), strict=True))
    if 64 * k <= len(pairs):
        _sort_first(pairs, k)
    else:
        _select(pairs, k - 1)
        _sort(pairs, k - 1)
    return [index for _, index in pairs[:k]]


def _select(pairs: _Pairs, place: int) -> None:
    """`std::nth_element`."""
    first, last = 0, len(pairs)
    depth = 2 * (last.bit_length() - 1)
    while last - first > 3:
        if not depth:
            _heap_select(pairs, first, place + 1, last)
            pairs[first], pairs[place] = pairs[place], pairs[first]
            return
        depth -= 1
        cut = _partition(pairs, first, last)
        if cut <= place:
            first = cut
        else:
            last = cut
    _insertion_sort(pairs, first, last)


def _sort(pairs: _Pairs, last: int) -> None:
    """`std::sort` of the elements before `last`."""
    if last > 1:
        _partition_all(pairs, 0, last, 2 * (last.bit_length() - 1))
        _insertion_sort(pairs, 0, last)


def _partition_all(pairs: _Pairs, first: int, last: int, depth: int) -> None:
    while last - first > _SHORT:
        if not depth:
            _heap_select(pairs, first, last, last)
            _sort_heap(pairs, first, last)
            return
        depth -= 1
        cut = _partition(pairs, first, last)
        _partition_all(pairs, cut, last, depth)
        last = cut


def _sort_first(pairs: _Pairs, k: int) -> None:
    """`std::partial_sort`."""
    _heap_select(pairs, 0, k, len(pairs))
    _sort_heap(pairs, 0, k)


def _partition(pairs: _Pairs, first: int, last: int) -> int:
    """Partition about the median of three elements."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    x, y, z = pairs[a][0], pairs[b][0], pairs[c][0]
    if x < y:
        median = b if y < z else c if x < z else a
    else:
        median = a if x < z else c if y < z else b
    pairs[first], pairs[median] = pairs[median], pairs[first]
    pivot, low, high = pairs[first][0], first + 1, last
    while True:
        while pairs[low][0] < pivot:
            low += 1
        high -= 1
        while pivot < pairs[high][0]:
            high -= 1
        if low >= high:
            return low
        pairs[low], pairs[high] = pairs[high], pairs[low]
        low += 1


def _insertion_sort(pairs: _Pairs, first: int, last: int) -> None:
    pairs[first:last] = sorted(pairs[first:last], key=lambda pair: pair[0])  # stable, as insertion is


def _heap_select(pairs: _Pairs, first: int, middle: int, last: int) -> None:
    count = middle - first
    for parent in range((count - 2) // 2, -1, -1):
        _adjust_heap(pairs, first, parent, count, pairs[first + parent])
    for i in range(middle, last):
        if pairs[i][0] < pairs[first][0]:
            value, pairs[i] = pairs[i], pairs[first]
            _adjust_heap(pairs, first, 0, count, value)


def _sort_heap(pairs: _Pairs, first: int, last: int) -> None:
    while last - first > 1:
        last -= 1
        value, pairs[last] = pairs[last], pairs[first]
        _adjust_heap(pairs, first, 0, last - first, value)


def _adjust_heap(pairs: _Pairs, first: int, hole: int, count: int, value: tuple[int, int]) -> None:
    top = child = hole
    while child < (count - 1) // 2:
        child = 2 * (child + 1)
        if pairs[first + child][0] < pairs[first + child - 1][0]:
            child -= 1
        pairs[first + hole], hole = pairs[first + child], child
    if count % 2 == 0 and child == (count - 2) // 2:
        child = 2 * child + 1
        pairs[first + hole], hole = pairs[first + child], child
    parent = (hole - 1) // 2
    while hole > top and pairs[first + parent][0] < value[0]:
        pairs[first + hole], hole = pairs[first + parent], parent
        parent = (hole - 1) // 2
    pairs[first + hole] = value
