"""Placeholder of a non-literal argument at a call site."""

from __future__ import annotations


class Placeholder:
    """A non-literal argument."""


PLACEHOLDER = Placeholder()
