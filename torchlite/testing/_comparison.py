"""Comparison of tensors, numbers, and sequences and mappings of them."""

from __future__ import annotations

import cmath
import contextlib
import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

import torchlite as torch

# PyTorch's documented defaults: dtype name -> (rtol, atol); integers and bools are compared exactly.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBER_DTYPES = {int: "int64", float: "float64", complex: "complex128"}


def _choose_default_tolerances(names: tuple[str, ...], rtol: float | None, atol: float | None) -> tuple[float, float]:
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    if rtol is not None and atol is not None:
        return rtol, atol
    pairs = [_TOLERANCES.get(name, (0.0, 0.0)) for name in names]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _format_location(where: tuple) -> str:
    """Format the location of a mismatch in the compared structures."""
    return "\n\nThe failure occurred for item " + "".join(f"[{part!r}]" for part in where) if where else ""


class _Comparison:
    """The options of one call of `assert_close`."""

    def __init__(self, msg: str | Callable[[str], str] | None, **options: Any):
        self.msg = msg
        self.options = options

    def fail(self, message: str, where: tuple = ()) -> NoReturn:
        text = message + _format_location(where)
        raise AssertionError(self.msg(text) if callable(self.msg) else self.msg if self.msg is not None else text)

    def pairs(self, actual: Any, expected: Any, where: tuple = ()) -> list[tuple]:
        """Return the pairs to compare, each with its location; the structures must match."""
        both = (actual, expected)
        if all(isinstance(x, Sequence) and not isinstance(x, str) for x in both):
            if len(actual) != len(expected):
                self.fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", where)
            found = []
            for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
                found += self.pairs(a, e, (*where, i))
            return found
        if all(isinstance(x, Mapping) for x in both):
            missing, more = set(expected) - set(actual), set(actual) - set(expected)
            if missing or more:
                self.fail(
                    "The keys of the mappings do not match:\n"
                    f"Missing keys in the actual mapping: {sorted(missing)}\n"
                    f"Additional keys in the actual mapping: {sorted(more)}",
                    where,
                )
            keys: Any = list(expected)
            with contextlib.suppress(TypeError):  # keys of mixed types stay in insertion order
                keys = sorted(keys)
            return [pair for key in keys for pair in self.pairs(actual[key], expected[key], (*where, key))]
        return [(self.kind(actual, expected, where), actual, expected, where)]

    def kind(self, actual: Any, expected: Any, where: tuple) -> Callable:
        """Return the method that compares two values. TypeError if there is none."""
        both = (actual, expected)
        if any(x is None for x in both):
            return self.compare_none
        if all(isinstance(x, (bool, np.bool_)) for x in both):
            return self.compare_bools
        if all(isinstance(x, (numbers.Number, np.number)) for x in both):
            return self.compare_numbers
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not self.options["allow_subclasses"]:
            related = type(actual) is type(expected)
        if related and all(isinstance(x, (torch.Tensor, np.ndarray)) for x in both):
            return self.compare_tensors
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
            + _format_location(where)
        )

    def compare_none(self, actual: Any, expected: Any, where: tuple) -> None:
        if actual is not expected:
            self.fail(f"None mismatch: {actual} is not {expected}", where)

    def compare_bools(self, actual: Any, expected: Any, where: tuple) -> None:
        if bool(actual) is not bool(expected):
            self.fail(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}", where)

    def compare_numbers(self, actual: Any, expected: Any, where: tuple) -> None:
        a, e = (x.item() if isinstance(x, np.number) else x for x in (actual, expected))
        if self.options["check_dtype"] and type(a) is not type(e):
            self.fail(f"The (d)types do not match: {type(a)} != {type(e)}.", where)
        names = tuple(_NUMBER_DTYPES.get(type(x), "int64") for x in (a, e))
        rtol, atol = _choose_default_tolerances(names, self.options["rtol"], self.options["atol"])
        if not self.close(a, e, rtol, atol):
            self.fail(_scalar_message(a, e, rtol, atol), where)

    def close(self, actual: Any, expected: Any, rtol: float, atol: float) -> bool:
        """True if two numbers are close."""
        if actual == expected:
            return True
        if self.options["equal_nan"] and cmath.isnan(actual) and cmath.isnan(expected):
            return True
        gap = abs(actual - expected)
        return cmath.isfinite(gap) and gap <= atol + rtol * abs(expected)

    def compare_tensors(self, actual: Any, expected: Any, where: tuple) -> None:
        a, e = (torch.as_tensor(x) for x in (actual, expected))
        options = self.options
        for name, have, want, on in (
            ("shape", a.shape, e.shape, True),
            ("layout", a.layout, e.layout, options["check_layout"]),
            ("stride()", *_strides_of_pair(a, e), options["check_stride"]),
            ("device", a.device, e.device, options["check_device"]),
            ("dtype", a.dtype, e.dtype, options["check_dtype"]),
        ):
            if on and have != want:
                self.fail(f"The values for attribute '{name}' do not match: {have} != {want}.", where)
        rtol, atol = _choose_default_tolerances((a.dtype.name, e.dtype.name), options["rtol"], options["atol"])
        if a.device.type == "meta" or e.device.type == "meta":
            return
        if torch.strided not in (a.layout, e.layout) and a.layout is e.layout:
            for one, other, what in self.parts(a, e, where):
                self.compare_values(one, other, rtol, atol, where, what)
            return
        a, e = (x.to_dense() for x in (a, e))
        self.compare_values(a, e, rtol, atol, where)

    def parts(self, actual: torch.Tensor, expected: torch.Tensor, where: tuple) -> list[tuple]:
        """Return the component tensors of two sparse tensors, each with its name."""
        kind = actual.layout.name[7:].upper()
        alike = [("specified values", actual._nnz(), expected._nnz())]
        if kind == "COO":
            alike.insert(0, ("sparse dimensions", actual.sparse_dim(), expected.sparse_dim()))
        for name, have, want in alike:
            if have != want:
                self.fail(f"The number of {name} in sparse {kind} tensors does not match: {have} != {want}", where)
        if kind == "COO":
            names = ["_indices", "_values"]
        else:
            names = ["crow_indices", "col_indices"] if "R" in kind else ["ccol_indices", "row_indices"]
            names.append("values")
        return [
            (getattr(actual, name)(), getattr(expected, name)(), f"Sparse {kind} {name.lstrip('_')}") for name in names
        ]

    def compare_values(
        self, a: torch.Tensor, e: torch.Tensor, rtol: float, atol: float, where: tuple, what: str = "Tensor-likes"
    ) -> None:
        options = self.options
        a, e = (_to_comparable(x.detach().cpu()) for x in (a, e))
        if a.dtype is not e.dtype:
            common = torch.promote_types(a.dtype, e.dtype)
            a, e = a.to(common), e.to(common)
        matches = torch.isclose(a, e, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
        if bool(matches.all()):
            return
        words = (
            _scalar_message(a.item(), e.item(), rtol, atol)
            if not a.ndim
            else _tensor_message(a, e, matches, rtol, atol, what)
        )
        self.fail(words, where)


def _to_comparable(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor in a dtype that can be subtracted: integers in the widest type, small floating-point types
    widened.
    """
    if x.dtype.category < 2:
        return x.to(torch.int64)
    if x.dtype.category == 2 and x.dtype.itemsize == 1:
        return x.to(torch.float32)
    return x.to(torch.complex64) if x.dtype.name == "complex32" else x


def _format_tolerance(tolerance: float, equal: bool) -> str:
    return "" if equal else f" (up to {tolerance} allowed)"


def _scalar_message(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    equal = rtol == 0 and atol == 0
    gap = abs(actual - expected)
    share = float("inf") if expected == 0 else gap / abs(expected)
    return (
        f"Scalars are not {'equal' if equal else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {gap}{_format_tolerance(atol, equal)}\n"
        f"Relative difference: {share}{_format_tolerance(rtol, equal)}"
    )


def _strides_of_pair(a: torch.Tensor, e: torch.Tensor) -> tuple:
    """Of dense tensors."""
    return (a.stride(), e.stride()) if a.layout is e.layout is torch.strided else ((), ())


def _tensor_message(
    actual: torch.Tensor, expected: torch.Tensor, matches: torch.Tensor, rtol: float, atol: float, what: str
) -> str:
    equal = rtol == 0 and atol == 0
    wrong = int((~matches).sum())
    lines = [
        f"{what} are not {'equal' if equal else 'close'}!\n",
        f"Mismatched elements: {wrong} / {matches.numel()} ({wrong / matches.numel():.1%})",
    ]
    gap = torch.abs(actual - expected)
    share = gap / torch.abs(expected)
    for name, values, tolerance in (("absolute", gap, atol), ("relative", share, rtol)):
        values = torch.where(matches, torch.zeros_like(values), values).reshape(-1)
        place = int(torch.argmax(values))
        index = tuple(int(i) for i in np.unravel_index(place, tuple(matches.shape)))
        lines.append(
            f"Greatest {name} difference: {values[place].item()} at index {index}{_format_tolerance(tolerance, equal)}"
        )
    return "\n".join(lines)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    r"""Asserts that values are close.

    .. math::

        |\text{actual} - \text{expected}| \le \text{atol} + \text{rtol} \cdot |\text{expected}|

    The values are tensors, numbers, arrays, and sequences or mappings of these. Shapes are compared too.

    Args:
        actual: The value that is tested.
        expected: The value that it should have.
        allow_subclasses: Whether the types may differ where one is a subclass of the other. Default: ``True``.
        rtol: Relative tolerance. Default by the dtype: 1e-3 for float16, 1.6e-2 for bfloat16, 1.3e-6 for float32, 1e-7
            for float64, 0 for integers. Give both tolerances or none.
        atol: Absolute tolerance. Default by the dtype: 1e-5, 1e-7 for float64, 0 for integers.
        equal_nan: Whether NaN equals NaN. Default: ``False``.
        check_device: Whether devices must be equal. Default: ``True``.
        check_dtype: Whether dtypes must be equal. Default: ``True``.
        check_layout: Whether layouts must be equal. Default: ``True``.
        check_stride: Whether strides must be equal. Default: ``False``.
        msg: Message of the error, or a function of the generated message that returns it. Default: ``None``.

    Raises:
        AssertionError: The values are not close.
        TypeError: Values cannot be compared.
        ValueError: One tolerance is given and the other is not.

    Example:
        >>> import torchlite as torch
        >>> torch.testing.assert_close(torch.tensor(1.0), torch.tensor(1.0 + 1e-7))
    """
    comparison = _Comparison(
        msg,
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    for compare, a, e, where in comparison.pairs(actual, expected):
        compare(a, e, where)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Asserts that tensors are close, whatever their dtypes; deprecated in favour of `assert_close`.

    Args:
        actual: The value that is tested.
        expected: The value that it should have.
        rtol: Relative tolerance. Default: by the dtype, as in `assert_close`.
        atol: Absolute tolerance. Default: by the dtype.
        equal_nan: Whether NaN equals NaN. Default: ``True``.
        msg: Message of the error. Default: made from the values.

    Raises:
        AssertionError: The values are not close.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     torch.testing.assert_allclose(torch.ones(2), [1, 1])
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    a, e = (x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in (actual, expected))
    e = e.to(a.dtype)
    assert_close(
        a, e, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False,
        msg=msg or None,
    )  # fmt: skip
