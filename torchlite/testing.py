"""Comparing tensors in tests."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from . import Tensor

if TYPE_CHECKING:
    from torchlite._stubs.aliases import DeviceLike, DType


# PyTorch's documented defaults: dtype name -> (rtol, atol); integers and bools are compared exactly.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def _tolerance(actual, expected, rtol, atol):
    if (rtol is None) != (atol is None):
        raise ValueError(
            "rtol and atol must both be either specified or unspecified, but got no "
            f"{'rtol' if rtol is None else 'atol'} only"
        )
    if rtol is not None:
        return rtol, atol
    pairs = [_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (actual, expected)]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: DeviceLike,
    low: Any = None,
    high: Any = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random values in [low, high) (default: -9 to 9; bools 0 to 2)."""
    from . import rand, randint

    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if noncontiguous and size:
        size = (*size[:-1], size[-1] * 2)
    low = (0 if dtype.category == 0 or not dtype.is_signed else -9) if low is None else low
    high = (2 if dtype.category == 0 else 10 if dtype.category == 1 else 9) if high is None else high
    if dtype.category < 2:
        out = randint(int(low), int(high), size, device=device).to(dtype)
    elif dtype.is_complex:
        from . import complex

        parts = [rand(size, dtype=dtype.to_real(), device=device) * (high - low) + low for _ in range(2)]
        out = complex(*parts)
    else:
        out = (rand(size, device=device) * (high - low) + low).to(dtype)
    if noncontiguous and size:
        out = out[..., ::2]
    if exclude_zero:
        out = out.masked_fill(out == 0, 1)
    return out.requires_grad_() if requires_grad else out


def _fail(message: str, msg, where: str):
    text = message + (f"\n\nThe failure occurred for item {where}" if where else "")
    raise AssertionError(msg(text) if callable(msg) else msg or text)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: Any = None,
    atol: Any = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
    _where: str = "",
) -> None:
    """AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, for tensors, numbers, arrays,
    and sequences or mappings of them.

    Tolerances default by dtype (float32: rtol 1.3e-6, atol 1e-5; float64: 1e-7 both; integers exact). Also compared:
    shape, dtype, device (switch off with check_*).

    >>> import torchlite as torch
    >>> torch.testing.assert_close(torch.tensor(1.0), torch.tensor(1.0 + 1e-7))
    """
    options = {
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_device": check_device,
        "check_dtype": check_dtype,
        "check_layout": check_layout,
        "check_stride": check_stride,
        "msg": msg,
    }
    if isinstance(actual, dict) and isinstance(expected, dict):
        if actual.keys() != expected.keys():
            _fail(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(set(expected) - set(actual))}\n"
                f"Additional keys in the actual mapping: {sorted(set(actual) - set(expected))}",
                msg,
                _where,
            )
        for key in expected:
            assert_close(actual[key], expected[key], **options, _where=f"{_where}[{key!r}]")
        return
    if isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        if len(actual) != len(expected):
            _fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", msg, _where)
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            assert_close(a, e, **options, _where=f"{_where}[{i}]")
        return
    _compare(actual, expected, options, _where)


def _compare(actual, expected, options, where) -> None:
    from ._tensor.creation import as_tensor

    numeric = isinstance(actual, numbers.Number) and isinstance(expected, numbers.Number)
    if (
        not numeric
        and type(actual) is not type(expected)
        and not (isinstance(actual, Tensor) and isinstance(expected, Tensor))
    ):
        _fail(f"None of the pair types was able to compare {type(actual)} with {type(expected)}", options["msg"], where)
    if actual is None:
        return
    if numeric:
        from ._types.dtypes import float64

        a, e = (
            as_tensor(np.asarray(v))
            if isinstance(v, complex)
            else as_tensor(v, dtype=float64)
            if isinstance(v, float)
            else as_tensor(v)
            for v in (actual, expected)
        )
        options = {**options, "check_dtype": False}
    else:
        a, e = as_tensor(actual), as_tensor(expected)
    for name, have, want, on in (
        ("shape", a.shape, e.shape, True),
        ("'device'", a.device, e.device, options["check_device"]),
        ("'dtype'", a.dtype, e.dtype, options["check_dtype"]),
        ("'stride()'", a.stride(), e.stride(), options["check_stride"]),
    ):
        if on and have != want:
            _fail(
                f"The values for attribute {name if name != 'shape' else chr(39) + 'shape' + chr(39)} do not match: "
                f"{have} != {want}.",
                options["msg"],
                where,
            )
    rtol, atol = _tolerance(a, e, options["rtol"], options["atol"])
    x, y = (t.detach().cpu().numpy() for t in (a, e))
    kind = (
        np.complex128
        if x.dtype.kind == "c" or y.dtype.kind == "c"
        else np.float64
        if a.dtype.category == 2 or e.dtype.category == 2
        else None
    )
    if kind is not None:
        x, y = x.astype(kind), y.astype(kind)
    close = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=options["equal_nan"]) if kind is not None else x == y
    if np.all(close):
        return
    wrong = np.argwhere(~np.atleast_1d(close))
    with np.errstate(all="ignore"):
        gap = np.atleast_1d(np.abs(x.astype(np.complex128 if kind is np.complex128 else np.float64) - y))
        share = gap / np.atleast_1d(np.abs(y.astype(gap.dtype if kind is not np.complex128 else y.dtype)))
    if x.ndim == 0:
        _fail(
            f"{'Scalars' if numeric or x.ndim == 0 else 'Tensor-likes'} are not close!\n"
            "\n"
            f"Expected {expected if numeric else y} but got {actual if numeric else x}.\n"
            f"Absolute difference: {gap[0]} (up to {atol} allowed)\n"
            f"Relative difference: {share[0]} (up to {rtol} allowed)",
            options["msg"],
            where,
        )
    at, rel = (
        np.unravel_index(np.nanargmax(gap) if not np.isnan(gap).all() else 0, gap.shape),
        np.unravel_index(np.nanargmax(share) if not np.isnan(share).all() else 0, gap.shape),
    )
    _fail(
        f"Tensor-likes are not {'close' if rtol or atol else 'equal'}!\n\nMismatched elements: {len(wrong)} / {x.size} "
        f"({100 * len(wrong) / x.size:.1f}%)\n"
        f"Greatest absolute difference: {gap[at]} at index {tuple(int(i) for i in at)} (up to {atol} allowed)\n"
        f"Greatest relative difference: {share[rel]} at index {tuple(int(i) for i in rel)} (up to {rtol} allowed)",
        options["msg"],
        where,
    )
