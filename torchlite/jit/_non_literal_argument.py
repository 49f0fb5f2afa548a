"""Placeholder of a non-literal argument at a call site."""


class Placeholder:
    """A non-literal argument."""


PLACEHOLDER = Placeholder()
