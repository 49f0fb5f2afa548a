"""Products of matrices of float8 with scales."""

from .._dispatch import Out, composite, op
from .._types.dtypes import (
    bfloat16,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
)  # fmt: skip

_FLOAT8 = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz)
_TENSORWISE, _ROWWISE = 0, 1  # numbers of `torch.nn.functional.ScalingType`


def _refuse_scales(input, mat2, scale_a, scale_b):
    def describe(name, matrix, which, scale):
        return (
            f"{name}.dtype()={matrix.dtype.scalar_name}, {which}.dtype()={scale.dtype.scalar_name}, "
            f"{which}.size()={list(scale.shape)}"
        )

    raise ValueError(
        "Invalid scaling configuration.\n"
        "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
        "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be "
        f"({input.shape[0]}, 1) and scale_b should be (1, {mat2.shape[1]}), and both should be contiguous.\n"
        f"Got {describe('mat_a', input, 'scale_a', scale_a)}, scale_a.stride()={list(scale_a.stride())}, "
        f"{describe('mat_b', mat2, 'scale_b', scale_b)} and scale_b.stride()={list(scale_b.stride())}"
    )


def _is_one_float(scale):
    return scale.dtype is float32 and scale.numel() == 1


def _check_rows(matrix, shape, scale):
    return scale.dtype is float32 and tuple(scale.shape) == shape and scale.is_contiguous()


