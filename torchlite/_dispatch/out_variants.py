"""`out=` variants: results written to given tensors. The field `out` of an op's record names the dtypes that it
accepts, and PyTorch's error for others.
"""

from __future__ import annotations

import warnings

import numpy as np

from .._types.dtypes import FLOAT, bool_, can_cast, dtype, get_default_dtype
from .autograd_graph import bump_version, check_before_write, write_raw
from .callbacks import CALLBACKS
from .dispatch_state import GLOBALS, MODE
from .error_translation import ARGUMENT_ERRORS
from .interceptors import class_rules
from .memory_overlap import check_out
from .numpy_errors import run_quietly
from .op_record import DEFAULT, INT_TO_FLOAT, POINTWISE, REGISTRY, Op
from .type_promotion import result_dtype

_SAME_DTYPE_MESSAGE = "Expected out tensor to have dtype {c_want}, but got {c_got} instead"
_CAST_MESSAGE = "result type {want} can't be cast to the desired output type {got}"


def check_out_dtype(op: Op, result: dtype, out: dtype, place: int = 0, given: dtype | None = None) -> None:
    """Raise the error that `op.out` names unless an op's result of one dtype can be written to a tensor of another.
    `place` counts multiple results; `given` is the input's dtype, for an op with real results of complex numbers.
    """
    rule, casts = op.out, op.out.dtype == "castable"
    message = rule.message if isinstance(rule.message, str) else rule.message[place]
    if given is not None and given.is_complex:  # moduli go where they can be cast to, or where the numbers could go
        if out.is_complex:
            result = given
        else:
            casts, message = True, ""
    if result is out or rule.dtype == "unchecked" or out.name in rule.accepts or casts and can_cast(result, out):
        return
    name = op.function_name
    short = name.partition("_")[2] if name.startswith(("linalg_", "fft_", "special_")) else name
    raise rule.error(
        (message or (_CAST_MESSAGE if casts else _SAME_DTYPE_MESSAGE)).format(
            name=name,
            short=short,
            dotted=f"linalg.{short}" if name.startswith("linalg_") else name,
            want=result.scalar_name,
            got=out.scalar_name,
            c_want=result.c_name,
            c_got=out.c_name,
        )
    )


def check_target_dtype(op: Op, result: dtype, target: dtype) -> None:
    """RuntimeError if an in-place op cannot cast its result to its target's dtype."""
    if op.out.in_place_message and result is not target:
        raise RuntimeError(op.out.in_place_message.format(want=result.scalar_name, got=target.scalar_name))
    if not can_cast(result, target):
        raise RuntimeError(
            f"result type {result.scalar_name} can't be cast to the desired output type {target.scalar_name}"
        )


def check_operand_dtypes(op: Op, values, target: dtype) -> None:
    """Apply `check_target_dtype` before the op runs, if its result dtype is that of its operands: PyTorch checks it
    first.
    """
    if op.promote not in (DEFAULT, INT_TO_FLOAT) or op.check is not None or not op.tags & POINTWISE:
        return
    names = op.promote_args or [p.name for p in op.params if p.is_tensor]
    operands = [v for p, v in zip(op.params, values, strict=True) if p.name in names and v is not None]
    if all(isinstance(v, (GLOBALS["Tensor"], int, float, complex)) for v in operands):
        result = result_dtype(operands)
        if op.promote == INT_TO_FLOAT and result.category < FLOAT:
            result = get_default_dtype()
        check_target_dtype(op, result, target)


def prepare_out(op: Op, values: list, out) -> list:
    """The values of a call with `out=`: the dtype of `out` is that of a sum or product without `dtype=`.

    RuntimeError if the result of an elementwise op cannot be cast to that dtype: PyTorch raises it before all others.
    """
    if not isinstance(out, GLOBALS["Tensor"]):
        return values
    if op.out.dtype_param:
        place = next(i for i, p in enumerate(op.params) if p.name == _dtype_keyword(op))
        floats = op.out.dtype_param == "float"
        if values[place] is None and not (floats and FLOAT > min(values[0].dtype.category, out.dtype.category)):
            return [*values[:place], out.dtype, *values[place + 1 :]]
    elif op.out.dtype == "castable" and not op.out.message and not op.out.complex_to_real:
        check_operand_dtypes(op, values, out.dtype)
    return values


def try_out_kernel(op: Op, values, out) -> bool:
    """True if a kernel wrote the result of an elementwise op directly to `out`. That requires large plain tensors, a
    kernel that supports it (`takes_out`), and operands of the result's dtype and shape. Other results are computed
    and then copied.
    """
    plain = GLOBALS["Tensor"], GLOBALS["Parameter"]
    if out.__class__ not in plain or getattr(out._tl_array, "size", 0) < GLOBALS["LARGE"]:
        return False
    if op.base_op and all(v is p.default for p, v in zip(op.params, values, strict=True) if p.kwonly):
        values = [v for p, v in zip(op.params, values, strict=True) if not p.kwonly]
        op = REGISTRY[op.base_op]
    if not op.tags & POINTWISE or op.numbers or op.promote not in (DEFAULT, INT_TO_FLOAT):
        return False
    raw, table, d = out._tl_array, out._tl_kernels, out.dtype
    if raw.__class__ is not table.array or d not in table.exact_scalar_dtypes:
        return False
    kernel = getattr(table.large, op.name, None)
    kernel = getattr(kernel, "without_rule", kernel)
    if kernel is None or not getattr(kernel, "takes_out", False) or MODE.grad and out._tl_node is not None:
        return False
    given: list = []
    for value in values:
        if value.__class__ is float or value.__class__ is int and -(1 << 24) <= value <= 1 << 24:
            given.append(float(value))
        elif (
            value.__class__ not in plain
            or (value._tl_kernels, value.dtype, value._tl_array.shape) != (table, d, raw.shape)
            or value._tl_array.__class__ is not table.array
            or MODE.grad
            and value._tl_node is not None
        ):
            return False
        else:
            given.append(value._tl_array)
    if all(value.__class__ is float for value in given):
        return False
    if op.check is not None:
        op.check(*values)
    check_out(op, out, values)
    if GLOBALS["WRITE_CHECKS"] and check_before_write(out):
        return False
    try:
        run_quietly(kernel, *given, out=raw)
    except ARGUMENT_ERRORS:  # the op itself raises PyTorch's error
        return False
    bump_version(out)
    return True


