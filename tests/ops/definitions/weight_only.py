"""Products of floats with packed weights."""

from tests.ops.op_db import A, S, row

PRIVATE = {
    "_weight_int8pack_mm": "_int8_weight_product",
    "_convert_weight_to_int4pack_for_cpu": "_pack_int4",
    "_weight_int4pack_mm_for_cpu": "_int4_weight_product",
    "_dyn_quant_pack_4bit_weight": "_join_as_floats",
    "_dyn_quant_matmul_4bit": "_quantized_int4_product",
}


def floats(*shape, low=-2, high=2):
    return A(shape, low, high, "float32", grad=False)


def levels(*shape):
    return A(shape, -128, 127, "int8")


def nibbles(*shape):
    return A(shape, 0, 16, "int32")


def pairs(*shape):
    return A(shape, 0, 256, "uint8")


def _row(name, *samples, oracle=None, **facts):
    facts = {"noncontiguous": False, **facts}
    row(name, *samples, oracle=oracle, grad=False, gradgrad=False, tol=2e-5, covers=(PRIVATE[name],), **facts)


_row(
    "_weight_int8pack_mm",
    S(floats(2, 8), levels(5, 8), floats(5)),
    S(floats(1, 130), levels(70, 130), floats(70)),
    S(floats(9, 64), levels(33, 64), floats(33)),
)
_row("_convert_weight_to_int4pack_for_cpu", S(nibbles(16, 2), 2), S(nibbles(64, 6), 2), S(nibbles(112, 8), 2))


def _int4_product(torch, input, weight, group, factors):
    packed = torch._convert_weight_to_int4pack_for_cpu(weight, 2)
    return torch._weight_int4pack_mm_for_cpu(input, packed, group, factors)


_row(
    "_weight_int4pack_mm_for_cpu",
    S(floats(1, 64), nibbles(64, 64), 32, floats(2, 64, 2)),
    S(floats(3, 128), nibbles(176, 128), 64, floats(2, 176, 2)),
    S(floats(9, 256), nibbles(48, 256), 128, floats(3, 48, 2)),
    oracle=_int4_product,
)
_row(
    "_dyn_quant_pack_4bit_weight",
    S(pairs(8, 16), floats(8, 1), None, 32, 32, 8),
    S(pairs(4, 32), floats(4, 2), floats(4), 32, 64, 4),
)


def _dynamic_product(torch, input, weight, scales, bias, *sizes):
    return torch._dyn_quant_matmul_4bit(input, torch._dyn_quant_pack_4bit_weight(weight, scales, bias, *sizes), *sizes)


_row(
    "_dyn_quant_matmul_4bit",
    S(floats(2, 32), pairs(8, 16), floats(8, 1), None, 32, 32, 8),
    S(floats(3, 96), pairs(10, 48), floats(10, 3), floats(10), 32, 96, 10),
    S(floats(3, 6, low=1), pairs(2, 3), floats(2, 1), floats(2), 6, 6, 2),
    oracle=_dynamic_product,
)
row(
    "_convert_weight_to_int4pack",
    S(pairs(16, 64), 2),
    oracle=lambda torch, weight, tiles: torch.empty(
        torch._convert_weight_to_int4pack(weight.to("meta"), tiles).shape, dtype=torch.int32
    ).zero_(),
    grad=False,
    gradgrad=False,
    meta=False,
)
row(
    "_weight_int4pack_mm",
    S(floats(3, 64), pairs(16, 64), 2, 32, floats(2, 16, 2)),
    oracle=lambda torch, input, weight, tiles, group, factors: torch.zeros(
        (input.shape[0], torch._convert_weight_to_int4pack(weight.to("meta"), tiles).shape[0] * 8)
    ),
    call=lambda input, weight, tiles, group, factors: input.new_zeros(_int4_tiles_shape(input, weight, tiles, group)),
    grad=False,
    gradgrad=False,
    meta=False,
)


def _int4_tiles_shape(input, weight, tiles, group):
    import torchlite as torch

    packed = torch._convert_weight_to_int4pack(weight.to("meta"), tiles)
    factors = torch.empty(2, 16, 2, device="meta")
    return torch._weight_int4pack_mm(input.to("meta"), packed, group, factors).shape
