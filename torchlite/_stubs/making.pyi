# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: making."""

import builtins as _b
from collections.abc import Sequence
from typing import Self, overload

from .aliases import DeviceLike, DType, Ints, Layout, MemoryFormat, Number, TensorLike
from .basic import Generator
from .tensor import Tensor

class MakingMethods:
    def bernoulli(self, p: _b.float | None = None, *, generator: Generator | None = None) -> Tensor:
        """Draws 1 with a probability, else 0."""
    def bernoulli_(self, p: _b.float | Tensor = 0.5, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with 1 with a probability, else 0."""
    def cauchy_(self, median: _b.float = 0.0, sigma: _b.float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with Cauchy numbers."""
    def exponential_(self, lambd: _b.float = 1.0, *, generator: Generator | None = None) -> Self:
        r"""Fills the tensor with exponential numbers: density :math:`\lambda \exp(-\lambda x)`."""
    def geometric_(self, p: _b.float, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with the numbers of trials up to the first success."""
    def log_normal_(self, mean: _b.float = 1.0, std: _b.float = 2.0, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with exponentials of normal numbers."""
    def multinomial(
        self, num_samples: _b.int, replacement: _b.bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Draws indices with given weights."""
    def new_empty(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """Returns a tensor whose elements are not initialized, with the dtype and device of this tensor."""
    def new_empty_strided(
        self,
        size: Ints,
        stride: Ints,
        *,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """Returns a tensor of given strides whose elements are not initialized, with the dtype and device of this
        tensor.
        """
    def new_full(
        self,
        size: Ints,
        fill_value: Number | Tensor,
        *,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """Returns a tensor filled with a value, with the dtype and device of this tensor."""
    def new_ones(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """Returns a tensor of ones, with the dtype and device of this tensor."""
    def new_tensor(
        self,
        data: TensorLike,
        *,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """Returns a copy of data, with the dtype and device of this tensor."""
    def new_zeros(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """Returns a tensor of zeros, with the dtype and device of this tensor."""
    def normal_(self, mean: _b.float = 0.0, std: _b.float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with normal numbers."""
    def random_(
        self, from_: _b.int | None = None, to: _b.int | None = ..., *, generator: Generator | None = None
    ) -> Self:
        """Fills the tensor with integers."""
    def uniform_(self, from_: Number = 0.0, to: Number = 1.0, *, generator: Generator | None = None) -> Self:
        """Fills the tensor with numbers that are uniform on [from_, to)."""

def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """How beta variates ``x`` of parameters ``alpha`` and ``total - alpha`` move with ``alpha``; over ``1 - x``."""

def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Dirichlet variates of the concentrations along the last dimension of `input`. Not differentiable;
    `torch.distributions.Dirichlet` implements the gradient.
    """

def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma variates of the shape parameters in `input` and rate 1. Their gradients are implicit:
    ``_standard_gamma_grad``.
    """

def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """How gamma variates ``output`` of shape parameters ``input`` (both of one shape) move with them.

    >>> import torchlite as torch
    >>> torch._standard_gamma_grad(torch.tensor([1.0]), torch.tensor([0.0001]))
    tensor([0.0010])
    """

@overload
def arange(
    end: Number | Tensor,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns numbers from `start` up to but without `end`, at equal distances."""

@overload
def arange(
    start: Number | Tensor,
    end: Number | Tensor,
    step: Number | Tensor = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor: ...
def bartlett_window(
    window_length: _b.int,
    periodic: _b.bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    r"""Returns the triangular window that ends in zeros."""

def bernoulli(
    input: Tensor, p: _b.float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Draws 1 with a probability, else 0."""

def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws binomial numbers."""

def blackman_window(
    window_length: _b.int,
    periodic: _b.bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    r"""Returns the Blackman window."""

def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """Returns the Cartesian product of vectors, a combination a row."""

def combinations(input: Tensor, r: _b.int = 2, with_replacement: _b.bool = False) -> Tensor:
    """Returns the combinations of a vector's elements, a combination a row."""

@overload
def empty(
    *size: Ints,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Returns a tensor whose elements are not initialized."""

@overload
def empty(
    *,
    size: Sequence[_b.int],
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor: ...
def empty_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Returns a tensor whose elements are not initialized, with the shape, dtype, device and order in memory of
    another.
    """

def empty_permuted(
    size: Ints,
    physical_layout: Ints,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns a dense tensor of a given order in memory whose elements are not initialized."""

def empty_strided(
    size: Ints,
    stride: Ints,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns a tensor of given strides whose elements are not initialized."""

def eye(
    n: _b.int,
    m: _b.int | None = None,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns a matrix with ones on its main diagonal and zeros elsewhere."""

def full(
    size: Sequence[_b.int],
    fill_value: Number | Tensor,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns a tensor filled with a value."""

def full_like(
    input: Tensor,
    fill_value: Number | Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Returns a tensor filled with a value, with the shape, dtype, device and order in memory of another."""

def hamming_window(
    window_length: _b.int,
    periodic: _b.bool = True,
    alpha: Number = 0.54,
    beta: _b.float = 0.46,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    r"""Returns the Hamming window."""

def hann_window(
    window_length: _b.int,
    periodic: _b.bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    r"""Returns the Hann window."""

def kaiser_window(
    window_length: _b.int,
    periodic: _b.bool = True,
    beta: _b.float = 12.0,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    r"""Returns the Kaiser window."""

def linspace(
    start: Number | Tensor,
    end: Number | Tensor,
    steps: _b.int | None = None,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns numbers at equal distances from `start` to `end`, both included."""

def logspace(
    start: Number | Tensor,
    end: Number | Tensor,
    steps: _b.int | None = None,
    base: _b.float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns powers of a base whose exponents are at equal distances."""

def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: _b.str | None = None) -> tuple[Tensor, ...]:
    """Returns the coordinates of the grid that vectors span."""

def multinomial(
    input: Tensor,
    num_samples: _b.int,
    replacement: _b.bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draws indices with given weights."""

def normal(
    mean: Tensor | Number = 0.0,
    std: Tensor | Number = 1.0,
    size: Ints | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns normal numbers of given means and standard deviations."""

@overload
def ones(
    *size: Ints,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns a tensor of ones."""

@overload
def ones(
    *,
    size: Sequence[_b.int],
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor: ...
def ones_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Returns a tensor of ones, with the shape, dtype, device and order in memory of another."""

def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws Poisson numbers of given rates."""

@overload
def rand(
    *size: Ints,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns numbers that are uniform on [0, 1)."""

@overload
def rand(
    *,
    size: Sequence[_b.int],
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor: ...
def rand_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns numbers that are uniform on [0, 1), with the shape of another tensor."""

@overload
def randint(
    high: _b.int,
    size: Ints,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns integers that are uniform on [low, high)."""

@overload
def randint(
    low: _b.int,
    high: _b.int,
    size: Ints,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor: ...
def randint_like(
    input: Tensor,
    low: _b.int = 0,
    high: _b.int | None = None,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns integers that are uniform on [low, high), with the shape of another tensor."""

@overload
def randn(
    *size: Ints,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns standard normal numbers: mean 0 and variance 1."""

@overload
def randn(
    *,
    size: Sequence[_b.int],
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor: ...
def randn_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns standard normal numbers, with the shape of another tensor."""

def randperm(
    n: _b.int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns the integers from 0 to ``n - 1`` in random order."""

def range(
    start: Number | Tensor = 0,
    end: Number | Tensor | None = None,
    step: Number = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns numbers from `start` to `end`, both included. Deprecated: use `torch.arange`."""

def scalar_tensor(
    s: Ints,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns a 0-d tensor with a value."""

def tril_indices(
    row: _b.int,
    col: _b.int,
    offset: _b.int = 0,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    layout: Layout | None = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns the indices of the elements on and below a diagonal of a matrix, row by row."""

def triu_indices(
    row: _b.int,
    col: _b.int,
    offset: _b.int = 0,
    *,
    dtype: DType | None = None,
    device: DeviceLike = None,
    layout: Layout | None = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns the indices of the elements on and above a diagonal of a matrix, row by row."""

def vander(x: Tensor, N: _b.int | None = None, increasing: _b.bool = False) -> Tensor:
    """Returns a Vandermonde matrix: the powers of each element of a vector in a row."""

@overload
def zeros(
    *size: Ints,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns a tensor of zeros."""

@overload
def zeros(
    *,
    size: Sequence[_b.int],
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor: ...
def zeros_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Returns a tensor of zeros, with the shape, dtype, device and order in memory of another."""
