"""ONNX random ops; a seed attribute makes them deterministic."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch
from torchlite import Tensor

from .._element_types import dtype_of
from .op_registry import Ints, op
from .resource_limits import check_elements, check_work

_CALL = 1 << 16  # cost of creating a generator, in elements


def _make_generator(seed: float | None) -> Any:
    return None if seed is None else torch.Generator().manual_seed(int(seed))


def _draw(function: Any, sizes: Any, seed: float | None, device: Any) -> Tensor:
    """Draw on a device. With a seed the numbers are those of the processor, on each device."""
    if seed is None:
        return function(list(sizes), device=device)
    return function(list(sizes), generator=torch.Generator().manual_seed(int(seed))).to(device)


def _draw_normal(sizes: Any, mean: float, scale: float, seed: float | None, dtype: Any, device: Any = "cpu") -> Tensor:
    check_work("RandomNormal", 8 * check_elements("RandomNormal", *sizes, each=2) + _CALL)
    return (_draw(torch.randn, sizes, seed, device) * scale + mean).to(dtype)


def _draw_uniform(sizes: Any, low: float, high: float, seed: float | None, dtype: Any, device: Any = "cpu") -> Tensor:
    check_work("RandomUniform", 8 * check_elements("RandomUniform", *sizes, each=2) + _CALL)
    return (_draw(torch.rand, sizes, seed, device) * (high - low) + low).to(dtype)


@op("RandomNormal")
def _random_normal(
    *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, shape: Ints
) -> Tensor:
    return _draw_normal(shape, mean, scale, seed, dtype_of(dtype))


@op("RandomUniform")
def _random_uniform(
    *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None, shape: Ints
) -> Tensor:
    return _draw_uniform(shape, low, high, seed, dtype_of(dtype))


@op("RandomNormalLike")
def random_normal_like(
    x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    return _draw_normal(x.shape, mean, scale, seed, x.dtype if dtype is None else dtype_of(dtype), x.device)


@op("RandomUniformLike")
def random_uniform_like(
    x: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    return _draw_uniform(x.shape, low, high, seed, x.dtype if dtype is None else dtype_of(dtype), x.device)


@op("Bernoulli")
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    noise = _draw(torch.rand, x.shape, seed, x.device)
    return (noise < x).to(x.dtype if dtype is None else dtype_of(dtype))


@op("Multinomial")
def multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    check_work("Multinomial", 64 * check_elements("Multinomial", math.prod(x.shape[:-1]), sample_size, each=8))
    found = torch.multinomial(torch.softmax(x, -1).cpu(), sample_size, True, generator=_make_generator(seed))
    return found.to(dtype_of(dtype)).to(x.device)
