"""`out=`: results written into given tensors, and which dtypes PyTorch's ops write to, with its words for the others.

Most ops cast what they computed. Others want a dtype of their own, and say so each in its way: one entry here, whatever
the device.
"""

from __future__ import annotations

import warnings

import numpy as np

from .._types.dtypes import bool_, can_cast, dtype
from .autograd_graph import bump_version, write_raw
from .callbacks import CALLBACKS
from .dispatch_state import GLOBALS, MODE
from .error_translation import ARGUMENT_ERRORS
from .memory_overlap import REFUSES_FULL_OVERLAP, check_out
from .op_record import DEFAULT, INT_TO_FLOAT, POINTWISE, REGISTRY, Op
from .type_promotion import result_dtype

# A result of any dtype is written.
_ANY_DTYPE = frozenset(
    "eq ge gt le lt ne logical_and logical_not logical_or logical_xor bernoulli cumprod cumsum eye linspace logspace "
    "range _ones _zeros _new _filled".split()
)
# What makes new elements gives `out` its size without a word.
_DTYPE_OF_OUT = frozenset(
    "_linspace _logspace _arange arange _full _empty _identity_matrix eye range _ones _zeros _new _random_uniform "
    "_random_normal _random_integers _random_permutation".split()
)
_STEPS = frozenset(("_arange", "arange", "fft_fftfreq", "fft_rfftfreq"))  # ... these with some
# "Expected out tensor to have dtype float, but got double instead".
_SAME_DTYPE = frozenset(
    "_addmm_activation addmm addmv alias_copy as_strided_copy baddbmm bmm cross detach_copy diagonal_copy expand_copy "
    "frobenius_norm gather index_add index_copy index_reduce inverse linalg_cross linalg_det linalg_inv linalg_solve "
    "linalg_svdvals linalg_vector_norm matmul mm msort permute_copy renorm scatter scatter_add scatter_reduce "
    "select_copy slice_copy slice_scatter squeeze_copy t_copy take_along_dim transpose_copy tril triu unfold_copy "
    "unsqueeze_copy view_as_real_copy view_as_complex_copy view_copy aminmax linalg_qr linalg_slogdet qr slogdet "
    "split_with_sizes_copy triangular_solve linalg_lu linalg_svd svd unbind_copy linalg_inv_ex linalg_lu_factor "
    "linalg_solve_ex linalg_lu_factor_ex argmax argmin sort topk isin matrix_power diag max min median "
    "nanmedian".split()
)
# The same in other words: `want` and `got` are names such as Float, `c_want` and `c_got` such as float.
_SAME_DTYPE_MESSAGE = "{name}(): self and result must have the same scalar type"
_FOUND_MESSAGE = "Found dtype {got} but expected {want}"
_SCALAR_TYPE_MESSAGE = "expected scalar type {want} but found {got}"
_MESSAGES = {
    **dict.fromkeys("abs ceil clamp conj_physical floor frac neg sgn sign trunc bitwise_not".split(), _FOUND_MESSAGE),
    **dict.fromkeys(("isneginf", "isposinf", "signbit"), "{name} does not support non-boolean outputs."),
    **dict.fromkeys(("all", "any"), "{name} only supports bool tensor for result, got: {got}"),
    **dict.fromkeys(
        ("amax", "amin"),
        "Expected the dtype for input and out to match, but got {want} for input's dtype and {got} for out's dtype.",
    ),
    **dict.fromkeys(("cummax", "cummin", "logcumsumexp"), "expected scalar_type {want} but found {got}"),
    **dict.fromkeys(("dot", "vdot"), "result dtype {got} does not match input dtype {want}"),
    **dict.fromkeys(("index_select", "masked_select"), _SAME_DTYPE_MESSAGE),
    **dict.fromkeys(
        ("linalg_matrix_norm", "linalg_norm"), "linalg.{short} expected out tensor dtype {want} but got: {got}"
    ),
    **dict.fromkeys(
        ("nonzero", "nonzero_static"), "{name}: Expected out tensor to have scalar type {want} but got scalar type{got}"
    ),
    **dict.fromkeys(("complex", "polar"), "Expected object of scalar type {want} but got scalar type {got} for "
        "argument 'out'"),
    **dict.fromkeys(
        ("inner", "tensordot"),
        "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with dtype {got}",
    ),
    **dict.fromkeys(("quantile", "nanquantile"), "quantile() out tensor must be same dtype as the input tensor"),
    **dict.fromkeys(
        ("chain_matmul", "linalg_multi_dot"), "multi_dot(): expected out tensor to have dtype {c_want} but got {c_got}"
    ),
    "addbmm": "self and mat2 must have the same dtype, but got {got} and {want}",
    "float_power": "the output given to float_power has dtype {got} but the operation's result requires dtype {want}",
    "hash_tensor": "Expected result to be of dtype uint64, but got {got}",
    "heaviside": "heaviside is not yet implemented for tensors with different dtypes.",
    "histc": "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {c_want} and "
    "hist {c_got}",
    "linalg_solve_triangular": _SCALAR_TYPE_MESSAGE,
    "native_batch_norm": _SCALAR_TYPE_MESSAGE,
    "linalg_vecdot": "linalg.vecdot: Expected out of dtype{want} but found {got}",
    "multinomial": "multinomial expects Long tensor out, got: {got}",
    "mv": "addmv input tensors must have the same dtype, but got {got}, {want}, and {want}",
    "nan_to_num": "nan_to_num: dtype of out: {got} should be same as input: {want}",
    "nuclear_norm": "linalg.matrix_norm expected out tensor dtype {want} but got: {got}",
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{want} and result has "
    "dtype {got}",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {want} and out.dtype = {got}",
    "where": "Expected out type to be {want} but got {got}",
    "_int_mm": "int_mm_out_cpu: Expected result dtype to be of type kInt but got {c_got}",
}  # fmt: skip
# Where `dtype=` must be the dtype of `out`.
_DTYPE_KEYWORD_OPS = frozenset(("sum", "nansum", "prod", "cumsum", "cumprod"))
# Ops of several results that name each in the words.
_KTHVALUE = ("output values must be of same type as input", "output indices must be of scalar type Long")
_MODE = tuple("expected scalar type '{want}' but got '{got}' for " + f"{name} output" for name in ("values", "indices"))
_FREXP = (
    "torch.frexp() expects mantissa to have dtype {c_want} but got {c_got}",
    "torch.frexp() expects exponent to have int dtype but got {c_got}",
)
_MULTI_OUTPUT_MESSAGES = {"kthvalue": _KTHVALUE, "mode": _MODE, "frexp": _FREXP}
# Casts as most ops do, with words of its own where it cannot.
_CASTS = {
    **dict.fromkeys(
        "fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_rfft fft_rfft2 fft_rfftn fft_ihfft fft_ihfft2 "
        "fft_ihfftn".split(),
        "{short} expects a complex output tensor, but got {got}",
    ),
    **dict.fromkeys(
        "fft_hfft fft_hfft2 fft_hfftn fft_irfft fft_irfft2 fft_irfftn".split(),
        "{short} expects a floating point output tensor, but got {got}",
    ),
    **dict.fromkeys(
        ("cholesky_solve", "linalg_tensorinv", "linalg_tensorsolve", "linalg_cond", "linalg_householder_product",
         "linalg_matrix_rank", "linalg_pinv"),
        "{dotted}: Expected result to be safely castable from {want} dtype, but got result with dtype {got}",
    ),
    "linalg_eigvals": "torch.linalg.eigvals: Expected eigenvalues to be safely castable from {want} dtype, but got "
    "eigenvalues with dtype {got}",
    "logsumexp": "logsumexp(): Expected floating point type for result tensor, but got: {got}",
    "mean": "mean.dtype_out(): input types can't be cast to the desired output type {got}",
}  # fmt: skip
_CAST_TYPE_ERRORS = frozenset(("cat", "column_stack", "dstack", "hstack", "stack", "vstack"))


