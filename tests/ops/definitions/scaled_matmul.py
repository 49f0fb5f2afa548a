"""Products of matrices of float8 with scales."""

from tests.ops.op_db import A, S, row


def floats(*shape, low=-2, high=2):
    return A(shape, low, high, "float32", grad=False)


def _small(torch, input, mat2, names):
    """Matrices of float8, which are on the CPU: other devices lack these dtypes."""
    return [_on_cpu(x).to(getattr(torch, name)) for x, name in zip((input, mat2), names.split(), strict=True)]


def _on_cpu(value):
    return value.cpu() if hasattr(value, "cpu") and value.device.type != "meta" else value


def _scaled(torch, input, mat2, names, *arguments, dtype=None, **options):
    left, right = _small(torch, input, mat2, names)
    dtype, arguments = dtype and getattr(torch, dtype), map(_on_cpu, arguments)
    found = torch._scaled_mm(left, right, *arguments, out_dtype=dtype, **options)
    return found.to(torch.float32).to(input.device)


def _scaled_v2(torch, input, mat2, names, a, recipe, b, bias, dtype):
    left, right = _small(torch, input, mat2, names)
    dtype, (a, b, bias) = dtype and getattr(torch, dtype), map(_on_cpu, (a, b, bias))
    found = torch._scaled_mm_v2(left, right, [a], [recipe], [0], [b], [recipe], [0], bias, dtype)
    return found.to(torch.float32).to(input.device)


def _row(name, *samples, oracle):
    facts = {"grad": False, "gradgrad": False, "noncontiguous": False}
    row(name, *samples, oracle=oracle, tol=1e-5, covers=("_scaled_product",), **facts)


_row(
    "_scaled_mm",
    S(floats(3, 4), floats(4, 2), "float8_e4m3fn float8_e4m3fn", floats(), floats(), dtype="float32"),
    S(floats(3, 4), floats(4, 2), "float8_e5m2 float8_e4m3fn", floats(3, 1), floats(1, 2), floats(2), dtype="float32"),
    S(floats(5, 70), floats(70, 9), "float8_e4m3fn float8_e5m2", floats(1), floats(1), dtype="bfloat16"),
    S(floats(3, 4), floats(4, 2), "float8_e4m3fn float8_e4m3fn", floats(), floats(), None, floats(low=1)),
    S(
        floats(3, 4), floats(4, 2), "float8_e4m3fn float8_e4m3fn", floats(), floats(), None, floats(low=1),
        dtype="float8_e5m2",
    ),
    S(floats(3, 0), floats(0, 2), "float8_e4m3fnuz float8_e5m2fnuz", floats(), floats(), dtype="float32"),
    oracle=_scaled,
)  # fmt: skip
_row(
    "_scaled_mm_v2",
    S(floats(3, 4), floats(4, 2), "float8_e4m3fn float8_e4m3fn", floats(), 0, floats(), None, "float32"),
    S(floats(3, 4), floats(4, 2), "float8_e5m2 float8_e4m3fn", floats(3, 1), 1, floats(1, 2), floats(2), "float16"),
    S(floats(3, 4), floats(4, 2), "float8_e4m3fn float8_e4m3fn", floats(), 0, floats(), None, None),
    S(floats(3, 0), floats(0, 2), "float8_e4m3fn float8_e4m3fn", floats(), 0, floats(), None, "float32"),
    oracle=_scaled_v2,
)
