"""What stands for an argument of a call that is no literal."""

from __future__ import annotations


class Placeholder:
    """An argument that is no literal."""


PLACEHOLDER = Placeholder()
