"""Calls of products with packed weights and of scaled products, for torchlite and for PyTorch
(`tools/record_quantized_tensors.py`).
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

ANSWERS = pathlib.Path(__file__).with_name("weight_only_answers.json")

INT8 = """
x, w8, s
x.bfloat16(), w8, s.bfloat16()
x.half(), w8, s.half()
x, w8, s.bfloat16()
x.double(), w8, s.double()
x.int(), w8, s
x[0], w8, s
x[None], w8, s
x.t().contiguous().t(), w8, s
x, w8.t().contiguous().t(), s
x, w8.to(torch.uint8), s
x, w8.float(), s
x, w8[:, :16].contiguous(), s
x, w8[0], s
x, w8, s[:3]
x, w8, s[None]
x[:0], w8, s
x, w8[:0], s[:0]
x[:, :5].contiguous(), w8[:5, :5].contiguous(), s[:5]
"""
INT4 = """
x, p, 32, f
x.bfloat16(), p, 32, f.bfloat16()
x.half(), p, 32, f.half()
x, p, 32, f.half()
x.double(), p, 32, f.double()
x[0], p, 32, f
x[None], p, 32, f
x.t().contiguous().t(), p, 32, f
x, p.t().contiguous().t(), 32, f
x, p.int(), 32, f
x, p[:, :16].contiguous(), 32, f
x, p, 16, f
x, p, 128, f
x, p, 64, f[:1]
x, p, 64, f
x, p, 32, f[:, :3]
x, p, 32, f[0]
x, p[0], 32, f
x[:0], p, 32, f
"""
PACKS = """
w4, 2
w4[:16], 4
w4[:48], 1
w4[:, :2], 8
w4 + 256, 2
-w4, 2
w4.t().contiguous().t(), 2
w4[:8], 2
w4[:17], 2
w4[:, :33], 2
w4[0], 2
w4[None], 2
w4.to(torch.uint8), 2
w4.long(), 2
"""
DYNAMIC_PACKS = """
u, d, None, 32, 64, 8
u, d, s[:8], 32, 64, 8
u, d[:, :1], None, 64, 64, 8
u, d.bfloat16(), s[:8].bfloat16(), 32, 64, 8
u.int(), d, None, 32, 64, 8
u, d, None, 16, 64, 8
u, d, None, 128, 64, 8
"""
DYNAMIC = """
x, q, 32, 64, 8
x, q1, 64, 64, 8
x, q2, 64, 64, 8
x.bfloat16(), q1, 64, 64, 8
x.bfloat16(), q2, 64, 64, 8
x * 0, q, 32, 64, 8
x[:0], q, 32, 64, 8
x.abs(), q, 32, 64, 8
-x.abs(), q, 32, 64, 8
x.bfloat16(), q, 32, 64, 8
x.double(), q, 32, 64, 8
x, q, 16, 64, 8
x, q, 64, 128, 8
x, q, 32, 64, 9
x, q2[:-3], 64, 64, 8
x, u, 32, 64, 8
"""
SCALED = """
a, b, one, one
a, b, one, one, out_dtype=f32
a, b, r, c, out_dtype=f32
a, b, r, c
a, b, r, one
a, b, one, c, out_dtype=f32
a, b, one, one, bias=s[:3], out_dtype=f32
a, b, one, one, bias=s[:3].bfloat16(), out_dtype=torch.bfloat16
a, b, one, one, bias=s[None, :3], out_dtype=f32
a, b, one, one, bias=s[:3].double(), out_dtype=f32
a, b, one, one, scale_result=one
a, b, one, one, scale_result=one, out_dtype=f32
a, b, one, one, scale_result=one, out_dtype=torch.float8_e4m3fn
a, b, one, one, scale_result=one, out_dtype=torch.float8_e5m2
a, b, one, one, scale_result=r
a, b, one, one, bias=s[:2]
a.float(), b, one, one
a, b.float(), one, one
a, b, one.double(), one
a, b, one[None], one[None, None], out_dtype=f32
a, b, r[:, 0], c
a, b, r, c.t()
a[0], b, one, one
a, b[0], one, one
a, b[:3], one, one
a, b.to(torch.float8_e5m2), one, one, out_dtype=f32
a.to(torch.float8_e5m2), b.to(torch.float8_e5m2), one, one
a.to(torch.float8_e5m2), b, one, one, use_fast_accum=True, out_dtype=torch.bfloat16
a, b, one, one, out_dtype=torch.int32
a, b, one, one, out_dtype=torch.float64
a, b, one, one, out=torch.empty(2, 3)
a, b, one, one, out_dtype=torch.bfloat16, out=torch.empty(2, 3)
a[:0], b, one, one, out_dtype=f32
a[:, :0], b[:0], one, one, out_dtype=f32
a[:, :0], b[:0], one, one
a[:1], b[:, :1], r[:1], c[:, :1], out_dtype=f32
a.int(), b, one, one
a, b, r, c, None, None, torch.half, True
"""
SCALED_V2 = """
a, b, [one], [0], [0], [one], [0], [0], None, f32
a, b, [one], [0], [0], [one], [0], [0], None, None
a, b, [one], [0], [], [one], [0], [], None, None
a, b, [r], [1], [0], [c], [1], [0], None, f32
a, b, [r], [1], [0], [c], [1], [0], s[:3], torch.bfloat16
a, b, [r], [0], [0], [c], [1], [0], None, f32
a, b, [r], [2], [0], [c], [2], [0], None, f32
a, b, [r], [1], [1], [c], [1], [0], None, f32
a, b, [r, r], [1], [0], [c], [1], [0], None, f32
a, b, [r], [1, 1], [0], [c], [1], [0], None, f32
a.float(), b, [r], [1], [0], [c], [1], [0], None, f32
a[0], b, [r], [1], [0], [c], [1], [0], None, f32
a, b[:3], [r], [1], [0], [c], [1], [0], None, f32
a, b, [r], [1], [0], [c], [1], [0], s[:2], f32
a, b, [r], [1], [0], [c], [1], [0], s[:3].double(), f32
a, b, [r], [1], [0], [c], [1], [0], None, f32, [1, 0]
a, b, [r], [1], [0], [c], [1], [0], None, f32, [1, 1]
a, b, [r], [1], [0], [c], [1], [0], None, f32, [1]
a[:0], b, [r], [1], [0], [c], [1], [0], None, f32
a[:, :0], b[:0], [r], [1], [0], [c], [1], [0], None, f32
a, b, [r.t()], [1], [0], [c], [1], [0], None, f32
a, b, [one], [1], [0], [one], [1], [0], None, f32
a, b, [r.double()], [1], [0], [c], [1], [0], None, f32
a, b, [one.double()], [0], [0], [one], [0], [0], None, f32
a, b, [r], [1], [0], [c[0]], [1], [0], None, f32
a, b, [r], [1], [0], [c.t()], [1], [0], None, f32
"""
SCALED_FUNCTION = """
a, b, one, T.TensorWise, one, T.TensorWise
a, b, [one], [T.TensorWise], [one], [T.TensorWise]
a, b, r, T.RowWise, c, T.RowWise, W.NO_SWIZZLE, W.NO_SWIZZLE, None, f32
a, b, one, T.TensorWise, one, T.TensorWise, W.NO_SWIZZLE, W.SWIZZLE_32_4_4
a, b, one, T.BlockWise1x32, one, T.BlockWise1x32
"""
MISSING = """
torch._convert_weight_to_int4pack(w4, 2)
torch._weight_int4pack_mm(x, p, 32, f)
torch._convert_weight_to_int4pack(u.to("meta"), 2).shape
torch._convert_weight_to_int4pack(w4.to("meta"), 2)
torch._weight_int8pack_mm(x.requires_grad_(), w8, s).sum().backward()
torch._weight_int8pack_mm(x, w8, s.requires_grad_()).sum().backward()
torch._weight_int4pack_mm_for_cpu(x.requires_grad_(), p, 32, f).sum().backward()
torch._dyn_quant_matmul_4bit(x.requires_grad_(), q, 32, 64, 8).sum().backward()
torch._scaled_mm(a, b, one.requires_grad_(), one, out_dtype=f32).sum().backward()
torch._scaled_mm_v2(a, b, [one.requires_grad_()], [0], [0], [one], [0], [0], None, f32).sum().backward()
type(torch._weight_int8pack_mm(x.requires_grad_(), w8, s).grad_fn).__name__
"""
CALLED = {
    "torch._weight_int8pack_mm": INT8, "torch._weight_int4pack_mm_for_cpu": INT4,
    "torch._convert_weight_to_int4pack_for_cpu": PACKS, "torch._dyn_quant_pack_4bit_weight": DYNAMIC_PACKS,
    "torch._dyn_quant_matmul_4bit": DYNAMIC, "torch._scaled_mm": SCALED, "torch._scaled_mm_v2": SCALED_V2,
    "torch.nn.functional.scaled_mm": SCALED_FUNCTION,
}  # fmt: skip
CALLS = [f"{name}({line})" for name, lines in CALLED.items() for line in lines.strip().split("\n")]
CALLS += MISSING.strip().split("\n")


def inputs(torch: Any, device: Any = "cpu") -> dict[str, Any]:
    """Tensors of the calls. Those of float8 are on the CPU, since other devices may lack them."""
    random = np.random.default_rng(7)

    def floats(*shape: int) -> Any:
        return torch.from_numpy(random.normal(size=shape).astype(np.float32)).to(device)

    def small(*shape: int) -> Any:
        return floats(*shape).cpu().to(torch.float8_e4m3fn)

    def whole(low: int, high: int, dtype: str, *shape: int) -> Any:
        return torch.from_numpy(random.integers(low, high, shape).astype(dtype)).to(device)

    x, s, f, d = floats(3, 64), floats(80).abs(), floats(2, 80, 2), floats(8, 2)
    w4, u = whole(0, 16, "int32", 80, 64), whole(0, 256, "uint8", 8, 32)
    pack = torch._dyn_quant_pack_4bit_weight
    functional = torch.nn.functional
    return {
        "torch": torch, "x": x, "s": s, "f": f, "d": d, "w4": w4, "u": u, "w8": whole(-128, 128, "int8", 80, 64),
        "p": torch._convert_weight_to_int4pack_for_cpu(w4, 2), "q": pack(u, d, None, 32, 64, 8),
        "q1": pack(u, d[:, :1], None, 64, 64, 8), "q2": pack(u, d[:, :1], s[:8], 64, 64, 8),
        "a": small(2, 4), "b": small(4, 3), "one": floats().abs() + 1, "r": floats(2, 1), "c": floats(1, 3),
        "f32": torch.float32, "T": functional.ScalingType, "W": functional.SwizzleType,
    }  # fmt: skip


def answer(torch: Any, call: str, device: Any = "cpu") -> Any:
    """Return the dtype, strides and numbers of a call's result, or the type and the text of its error."""
    try:
        found = eval(call, inputs(torch, device))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return [type(error).__name__, str(error).partition(" This could be")[0]]
    if not isinstance(found, torch.Tensor):
        return str(found)
    numbers = found.cpu()
    numbers = numbers.float() if numbers.is_floating_point() and numbers.dtype is not torch.float64 else numbers
    return [str(found.dtype), list(found.stride()), numbers.tolist()]
