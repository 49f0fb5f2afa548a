# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.nn.functional that come from op records."""

import builtins as _b
from collections.abc import Sequence
from typing import Literal, overload

from .aliases import Ints, OutputSize
from .tensor import Tensor

def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Computes the average of windows that divide 1 spatial dimension(s) into a given number."""

def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Computes the average of windows that divide 2 spatial dimension(s) into a given number."""

def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Computes the average of windows that divide 3 spatial dimension(s) into a given number."""

@overload
def adaptive_max_pool1d(input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False) -> Tensor:
    """Computes the maximum of windows that divide 1 spatial dimension(s) into a given number."""

@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: OutputSize, return_indices: _b.bool
) -> Tensor | tuple[Tensor, Tensor]: ...
@overload
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: Literal[False] = False
) -> Tensor:
    """Computes the maximum and its index of windows that divide 1 spatial dimension(s) into a given number."""

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
    """Computes the maximum of windows that divide 2 spatial dimension(s) into a given number."""

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
    """Computes the maximum and its index of windows that divide 2 spatial dimension(s) into a given number."""

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
    """Computes the maximum of windows that divide 3 spatial dimension(s) into a given number."""

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
    """Computes the maximum and its index of windows that divide 3 spatial dimension(s) into a given number."""

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
) -> Tensor:
    """Computes the average of each window of 1 spatial dimension(s)."""

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
    """Computes the average of each window of 2 spatial dimension(s)."""

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
    """Computes the average of each window of 3 spatial dimension(s)."""

@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: _b.float | Sequence[_b.float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """Computes the maximum of windows that divide 2 spatial dimensions pseudorandomly."""

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
    """Computes the maximum and its index of windows that divide 2 spatial dimensions pseudorandomly."""

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
    """Computes the maximum of windows that divide 3 spatial dimensions pseudorandomly."""

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
    """Computes the maximum and its index of windows that divide 3 spatial dimensions pseudorandomly."""

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
    r"""Computes the power average of each window of 1 spatial dimension(s)."""

def lp_pool2d(
    input: Tensor, norm_type: _b.float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: _b.bool = False
) -> Tensor:
    r"""Computes the power average of each window of 2 spatial dimension(s)."""

def lp_pool3d(
    input: Tensor, norm_type: _b.float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: _b.bool = False
) -> Tensor:
    r"""Computes the power average of each window of 3 spatial dimension(s)."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: _b.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """Computes the maximum of each window of 1 spatial dimension(s)."""

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
) -> Tensor:
    """Computes the maximum of each window of 1 spatial dimension(s) and its index."""

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
) -> Tensor:
    """Computes the maximum of each window of 2 spatial dimension(s)."""

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
    """Computes the maximum of each window of 2 spatial dimension(s) and its index."""

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
) -> Tensor:
    """Computes the maximum of each window of 3 spatial dimension(s)."""

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
    """Computes the maximum of each window of 3 spatial dimension(s) and its index."""

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
    """Computes a partial inverse of `max_pool1d`: the maxima at their positions, and zeros elsewhere."""

def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Ints | None = None,
) -> Tensor:
    """Computes a partial inverse of `max_pool2d`: the maxima at their positions, and zeros elsewhere."""

def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Ints | None = None,
) -> Tensor:
    """Computes a partial inverse of `max_pool3d`: the maxima at their positions, and zeros elsewhere."""
