"""Translates errors of kernels and composites: a retry with coerced arguments, or PyTorch's error message. Removes
torchlite's own frames from tracebacks.
"""

from __future__ import annotations

import os
import struct
import sys
from types import TracebackType
from typing import Any

import numpy as np

from .._types import opaque_dtypes
from .._types.devices import is_backend_module
from .._types.dtypes import OPAQUE, as_dtype, dtype, float8_e8m0fnu, get_default_dtype
from .._types.layouts import Size
from .dispatch_state import GLOBALS
from .interceptors import find_torch_function_override
from .numpy_errors import is_busy
from .op_record import Op
from .type_promotion import out_of_range_error

# Exceptions that kernels raise for unsupported arguments, before they write.
ARGUMENT_ERRORS = (IndexError, MemoryError, OverflowError, RuntimeError, TypeError, ValueError, struct.error)
# Libraries that kernels and formulas call: their frames are internal too.
_LIBRARIES = frozenset(("numpy", "cupy", "pyopencl", "array_api_compat", "ml_dtypes", "scipy"))
_PYTHON_INDEX_MESSAGES = ("tuple index out of range", "list index out of range")


def translate_composite_error(op: Op, error: Exception, values, function=None) -> Exception:
    """The error to raise in place of a composite's. Its parts raise PyTorch's errors already, but PyTorch's parser
    checks before them.
    """
    from .arg_parser import has_list_among_numbers, parser_error

    if type(error) in (RuntimeError, NotImplementedError) and not has_list_among_numbers(op, values):
        return error
    if type(error) is IndexError and str(error) not in _PYTHON_INDEX_MESSAGES:
        return error
    return (
        parser_error(op, values, function)
        or _dimension_error(op, error, values)
        or _list_element_error(op, error, values)
        or error
    )


def _list_element_error(op: Op, error: Exception, values) -> TypeError | None:
    """PyTorch's error if one of the tensors given as separate arguments is not a tensor."""
    if type(error) is AttributeError and op.params[0].kind == "varargs" and op.params[0].name == "tensors":
        for i, item in enumerate(values[0]):
            if not isinstance(item, (GLOBALS["Tensor"], list, tuple)):
                return TypeError(f"expected Tensor as element {i} in argument 0, but got {type(item).__name__}")
    return None


def _dimension_error(op: Op, error: Exception, values) -> IndexError | None:
    """PyTorch's error for an out-of-range dimension of the first tensor, if Python's or NumPy's error reports one."""
    if not isinstance(error, np.exceptions.AxisError) and str(error) not in _PYTHON_INDEX_MESSAGES:
        return None
    ndim = next((v._tl_array.ndim for v in values if isinstance(v, GLOBALS["Tensor"])), None)
    dims = [v for p, v in zip(op.params, values, strict=True) if p.name.startswith("dim") and isinstance(v, int)]
    if ndim is None or not dims:
        return None
    if not ndim:
        return IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    for dim in dims:
        if not -ndim <= dim < ndim:
            return IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
            )
    return None


def translate_error(op: Op, error: Exception, values, function=None) -> Exception:
    """The error to raise in place of a kernel's: the parser or the op's shape rule may have a more exact one."""
    from .arg_parser import parser_error
    from .meta_backend import shape_fn_error

    refused = (
        None
        if type(error) is IndexError and str(error) not in _PYTHON_INDEX_MESSAGES
        else parser_error(op, values, function)
    )
    if refused is not None:
        return refused
    better = shape_fn_error(op, values)
    if better is not None:
        return better
    text = str(error)
    if isinstance(error, (TypeError, ValueError)) and (opaque := _opaque_operand(values)) is not None:
        kernel = op.kernel_name or op.name + "_cpu"
        return NotImplementedError(f"\"{kernel}\" not implemented for '{opaque.scalar_name}'")
    if isinstance(error, MemoryError):
        byte_count = getattr(error, "_total_size", None)
        return RuntimeError(
            "DefaultCPUAllocator: can't allocate memory"
            + (
                f": you tried to allocate {byte_count} bytes. Error code 12 (Cannot allocate memory)"
                if byte_count
                else ""
            )
        )
    if isinstance(error, ValueError) and ("array is too big" in text or text == "Maximum allowed dimension exceeded"):
        return RuntimeError("numel: integer multiplication overflow")
    if "maximum supported dimension" in text or text.startswith("number of dimensions must be within"):
        return RuntimeError("a tensor has at most 64 dimensions, as NumPy's arrays have")
    if isinstance(error, struct.error):
        return RuntimeError("a size, stride or offset is beyond what kernels of this device count: 2**31 elements")
    if isinstance(error, TypeError) and "ufunc '" in text:
        offender = next((v.dtype for v in values if isinstance(v, GLOBALS["Tensor"])), get_default_dtype())
        kernel = op.kernel_name or op.name + "_cpu"
        return NotImplementedError(f"\"{kernel}\" not implemented for '{offender.scalar_name}'")
    if isinstance(error, TypeError) and any(isinstance(v, complex) for v in values):  # where a real number is wanted
        return out_of_range_error(
            next((v.dtype for v in values if isinstance(v, GLOBALS["Tensor"])), get_default_dtype())
        )
    if isinstance(error, OverflowError) and text.startswith("Python integer "):
        return out_of_range_error(next(v.dtype for v in values if isinstance(v, GLOBALS["Tensor"])))
    if isinstance(error, IndexError):
        of_dimension = _dimension_error(op, error, values)
        if of_dimension is not None:
            return of_dimension
    if isinstance(error, IndexError) and "for axis" in text:
        return IndexError(text.replace("for axis", "for dimension"))
    return error


