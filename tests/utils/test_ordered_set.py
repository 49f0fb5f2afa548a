"""Sets that keep the order of their elements."""

import copy
import pickle

import pytest

from torchlite.utils._ordered_set import OrderedSet


def test_order_is_kept():
    found = OrderedSet("cab")
    assert list(found) == ["c", "a", "b"] and list(reversed(found)) == ["b", "a", "c"] and len(found) == 3
    found.add("a")
    found.discard("z")
    found.update("dc", ["e"])
    assert list(found) == ["c", "a", "b", "d", "e"] and "e" in found
    assert found.pop() == "e" and repr(found) == "OrderedSet(['c', 'a', 'b', 'd'])"
    found.difference_update(found, [])
    with pytest.raises(KeyError, match="pop from an empty set"):
        found.pop()


def test_operations_of_sets():
    first, second = OrderedSet([3, 1, 2]), OrderedSet([2, 4])
    assert list(first | second) == list(first.union(second)) == [3, 1, 2, 4]
    assert list(first & second) == list(first.intersection(second)) == [2]
    assert list(first - second) == list(first.difference([2], [1])) + [1]
    assert list(first.symmetric_difference(second)) == [3, 1, 4]
    assert OrderedSet([1]).issubset(first) and first.issuperset([1, 2]) and not first.issuperset(second)
    assert first == {1, 2, 3} and OrderedSet() == set()
    for again in (copy.deepcopy(first), pickle.loads(pickle.dumps(first)), first.copy()):
        assert list(again) == [3, 1, 2] and again is not first
