"""Binary and ternary elementwise kernels: division, powers, shifts, lerp, addcmul, minimum and maximum.

Basic arithmetic is in `pointwise`. An operand may be a Python number.
"""

import numpy as np

from torchlite._dispatch.shape_and_value_checks import check_same_dtype
from torchlite._types.dtypes import FROM_NUMPY, is_complex32

from .pointwise import complex_as_real_view

xp = np


def _promote_operand_dtypes(*operands):
    """Return the promoted dtype of the operands, which is the first array's."""
    for operand in operands:
        if hasattr(operand, "dtype"):
            return operand.dtype
    return xp.asarray(operands[0]).dtype


def _not_implemented_error(kernel, dtype):
    return NotImplementedError(f"\"{kernel}\" not implemented for '{FROM_NUMPY[np.dtype(dtype)].scalar_name}'")


def _has_any_true(mask):
    return bool(mask.any()) if hasattr(mask, "any") else mask


def _check_division(input, other, kernel):
    """Check the operands of a rounding division; return True if they are integers."""
    dtype = _promote_operand_dtypes(input, other)
    kind = dtype.kind
    if kind in "bcW":
        raise _not_implemented_error(kernel, dtype)
    if kind in "iu":
        if _has_any_true(other == 0):
            raise RuntimeError("ZeroDivisionError")
        return True
    return False


def fmod(input, other):
    _check_division(input, other, "fmod_cpu")
    return xp.fmod(input, other)


def remainder(input, other):
    if _check_division(input, other, "remainder_cpu"):
        return xp.remainder(input, other)
    # NumPy's has the divisor's sign also where it is zero.
    rest = xp.fmod(input, other)
    return xp.where((rest != 0) & ((other < 0) != (rest < 0)), rest + other, rest)


def floor_divide(input, other):
    _check_division(input, other, "div_floor_cpu")
    return xp.floor_divide(input, other)


def _floor_divide(input, other):
    return floor_divide(input, other)


def _trunc_divide(input, other):
    if _check_division(input, other, "div_trunc_cpu"):
        quotient = xp.floor_divide(input, other)
        return quotient + ((quotient < 0) & (quotient * other != input))
    if getattr(other, "shape", None) == () and input.dtype.itemsize == 2 and input.ndim:
        # PyTorch rounds the quotient of half-precision arrays before it drops the fraction, but not that by one number.
        return xp.trunc(xp.divide(input.astype(xp.float32), other.astype(xp.float32))).astype(input.dtype)
    return xp.trunc(xp.divide(input, other))


def _check_real(input, other, name):
    if _promote_operand_dtypes(input, other).kind in "cW":
        raise RuntimeError(f"{name} not implemented for complex tensors.")


def fmax(input, other):
    _check_real(input, other, "fmax")
    if input.dtype.kind not in "fV":
        return xp.fmax(input, other)
    return xp.where((input >= other) | xp.isnan(other), input, other)


def fmin(input, other):
    _check_real(input, other, "fmin")
    if input.dtype.kind not in "fV":
        return xp.fmin(input, other)
    return xp.where((input <= other) | xp.isnan(other), input, other)


def _check_floating(input, other, kernel):
    dtype = _promote_operand_dtypes(input, other)
    if dtype.kind in "iubcW":
        raise _not_implemented_error(kernel, dtype)


def hypot(input, other):
    _check_floating(input, other, "hypot_cpu")
    return xp.hypot(input, other)


def nextafter(input, other):
    _check_floating(input, other, "nextafter_cpu")
    out = xp.nextafter(input, other)
    return xp.where(input == other, other, out) if out.dtype == xp.float16 else out  # NumPy has input's zero there


def logaddexp2(input, other):
    _check_floating(input, other, "logaddexp2_cpu")
    return xp.logaddexp2(input, other)


def logaddexp(input, other):
    dtype = _promote_operand_dtypes(input, other)
    if dtype.kind in "iub":
        raise _not_implemented_error("logaddexp_cpu", dtype)
    if dtype.kind not in "cW":
        return xp.logaddexp(input, other)
    return complex_logaddexp(xp.asarray(input, dtype=dtype), xp.asarray(other, dtype=dtype))


def complex_logaddexp(a, b):
    """log(exp(a) + exp(b)) of complex numbers, whose real parts may be infinite."""
    swap = a.real < b.real
    top, low = xp.where(swap, b, a), xp.where(swap, a, b)
    gap = low - top
    out = xp.where(xp.isneginf(gap.real), top, top + xp.log1p(xp.exp(gap)))
    alike = (a.real == b.real) & xp.isinf(a.real)
    return _add_infinite_exponentials(out, alike, a, b) if alike.any() else out


