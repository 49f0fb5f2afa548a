# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: making."""

import builtins as _b
from collections.abc import Sequence
from typing import Self, overload

from .aliases import DeviceLike, DType, Ints, Layout, MemoryFormat, Number, TensorLike
from .basic import Generator
from .tensor import Tensor

class MakingMethods:
    def bernoulli(self, p: _b.float | None = None, *, generator: Generator | None = None) -> Tensor: ...
    def bernoulli_(self, p: _b.float | Tensor = 0.5, *, generator: Generator | None = None) -> Self: ...
    def cauchy_(self, median: _b.float = 0.0, sigma: _b.float = 1.0, *, generator: Generator | None = None) -> Self: ...
    def exponential_(self, lambd: _b.float = 1.0, *, generator: Generator | None = None) -> Self: ...
    def geometric_(self, p: _b.float, *, generator: Generator | None = None) -> Self: ...
    def log_normal_(self, mean: _b.float = 1.0, std: _b.float = 2.0, *, generator: Generator | None = None) -> Self: ...
    def multinomial(
        self, num_samples: _b.int, replacement: _b.bool = False, *, generator: Generator | None = None
    ) -> Tensor: ...
    def new_empty(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor: ...
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
    ) -> Tensor: ...
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
    ) -> Tensor: ...
    def new_ones(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor: ...
    def new_tensor(
        self,
        data: TensorLike,
        *,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor: ...
    def new_zeros(
        self,
        *size: Ints,
        dtype: DType | None = None,
        device: DeviceLike = None,
        requires_grad: _b.bool = False,
        layout: Layout | None = None,
        pin_memory: _b.bool = False,
    ) -> Tensor: ...
    def normal_(self, mean: _b.float = 0.0, std: _b.float = 1.0, *, generator: Generator | None = None) -> Self: ...
    def random_(
        self, from_: _b.int | None = None, to: _b.int | None = ..., *, generator: Generator | None = None
    ) -> Self: ...
    def uniform_(self, from_: Number = 0.0, to: Number = 1.0, *, generator: Generator | None = None) -> Self: ...

def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def _sample_dirichlet(input: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor: ...
def _standard_gamma(input: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor: ...
def _standard_gamma_grad(input: Tensor, output: Tensor, *, out: Tensor | None = None) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
def bernoulli(
    input: Tensor, p: _b.float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor: ...
def binomial(
    count: Tensor, prob: Tensor, generator: Generator | None = None, *, out: Tensor | None = None
) -> Tensor: ...
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
) -> Tensor: ...
def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor: ...
def combinations(
    input: Tensor, r: _b.int = 2, with_replacement: _b.bool = False, *, out: Tensor | None = None
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: _b.str | None = None) -> tuple[Tensor, ...]: ...
def multinomial(
    input: Tensor,
    num_samples: _b.int,
    replacement: _b.bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
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
) -> Tensor: ...
@overload
def ones(
    *size: Ints,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor: ...
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
) -> Tensor: ...
def poisson(input: Tensor, generator: Generator | None = None, *, out: Tensor | None = None) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
def scalar_tensor(
    s: Ints,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
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
) -> Tensor: ...
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
) -> Tensor: ...
def vander(x: Tensor, N: _b.int | None = None, increasing: _b.bool = False, *, out: Tensor | None = None) -> Tensor: ...
@overload
def zeros(
    *size: Ints,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    pin_memory: _b.bool = False,
    requires_grad: _b.bool = False,
) -> Tensor: ...
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
) -> Tensor: ...
