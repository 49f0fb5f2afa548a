"""What stands for an argument of a call that is no literal."""

from __future__ import annotations


class Hole:
    """An argument that is no literal."""


HOLE = Hole()
