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
        """1 with the probability that each entry states (or `p` for all), else 0; the result has the dtype of `input`.
        The gradient is zero.
        """
    def bernoulli_(self, p: _b.float | Tensor = 0.5, *, generator: Generator | None = None) -> Self:
        """Fill with 1 with probability `p` (a number, or a tensor of them that broadcasts), else 0."""
    def cauchy_(self, median: _b.float = 0.0, sigma: _b.float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fill with Cauchy numbers about `median` of scale `sigma` > 0."""
    def exponential_(self, lambd: _b.float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fill with exponential numbers of rate `lambd` > 0."""
    def geometric_(self, p: _b.float, *, generator: Generator | None = None) -> Self:
        """Fill with the number of trials of probability `p` up to the first success."""
    def log_normal_(self, mean: _b.float = 1.0, std: _b.float = 2.0, *, generator: Generator | None = None) -> Self:
        """Fill with exp of normal numbers of the given mean and standard deviation."""
    def multinomial(
        self, num_samples: _b.int, replacement: _b.bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Indices drawn by the weights in `input` (one row, or a matrix of rows), `num_samples` from each row, with or
        without replacement.

        RuntimeError for weights that are negative, infinite or NaN, and for more samples than weights without
        replacement.
        """
    def new_empty(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """An uninitialised tensor of the given size with this tensor's dtype and device, unless said otherwise."""
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
        """An uninitialised tensor of the given size and strides, by default with this tensor's dtype and device."""
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
        """A tensor of the given size filled with `fill_value`, by default with this tensor's dtype and device."""
    def new_ones(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """Ones of the given size with this tensor's dtype and device, unless said otherwise."""
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
        """A copy of the data, by default with this tensor's dtype and device."""
    def new_zeros(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor:
        """Zeros of the given size with this tensor's dtype and device, unless said otherwise."""
    def normal_(self, mean: _b.float = 0.0, std: _b.float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fill with normal numbers. RuntimeError when std < 0. A complex tensor gets half of the variance in each
        part.
        """
    def random_(
        self, from_: _b.int | None = None, to: _b.int | None = ..., *, generator: Generator | None = None
    ) -> Self:
        """Fill with integers: `random_(from, to)` of [from, to), `random_(to)` of [0, to), `random_()` of all from 0 on
        that the dtype holds exactly.

        With to=None the upper end is the dtype's largest integer, and with from=None too all 64 bits are drawn.
        """
    def uniform_(self, from_: Number = 0.0, to: Number = 1.0, *, generator: Generator | None = None) -> Self:
        """Fill with uniform numbers of [from_, to). RuntimeError when from_ > to."""

def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor, *, out: Tensor | None = None) -> Tensor:
    """How beta variates ``x`` of parameters ``alpha`` and ``total - alpha`` move with ``alpha``; over ``1 - x``."""

def _sample_dirichlet(input: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor:
    """Dirichlet variates of the concentrations along the last dimension of `input`. Not differentiable;
    `torch.distributions.Dirichlet` implements the gradient.
    """

def _standard_gamma(input: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor:
    """Gamma variates of the shape parameters in `input` and rate 1. Their gradients are implicit:
    ``_standard_gamma_grad``.
    """

def _standard_gamma_grad(input: Tensor, output: Tensor, *, out: Tensor | None = None) -> Tensor:
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
    """`arange(end)`, `arange(start, end, step)`: from `start` in steps of `step` up to but without `end`.

    int64 for ints, else the default dtype, unless `dtype` is given.
    """

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
    out: Tensor | None = None,
) -> Tensor:
    """The triangle 1 - |2 n / N - 1|, n = 0 ... N; periodic: without its last point."""

def bernoulli(
    input: Tensor, p: _b.float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """1 with the probability that each entry states (or `p` for all), else 0; the result has the dtype of `input`. The
    gradient is zero.
    """

def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor:
    """Binomial numbers of `count` trials of probability `prob`, both floating and of one dtype."""

def blackman_window(
    window_length: _b.int,
    periodic: _b.bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N), n = 0 ... N; periodic: without its last point."""

def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """The Cartesian product of vectors, one combination a row."""

def combinations(
    input: Tensor, r: _b.int = 2, with_replacement: _b.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The combinations of `r` entries of a vector, one a row, in the order of itertools."""

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
    """A tensor with uninitialised values."""

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
    out: Tensor | None = None,
) -> Tensor:
    """An uninitialised tensor with the shape, dtype, device and order in memory of `input`, unless said otherwise."""

def empty_permuted(
    size: Ints,
    physical_layout: Ints,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """An uninitialised dense tensor whose dimensions lie in memory in the order `physical_layout`."""

def empty_strided(
    size: Ints,
    stride: Ints,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """An uninitialised tensor of the given strides (in elements)."""

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
    """A matrix of n rows and m columns (n when not given) with ones on its diagonal."""

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
    """A tensor filled with `fill_value`, whose type determines the dtype (int64 for ints) unless `dtype` is given."""

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
    out: Tensor | None = None,
) -> Tensor:
    """A tensor filled with `fill_value`, by default with the shape, dtype, device and memory layout of `input`."""

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
    out: Tensor | None = None,
) -> Tensor:
    """alpha - beta cos(2 pi n / N), n = 0 ... N; periodic: without its last point."""

def hann_window(
    window_length: _b.int,
    periodic: _b.bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """(1 - cos(2 pi n / N)) / 2, n = 0 ... N; periodic: without its last point."""

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
    out: Tensor | None = None,
) -> Tensor:
    """I0(beta sqrt(1 - (2 n / N - 1)**2)) / I0(beta), n = 0 ... N; periodic: without its last point."""

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
    """`steps` numbers at equal distances from `start` to `end`, both included."""

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
    """`base` to the powers `linspace(start, end, steps)`."""

def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: _b.str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of the grid spanned by vectors: one tensor a vector. With indexing "xy" the first two dimensions
    change places.
    """

def multinomial(
    input: Tensor,
    num_samples: _b.int,
    replacement: _b.bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices drawn by the weights in `input` (one row, or a matrix of rows), `num_samples` from each row, with or
    without replacement.

    RuntimeError for weights that are negative, infinite or NaN, and for more samples than weights without
    replacement.
    """

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
    """Normal numbers of the given mean and standard deviation: tensors of them (broadcast), or numbers and a
    `size`.
    """

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
    """Ones: `ones(2, 3)` or `ones((2, 3))`, of the default dtype or `dtype`."""

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
    out: Tensor | None = None,
) -> Tensor:
    """Ones with the shape, dtype, device and order in memory of `input`, unless said otherwise."""

def poisson(input: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor:
    """Poisson numbers of the rates in `input`, in its dtype. RuntimeError for a negative rate. The gradient is
    zero.
    """

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
    """Uniform numbers in [0, 1): `rand(2, 3)` or `rand((2, 3))`, of the default dtype or `dtype`. On "cpu" PyTorch's
    numbers for the same seed.

    >>> import torchlite as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """

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
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Uniform numbers in [0, 1), in the shape of `input`."""

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
    """Integers in [low, high), or in [0, high) when only one bound is given: `randint(10, (2, 3))`, `randint(3, 10, (2,
    3))`.

    Int64 unless `dtype` is given.
    """

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
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Integers in [low, high), or in [0, high) when only one bound is given, in the shape and dtype of `input`."""

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
    """Standard normal numbers; complex ones have variance 1, half of it in each part."""

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
    requires_grad: _b.bool = False,
    memory_format: MemoryFormat | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Standard normal numbers, in the shape of `input`."""

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
    """The integers from 0 to n - 1 in random order."""

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
    """Like `arange`, but includes `end` and has the default dtype; PyTorch has deprecated it."""

def scalar_tensor(
    s: Ints,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """A tensor without dimensions of the default dtype or `dtype`."""

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
    out: Tensor | None = None,
) -> Tensor:
    """Row and column indices (2 x count) of the part of a row x col matrix on and below the diagonal `offset`, row by
    row.
    """

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
    out: Tensor | None = None,
) -> Tensor:
    """Row and column indices (2 x count) of the part of a row x col matrix on and above the diagonal `offset`, row by
    row.
    """

def vander(x: Tensor, N: _b.int | None = None, increasing: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Vandermonde matrix: the powers N - 1 ... 0 of each entry of a vector in a row, or 0 ... N - 1
    when `increasing`.
    """

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
    """Zeros: `zeros(2, 3)` or `zeros((2, 3))`, of the default dtype or `dtype`."""

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
    out: Tensor | None = None,
) -> Tensor:
    """Zeros with the shape, dtype, device and order in memory of `input`, unless said otherwise."""
