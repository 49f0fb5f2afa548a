"""Data types under PyTorch's names, and PyTorch's promotion lattice."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .package_name import is_torchlite_object

BOOL, INT, FLOAT, COMPLEX = range(4)
_EXTRA = {"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "complex32"}


def _load_ml_dtypes(name: str) -> np.dtype:
    import ml_dtypes  # here: `import torchlite` does not need it

    return np.dtype(getattr(ml_dtypes, name))


_C_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
    "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>", "complex32": "c10::complex<c10::Half>",
    "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
}  # fmt: skip


class dtype:
    """A data type of tensors, such as `torch.float32`.

    Programs use the constants. There is one object for each data type, so dtypes compare by identity.

    Args:
        name: Name of the constant in `torch`.
        category: 0 for bool, 1 for integers, 2 for floating-point numbers, 3 for complex numbers.
        itemsize: Bytes of an element.
        is_signed: Whether the type has negative values.
        scalar_name: PyTorch's C++ name of the type, such as ``"Float"``.

    Example:
        >>> torch.float16.itemsize, torch.float16.is_floating_point, torch.int8.is_signed
        (2, True, True)
        >>> torch.complex64.to_real()
        torch.float32
    """

    __slots__ = ("name", "category", "itemsize", "is_signed", "scalar_name", "_np", "_table_row")

    def __init__(self, name: str, category: int, itemsize: int, is_signed: bool, scalar_name: str):
        self.name, self.category, self.itemsize, self.is_signed, self.scalar_name = (
            name,
            category,
            itemsize,
            is_signed,
            scalar_name,
        )
        self._np: np.dtype | None = None

    def __eq__(self, other: object) -> bool:
        # False, and not NotImplemented: NumPy's dtypes would compare the values that both describe.
        return self is other

    __hash__ = object.__hash__

    @property
    def np(self) -> np.dtype:
        """The NumPy dtype of the same values.

        The NumPy dtypes of bfloat16, float8 and complex32 come from ml_dtypes. Those of `torch.float8_e8m0fnu`,
        `torch.float4_e2m1fn_x2`, integers of fewer than eight bits and bits are structures of bytes, with which NumPy
        does not compute.

        Raises:
            TypeError: The dtype is quantized, such as `torch.qint8`.
        """
        if self._np is None:
            if self.name in NAME_ONLY:
                raise TypeError(f"{self!r}: torch.quantize_per_tensor makes tensors of this dtype from float32")
            if self.name in OPAQUE:
                return OPAQUE[self.name]
            self._np = _load_ml_dtypes(self.name) if self.name in _EXTRA else np.dtype(self.name)
            FROM_NUMPY[self._np] = self
        return self._np

    @property
    def __numpy_dtype__(self) -> Any:
        """The NumPy dtype, which `np.dtype(torch.float32)` reads (NumPy 2.4 and later)."""
        return self.np

    @property
    def c_name(self) -> str:
        """C++'s name of the type, which some of PyTorch's messages have."""
        return _C_NAMES.get(self.name) or (f"c10::{self.scalar_name}" if "float8" in self.name else self.name)

    @property
    def is_floating_point(self) -> bool:
        """True for floating-point dtypes, False for complex ones."""
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        """True for complex dtypes."""
        return self.category == COMPLEX

    def to_complex(self) -> dtype:
        """The complex dtype whose parts have this precision. RuntimeError for a dtype that has none."""
        found = self if self.category == COMPLEX else _COMPLEX_OF.get(self)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return found

    def to_real(self) -> dtype:
        """The real dtype of a complex dtype's parts; a real dtype itself."""
        return _REAL_OF.get(self, self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name  # the module's, where PyTorch's pickles find it too

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def _by_name(name: str) -> dtype:
    """Constructor that older pickles call."""
    return BY_NAME[name]


FROM_NUMPY: dict[np.dtype, dtype] = {}
bool_ = dtype("bool", BOOL, 1, False, "Bool")
uint8 = dtype("uint8", INT, 1, False, "Byte")
int8 = dtype("int8", INT, 1, True, "Char")
int16 = dtype("int16", INT, 2, True, "Short")
int32 = dtype("int32", INT, 4, True, "Int")
int64 = dtype("int64", INT, 8, True, "Long")
uint16 = dtype("uint16", INT, 2, False, "UInt16")
uint32 = dtype("uint32", INT, 4, False, "UInt32")
uint64 = dtype("uint64", INT, 8, False, "UInt64")
float16 = dtype("float16", FLOAT, 2, True, "Half")
bfloat16 = dtype("bfloat16", FLOAT, 2, True, "BFloat16")
float32 = dtype("float32", FLOAT, 4, True, "Float")
float64 = dtype("float64", FLOAT, 8, True, "Double")
float8_e4m3fn = dtype("float8_e4m3fn", FLOAT, 1, True, "Float8_e4m3fn")
float8_e5m2 = dtype("float8_e5m2", FLOAT, 1, True, "Float8_e5m2")
float8_e4m3fnuz = dtype("float8_e4m3fnuz", FLOAT, 1, True, "Float8_e4m3fnuz")
float8_e5m2fnuz = dtype("float8_e5m2fnuz", FLOAT, 1, True, "Float8_e5m2fnuz")
complex32 = dtype("complex32", COMPLEX, 4, True, "ComplexHalf")
complex64 = dtype("complex64", COMPLEX, 8, True, "ComplexFloat")
complex128 = dtype("complex128", COMPLEX, 16, True, "ComplexDouble")

float8_e8m0fnu = dtype("float8_e8m0fnu", FLOAT, 1, False, "Float8_e8m0fnu")
float4_e2m1fn_x2 = dtype("float4_e2m1fn_x2", FLOAT, 1, True, "Float4_e2m1fn_x2")
_NARROW = tuple(
    dtype(f"{prefix}int{bits}", INT, 1, not prefix, f"{prefix.upper()}Int{bits}")
    for prefix in ("u", "")
    for bits in range(1, 8)
)
_BITS = (
    *(dtype(f"bits{form}", INT, 1, False, f"Bits{form}") for form in ("8", "1x8", "2x4", "4x2")),
    dtype("bits16", INT, 2, False, "Bits16"),
)

BY_NAME = {d.name: d for d in (*globals().values(), *_NARROW, *_BITS) if isinstance(d, dtype)}
# NumPy's dtypes of numbers without arithmetic, see `opaque_dtypes.py`. Their `_np` stays None: fast paths that read it
# take general ones.
OPAQUE = {d.name: np.dtype([(d.name, f"V{d.itemsize}")]) for d in (float8_e8m0fnu, float4_e2m1fn_x2, *_NARROW, *_BITS)}
# Dtypes that programs ask about, and of which there are no tensors.
NAME_ONLY = {
    d.name: d
    for d in (
        dtype("qint8", INT, 1, True, "QInt8"),
        dtype("quint8", INT, 1, False, "QUInt8"),
        dtype("qint32", INT, 4, True, "QInt32"),
        dtype("quint4x2", INT, 1, False, "QUInt4x2"),
        dtype("quint2x4", INT, 1, False, "QUInt2x4"),
    )
}
# Those whose levels are packed: a byte has several.
PACKED_LEVELS = (NAME_ONLY["quint4x2"], NAME_ONLY["quint2x4"])
ALIASES = {
    "uint8": ("byte",), "int8": ("char",), "int16": ("short",), "int32": ("int",), "int64": ("long",),
    "float16": ("half",), "float32": ("float",), "float64": ("double",), "complex64": ("cfloat",),
    "complex128": ("cdouble",), "complex32": ("chalf",),
}  # fmt: skip
FROM_NUMPY.update({np_dtype: BY_NAME[name] for name, np_dtype in OPAQUE.items()})
for _d in BY_NAME.values():
    if _d.name not in _EXTRA and _d.name not in OPAQUE:
        _d.np  # noqa: B018  fills FROM_NUMPY
_COMPLEX_OF = {float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128}
_REAL_OF = {complex32: float16, complex64: float32, complex128: float64}
_FLOAT_LADDER = (float16, bfloat16, float32, float64)


dtype.__module__ = "torchlite"  # where programs find it


def is_complex32(dtype: np.dtype) -> bool:
    """True for the complex32 of ml_dtypes, which has no `.real`. Its kind is "W", and "c" from version 0.7 on."""
    return dtype.itemsize == 4 and dtype.kind in "cW"


def from_np(np_dtype: np.dtype) -> dtype:
    """The torchlite dtype of a NumPy dtype. TypeError for one that PyTorch does not have."""
    found = FROM_NUMPY.get(np_dtype)
    if found is None:
        found = BY_NAME.get(np_dtype.name)
        if found is None:
            raise TypeError(
                f"can't convert np.ndarray of type numpy.{np_dtype.type.__name__}. The only supported types are: "
                "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
                "uint8, and bool."
            )
        if np_dtype.isnative:
            FROM_NUMPY[np_dtype] = found
    return found


@functools.cache
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Returns the smallest dtype to which both dtypes convert.

    A higher category wins: bool, integer, floating point, complex. Within a category the wider type wins. A signed and
    an unsigned integer give the next wider signed one, and float16 with bfloat16 gives float32.

    Args:
        type1: A dtype.
        type2: The other dtype.

    Returns:
        The dtype of a result of both.

    Raises:
        TypeError: An argument is not a dtype.
        RuntimeError: One dtype is a float8, or no integer dtype holds both (int64 and uint64).

    Example:
        >>> torch.promote_types(torch.int32, torch.float16), torch.promote_types(torch.uint8, torch.int8)
        (torch.float16, torch.int16)
    """
    first, second = type1, type2
    if first is second and isinstance(first, dtype):
        return first
    first = as_argument(first, "promote_types", "'type1' (position 1)")
    second = as_argument(second, "promote_types", "'type2' (position 2)")
    if first in _BITS or second in _BITS:
        raise RuntimeError(f"Promotion from {first.scalar_name} and {second.scalar_name} is unsupported.")
    narrow = [d.name for d in (first, second) if d.name in OPAQUE]
    family = "Float8 Types" if "float8" in first.name or "float8" in second.name else "uint16, uint32, uint64 types"
    if (
        family == "Float8 Types"
        or narrow
        and not (narrow[0].startswith("uint") and max(first.category, second.category) > INT)
    ):
        raise RuntimeError(
            f"Promotion for {family} is not supported, attempted to promote {first.scalar_name} and "
            f"{second.scalar_name}"
        )
    if first.category > second.category:
        first, second = second, first
    if second.category == COMPLEX:
        return second if first.category < FLOAT else promote_types(first.to_real(), second.to_real()).to_complex()
    if first.category < second.category:
        return second
    if second.category == FLOAT:
        if {first, second} == {float16, bfloat16}:
            return float32
        return max(first, second, key=_FLOAT_LADDER.index)
    return _promote_integers(first, second)


def _promote_integers(first: dtype, second: dtype) -> dtype:
    if first.is_signed == second.is_signed:
        return first if first.itemsize >= second.itemsize else second
    signed, unsigned = (first, second) if first.is_signed else (second, first)
    if signed.itemsize > unsigned.itemsize:
        return signed
    # PyTorch refuses these except for uint8; the Array API requires the next wider dtype, if there is one.
    wider = {1: int16, 2: int32, 4: int64}.get(unsigned.itemsize)
    if wider is None:
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {first.scalar_name} "
            f"and {second.scalar_name}"
        )
    return wider


def can_cast(from_: dtype, to: dtype) -> bool:
    """Returns whether a result of one dtype may be written to a tensor of another.

    In-place ops and `out=` follow this rule: the category (bool, integer, floating point, complex) may not become
    lower.

    Args:
        from_: Dtype of the result.
        to: Dtype of the tensor that is written.

    Returns:
        bool.

    Raises:
        TypeError: An argument is not a dtype.

    Example:
        >>> torch.can_cast(torch.float64, torch.float32), torch.can_cast(torch.float32, torch.int64)
        (True, False)
    """
    from_, to = as_argument(from_, "can_cast", "'from_' (position 1)"), as_argument(to, "can_cast", "'to' (position 2)")
    if from_.category > to.category:
        return False
    return not (from_.category == INT and to is bool_) and not (from_.category == FLOAT and to.category < FLOAT)


class _Default:
    real = float32


def get_default_dtype() -> dtype:
    """Returns the dtype of tensors made from Python floats: float32 unless `set_default_dtype` changed it.

    Example:
        >>> torch.get_default_dtype()
        torch.float32
    """
    return _Default.real


def set_default_dtype(d: dtype) -> None:
    """Sets the dtype that Python floats become in new tensors.

    Functions such as `torch.zeros` and layers use it too, and complex numbers get the complex dtype of that precision.

    Args:
        d: A floating-point dtype.

    Raises:
        TypeError: ``d`` is not a floating-point dtype.

    Example:
        >>> torch.set_default_dtype(torch.float64)
        >>> torch.tensor([1.5]).dtype
        torch.float64
        >>> torch.set_default_dtype(torch.float32)
    """
    if isinstance(d, dtype) and d.is_floating_point and d.itemsize == 1:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    if not isinstance(d, dtype) or not d.is_floating_point:
        prefix = "" if isinstance(d, dtype) else "invalid dtype object: "
        raise TypeError(f"{prefix}only floating-point types are supported as the default type")
    _Default.real = d


_NOT_GIVEN: Any = object()


def as_dtype(value):
    """The dtype of Python's `float`, `int`, `bool` and `complex`; anything else unchanged."""
    if isinstance(value, type):
        return {float: float64, int: int64, bool: bool_, complex: complex128}.get(value, value)
    return value


def as_argument(value: Any, function: str, argument: str = "'dtype'") -> dtype:
    """Convert a dtype argument; Python types map to their dtypes. TypeError for anything else."""
    found = as_dtype(value)
    if isinstance(found, dtype):
        return found
    cls = value.__class__
    ours = "" if cls.__name__[0].isupper() else "torch."  # PyTorch's Tensor has no module in its messages
    home = ours if is_torchlite_object(cls) else "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    raise TypeError(f"{function}(): argument {argument} must be torch.dtype, not {home}{cls.__name__}")


class finfo:
    """Numerical limits of a floating-point dtype, or of the parts of a complex one.

    Args:
        type: A floating-point or complex dtype. Default: the default dtype.

    Attributes:
        bits (int): Bits of a number.
        eps (float): Distance from 1 to the next larger number.
        max (float): Largest finite number.
        min (float): Smallest finite number, ``-max``.
        tiny (float): Smallest positive normal number; ``smallest_normal`` is the same.
        resolution (float): Decimal resolution, ``10**-digits``.
        dtype (str): Name of the real dtype.

    Raises:
        TypeError: The dtype is bool or an integer type.

    Example:
        >>> torch.finfo(torch.float16).max, torch.finfo(torch.float64).eps
        (65504.0, 2.220446049250313e-16)
    """

    def __init__(self, type: dtype | None = None):
        d = _Default.real if type is None else as_argument(type, "finfo", "'type' (position 1)")
        if d.category < FLOAT:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        real = d.to_real()
        if real is float4_e2m1fn_x2:
            raise TypeError(f"{real!r} has no limits: each byte holds two numbers")
        if real.name in _EXTRA or real.itemsize == 1:
            import ml_dtypes

            info: Any = ml_dtypes.finfo(real.name)
        else:
            info = np.finfo(real.np)
        self.dtype = real.name
        self.bits = int(info.bits)
        self.eps, self.max, self.min = float(info.eps), float(info.max), float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        # As it is written, not as the dtype rounds it. No decimal digit is exact in eight bits.
        self.resolution = 1.0 if real.itemsize == 1 else float(str(info.resolution))
        if real is float8_e8m0fnu:
            self.eps, self.min = 1.0, self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Numerical limits of an integer dtype.

    Args:
        type: An integer dtype.

    Attributes:
        bits (int): Bits of a number.
        max (int): Largest number.
        min (int): Smallest number.
        dtype (str): Name of the dtype.

    Raises:
        TypeError: ``type`` is missing, is bool, or is not an integer dtype.

    Example:
        >>> torch.iinfo(torch.int16)
        iinfo(min=-32768, max=32767, dtype=int16)
    """

    def __init__(self, type: dtype = _NOT_GIVEN):
        if type is _NOT_GIVEN:
            raise TypeError('iinfo() missing 1 required positional arguments: "type"')
        type = as_argument(type, "iinfo", "'type' (position 1)")
        if type.category >= FLOAT or type.name in OPAQUE:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        # A quantized dtype has no array dtype of its own; its limits are those of its integers.
        is_quantized = type.scalar_name.startswith("Q")
        info = np.iinfo(f"{'' if type.is_signed else 'u'}int{8 * type.itemsize}" if is_quantized else type.np)
        self.dtype, self.bits, self.max, self.min = type.name, int(info.bits), int(info.max), int(info.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


finfo.__module__ = iinfo.__module__ = "torchlite"