def check_out_dtype(op: Op, result: dtype, out: dtype, place: int = 0, given: dtype | None = None) -> None:
    """Whether an op's result of a dtype may be written to a tensor of another; `place` counts several results, `given`
    is the dtype of what `abs` was called with. Raises RuntimeError (of joined tensors TypeError).
    """
    if given is not None and given.is_complex:  # moduli go where they can be cast to, or where the numbers could go
        if can_cast(result, out) and not out.is_complex:
            return
        if out.is_complex:
            result = given
    if result is out or op.name in _ANY_DTYPE or op.name in ("all", "any") and out.name == "uint8":
        return
    name = op.name
    short = name.partition("_")[2] if name.startswith(("linalg_", "fft_", "special_")) else name
    dotted = f"linalg.{short}" if name.startswith("linalg_") else name
    if name in _SAME_DTYPE:
        words = "Expected out tensor to have dtype {c_want}, but got {c_got} instead"
    elif name in _MULTI_OUTPUT_MESSAGES:
        words = _MULTI_OUTPUT_MESSAGES[name][place]
    else:
        words = "" if given is not None and given.is_complex and not out.is_complex else _MESSAGES.get(name, "")
        if not words:
            if can_cast(result, out):
                return
            if name in _CAST_TYPE_ERRORS:
                raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {out.scalar_name}")
            words = _CASTS.get(name, "result type {want} can't be cast to the desired output type {got}")
    raise RuntimeError(
        words.format(
            name=name,
            short=short,
            dotted=dotted,
            want=result.scalar_name,
            got=out.scalar_name,
            c_want=result.c_name,
            c_got=out.c_name,
        )
    )


def check_target_dtype(op: Op, result: dtype, target: dtype) -> None:
    """Whether an op in place may write a result of a dtype to its target: RuntimeError where it cannot be cast."""
    if op.name == "float_power" and result is not target:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {target.scalar_name} but the operation's result requires dtype "
            f"{result.scalar_name}"
        )
    if not can_cast(result, target):
        raise RuntimeError(
            f"result type {result.scalar_name} can't be cast to the desired output type {target.scalar_name}"
        )


