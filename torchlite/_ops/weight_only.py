"""Products of floats with weights of eight and four bits, which stay packed."""

import math

from .._dispatch import NONDIFF, Out, composite, op
from .._dispatch.error_translation import no_backend_kernel_error
from .._types.dtypes import bfloat16, float16, float32, int8, int32, int64, uint8
from ._gradient_helpers import make_missing_derivative_formula

_FLOATS = (float32, bfloat16, float16)
# Rows of a block of packed four-bit weights. Those after the last whole block lie in another order.
INT4_BLOCK = 64
_INT4_GROUPS = (32, 64, 128, 256)


def _no_derivatives(name, *tensors):
    return dict.fromkeys(tensors, make_missing_derivative_formula(name))


def _same_scalar_type(input, other):
    if other.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {other.dtype.scalar_name}")


def _by_columns(F, input, weight):
    """The product in float32 with the transposed weight, which has a row for each output."""
    return F.matmul(F.to(input, float32), F.transpose(weight, 0, 1))


# --- eight bits -----------------------------------------------------------------------------------------------------


def _check_int8pack(input, mat2, scales):
    name = "_weight_int8pack_mm_cpu"
    input.size(0)
    rows, depth = mat2.size(0), input.size(1)
    if input.dtype not in _FLOATS:
        raise RuntimeError(f"{name} : expect A to be either 32-bit or 16-bit float tensor.")
    if input.ndim != 2:
        raise RuntimeError(f"{name} : expect A to be 2D tensor.")
    if input.stride(1) != 1:
        raise RuntimeError(f"{name} : A must be contiguous on the last dimension.")
    if mat2.dtype is not int8:
        raise RuntimeError(f"{name} : expect B to be int8 tensor.")
    if not mat2.is_contiguous():
        raise RuntimeError(f"{name} : expect B to be contiguous.")
    if mat2.size(1) != depth:
        raise RuntimeError(f"{name} : expect B.size(1) == {depth}")
    if scales.ndim != 1 or scales.shape[0] != rows:
        raise RuntimeError(f"{name} : expect scales to be 1d tensor with size {rows}")
    _same_scalar_type(input, scales)


def _int8_weight_product(F, input, weight, scales):
    out = F.mul(_by_columns(F, input, F.to(weight, float32)), F.to(scales, float32))
    return F.to(out, F.dtype_of(input))


op(
    "_int8_weight_product(Tensor input, Tensor weight, Tensor scales)",
    where="",
    composite=_int8_weight_product,
    shape_fn=lambda input, weight, scales: ((input.shape[0], weight.shape[0]), input.dtype),
    vjp=_no_derivatives("_weight_int8pack_mm", "input", "weight", "scales"),
    node_name="NotImplemented",
    doc="The product of `_weight_int8pack_mm`, of arguments that fit. Weights may have float16, too.",
)


@composite("_weight_int8pack_mm(Tensor input, Tensor mat2, Tensor scales)", where="torch", out=Out(supported=False))
def _weight_int8pack_mm(F, input, mat2, scales):
    """Computes the product of floats with weights of eight bits: ``(input @ mat2.T) * scales``.

    Sums are in float32, and the result is rounded once.

    Args:
        input: A matrix of shape ``(n, m)``, of float32, bfloat16 or float16.
        mat2: The weights, a row-major matrix of int8 of shape ``(p, m)``.
        scales: A factor for each row of the weights, of the input's dtype.

    Returns:
        A matrix of shape ``(n, p)`` of the input's dtype.

    Raises:
        RuntimeError: The shapes, dtypes or strides do not fit.

    Example:
        >>> weights = torch.tensor([[1, 2], [-3, 4]], dtype=torch.int8)
        >>> torch._weight_int8pack_mm(torch.tensor([[1., 10.]]), weights, torch.tensor([1.0, 0.5]))
        tensor([[21.0000, 18.5000]])
    """
    _check_int8pack(input, mat2, scales)
    return F._int8_weight_product(input, mat2, scales)


# --- four bits ------------------------------------------------------------------------------------------------------


