# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.nn.functional that come from op records."""

import builtins as _b
from collections.abc import Sequence
from typing import Literal, overload

from .aliases import Ints, OutputSize
from .tensor import Tensor

def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize, *, out: Tensor | None = None) -> Tensor:
    """The average over `output_size` windows that share the 1 spatial dimension(s) of `input` among them; window i
    covers the places from floor(i * size / out) to ceil((i + 1) * size / out). None in `output_size` keeps a size.

    >>> torch.nn.functional.adaptive_avg_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """

def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """The average over `output_size` windows that share the 2 spatial dimension(s) of `input` among them; window i
    covers the places from floor(i * size / out) to ceil((i + 1) * size / out). None in `output_size` keeps a size.

    >>> torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2])
    """

def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """The average over `output_size` windows that share the 3 spatial dimension(s) of `input` among them; window i
    covers the places from floor(i * size / out) to ceil((i + 1) * size / out). None in `output_size` keeps a size.

    >>> torch.nn.functional.adaptive_avg_pool3d(torch.ones(1, 1, 4, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2, 2])
    """

@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False, *, out: Tensor | None = None
) -> Tensor:
    """The maximum over `output_size` windows that share the 1 spatial dimension(s) of `input` among them; window i
    covers the places from floor(i * size / out) to ceil((i + 1) * size / out). None in `output_size` keeps a size.

    >>> torch.nn.functional.adaptive_max_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """

@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True], out: Tensor | None = None
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool, *, out: Tensor | None = None
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False
) -> Tensor:
    """`adaptive_max_pool1d` with the indices of the maxima. `return_indices` has no effect."""

@overload
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over `output_size` windows that share the 2 spatial dimension(s) of `input` among them; window i
    covers the places from floor(i * size / out) to ceil((i + 1) * size / out). None in `output_size` keeps a size.

    >>> torch.nn.functional.adaptive_max_pool2d(torch.ones(1, 1, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2])
    """

@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False
) -> Tensor:
    """`adaptive_max_pool2d` with the indices of the maxima. `return_indices` has no effect."""

@overload
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False) -> Tensor:
    """The maximum over `output_size` windows that share the 3 spatial dimension(s) of `input` among them; window i
    covers the places from floor(i * size / out) to ceil((i + 1) * size / out). None in `output_size` keeps a size.

    >>> torch.nn.functional.adaptive_max_pool3d(torch.ones(1, 1, 4, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2, 2])
    """

@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False
) -> Tensor:
    """`adaptive_max_pool3d` with the indices of the maxima. `return_indices` has no effect."""

@overload
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool
) -> Tensor | tuple[Tensor, Tensor]: ...
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: _b.bool = False,
    count_include_pad: _b.bool = True,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The average over windows of `input` (N, C, ...) or (C, ...) with 1 spatial dimension(s).

    `stride` defaults to `kernel_size`; zeros of `padding` count unless `count_include_pad` is False. RuntimeError
    when no window fits.

    >>> torch.nn.functional.avg_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """

def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: _b.bool = False,
    count_include_pad: _b.bool = True,
    divisor_override: _b.int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The average over windows of `input` (N, C, ...) or (C, ...) with 2 spatial dimension(s).

    `stride` defaults to `kernel_size`; zeros of `padding` count unless `count_include_pad` is False. RuntimeError
    when no window fits.

    >>> torch.nn.functional.avg_pool2d(torch.ones(1, 1, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2])
    """

def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: _b.bool = False,
    count_include_pad: _b.bool = True,
    divisor_override: _b.int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The average over windows of `input` (N, C, ...) or (C, ...) with 3 spatial dimension(s).

    `stride` defaults to `kernel_size`; zeros of `padding` count unless `count_include_pad` is False. RuntimeError
    when no window fits.

    >>> torch.nn.functional.avg_pool3d(torch.ones(1, 1, 4, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2, 2])
    """

@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """The maximum over pseudo-randomly placed windows (Graham, 2014, arXiv:1412.6071) of 2 spatial dimensions, placed
    by `_random_samples` (N, C, 2).
    """

@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    *,
    return_indices: _b.bool,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """`fractional_max_pool2d` with the indices of the maxima. `return_indices` has no effect."""

@overload
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    *,
    return_indices: _b.bool,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """The maximum over pseudo-randomly placed windows (Graham, 2014, arXiv:1412.6071) of 3 spatial dimensions, placed
    by `_random_samples` (N, C, 3).
    """

@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    *,
    return_indices: _b.bool,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """`fractional_max_pool3d` with the indices of the maxima. `return_indices` has no effect."""

@overload
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    *,
    return_indices: _b.bool,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
def lp_pool1d(
    input: Tensor, norm_type: _b.float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: _b.bool = False
) -> Tensor:
    """The power mean (sum of x^p)^(1/p) over windows of 1 spatial dimension(s), p being `norm_type`."""

def lp_pool2d(
    input: Tensor, norm_type: _b.float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: _b.bool = False
) -> Tensor:
    """The power mean (sum of x^p)^(1/p) over windows of 2 spatial dimension(s), p being `norm_type`."""

def lp_pool3d(
    input: Tensor, norm_type: _b.float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: _b.bool = False
) -> Tensor:
    """The power mean (sum of x^p)^(1/p) over windows of 3 spatial dimension(s), p being `norm_type`."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The maximum over windows of `input` (N, C, ...) or (C, ...) with 1 spatial dimension(s).

    `stride` defaults to `kernel_size`; places of `padding` count as minus infinity; `ceil_mode` lets a last window
    reach over the end. With `return_indices` the flat spatial index (int64) of each maximum comes second.
    RuntimeError when no window fits.

    >>> torch.nn.functional.max_pool1d(torch.ones(1, 1, 4), 2).shape
    torch.Size([1, 1, 2])
    """

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> Tensor:
    """`max_pool1d` with the indices of the maxima. `return_indices` has no effect."""

@overload
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
    out: Sequence[Tensor] | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The maximum over windows of `input` (N, C, ...) or (C, ...) with 2 spatial dimension(s).

    `stride` defaults to `kernel_size`; places of `padding` count as minus infinity; `ceil_mode` lets a last window
    reach over the end. With `return_indices` the flat spatial index (int64) of each maximum comes second.
    RuntimeError when no window fits.

    >>> torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2])
    """

@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """`max_pool2d` with the indices of the maxima. `return_indices` has no effect."""

@overload
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The maximum over windows of `input` (N, C, ...) or (C, ...) with 3 spatial dimension(s).

    `stride` defaults to `kernel_size`; places of `padding` count as minus infinity; `ceil_mode` lets a last window
    reach over the end. With `return_indices` the flat spatial index (int64) of each maximum comes second.
    RuntimeError when no window fits.

    >>> torch.nn.functional.max_pool3d(torch.ones(1, 1, 4, 4, 4), 2).shape
    torch.Size([1, 1, 2, 2, 2])
    """

@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """`max_pool3d` with the indices of the maxima. `return_indices` has no effect."""

@overload
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    *,
    return_indices: _b.bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Ints | None = None,
) -> Tensor:
    """The partial inverse of `max_pool1d`: zeros with the elements of `input` at the flat spatial places that `indices`
    (int64) names.
    """

def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Ints | None = None,
) -> Tensor:
    """The partial inverse of `max_pool2d`: zeros with the elements of `input` at the flat spatial places that `indices`
    (int64) names.
    """

def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Ints | None = None,
) -> Tensor:
    """The partial inverse of `max_pool3d`: zeros with the elements of `input` at the flat spatial places that `indices`
    (int64) names.
    """
