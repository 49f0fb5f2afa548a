"""Integer steps of quantized networks."""

from tests.ops.op_db import A, S, row
from torchlite._dispatch import REGISTRY, function_for
from torchlite._types.quantized_levels import LevelsMatrix


def unsigned(*shape):
    return A(shape, 0, 255, "uint8")


def signed(*shape):
    return A(shape, -128, 127, "int8")


def whole(*shape):
    return A(shape, -100000, 100000, "int32")


def scale(*shape):
    return A(shape, 1e-5, 1e-3, "float32")


def _call(name):
    return lambda *arguments, **options: function_for(REGISTRY[name])(*arguments, **options)


def _less(torch, levels, zero, *shape):
    wide = levels.to(torch.int64)
    return wide if zero is None else wide - (zero.reshape(-1, *shape) if zero.ndim else zero).to(torch.int64)


def _finish(torch, total, bias, factor, zero, *shape):
    def spread(x):
        return x.reshape(-1, *shape) if x.ndim else x

    if bias is not None:
        total = total + spread(bias)
    if factor is None:
        return total.to(torch.int32)
    out = total.to(torch.float32) * spread(factor)
    if zero is None:
        return out
    limits = torch.iinfo(zero.dtype)
    return (out.round() + zero).clamp(limits.min, limits.max).to(zero.dtype)


def _product(torch, input, other, input_zero=None, other_zero=None, bias=None, scale=None, out_zero=None):
    total = _less(torch, input, input_zero, 1) @ _less(torch, other, other_zero)
    return _finish(torch, total, bias, scale, out_zero)


row(
    "_quantized_matmul",
    S(unsigned(3, 5), signed(5, 4)),
    S(signed(3, 5), unsigned(5, 4), signed(3), unsigned(4)),
    S(unsigned(70, 130), unsigned(130, 90), unsigned(), unsigned(), whole(90)),
    S(signed(20, 33), signed(33, 65), None, signed(), None, scale()),
    S(unsigned(9, 64), signed(64, 17), unsigned(), None, whole(17), scale(17), unsigned()),
    S(signed(9, 64), signed(64, 17), signed(9), signed(17), None, scale(), signed()),
    S(unsigned(2, 3, 7, 40), signed(3, 40, 30), unsigned(), signed(), None, scale(30)),
    S(unsigned(2, 0), signed(0, 3)),
    S(unsigned(0, 2), signed(2, 3), None, None, None, scale()),
    S(unsigned(5, 64), signed(64, 1), unsigned(5), signed()),
    S(signed(20, 64), unsigned(64, 70), signed(20), None, None, scale(70)),
    call=_call("_quantized_matmul"),
    oracle=_product,
    grad=False,
)


def _constant(torch, input, other, other_zero, input_zero=None, bias=None, scale=None, out_zero=None):
    return _product(torch, input, other, input_zero, other_zero, bias, scale, out_zero)


def _matrix(other, zero):
    return LevelsMatrix(other._tl_array, None if zero is None else zero._tl_array)


row(
    "_constant_matmul",
    S(unsigned(3, 5), signed(5, 4), None),
    S(signed(3, 5), unsigned(5, 4), unsigned(4), signed(3)),
    S(unsigned(70, 130), unsigned(130, 90), unsigned(), unsigned(), whole(90)),
    S(unsigned(2, 9, 64), signed(64, 17), None, unsigned(), whole(17), scale(17), unsigned()),
    call=lambda input, other, other_zero, *rest: _call("_constant_matmul")(input, _matrix(other, other_zero), *rest),
    oracle=_constant,
    grad=False,
    meta=False,
)


