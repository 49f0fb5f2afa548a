"""Callables of graphs compare as those that they check."""

import copy

from torchlite._types.checked_callable import CheckedCallable


class Checked(CheckedCallable):
    def __init__(self, plain):
        self.plain = plain


def test_equality():
    one, other = Checked(len), Checked(max)
    assert one == len and one == Checked(len) and hash(one) == hash(len)
    assert one != other and one != max and one != 5 and one != "len" and one != None  # noqa: E711
    assert {one: 1}[len] == 1 and copy.deepcopy(one) is one