def check_operand_dtypes(op: Op, values) -> None:
    """The same before the op runs, where its dtype is that of its operands together: PyTorch asks it first."""
    if op.promote != DEFAULT or op.check is not None or not op.tags & POINTWISE:
        return
    names = op.promote_args or [p.name for p in op.params if p.is_tensor]
    operands = [v for p, v in zip(op.params, values, strict=True) if p.name in names and v is not None]
    if all(isinstance(v, (GLOBALS["Tensor"], int, float, complex)) for v in operands):
        check_target_dtype(op, result_dtype(operands), values[0].dtype)


def try_out_kernel(op: Op, values, out, guarded) -> bool:
    """Whether an elementwise op of large plain tensors wrote its result where it belongs: by a kernel that takes the
    array to write (`takes_out`), from operands of the result's dtype and shape. Others are computed and then copied.
    `guarded` is asked before a write while that is up.
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
    if not getattr(kernel, "takes_out", False) or MODE.grad and out._tl_node is not None:
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
    check_out(op.name, out, values)
    if GLOBALS["WRITE_CHECKS"] and guarded(out):
        return False
    try:
        kernel(*given, out=raw)
    except ARGUMENT_ERRORS:  # the op itself raises PyTorch's error
        return False
    bump_version(out)
    return True


def write_outputs(op: Op, result, out, values):
    """out=: results written into given tensors, resized when empty or of another shape. `values` are the op's
    arguments.
    """
    if out.__class__ in (tuple, list) or isinstance(result, tuple):
        if len(out) != len(result):
            raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
        for place, (r, o) in enumerate(zip(result, out, strict=True)):
            _write_output(op, r, o, values, place)
        return op.result_type(out) if op.outputs else tuple(out)
    _write_output(op, result, out, values)
    return out


def _write_output(op: Op, result, out, values, place: int = 0) -> None:
    if not isinstance(out, GLOBALS["Tensor"]):
        raise TypeError(f"{op.name.lstrip('_')}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if MODE.grad and (out._tl_node is not None or result._tl_node is not None):
        raise RuntimeError(
            f"{op.name.lstrip('_')}(): functions with out=... arguments don't support automatic differentiation, but "
            "one of the arguments requires grad."
        )
    if result._tl_kernels is not out._tl_kernels:
        raise RuntimeError(f"Expected out tensor to have device {result.device}, but got {out.device} instead")
    check_out_dtype(op, result.dtype, out.dtype, place, values[0].dtype if op.name == "abs" else None)
    _check_dtype_keyword(op, out.dtype, values)
    if out._tl_array.shape != result._tl_array.shape:
        if op.name in REFUSES_FULL_OVERLAP:
            check_out(op.name, out, values)
        if op.name in _STEPS and out._tl_array.size not in (0, result._tl_array.size):
            warnings.warn(
                f"The number of elements in the out tensor of shape {list(out.shape)} is {out._tl_array.size} which does "
                f"not match the computed number of elements {result._tl_array.size}. Note that this may occur as a result "
                f"of rounding error. The out tensor will be resized to a tensor of shape ({result._tl_array.size},).",
                UserWarning,
                stacklevel=6,
            )
        elif out._tl_array.size and op.name not in _DTYPE_OF_OUT:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does "
                f"not match the required output shape {list(result.shape)}. This behavior is deprecated, and in a "
                "future PyTorch release outputs will not be resized unless they have zero elements. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
                UserWarning,
                stacklevel=6,
            )
        if out._tl_array.base is None:
            out._tl_array = out._tl_kernels.to(out._tl_kernels.clone(result._tl_array), out.dtype)
        else:
            CALLBACKS.resize(out, tuple(result._tl_array.shape))
    check_out(op.name, out, values)
    write_raw(out, result._tl_array)
    bump_version(out)


def _check_dtype_keyword(op: Op, out: dtype, values) -> None:
    """RuntimeError where `dtype=` was given to a sum or product, and `out` has another one."""
    if op.name not in _DTYPE_KEYWORD_OPS:
        return
    asked = next((v for p, v in zip(op.params, values, strict=False) if p.name == "dtype"), None)
    if asked is not None and asked is not out:
        raise RuntimeError(f"Expected out tensor to have dtype {asked.c_name}, but got {out.c_name} instead")


def check_output_shape(target, shape) -> None:
    """RuntimeError unless a result of this shape can be written to the target."""
    if shape != target._tl_array.shape:
        raise RuntimeError(
            f"output with shape {list(target._tl_array.shape)} doesn't match the broadcast shape {list(shape)}"
        )


def fill_uninitialized(tensor) -> None:
    """In deterministic mode: what was not set is NaN, or the largest integer."""
    d = tensor.dtype
    nan = float("nan")
    value = complex(nan, nan) if d.category == 3 else nan if d.category == 2 else d is bool_ or int(np.iinfo(d.np).max)
    tensor._tl_kernels.copy_into(tensor._tl_array, tensor._tl_kernels._full((), value, d))
