"""Comparison of tensors, numbers, and sequences and mappings of them.

Classes of pairs compare one kind of value each. Programs that test against PyTorch define their own.
"""

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
    "quint8": (1.3e-6, 1e-5), "qint8": (1.3e-6, 1e-5), "qint32": (1.3e-6, 1e-5),
}  # fmt: skip
_NUMBER_DTYPES = {int: torch.int64, float: torch.float64, complex: torch.complex128}


class ErrorMeta(Exception):
    """An error that a comparison found: its type and message, and the location of the values in their structures."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple = ()) -> None:
        super().__init__(f"{type.__name__}: {msg}")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """Return the error that the caller gets, with his message if he gave one."""
        if isinstance(msg, str):
            return self.type(msg)
        text = self.msg + _format_location(self.id)
        return self.type(msg(text) if callable(msg) else text)


class UnsupportedInputs(Exception):
    """A kind of pair that does not compare these values."""


def get_tolerances(
    *inputs: torch.Tensor | torch.dtype, rtol: float | None, atol: float | None, id: tuple = ()
) -> tuple[float, float]:
    """Return the given tolerances, or the largest ones of the inputs' dtypes."""
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        text = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        raise ErrorMeta(ValueError, text, id=id)
    if rtol is not None and atol is not None:
        return rtol, atol
    dtypes = [x.dtype if isinstance(x, torch.Tensor) else x for x in inputs]
    pairs = [_TOLERANCES.get(dtype.name, (0.0, 0.0)) for dtype in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _format_location(where: tuple) -> str:
    """Format the location of a mismatch in the compared structures."""
    return "\n\nThe failure occurred for item " + "".join(f"[{part!r}]" for part in where) if where else ""


class Pair:
    """Two values to compare. Classes for a kind of value raise `UnsupportedInputs` if they are made of another one."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: type | tuple[type, ...]) -> None:
        if not all(isinstance(x, cls) for x in inputs):
            raise UnsupportedInputs

    def _fail(self, type: type[Exception], msg: str, *, id: tuple = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or self.id)

    def compare(self) -> None:
        """Raise an `ErrorMeta` if the values differ."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(actual={self.actual!r}, expected={self.expected!r}, id={self.id!r})"


class ObjectPair(Pair):
    """Values of any kind, which must be equal."""

    def compare(self) -> None:
        """Raise an `ErrorMeta` if the values are not equal."""
        try:
            equal = bool(self.actual == self.expected)
        except Exception as error:  # a value's `==` may raise anything
            raise ErrorMeta(
                ValueError, f"{self.actual} == {self.expected} failed with:\n{error}.", id=self.id
            ) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Values one of which is None."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        """Raise an `ErrorMeta` if one value is not None."""
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Two truth values of Python or NumPy."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple = (), **other_parameters: Any) -> None:
        self._check_inputs_isinstance(actual, expected, cls=(bool, np.bool_))
        super().__init__(bool(actual), bool(expected), id=id, **other_parameters)

    def compare(self) -> None:
        """Raise an `ErrorMeta` if the values differ."""
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Two numbers of Python or NumPy."""

    def __init__(
        self, actual: Any, expected: Any, *, id: tuple = (), rtol: float | None = None, atol: float | None = None,
        equal_nan: bool = False, check_dtype: bool = False, **other_parameters: Any,
    ) -> None:  # fmt: skip
        self._check_inputs_isinstance(actual, expected, cls=(numbers.Number, np.number))
        actual, expected = (x.item() if isinstance(x, np.number) else x for x in (actual, expected))
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = [_NUMBER_DTYPES.get(type(x), torch.int64) for x in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    def compare(self) -> None:
        """Raise an `ErrorMeta` if the types differ, where they are checked, or the numbers are not close."""
        a, e = self.actual, self.expected
        if self.check_dtype and type(a) is not type(e):
            self._fail(AssertionError, f"The (d)types do not match: {type(a)} != {type(e)}.")
        if a == e or (self.equal_nan and cmath.isnan(a) and cmath.isnan(e)):
            return
        gap = abs(a - e)
        if not (cmath.isfinite(gap) and gap <= self.atol + self.rtol * abs(e)):
            self._fail(AssertionError, _scalar_message(a, e, self.rtol, self.atol))


class TensorLikePair(Pair):
    """Two tensors, or two values that can be tensors, such as arrays; one type must be a subclass of the other."""

    def __init__(
        self, actual: Any, expected: Any, *, id: tuple = (), allow_subclasses: bool = True, rtol: float | None = None,
        atol: float | None = None, equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True,
        check_layout: bool = True, check_stride: bool = False, **other_parameters: Any,
    ) -> None:  # fmt: skip
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: tuple, allow_subclasses: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the values as tensors."""
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        return self._to_tensor(actual), self._to_tensor(expected)

    def _to_tensor(self, tensor_like: Any) -> torch.Tensor:
        if isinstance(tensor_like, torch.Tensor):
            return tensor_like
        try:
            return torch.as_tensor(tensor_like)
        except Exception:  # conversions of any object raise anything
            self._inputs_not_supported()

    def compare(self) -> None:
        """Raise an `ErrorMeta` if checked attributes differ, or elements are not close."""
        self._compare_attributes(self.actual, self.expected)
        if "meta" not in (self.actual.device.type, self.expected.device.type):
            self._compare_values(self.actual, self.expected)

    def _compare_attributes(self, actual: torch.Tensor, expected: torch.Tensor) -> None:
        a, e = actual, expected
        for name, have, want, on in (
            ("shape", a.shape, e.shape, True),
            ("is_quantized", a.is_quantized, e.is_quantized, True),
            ("qscheme()", *_schemes_of_pair(a, e), True),
            ("layout", a.layout, e.layout, self.check_layout),
            ("stride()", *_strides_of_pair(a, e), self.check_stride),
            ("device", a.device, e.device, self.check_device),
            ("dtype", a.dtype, e.dtype, self.check_dtype),
        ):
            if on and have != want:
                self._fail(AssertionError, f"The values for attribute '{name}' do not match: {have} != {want}.")

    def _compare_values(self, actual: torch.Tensor, expected: torch.Tensor) -> None:
        if actual.is_quantized:
            self._compare_strided(actual.dequantize(), expected.dequantize(), "Quantized tensor-likes")
        elif torch.strided not in (actual.layout, expected.layout) and actual.layout is expected.layout:
            for one, other, what in self._sparse_parts(actual, expected):
                self._compare_strided(one, other, what)
        else:
            self._compare_strided(actual.to_dense(), expected.to_dense())

    def _sparse_parts(self, actual: torch.Tensor, expected: torch.Tensor) -> list[tuple]:
        """Return the component tensors of two sparse tensors, each with its name."""
        kind = actual.layout.name[7:].upper()
        alike = [("specified values", actual._nnz(), expected._nnz())]
        if kind == "COO":
            alike.insert(0, ("sparse dimensions", actual.sparse_dim(), expected.sparse_dim()))
        for name, have, want in alike:
            if have != want:
                text = f"The number of {name} in sparse {kind} tensors does not match: {have} != {want}"
                self._fail(AssertionError, text)
        if kind == "COO":
            names = ["_indices", "_values"]
        else:
            names = ["crow_indices", "col_indices"] if "R" in kind else ["ccol_indices", "row_indices"]
            names.append("values")
        return [
            (getattr(actual, name)(), getattr(expected, name)(), f"Sparse {kind} {name.lstrip('_')}") for name in names
        ]

    def _compare_strided(self, actual: torch.Tensor, expected: torch.Tensor, what: str = "Tensor-likes") -> None:
        if actual.dtype.is_floating_point and actual.dtype.itemsize == 1 and (self.rtol or self.atol):
            raise ErrorMeta(
                AssertionError,
                f"Rtol={self.rtol} and atol={self.atol} are not supported for bitwise comparison of low dimensional "
                "floats. Please use rtol=0.0 and atol=0.0.",
            )
        a, e = (_to_comparable(x.detach().cpu()) for x in (actual, expected))
        if a.dtype is not e.dtype:
            common = torch.promote_types(a.dtype, e.dtype)
            a, e = a.to(common), e.to(common)
        matches = torch.isclose(a, e, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan)
        if bool(matches.all()):
            return
        words = (
            _scalar_message(a.item(), e.item(), self.rtol, self.atol)
            if not a.ndim
            else _tensor_message(a, e, matches, self.rtol, self.atol, what)
        )
        self._fail(AssertionError, words)


_PAIR_TYPES = (NonePair, BooleanPair, NumberPair, TensorLikePair)  # of `assert_close`


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: tuple[type[Pair], ...],
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    id: tuple = (),
    **options: Any,
) -> list[Pair]:
    """Return the pairs to compare, each of the first type that takes its values. The structures must match.

    Raises:
        ErrorMeta: The structures differ, or no type takes two values.
    """
    both = (actual, expected)
    if all(isinstance(x, sequence_types) and not isinstance(x, str) for x in both):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, text, id=id)
        keys: Any = range(len(actual))
    elif all(isinstance(x, mapping_types) for x in both):
        missing, more = set(expected) - set(actual), set(actual) - set(expected)
        if missing or more:
            text = (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(more)}"
            )
            raise ErrorMeta(AssertionError, text, id=id)
        keys = list(expected)
        with contextlib.suppress(TypeError):  # keys of mixed types stay in insertion order
            keys = sorted(keys)
    else:
        return [_make_pair(actual, expected, pair_types, id, options)]
    kinds: Any = {"pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types}
    found: list[Pair] = []
    for key in keys:
        found += originate_pairs(actual[key], expected[key], id=(*id, key), **kinds, **options)
    return found


def _make_pair(actual: Any, expected: Any, pair_types: tuple[type[Pair], ...], id: tuple, options: dict) -> Pair:
    for pair_type in pair_types:
        try:
            return pair_type(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:  # a class of pairs may be the user's
            raise RuntimeError(
                f"Originating a {pair_type.__name__}() of {type(actual).__name__} and {type(expected).__name__} "
                "resulted in the unexpected exception above."
            ) from error
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise ErrorMeta(TypeError, text, id=id)


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: tuple[type[Pair], ...] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,),
    **options: Any,
) -> list[ErrorMeta]:
    """Compare values and structures of them; return what differs, in the order of the structures."""
    kinds: Any = {"pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types}
    try:
        pairs = originate_pairs(actual, expected, **kinds, **options)
    except ErrorMeta as error:
        raise error.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as error:
            found.append(error)
        except Exception as error:  # a class of pairs may be the user's
            raise RuntimeError(f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above.") from error
    return found


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


def _schemes_of_pair(a: torch.Tensor, e: torch.Tensor) -> tuple:
    """Of quantized tensors."""
    return (a.qscheme(), e.qscheme()) if a.is_quantized and e.is_quantized else (None, None)


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
    errors = not_close_error_metas(
        actual,
        expected,
        pair_types=_PAIR_TYPES,
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    if errors:
        raise errors[0].to_error(msg)


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
