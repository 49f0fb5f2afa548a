"""Build and launch kernels for matrices: one work-group per matrix, or one work-item per element."""

from __future__ import annotations

import functools
import math

from torchlite._types.dtypes import from_np
from torchlite_backends.kernel_sources.dtype_kinds import REAL_KIND

from ..core.array import numpy_dtype_of_kind
from ..core.device import Device, Function, round_up_to_groups

_FACTORED = ("f32", "f64", "c64", "c128")


def choose_group_size(device: Device) -> int:
    """Return the work-items per matrix: a power of 2."""
    return device.matrix_group


def real_kind_of(kind: str) -> str:
    """Return the kind of a complex kind's parts, or the real kind."""
    return REAL_KIND.get(kind, kind)


@functools.cache
def _matrix_macros_source(kind: str, group: int) -> dict[str, str]:
    """Return a program's definitions."""
    real = real_kind_of(kind)
    wide, scalar = (8, "double") if real == "f64" else (16, "float")
    return {
        "T": kind,
        "R": real,
        "COMPLEX": str(int(kind in REAL_KIND)),
        "GROUP": str(group),
        "V": f"{scalar}{wide}",
        "HALF_V": f"{scalar}{wide // 2}",
        "VECTOR": str(wide),
        "VLOAD": f"vload{wide}",
        "VSTORE": f"vstore{wide}",
        "EPSILON": "DBL_EPSILON" if real == "f64" else "FLT_EPSILON",
        "TINY": "DBL_MIN" if real == "f64" else "FLT_MIN",
    }


def build_matrix_kernel(device: Device, kind: str, source: str, name: str, signature: str) -> Function:
    """Return a kernel of a matrix source for a kind."""
    return device.function(source, name, signature, **_matrix_macros_source(kind, choose_group_size(device)))


def launch_per_matrix(
    device: Device, kind: str, source: str, name: str, signature: str, count: int, *arguments
) -> None:
    """Launch a kernel with one work-group for each of `count` matrices."""
    if kind not in _FACTORED:
        raise NotImplementedError(
            f"\"{name}_cpu\" not implemented for '{from_np(numpy_dtype_of_kind(kind)).scalar_name}'"
        )
    if count:
        group = choose_group_size(device)
        build_matrix_kernel(device, kind, source, name, signature)((count * group,), (group,), *arguments)


def launch_per_element(
    device: Device, kind: str, source: str, name: str, signature: str, count: int, *arguments
) -> None:
    """Launch a kernel with one work-item for each of `count` elements; `count` is its last argument."""
    if count:
        build_matrix_kernel(device, kind, source, name, signature)(
            round_up_to_groups(count, 64), (64,), *arguments, count
        )


def count_elements(shape) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)