def check_output_count(op: Op, out) -> None:
    """TypeError unless `out` is a list or tuple, with as many tensors as the recorded forms name."""
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{op.function_name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    wanted = op.out_list.removeprefix("Tensors").strip("[]")
    if wanted and len(out) != int(wanted):
        raise TypeError(f"expected tuple of {wanted} elements but got {len(out)}")


def write_out(op: Op, result, out, values=()):
    """out=: results written into given tensors; `values` are the op's arguments."""
    if GLOBALS["CLASS_RULES"] and (rules := class_rules((result, out))) is not None:
        return rules("write_out")(result, out)
    if GLOBALS["WRITE_CHECKS"]:
        for tensor in out if out.__class__ in (tuple, list) else (out,):
            if isinstance(tensor, GLOBALS["Tensor"]):
                check_before_write(tensor)
    return _write_outputs(op, result, out, values)


def _write_outputs(op: Op, result, out, values):
    """out=: results written into given tensors, resized when empty or of another shape. `values` are the op's
    arguments.
    """
    if out.__class__ in (tuple, list) or isinstance(result, tuple):
        if not isinstance(out, (tuple, list)):
            raise TypeError(f"{op.name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
        if len(out) != len(result):
            if op.outputs:
                raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
            raise RuntimeError(f"{op.name}_out() expected an out= argument of size {len(result)}, got size {len(out)}")
        for place, (r, o) in enumerate(zip(result, out, strict=True)):
            _write_output(op, r, o, values, place)
        return op.result_type(out) if op.outputs else tuple(out)
    _write_output(op, result, out, values)
    return out


def _write_output(op: Op, result, out, values, place: int = 0) -> None:
    if not isinstance(out, GLOBALS["Tensor"]):
        raise TypeError(f"{op.function_name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if MODE.grad and (out._tl_node is not None or result._tl_node is not None):
        raise RuntimeError(
            f"{op.function_name}(): functions with out=... arguments don't support automatic differentiation, but "
            "one of the arguments requires grad."
        )
    if result._tl_kernels is not out._tl_kernels:
        raise RuntimeError(f"Expected out tensor to have device {result.device}, but got {out.device} instead")
    check_out_dtype(op, result.dtype, out.dtype, place, values[0].dtype if op.out.complex_to_real else None)
    _check_dtype_keyword(op, out.dtype, values)
    if out._tl_array.shape != result._tl_array.shape:
        if op.overlap.operands in ("none", "target"):
            check_out(op, out, values)
        if op.out.resize == "rounding" and out._tl_array.size not in (0, result._tl_array.size):
            warnings.warn(
                f"The number of elements in the out tensor of shape {list(out.shape)} is {out._tl_array.size} which "
                f"does "
                f"not match the computed number of elements {result._tl_array.size}. Note that this may occur as a "
                f"result "
                f"of rounding error. The out tensor will be resized to a tensor of shape ({result._tl_array.size},).",
                UserWarning,
                stacklevel=6,
            )
        elif out._tl_array.size and op.out.resize == "deprecated":
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does "
                f"not match the required output shape {list(result.shape)}. This behavior is deprecated, and in a "
                "future PyTorch release outputs will not be resized unless they have zero elements. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
                UserWarning,
                stacklevel=6,
            )
        if out._tl_array.base is None:
            out._tl_array = run_quietly(out._tl_kernels.to, out._tl_kernels.clone(result._tl_array), out.dtype)
        else:
            CALLBACKS.resize(out, tuple(result._tl_array.shape))
    check_out(op, out, values)
    write_raw(out, result._tl_array)
    bump_version(out)


def _check_dtype_keyword(op: Op, out: dtype, values) -> None:
    """RuntimeError where `dtype=` was given to a sum or product, and `out` has another one."""
    if not op.out.dtype_param:
        return
    asked = next((v for p, v in zip(op.params, values, strict=False) if p.name == _dtype_keyword(op)), None)
    if asked is not None and asked is not out:
        message = f"Expected out tensor to have dtype {asked.c_name}, but got {out.c_name} instead"
        raise op.out.error(op.out.message or message)


def _dtype_keyword(op: Op) -> str:
    """The parameter that names the dtype of `out`."""
    return "out_dtype" if op.out.dtype_param == "out_dtype" else "dtype"


def check_output_shape(target, shape) -> None:
    """RuntimeError unless a result of this shape can be written to the target."""
    if shape != target._tl_array.shape:
        raise RuntimeError(
            f"output with shape {list(target._tl_array.shape)} doesn't match the broadcast shape {list(shape)}"
        )


def fill_uninitialized(tensor) -> None:
    """In deterministic mode, fill uninitialised memory with NaN, or the largest integer."""
    d = tensor.dtype
    nan = float("nan")
    value = complex(nan, nan) if d.category == 3 else nan if d.category == 2 else d is bool_ or int(np.iinfo(d.np).max)
    tensor._tl_kernels.copy_into(tensor._tl_array, tensor._tl_kernels._full((), value, d))