def _add_infinite_exponentials(out, where, a, b):
    """`out` with the logarithm of the sum where both real parts are the same infinity: the phases decide the rest."""
    parts = []
    for part in (xp.sin, xp.cos):
        first, second = (xp.where(part(z.imag) == 0, 0.0, xp.copysign(xp.inf, part(z.imag))) for z in (a, b))
        parts.append(first + second)
    phase = xp.where(a.imag == b.imag, a.imag, xp.where(a.real > 0, xp.arctan2(*parts), b.imag))
    found = xp.empty_like(out)
    found.real, found.imag = a.real, phase
    return xp.where(where, found, out)


def gcd(input, other):
    dtype = _promote_operand_dtypes(input, other)
    if dtype.kind not in "iu":
        raise _not_implemented_error("gcd_cpu", dtype)
    return xp.gcd(input, other)


def lcm(input, other):
    dtype = _promote_operand_dtypes(input, other)
    if dtype.kind not in "iu":
        raise _not_implemented_error("lcm_cpu", dtype)
    return xp.lcm(input, other)


def heaviside(input, values):
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if input.dtype.kind in "cW":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    one = xp.ones((), dtype=input.dtype)
    return xp.where(input == 0, values, xp.where(input > 0, one, xp.zeros_like(one)))


def _check_integral(input, other, kernel, kinds="iub"):
    dtype = _promote_operand_dtypes(input, other)
    if dtype.kind not in kinds:
        raise _not_implemented_error(kernel, dtype)


def bitwise_and(input, other):
    _check_integral(input, other, "bitwise_and_cpu")
    return xp.bitwise_and(input, other)


def bitwise_or(input, other):
    _check_integral(input, other, "bitwise_or_cpu")
    return xp.bitwise_or(input, other)


def bitwise_xor(input, other):
    _check_integral(input, other, "bitwise_xor_cpu")
    return xp.bitwise_xor(input, other)


def _shift_operands(input, other):
    """Return both operands as arrays of one dtype, its bit width, and the mask of valid shift counts."""
    dtype = _promote_operand_dtypes(input, other)
    input, other = xp.asarray(input, dtype=dtype), xp.asarray(other, dtype=dtype)
    bits = dtype.itemsize * 8
    return input, other, bits, (other >= 0) & (other < bits)


def bitwise_left_shift(input, other):
    """Shift left; a shift count that is negative or not less than the bit width gives 0."""
    _check_integral(input, other, "lshift_cpu", "iu")
    input, other, _, valid = _shift_operands(input, other)
    out = xp.left_shift(input, other)
    return out if valid.all() else xp.where(valid, out, xp.zeros_like(out))


def bitwise_right_shift(input, other):
    """Arithmetic shift right; an invalid shift count leaves the sign (0 or -1)."""
    _check_integral(input, other, "rshift_cpu", "iu")
    input, other, bits, valid = _shift_operands(input, other)
    if valid.all():
        return xp.right_shift(input, other)
    if input.dtype.kind == "u":
        return xp.where(valid, xp.right_shift(input, other), xp.zeros_like(input))
    return xp.right_shift(input, xp.where(valid, other, other.dtype.type(bits - 1)))


def _lerp_tensor(input, end, weight):
    check_same_dtype(input, end, "end")
    check_same_dtype(input, weight, "weight")
    return lerp(input, end, weight)


def _lerp_scalar(input, end, weight):
    check_same_dtype(input, end, "end")
    return lerp(input, end, weight)


def _clamp_tensors(input, min=None, max=None):
    return clamp(input, min, max)


def _clamp_scalars(input, min, max):
    return clamp(input, min, max)


def lerp(input, end, weight):
    """Interpolate from the nearer end, so that weight 1 gives `end` exactly."""
    if input.dtype.kind in "iub" or is_complex32(input.dtype):
        raise _not_implemented_error(
            "lerp_kernel_tensor" if hasattr(weight, "dtype") else "lerp_kernel_scalar", input.dtype
        )
    step = xp.subtract(end, input)
    if not hasattr(weight, "dtype"):
        if step.ndim == 0:
            return (input + step * weight if abs(weight) < 0.5 else end - step * (1 - weight)).astype(input.dtype)
        if abs(weight) < 0.5:
            xp.multiply(step, weight, out=step)
            return xp.add(input, step, out=step)
        xp.multiply(step, 1 - weight, out=step)
        return xp.subtract(end, step, out=step)
    return xp.where(xp.abs(weight) < 0.5, input + step * weight, end - step * (1 - weight))