def _linear(torch, input, other, zero, scale, bias, most):
    low, high = (float(x) for x in (input.min().clamp(max=0), input.max().clamp(min=0)))
    step = (high - low) / most or 0.1
    point = round(-low / step if -low < most * step + high else most - high / step)
    inverse = 1 / torch.tensor(step, dtype=torch.float32)
    levels = (input * inverse + point).round().clamp(0, 255) - point
    out = levels.double() @ _less(torch, other, zero).double()
    out = out.float() * (scale * torch.tensor(step, dtype=torch.float32))
    return out if bias is None else out + bias


def _floats(*shape, low=-2, high=2):
    return A(shape, low, high, "float32", grad=False)


row(
    "_dynamic_linear",
    S(_floats(3, 8), signed(8, 5), None, scale(), None, 127),
    S(_floats(1, 70), signed(70, 65), signed(65), scale(65), _floats(65), 255),
    S(_floats(2, 4, 33, low=1), unsigned(33, 9), None, scale(), _floats(9), 255),
    S(_floats(5, 8, low=0, high=0), signed(8, 5), None, scale(), _floats(5), 127),
    call=lambda input, other, zero, *rest: _call("_dynamic_linear")(input, _matrix(other, zero), *rest),
    oracle=_linear,
    grad=False,
    meta=False,
    tol=1e-5,
)


def _convolution(
    torch, input, weight, input_zero, weight_zero, bias, scale, out_zero, stride, padding, dilation, groups
):
    rank = input.ndim - 2
    sides = [n for d in reversed(range(rank)) for n in (padding[d], padding[rank + d])]
    image = torch.nn.functional.pad(_less(torch, input, input_zero).to(torch.float64), sides)
    kernel = _less(torch, weight, weight_zero, *(1,) * (rank + 1)).to(torch.float64)
    function = getattr(torch.nn.functional, f"conv{rank}d")
    total = function(image, kernel, None, stride, 0, dilation, groups).round().to(torch.int64)
    return _finish(torch, total, bias, scale, out_zero, *(1,) * rank)


row(
    "_quantized_convolution",
    S(unsigned(2, 3, 7, 6), signed(4, 3, 3, 2), None, None, None, None, None, (1, 1), (1, 0, 2, 1), (1, 1), 1),
    S(signed(1, 4, 9), unsigned(6, 2, 3), signed(), unsigned(6), whole(6), None, None, (2,), (1, 1), (2,), 2),
    S(unsigned(2, 5, 8, 8), signed(7, 5, 1, 1), unsigned(), signed(), None, scale(7), None, (1, 1), (0,) * 4, (1, 1),
      1),
    S(
        unsigned(1, 8, 20, 21), signed(8, 1, 3, 3), unsigned(), None, whole(8), scale(8), unsigned(), (2, 2), (1,) * 4,
        (1, 1), 8,
    ),
    S(
        signed(1, 2, 4, 5, 6), signed(3, 2, 2, 2, 2), signed(), signed(3), None, scale(), signed(), (1, 1, 2), (1,) * 6,
        (1, 2, 1), 1,
    ),
    S(unsigned(0, 3, 7), signed(4, 3, 3), None, None, None, None, None, (1,), (0, 0), (1,), 1),
    call=_call("_quantized_convolution"),
    oracle=_convolution,
    grad=False,
)  # fmt: skip


def _quantize(torch, input):
    high, low = input.max().clamp(min=0), input.min().clamp(max=0)
    scale = (high - low) / 255 if high != low else torch.ones((), dtype=input.dtype)
    zero = (-low / scale).clamp(0, 255).round()
    return ((input / scale).round() + zero).clamp(0, 255).to(torch.uint8), scale, zero.to(torch.uint8)


row(
    "_dynamic_quantize",
    S(A((3, 4), dtype="float32")),
    S(A((70, 300), -1, 9, dtype="float32")),
    S(A((5,), 1, 2, dtype="float32")),
    S(A((5,), -2, -1, dtype="float32")),
    S(A((3,), 0, 0, dtype="float32")),
    call=lambda x: tuple(function_for(REGISTRY["_dynamic_quantize"])(x)),
    oracle=_quantize,
    grad=False,
)