def _opaque_operand(values) -> dtype | None:
    """The dtype of a tensor among the arguments with which nothing computes, see `OPAQUE`."""
    found = (v.dtype for v in values if isinstance(v, GLOBALS["Tensor"]))
    return next((d for d in found if d.name in OPAQUE), None)


def decoded_operands(op: Op, raw: list) -> list | None:
    """The raw arrays of an op that tells values apart, with powers of two as float32; None for other arguments."""
    if op.opaque != "values":
        return None
    found = [getattr(x, "dtype", None) == float8_e8m0fnu.np for x in raw]
    return (
        [opaque_dtypes.decode(x) if is_opaque else x for x, is_opaque in zip(raw, found, strict=True)]
        if any(found)
        else None
    )


def coerced_args(op: Op, error: Exception, values) -> tuple[tuple, dict] | None:
    """The arguments of a failed call, with objects converted to the numbers and dtypes that they represent. No argument
    changes if nothing has run, or if the class of one overrides `__torch_function__`. None if the call is not repeated.
    """
    failed_by_type = isinstance(error, (TypeError, AttributeError, ValueError))
    if is_busy(error) or (failed_by_type and find_torch_function_override(values) is not None):
        plain = values
    elif failed_by_type:
        plain = coerce_values(op, values)
        if op.opaque == "values" and _opaque_operand(values) is float8_e8m0fnu:
            plain = [v.float() if getattr(v, "dtype", None) is float8_e8m0fnu else v for v in values]
    else:
        return None
    if plain is None:
        return None
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for p, v in zip(op.params, plain, strict=True):
        if p.kwonly or kwargs or p.kind == "varargs":
            kwargs[p.name] = v
        else:
            args.append(v)
    return tuple(args), kwargs


def coerce_values(op: Op, values) -> list | None:
    """Convert NumPy numbers and 0-d tensors to Python numbers, Python types to dtypes, and subclasses of list to lists;
    None if no value changes.
    """
    plain = [_coerce_value(p, v) for p, v in zip(op.params, values, strict=True)]
    return plain if any(a is not b for a, b in zip(plain, values, strict=True)) else None


def _coerce_value(param, value):
    if isinstance(value, np.generic):
        return value.item()
    if param.kind in ("plain", "varargs"):
        if isinstance(value, (tuple, list)) and any(isinstance(v, np.generic) for v in value):
            return tuple(v.item() if isinstance(v, np.generic) else v for v in value)
        if isinstance(value, (tuple, list)) and value.__class__ not in (tuple, list, Size):
            return [*value] if isinstance(value, list) else (*value,)
        if (
            isinstance(value, GLOBALS["Tensor"])
            and not value._tl_array.ndim
            and value._tl_node is None
            and param.name != "out"
        ):
            return value.item()
        if isinstance(value, type) and param.name == "dtype":
            return as_dtype(value)
    return value


def type_error(op: Op, param, position: int, value) -> TypeError:
    """PyTorch's error for an argument of the wrong type."""
    want = {"list": "tuple of Tensors", "number": "Tensor"}.get(param.kind, "Tensor")
    return TypeError(
        f"{op.function_name}(): argument '{param.name}' (position {position + 1}) must be {want}, not "
        f"{type(value).__name__}"
    )


def no_backend_kernel_error(name: str, kind: str, tensor: Any) -> NotImplementedError:
    """PyTorch's error for an op without a kernel for a kind of tensors, such as "Sparse" on the tensor's device."""
    where = {"cpu": "CPU", "cuda": "CUDA", "opencl": "OpenCL", "meta": "Meta"}.get(tensor.device.type, "CPU")
    name = name if "::" in name else f"aten::{name}"
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the '{kind}{where}' backend. This could be because the "
        "operator doesn't exist for this backend, or was omitted during the selective/custom build process (if using "
        "custom build). If you are a Facebook employee using PyTorch on mobile, please visit "
        "https://fburl.com/ptmfixes for possible resolutions."
    )


def filter_traceback() -> None:
    """Remove torchlite's frames, and those of libraries that it calls, from the traceback of the handled exception.

    A public function ends with `except Exception: filter_traceback(); raise`. A bare `raise` adds no frame, so that the
    traceback points at the function's caller. Frames of a user's functions that an op calls stay, with all that they
    call. The environment variable `TORCHLITE_TRACEBACK_FILTERING=0` keeps every frame.
    """
    error = sys.exc_info()[1]
    if error is None or os.environ.get("TORCHLITE_TRACEBACK_FILTERING") == "0":
        return
    shown: TracebackType | None = None
    for trace in reversed(_user_frames(error.__traceback__)):
        shown = TracebackType(shown, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    error.__traceback__ = shown
    if error.__context__ is not None and not _user_frames(error.__context__.__traceback__):
        error.__suppress_context__ = True


def _user_frames(trace: TracebackType | None) -> list[TracebackType]:
    """The entries of a traceback that are neither torchlite's nor of a library that it calls."""
    kept: list[TracebackType] = []
    inside = True  # no frame of a user's function since the last one of torchlite
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__"))
        root = name.partition(".")[0]
        if root in ("torchlite", __name__.partition(".")[0]) or is_backend_module(name):
            inside = True
        elif not inside or root not in _LIBRARIES and root not in sys.stdlib_module_names:
            inside = False
            kept.append(trace)
        trace = trace.tb_next
    return kept