def _check_int4_weight(input):
    name = "_convert_weight_to_int4pack_cpu"
    if input.ndim != 2:
        raise RuntimeError(f"{name} : expect weight to be 2D tensor.")
    if input.dtype is not int32:
        raise RuntimeError(f"{name} : expect weight to be kInt.")
    if input.shape[0] % 16:
        raise RuntimeError(f"{name} : expect N to be dividable by 16")
    if input.shape[1] % 2:
        raise RuntimeError("_convert_weight_to_int4pack: expect K to be dividable by 2")


def _pack_int4(F, input):
    rows, depth = input.shape
    whole = rows // INT4_BLOCK * INT4_BLOCK
    levels = F.bitwise_and(input, 255)
    parts = []
    if whole:
        # A byte has the numbers of two rows that lie half a block apart.
        halves = F.permute(F.reshape(F._slice(levels, 0, 0, whole, 1), (-1, 2, INT4_BLOCK // 2, depth)), (1, 0, 3, 2))
        parts.append(_join_halves(F, F.select(halves, 0, 0), F.select(halves, 0, 1)))
    if whole < rows:
        pairs = F.permute(F.reshape(F._slice(levels, 0, whole, rows, 1), (-1, 2, depth)), (1, 2, 0))
        parts.append(_join_halves(F, F.select(pairs, 0, 0), F.select(pairs, 0, 1)))
    flat = F.cat([F.reshape(part, (-1,)) for part in parts]) if parts else F.reshape(levels, (-1,))
    return F.reshape(F.to(flat, uint8), (rows, depth // 2))


def _join_halves(F, low, high):
    return F.bitwise_and(F.bitwise_or(low, F.bitwise_left_shift(high, 4)), 255)


op(
    "_pack_int4(Tensor input)",
    where="",
    tags=NONDIFF,
    composite=_pack_int4,
    shape_fn=lambda input: ((input.shape[0], input.shape[1] // 2), uint8),
    doc="The packed weights of `_convert_weight_to_int4pack_for_cpu`, of an argument that fits.",
)


@composite("_convert_weight_to_int4pack_for_cpu(Tensor input, innerKTiles)", where="torch", out=Out(supported=False))
def _convert_weight_to_int4pack_for_cpu(F, input, innerKTiles):
    """Packs weights of four bits for `torch._weight_int4pack_mm_for_cpu`.

    Of 64 rows, a byte has the numbers of a column in rows ``i`` and ``i + 32``, and 32 bytes a column, as PyTorch packs
    them on a processor with AVX-512. Rows after the last 64 lie in pairs.

    Args:
        input: Numbers from 0 to 15 in a matrix of int32, with a multiple of 16 rows and an even number of columns.
        innerKTiles: Not used.

    Returns:
        A matrix of uint8 of half as many columns.

    Raises:
        RuntimeError: The input is no such matrix.

    Example:
        >>> torch._convert_weight_to_int4pack_for_cpu(torch.arange(16).reshape(16, 1).expand(16, 2).int(), 1)[0]
        tensor([16], dtype=torch.uint8)
    """
    _check_int4_weight(input)
    return F._pack_int4(input)


def unpack_int4(F, packed):
    """The numbers of packed weights, as int32, a row for each output."""
    rows, depth = packed.shape[0], packed.shape[1] * 2
    whole = rows // INT4_BLOCK * INT4_BLOCK
    low, high = F.bitwise_and(packed, 15), F.bitwise_right_shift(packed, 4)
    parts = []
    if whole:
        shape = (whole // INT4_BLOCK, depth, 1, INT4_BLOCK // 2)
        halves = [F.reshape(F._slice(x, 0, 0, whole, 1), shape) for x in (low, high)]
        parts.append(F.reshape(F.permute(F.cat(halves, 2), (0, 2, 3, 1)), (whole, depth)))
    if whole < rows:
        pairs = [F.reshape(F._slice(x, 0, whole, rows, 1), (depth, (rows - whole) // 2, 1)) for x in (low, high)]
        parts.append(F.reshape(F.permute(F.cat(pairs, 2), (1, 2, 0)), (rows - whole, depth)))
    return F.to(F.cat(parts) if parts else F.reshape(low, (rows, depth)), int32)


def _check_int4pack(input, mat2, qGroupSize, qScaleAndZeros):
    name = "_weight_int4pack_mm_cpu"
    input.size(0)
    rows, depth = mat2.size(0), input.size(1)
    if input.dtype not in _FLOATS:
        raise RuntimeError(f"{name} : expect A to be either 32-bit or 16-bit float tensor.")
    if not input.is_contiguous():
        raise RuntimeError(f"{name} : expect A to be contiguous.")
    if input.ndim != 2:
        raise RuntimeError(f"{name} : expect A to be 2D tensor.")
    if mat2.dtype is not uint8:
        raise RuntimeError(f"{name} : expect B to be uint8 tensor.")
    if not mat2.is_contiguous():
        raise RuntimeError(f"{name} : expect B to be contiguous.")
    if mat2.size(1) != depth // 2:
        raise RuntimeError(f"{name} : expect B.size(1) to be K/2, got {mat2.size(1)}")
    if qGroupSize not in _INT4_GROUPS:
        raise RuntimeError(f"{name}: expect qGroupSize to be 32, 64, 128 or 256, got {qGroupSize}")
    if depth % qGroupSize:
        raise RuntimeError(f"{name}: expect K to be divisible by qGroupSize, got K:{depth}, qGroupSize:{qGroupSize}")
    shape = tuple(qScaleAndZeros.shape)
    if len(shape) != 3 or shape[1:] != (rows, 2):
        raise RuntimeError(f"{name}: expect qScaleAndZeros to be 3d tensor with sizes [:, {rows}, 2]")
    if shape[0] < depth // qGroupSize:  # (PyTorch reads memory behind it)
        raise RuntimeError(f"{name}: expect qScaleAndZeros of {depth // qGroupSize} groups, got {shape[0]}")
    if rows % 16:
        raise RuntimeError(f"Unsupported n block size: {rows % INT4_BLOCK}")
    _same_scalar_type(input, qScaleAndZeros)


def _int4_weight_product(F, input, weight, group_size, factors):
    rows, groups = weight.shape[0], input.shape[1] // group_size
    factors = F.permute(F.to(F._slice(factors, 0, 0, groups, 1), float32), (2, 1, 0))
    scale, zero = (F.unsqueeze(F.select(factors, 0, i), 2) for i in (0, 1))
    levels = F.reshape(F.to(F.sub(unpack_int4(F, weight), 8), float32), (rows, groups, group_size))
    numbers = F.reshape(F.add(F.mul(levels, scale), zero), (rows, input.shape[1]))
    return F.to(_by_columns(F, input, numbers), F.dtype_of(input))


op(
    "_int4_weight_product(Tensor input, Tensor weight, group_size, Tensor factors)",
    where="",
    composite=_int4_weight_product,
    shape_fn=lambda input, weight, group_size, factors: ((input.shape[0], weight.shape[0]), input.dtype),
    vjp=_no_derivatives("_weight_int4pack_mm_for_cpu", "input", "weight", "factors"),
    node_name="NotImplemented",
    doc="The product of `_weight_int4pack_mm_for_cpu`, of arguments that fit.",
)


@composite(
    "_weight_int4pack_mm_for_cpu(Tensor input, Tensor mat2, qGroupSize, Tensor qScaleAndZeros)",
    where="torch",
    out=Out(supported=False),
)
def _weight_int4pack_mm_for_cpu(F, input, mat2, qGroupSize, qScaleAndZeros):
    """Computes the product of floats with packed weights of four bits.

    A weight is ``(number - 8) * scale + zero``, with the scale and the zero of its group. Sums are in float32, and the
    result is rounded once.

    Args:
        input: A row-major matrix of shape ``(n, m)``, of float32, bfloat16 or float16.
        mat2: The result of `torch._convert_weight_to_int4pack_for_cpu`, for ``p`` outputs.
        qGroupSize: How many numbers of a row share a scale and a zero: 32, 64, 128 or 256.
        qScaleAndZeros: The scales and zeros, of shape ``(m / qGroupSize, p, 2)`` and the input's dtype.

    Returns:
        A matrix of shape ``(n, p)`` of the input's dtype.

    Raises:
        RuntimeError: The shapes, dtypes or strides do not fit.

    Example:
        >>> packed = torch._convert_weight_to_int4pack_for_cpu(torch.full((16, 32), 9, dtype=torch.int32), 1)
        >>> torch._weight_int4pack_mm_for_cpu(torch.ones(1, 32), packed, 32, torch.ones(1, 16, 2))[0, :2]
        tensor([64., 64.])
    """
    _check_int4pack(input, mat2, qGroupSize, qScaleAndZeros)
    return F._int4_weight_product(input, mat2, qGroupSize, qScaleAndZeros)


@composite("_convert_weight_to_int4pack(Tensor input, innerKTiles)", where="torch", out=Out(supported=False))
def _convert_weight_to_int4pack(F, input, innerKTiles):
    """Gives the shape of weights of four bits that are packed for the tensor cores of a GPU.

    It serves the device "meta". No other device has the packed form.

    Args:
        input: A matrix of uint8, with two numbers in a byte.
        innerKTiles: How many tiles of columns lie side by side.

    Returns:
        A tensor of int32.

    Raises:
        NotImplementedError: The input is on another device.
        RuntimeError: The input is no matrix of uint8.

    Example:
        >>> torch._convert_weight_to_int4pack(torch.empty(16, 64, dtype=torch.uint8, device="meta"), 2).shape
        torch.Size([2, 4, 32, 1])
    """
    if input.device.type != "meta":
        raise no_backend_kernel_error("_convert_weight_to_int4pack", "", input)
    if input.ndim != 2:
        raise RuntimeError("w must be a 2D tensor")
    if input.dtype is not uint8:
        raise RuntimeError(f"expected w to be uint8, got {input.dtype}")
    rows, depth = input.shape
    return input.new_empty((rows // 8, depth // (innerKTiles * 8), 32, innerKTiles // 2), dtype=int32)


@composite(
    "_weight_int4pack_mm(Tensor input, Tensor mat2, qGroupSize, Tensor qScaleAndZeros)",
    where="torch",
    out=Out(supported=False),
)
def _weight_int4pack_mm(F, input, mat2, qGroupSize, qScaleAndZeros):
    """Gives the shape of a product with weights of four bits that are packed for the tensor cores of a GPU.

    It serves the device "meta". `torch._weight_int4pack_mm_for_cpu` computes products, on all devices.

    Args:
        input: A matrix of shape ``(n, m)``, of float32, bfloat16 or float16.
        mat2: Packed weights, int32 with four dimensions.
        qGroupSize: How many numbers of a row share a scale and a zero.
        qScaleAndZeros: The scales and zeros.

    Returns:
        A matrix of the input's dtype.

    Raises:
        NotImplementedError: The input is on another device.
        RuntimeError: The dtypes or numbers of dimensions do not fit.

    Example:
        >>> x = torch.empty(3, 64, dtype=torch.bfloat16, device="meta")
        >>> packed = torch._convert_weight_to_int4pack(torch.empty(16, 64, dtype=torch.uint8, device="meta"), 2)
        >>> torch._weight_int4pack_mm(x, packed, 32, torch.empty(2, 16, 2, dtype=torch.bfloat16, device="meta")).shape
        torch.Size([3, 16])
    """
    if input.device.type != "meta":
        raise no_backend_kernel_error("_weight_int4pack_mm", "", input)
    if input.ndim != 2:
        raise RuntimeError("x must be a 2D tensor")
    if mat2.ndim != 4:
        raise RuntimeError("w must be a 4D tensor")
    if input.dtype not in _FLOATS:
        raise RuntimeError(f"expected x to be f32/f16/bf16, got {input.dtype}")
    if mat2.dtype is not int32:
        raise RuntimeError(f"expected w to be int32, got {mat2.dtype}")
    return input.new_empty((input.shape[0], mat2.shape[0] * 8))


# --- four bits, with inputs that are quantized by their range -------------------------------------------------------


def _check_block_size(name, block_size, in_features):
    if block_size != in_features and (not block_size or block_size % 32 or in_features % block_size):
        raise RuntimeError(
            f"{name}: Group size should be multiple of 32, in_features [{in_features}]. Provided {block_size}"
        )


def _join_as_floats(F, weights, scales_zeros, bias):
    parts = (weights, scales_zeros) if bias is None else (weights, scales_zeros, bias)
    return F.cat([F.reshape(F.to(part, float32), (-1,)) for part in parts])


op(
    "_join_as_floats(Tensor weights, Tensor scales_zeros, Tensor? bias)",
    where="",
    composite=_join_as_floats,
    shape_fn=lambda weights, scales_zeros, bias: (
        (sum(math.prod(x.shape) for x in (weights, scales_zeros, bias) if x is not None),),
        float32,
    ),
    vjp=_no_derivatives("_dyn_quant_pack_4bit_weight", "weights", "scales_zeros", "bias"),
    node_name="NotImplemented",
    doc="The numbers of tensors in a row, as float32.",
)


@composite(
    "_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, block_size, in_features, "
    "out_features)",
    where="torch",
    out=Out(supported=False),
)
def _dyn_quant_pack_4bit_weight(F, weights, scales_zeros, bias, block_size, in_features, out_features):
    """Packs weights of four bits for `torch._dyn_quant_matmul_4bit`: their bytes, scales and biases as float32
    numbers in a row, as in PyTorch on x86.

    Args:
        weights: Bytes of two numbers, the first in the lower bits, a row for each output.
        scales_zeros: The factor of each group of each row.
        bias: A number for each output, or ``None``.
        block_size: How many numbers share a factor: a multiple of 32, or all of a row.
        in_features: The numbers of a row.
        out_features: The number of rows.

    Returns:
        A tensor of float32 with one dimension.

    Raises:
        RuntimeError: `weights` is not uint8, or `block_size` does not fit.

    Example:
        >>> weights, scales = torch.full((2, 16), 0x9A, dtype=torch.uint8), torch.tensor([[1.0], [0.5]])
        >>> torch._dyn_quant_pack_4bit_weight(weights, scales, None, 32, 32, 2)[-3:]
        tensor([154.0000,   1.0000,   0.5000])
    """
    name = "_dyn_quant_pack_4bit_weight_cpu"
    if weights.dtype is not uint8:
        raise RuntimeError(f"{name} : expect weight to be kByte.")
    _check_block_size(name, block_size, in_features)
    scales_zeros, bias = (x if x is None else x.to(float32) for x in (scales_zeros, bias))
    return F._join_as_floats(weights, scales_zeros, bias)


def _check_4bit_product(inp, packed_weights, block_size, in_features, out_features):
    name = "_dyn_quant_matmul_4bit_cpu"
    inp.size(0)
    if inp.dtype is not float32 and (inp.dtype is not bfloat16 or block_size != in_features):
        raise RuntimeError(f"{name} : expect input to be float32 or bfloat16 tensor.")
    _check_block_size(name, block_size, in_features)
    count = out_features * in_features // 2 + out_features * (in_features // max(1, block_size))
    given = packed_weights.numel()
    if packed_weights.ndim != 1 or given < count:
        raise RuntimeError("Invalid packed weight tensor size")
    if given > count and given != count + out_features:
        raise RuntimeError("Expected bias length to match output dimension")
    if inp.ndim != 2 or inp.shape[1] != in_features:  # (PyTorch reads other memory)
        raise RuntimeError(f"{name} : expect input of the shape [:, {in_features}], got {list(inp.shape)}")


def _quantized_int4_product(F, inp, packed_weights, block_size, in_features, out_features):
    groups = in_features // block_size
    size = out_features * in_features // 2
    table = F.to(F._slice(packed_weights, 0, 0, size, 1), uint8)
    pairs = F.stack([F.bitwise_and(table, 15), F.bitwise_right_shift(table, 4)], -1)
    # Numbers of up to 255 times 8: whole numbers that float32 has, up to 8,224 terms.
    kind = float32 if block_size <= 1 << 13 else int64
    weight = F.sub(F.to(F.reshape(pairs, (out_features, groups, block_size)), kind), 8)
    scales = F.reshape(F._slice(packed_weights, 0, size, size + out_features * groups, 1), (out_features, groups))
    levels, step = _levels_by_row(F, F.to(inp, float32))
    levels = F.to(F.reshape(levels, (*inp.shape[:-1], groups, block_size)), kind)
    sums = F.to(F.matmul(F.transpose(levels, -3, -2), F.permute(weight, (1, 2, 0))), float32)
    total = None
    for group in range(groups):
        part = F.mul(F.select(sums, -3, group), F.select(scales, 1, group))
        total = part if total is None else F.add(total, part)
    total = F.mul(total, step)
    begin = size + out_features * groups
    if packed_weights.shape[0] > begin:
        total = F.add(total, F._slice(packed_weights, 0, begin, begin + out_features, 1))
    return total if F.dtype_of(inp) is float32 else _cut_to_bfloat16(F, total)


def _levels_by_row(F, input):
    """Rows as whole numbers, less the one that stands for zero, in float32; and the step of each row."""
    low, high = F.clamp_max(F.amin(input, -1, True), 0), F.clamp_min(F.amax(input, -1, True), 0)
    span = F.sub(high, low)
    scale = F.where(F.eq(span, 0), F._ones_like(span), F.div(F._full_like(span, 255.0), span))
    bottom, top = F.mul(low, scale), F.mul(high, scale)
    nearer_low = F.gt(F.add(F.add(bottom, -128.0), F.add(top, 127.0)), 0)
    zero = F.where(nearer_low, F.sub(F._full_like(bottom, -128.0), bottom), F.sub(F._full_like(top, 127.0), top))
    zero = F.round(F._clamp_scalars(zero, -128, 127))
    product = F.mul(input, scale)
    away = F.mul(F.sign(product), F.floor(F.add(F.abs(product), 0.5)))  # halves are rounded away from zero
    levels = F._clamp_scalars(F.add(away, zero), -128, 127)
    return F.sub(levels, zero), F.div(F._ones_like(scale), scale)


def _cut_to_bfloat16(F, x):
    """Numbers without the bits that bfloat16 lacks: rounded towards zero."""
    return F.to(F._view_dtype(F.bitwise_and(F._view_dtype(x, int32), -0x10000), float32), bfloat16)


op(
    "_quantized_int4_product(Tensor inp, Tensor packed_weights, block_size, in_features, out_features)",
    where="",
    composite=_quantized_int4_product,
    shape_fn=lambda inp, packed_weights, block_size, in_features, out_features: (
        (inp.shape[0], out_features),
        inp.dtype,
    ),
    vjp=_no_derivatives("_dyn_quant_matmul_4bit", "inp", "packed_weights"),
    node_name="NotImplemented",
    doc="The product of `_dyn_quant_matmul_4bit`, of arguments that fit.",
)


@composite(
    "_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, block_size, in_features, out_features)",
    where="torch",
    out=Out(supported=False),
)
def _dyn_quant_matmul_4bit(F, inp, packed_weights, block_size, in_features, out_features):
    """Computes the product of floats, quantized to eight bits by the range of each row, with weights of four bits.

    Args:
        inp: A matrix of float32, or of bfloat16 where all numbers of a row of weights share a factor.
        packed_weights: The result of `torch._dyn_quant_pack_4bit_weight`.
        block_size: How many numbers share a factor.
        in_features: The numbers of a row.
        out_features: The number of outputs.

    Returns:
        A matrix of the input's dtype. Numbers of bfloat16 are rounded towards zero, as in PyTorch.

    Raises:
        RuntimeError: The shapes or dtypes do not fit.

    Example:
        >>> weights, scales = torch.full((2, 16), 0x9A, dtype=torch.uint8), torch.tensor([[1.0], [0.5]])
        >>> packed = torch._dyn_quant_pack_4bit_weight(weights, scales, None, 32, 32, 2)
        >>> torch._dyn_quant_matmul_4bit(torch.full((1, 32), 2.0), packed, 32, 32, 2).round()
        tensor([[96., 48.]])
    """
    _check_4bit_product(inp, packed_weights, block_size, in_features, out_features)
    return F._quantized_int4_product(inp, packed_weights, block_size, in_features, out_features)