def _check_scaled_mm(input, mat2, scale_a, scale_b, bias, scale_result):
    if input.ndim != 2:
        raise RuntimeError("mat1 must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    both = input.dtype in _FLOAT8 and mat2.dtype in _FLOAT8
    by_tensor = both and _is_one_float(scale_a) and _is_one_float(scale_b)
    by_row = (
        both and _check_rows(input, (input.shape[0], 1), scale_a) and _check_rows(mat2, (1, mat2.shape[1]), scale_b)
    )
    if not by_tensor and not by_row:
        _refuse_scales(input, mat2, scale_a, scale_b)
    _check_sizes(input, mat2)
    if scale_result is not None and not _is_one_float(scale_result):
        raise RuntimeError("scale_result must be a float scalar")
    _check_bias(mat2, bias)


def _check_sizes(input, mat2, error=RuntimeError, dims=(1, 0), end=""):
    a, b = input.shape, mat2.shape
    if a[dims[0]] != b[dims[1]]:
        raise error(f"mat_a and mat_b shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]}){end}")


def _check_bias(mat2, bias, error=RuntimeError):
    if bias is not None and bias.numel() != mat2.shape[1]:
        raise error(f"Bias must be size {mat2.shape[1]} but got {bias.numel()}")


def _scaled_product(F, input, mat2, scale_a, scale_b, bias, scale_result, dtype, name):
    kind = dtype or F.dtype_of(input)
    if (
        not (input.shape[0] and input.shape[1] and mat2.shape[1]) and name == "_scaled_mm_v2"
    ):  # scales are not looked at
        return F.to(F.matmul(F.to(input, float32), F.to(mat2, float32)), kind)
    if scale_a.ndim != 2:
        scale_a, scale_b = F.reshape(scale_a, ()), F.reshape(scale_b, ())
    out = F.matmul(F.mul(F.to(input, float32), scale_a), F.mul(F.to(mat2, float32), scale_b))
    if bias is not None:
        out = F.add(out, F.to(F.reshape(bias, (-1,)), float32))
    if scale_result is not None and dtype in (float8_e4m3fn, float8_e5m2):
        out = F.mul(out, F.div(F._ones_like(scale_result), scale_result))
    return F.to(out, kind)


def _no_derivative(F, g, name):
    raise RuntimeError(f"derivative for aten::{name} is not implemented")


op(
    "_scaled_product(Tensor input, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias, Tensor? scale_result, "
    "dtype, name)",
    where="",
    composite=_scaled_product,
    shape_fn=lambda input, mat2, scale_a, scale_b, bias, scale_result, dtype, name: (
        (input.shape[0], mat2.shape[1]),
        dtype or input.dtype,
    ),
    vjp=dict.fromkeys(("input", "mat2", "scale_a", "scale_b", "bias", "scale_result"), _no_derivative),
    node_name="NotImplemented",
    doc="The product of the op `name`, of arguments that fit. Without a dtype, `scale_result` is ignored.",
)

_OUT = Out("unchecked", "out_dtype must match output matrix type", error=ValueError, dtype_param="out_dtype")


@composite(
    "_scaled_mm(Tensor input, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
    "Tensor? scale_result=None, out_dtype=None, use_fast_accum=False)",
    where="torch",
    out=_OUT,
)
def _scaled_mm(F, input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum):
    """Computes a product of two matrices of float8, which are multiplied by scales before.

    Either both matrices have one scale, or the first has one for each row and the second one for each column. Sums are
    in float32.

    Args:
        input: The first matrix, of shape ``(n, m)``.
        mat2: The second one, of shape ``(m, p)``.
        scale_a: Scales of the first matrix: one, or of shape ``(n, 1)``, float32.
        scale_b: Those of the second matrix: one, or of shape ``(1, p)``.
        bias: A number for each column of the result, added to it, or ``None``.
        scale_result: A divisor of results of float8, if `out_dtype` is given.
        out_dtype: The dtype of the result. Default: that of `input`.
        use_fast_accum: Not used.

    Returns:
        A matrix of shape ``(n, p)``.

    Raises:
        ValueError: The dtypes or shapes of the scales do not fit.
        RuntimeError: The shapes of the other arguments do not fit.

    Example:
        >>> x = torch.eye(2).to(torch.float8_e4m3fn)
        >>> torch._scaled_mm(x, x, torch.tensor(2.0), torch.tensor(3.0), out_dtype=torch.float32)
        tensor([[6., 0.],
                [0., 6.]])
    """
    _check_scaled_mm(input, mat2, scale_a, scale_b, bias, scale_result)
    return F._scaled_product(input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, "_scaled_mm")


def _check_matrices(input, mat2):
    """Refuse what is no matrix. Return whether a size is 0."""
    for name, matrix in (("mat_a", input), ("mat_b", mat2)):
        if matrix.ndim != 2:
            raise ValueError(f"{name} must be a matrix")
    return 0 in input.shape or not mat2.shape[1]


def _check_scaled_mm_v2(
    input, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, contraction_dim
):  # fmt: skip
    if contraction_dim:
        if len(contraction_dim) != 2:
            raise ValueError("contraction_dim must have exactly 2 elements")
        one, two = contraction_dim
        _check_sizes(input, mat2, ValueError, (one, two), f" with contraction dims mat_a: {one}, mat_b: {two}")
    else:
        _check_sizes(input, mat2, ValueError)
    _check_bias(mat2, bias, ValueError)
    if bias is not None and bias.dtype not in (float32, bfloat16, float16):
        raise ValueError(f"Bias must be Float32 or BFloat16 or Half, but got {bias.dtype.scalar_name}")
    if any(list(swizzle)[:1] not in ([], [0]) for swizzle in (swizzle_a, swizzle_b)):
        raise ValueError("CPU does not support swizzle.")
    if not _fits_recipe(input, mat2, scale_a, list(recipe_a), scale_b, list(recipe_b)):
        _refuse_scales(input, mat2, scale_a[0], scale_b[0])
    if list(recipe_a) == [_ROWWISE]:
        _check_row_scales(input, mat2, scale_a[0], scale_b[0])
    _check_sizes(input, mat2)


def _fits_recipe(input, mat2, scale_a, recipe_a, scale_b, recipe_b):
    if len(scale_a) != 1 or len(scale_b) != 1 or recipe_a != recipe_b or recipe_a not in ([_TENSORWISE], [_ROWWISE]):
        return False
    if any(matrix.dtype not in _FLOAT8 for matrix in (input, mat2)):
        return False
    if recipe_a == [_TENSORWISE]:
        return _is_one_float(scale_a[0]) and _is_one_float(scale_b[0])
    return all(scale.dtype is float32 for scale in (scale_a[0], scale_b[0]))


def _check_row_scales(input, mat2, scale_a, scale_b):
    rows, columns = input.shape[0], mat2.shape[1]
    if scale_a.size(0) != rows or scale_a.size(1) != 1:
        raise ValueError(f"scale_a must have shape [{rows}, 1], got [{list(scale_a.shape)}]")
    if scale_b.numel() != columns:
        raise ValueError(f"scale_b must have {columns} Float elements, got {scale_b.numel()}")
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        if scale.stride(1) != 1:
            raise ValueError(f"expected {name}.stride(1) to be 1, but got {scale.stride(1)}")


@composite(
    "_scaled_mm_v2(Tensor input, Tensor mat2, Tensor[] scale_a, recipe_a, swizzle_a, Tensor[] scale_b, recipe_b, "
    "swizzle_b, Tensor? bias, out_dtype, contraction_dim=(), use_fast_accum=False)",
    where="torch",
    out=_OUT,
)
def _scaled_mm_v2(
    F, input, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim,
    use_fast_accum,
):  # fmt: skip
    """Computes a product of two matrices of float8, which are multiplied by scales before.

    Either both matrices have one scale, or the first has one for each row and the second one for each column. Sums are
    in float32.

    Args:
        input: The first matrix, of shape ``(n, m)``.
        mat2: The second one, of shape ``(m, p)``.
        scale_a: The scales of the first matrix, in a list.
        recipe_a: How they are given: ``[0]`` for one, ``[1]`` for one of each row.
        swizzle_a: The order of the scales in memory: ``[0]`` or empty.
        scale_b: The scales of the second matrix, in a list.
        recipe_b: As `recipe_a`.
        swizzle_b: As `swizzle_a`.
        bias: A number for each column of the result, added to it, or ``None``.
        out_dtype: The dtype of the result. ``None``: that of `input`.
        contraction_dim: The dimensions along which products are added up, or nothing.
        use_fast_accum: Not used.

    Returns:
        A matrix of shape ``(n, p)``.

    Raises:
        ValueError: The arguments do not fit.

    Example:
        >>> x, two = torch.eye(2).to(torch.float8_e4m3fn), torch.tensor(2.0)
        >>> torch._scaled_mm_v2(x, x, [two], [0], [0], [two], [0], [0], None, torch.float32)
        tensor([[4., 0.],
                [0., 4.]])
    """
    if not _check_matrices(input, mat2):
        _check_scaled_mm_v2(
            input, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, contraction_dim
        )
    return F._scaled_product(input, mat2, scale_a[0], scale_b[0], bias, None, out_dtype, "_scaled_mm_v2")