def _add_scaled(input, term, value):
    """Compute input + value * term in the memory of `term`, which must be a temporary of the caller."""
    if term.ndim == 0:
        return (input + term * value).astype(input.dtype) if value != 1 else input + term
    if value != 1:
        xp.multiply(term, value, out=term)
    return (
        xp.add(input, term, out=term)
        if term.ndim >= input.ndim and term.shape == xp.broadcast(input, term).shape
        else xp.add(input, term)
    )


def addcmul(input, tensor1, tensor2, *, value=1):
    if input.dtype.kind in "iu":
        value = int(value)
    return _add_scaled(input, xp.multiply(tensor1, tensor2), value)


def addcdiv(input, tensor1, tensor2, *, value=1):
    if input.dtype.kind in "iub":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + "
            "value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * "
            "tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: "
            "(input + value * tensor1 / tensor2), for all dtypes."
        )
    return _add_scaled(input, (tensor1 if value == 1 else tensor1 * _cast_bound(tensor1, value)) / tensor2, 1)


def _refuse_complex(dtype, name=None):
    if dtype.kind in "cW":
        raise (
            _not_implemented_error(name, dtype)
            if name
            else NotImplementedError("clamp is not supported for complex types")
        )


def _keep_first_tie(best, input, bound, out=None):
    """Keep `input` where it ties with the bound: of two zeros NumPy's maximum and minimum may return the other one."""
    return best(input, bound, out=out) if input.dtype.char == "e" else best(bound, input, out=out)


def _cast_bound(input, number):
    """Cast a Python number to bfloat16 or float8 where `input` has that dtype: NumPy would compute in float32."""
    return input.dtype.type(number) if input.dtype.kind == "V" and not hasattr(number, "dtype") else number


def clamp(input, min=None, max=None):
    _refuse_complex(input.dtype)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if min is None:
        return _keep_first_tie(xp.minimum, input, _cast_bound(input, max))
    low = _keep_first_tie(xp.maximum, input, _cast_bound(input, min))
    if max is None:
        return low
    into = None if hasattr(max, "dtype") or not low.ndim else low  # the result of our own
    return _keep_first_tie(xp.minimum, low, _cast_bound(low, max), into)


def clamp_min(input, min):
    _refuse_complex(input.dtype, "maximum_cpu")
    return _keep_first_tie(xp.maximum, input, _cast_bound(input, min))


def clamp_max(input, max):
    _refuse_complex(input.dtype, "minimum_cpu")
    return _keep_first_tie(xp.minimum, input, _cast_bound(input, max))


def frexp(input):
    if input.dtype.kind in "iubcW":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = xp.frexp(input)
    return mantissa, exponent.astype(xp.int32, copy=False)


def _check_parts(first, second):
    if first.dtype != second.dtype or first.dtype.kind != "f":
        raise RuntimeError("parts that the rule of the op has words for")


def complex(real, imag):
    _check_parts(real, imag)
    real, imag = xp.broadcast_arrays(real, imag)
    out = xp.empty(real.shape, dtype=FROM_NUMPY[np.dtype(real.dtype)].to_complex().np)
    both = complex_as_real_view(out)
    both[..., 0], both[..., 1] = real, imag
    return out


def polar(abs, angle):
    _check_parts(abs, angle)
    return complex(abs * xp.cos(angle), abs * xp.sin(angle))


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if input.dtype != other.dtype:
        names = [FROM_NUMPY[np.dtype(part.dtype)].scalar_name for part in (input, other)]
        raise RuntimeError(f"{names[0]} did not match {names[1]}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    close = input == other
    inexact = input.dtype.kind not in "iub"
    if equal_nan and inexact:
        close = close | (xp.isnan(input) & xp.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    if not inexact:
        input, other = input.astype(xp.float64), other.astype(xp.float64)
    difference = _abs_rounded_once(input - other)
    return close | (xp.isfinite(difference) & (difference <= atol + _abs_rounded_once(rtol * other)))


def _abs_rounded_once(x):
    """Return absolute values, of complex64 computed in double precision as by `torch.abs`."""
    return xp.abs(x.astype(xp.complex128)).astype(xp.float32) if x.dtype.char == "F" else xp.abs(x)


def _mul_log(input, other, function):
    dtype = _promote_operand_dtypes(input, other)
    if dtype.kind in "cW":
        raise _not_implemented_error("xlogy_cpu", dtype)
    input, other = xp.asarray(input, dtype=dtype), xp.asarray(other, dtype=dtype)
    return xp.where((input == 0) & ~xp.isnan(other), xp.zeros_like(other), input * function(other))


def xlogy(input, other):
    return _mul_log(input, other, xp.log)


def special_xlog1py(input, other):
    return _mul_log(input, other, xp.log1p)
