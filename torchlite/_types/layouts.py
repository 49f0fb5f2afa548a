"""torch.Size, layouts and memory formats."""

from __future__ import annotations

import math

MAX_DIMS = 64  # that NumPy's arrays have


def are_valid_sizes(values) -> bool:
    """True if values of a file may be sizes or strides of a tensor: then their product takes no time.

    >>> from torchlite._types.layouts import are_valid_sizes
    >>> are_valid_sizes([2, 3]), are_valid_sizes([2**62]), are_valid_sizes([1] * 65), are_valid_sizes([2.0])
    (True, False, False, False)
    """
    return len(values) <= MAX_DIMS and all(type(n) is int and 0 <= n < 1 << 62 for n in values)


class Size(tuple):
    """A tensor's shape: a tuple of ints.

    Slices, sums and products of a `Size` are of this type too.

    Args:
        iterable: The sizes of the dimensions. Default: empty, the shape of a scalar.

    Example:
        >>> size = torch.zeros(2, 3, 4).size()
        >>> size, size[1:], size.numel()
        (torch.Size([2, 3, 4]), torch.Size([3, 4]), 24)
    """

    __slots__ = ()

    def __new__(cls, iterable=()):
        made = tuple.__new__(cls, iterable)
        for place, size in enumerate(made):
            if size.__class__ is not int:
                return cls._of_integers(made, place)
        return made

    @classmethod
    def _of_integers(cls, sizes, place: int):
        """The sizes as ints, from a place on where one is another integer: of NumPy, a tensor, a symbol."""
        found = list(sizes)
        for i in range(place, len(found)):
            size = found[i]
            if not isinstance(size, int):
                if not hasattr(size, "__index__") or getattr(size, "ndim", False):
                    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(size).__name__}')")
                try:
                    found[i] = size.__index__()
                except TypeError:
                    raise TypeError(
                        f"torch.Size() takes an iterable of 'int' (item {i} is '{type(size).__name__}')"
                    ) from None
        return tuple.__new__(cls, found)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    __str__ = __repr__

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __getitem__(self, key):
        found = tuple.__getitem__(self, key)
        return tuple.__new__(Size, found) if isinstance(key, slice) else found

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, other):
        return tuple.__new__(Size, tuple.__mul__(self, other))

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


class _Constant:
    """A named constant of PyTorch's namespace."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return _constant, (self.name,)


class layout(_Constant):
    """The memory layout of a tensor's elements.

    The layouts are `torch.strided` (dense), `torch.sparse_coo`, `torch.sparse_csr`, `torch.sparse_csc`,
    `torch.sparse_bsr` and `torch.sparse_bsc`, and `torch.jagged` of nested tensors. Programs use these constants.

    Args:
        name: Name of the constant in `torch`.

    Example:
        >>> torch.zeros(2).layout
        torch.strided
    """


class memory_format(_Constant):
    """An order of a tensor's dimensions in memory.

    The formats are `torch.contiguous_format`, `torch.preserve_format` (as the input's), `torch.channels_last` (N, H, W,
    C in memory) and `torch.channels_last_3d`. Programs use these constants.

    Args:
        name: Name of the constant in `torch`.

    Example:
        >>> x = torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last)
        >>> x.stride()
        (24, 1, 8, 2)
    """


strided, sparse_coo = layout("strided"), layout("sparse_coo")
sparse_csr, sparse_csc = layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")
jagged = layout("jagged")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")


Size.__module__ = layout.__module__ = memory_format.__module__ = "torchlite"  # where programs find them


def _constant(name: str) -> _Constant:
    return globals()[name]
