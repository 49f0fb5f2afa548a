"""Rows of `beside_pytorch.py`: small programs that torchlite and PyTorch run with the same text.

A row is a name: (preparation, statement). Each has `torch`, `nn` and `F`; equal seeds precede each preparation.
"""

from __future__ import annotations

Row = tuple[str, str]

_LOSS = "loss = lambda p, a: (torch.func.functional_call(m, p, (a[None],)) ** 2).sum()"
_PARAMETERS = "p = {k: v.detach() for k, v in m.named_parameters()}; "
_LISTS = "import random; random.seed(0); "
_DATA = "D = torch.utils.data; d = D.TensorDataset(*[torch.rand(10000, 4) for _ in range(3)]); "

DATA_ROWS: dict[str, Row] = {
    "tensor(1000 floats)": (_LISTS + "a = [random.random() for _ in range(1000)]", "torch.tensor(a)"),
    "tensor(10 floats)": (_LISTS + "a = [random.random() for _ in range(10)]", "torch.tensor(a)"),
    "tensor(1000 ints)": ("a = list(range(1000))", "torch.tensor(a)"),
    "tensor(1000 bools)": ("a = [i % 3 == 0 for i in range(1000)]", "torch.tensor(a)"),
    "tensor(1000 complex)": ("a = [complex(i, 1) for i in range(1000)]", "torch.tensor(a)"),
    "tensor(1000 mixed)": ("a = [i if i % 2 else i / 2 for i in range(1000)]", "torch.tensor(a)"),
    "tensor(100 x 100 floats)": (
        _LISTS + "a = [[random.random() for _ in range(100)] for _ in range(100)]",
        "torch.tensor(a)",
    ),
    "tensor(100 x 100 ints)": ("a = [list(range(100)) for _ in range(100)]", "torch.tensor(a)"),
    "tensor(1000 x 3 floats)": ("a = [[.5, 1.5, 2.5]] * 1000", "torch.tensor(a)"),
    "tensor(1000 floats, float64)": ("a = [.5] * 1000", "torch.tensor(a, dtype=torch.float64)"),
    "tensor(1000 ints, float32)": ("a = list(range(1000))", "torch.tensor(a, dtype=torch.float32)"),
    "tensor(100 NumPy floats)": ("import numpy as np; a = list(np.random.rand(100))", "torch.tensor(a)"),
    "tensor(32 0-d tensors)": ("a = [torch.tensor(.5) for _ in range(32)]", "torch.tensor(a)"),
    "tensor(8 x 16 0-d tensors)": ("a = [[torch.tensor(.5)] * 16] * 8", "torch.tensor(a)"),
    "tensor(10 arrays of 100)": ("import numpy as np; a = [np.random.rand(100) for _ in range(10)]", "torch.tensor(a)"),
    "stack 32 of 10": ("a = [torch.rand(10) for _ in range(32)]", "torch.stack(a)"),
    "stack 32 of 3x32x32": ("a = [torch.rand(3, 32, 32) for _ in range(32)]", "torch.stack(a)"),
    "stack 32 of 0-d": ("a = [torch.tensor(1.) for _ in range(32)]", "torch.stack(a)"),
    "stack 32 of 10, dim 1": ("a = [torch.rand(10) for _ in range(32)]", "torch.stack(a, 1)"),
    "cat 32 of 10": ("a = [torch.rand(10) for _ in range(32)]", "torch.cat(a)"),
    "cat 32 of 4x10, dim 1": ("a = [torch.rand(4, 10) for _ in range(32)]", "torch.cat(a, 1)"),
    "hstack 32 of 10": ("a = [torch.rand(10) for _ in range(32)]", "torch.hstack(a)"),
    "vstack 32 of 10": ("a = [torch.rand(10) for _ in range(32)]", "torch.vstack(a)"),
    "collate 32 tensors": ("a = [torch.rand(10) for _ in range(32)]; c = torch.utils.data.default_collate", "c(a)"),
    "collate 32 pairs": ("a = [(torch.rand(10), i) for i in range(32)]; c = torch.utils.data.default_collate", "c(a)"),
    "collate 32 dicts": (
        "a = [{'x': torch.rand(10), 'y': .5, 's': 'a'} for i in range(32)]; c = torch.utils.data.default_collate",
        "c(a)",
    ),
    "collate 32 arrays": (
        "import numpy as np; a = [np.random.rand(10) for i in range(32)]; c = torch.utils.data.default_collate",
        "c(a)",
    ),
    "collate 32 images": (
        "a = [(torch.rand(3, 32, 32), i) for i in range(32)]; c = torch.utils.data.default_collate",
        "c(a)",
    ),
    "DataLoader of TensorDataset": (_DATA + "l = D.DataLoader(d, batch_size=32)", "for _ in l: pass"),
    "DataLoader of TensorDataset, shuffled": (
        _DATA + "l = D.DataLoader(d, batch_size=32, shuffle=True)",
        "for _ in l: pass",
    ),
    "DataLoader of Subset": (
        _DATA + "l = D.DataLoader(D.Subset(d, range(0, 10000, 2)), batch_size=32)",
        "for _ in l: pass",
    ),
    "DataLoader of a list": (
        "D = torch.utils.data; l = D.DataLoader([(torch.rand(4), i) for i in range(1000)], batch_size=32)",
        "for _ in l: pass",
    ),
    "DataLoader of StackDataset": (
        _DATA + "l = D.DataLoader(D.StackDataset(torch.rand(1000, 4), torch.rand(1000)), batch_size=32)",
        "for _ in l: pass",
    ),
    "DataLoader of ConcatDataset": (
        _DATA + "l = D.DataLoader(D.ConcatDataset([D.Subset(d, range(500)), D.Subset(d, range(500))]), batch_size=32)",
        "for _ in l: pass",
    ),
    "RandomSampler(1e10), first": (
        "D = torch.utils.data; s = D.RandomSampler(range(9), True, 10**10)",
        "next(iter(s))",
    ),
    "RandomSampler(1e5)": ("D = torch.utils.data; s = D.RandomSampler(range(10**5))", "for _ in s: pass"),
    "RandomSampler(1e5, replacement)": (
        "D = torch.utils.data; s = D.RandomSampler(range(10**5), True)",
        "for _ in s: pass",
    ),
    "RandomSampler(1e6), first": ("D = torch.utils.data; s = D.RandomSampler(range(10**6))", "next(iter(s))"),
    "SubsetRandomSampler(1e5)": ("D = torch.utils.data; s = D.SubsetRandomSampler(range(10**5))", "for _ in s: pass"),
    "WeightedRandomSampler(1e5)": (
        "D = torch.utils.data; s = D.WeightedRandomSampler([1.] * 1000, 10**5)",
        "for _ in s: pass",
    ),
    "WeightedRandomSampler(1e4), made": ("D = torch.utils.data; a = [.5] * 10**4", "D.WeightedRandomSampler(a, 4)"),
    "BatchSampler(1e5)": ("D = torch.utils.data; s = D.BatchSampler(range(10**5), 32, False)", "for _ in s: pass"),
    "DistributedSampler(1e5)": (
        "D = torch.utils.data; s = D.distributed.DistributedSampler(range(10**5), 4, 1)",
        "for _ in s: pass",
    ),
    "random_split(1e5)": ("D = torch.utils.data; d = range(10**5)", "D.random_split(d, [.5, .5])"),
}

PRODUCT_ROWS: dict[str, Row] = {
    **{
        f"mm 256 {dtype}": (f"a = torch.randint(0, 9, (256, 256)).to(torch.{dtype})", "a @ a")
        for dtype in ("int64", "int32", "int16", "int8", "uint8", "float16", "bfloat16", "float64", "complex64")
    },
    **{
        f"mm 2000 x 64 x 10 {dtype}": (
            f"a = torch.ones(2000, 64).to(torch.{dtype}); b = torch.ones(64, 10).to(torch.{dtype})",
            "a @ b",
        )
        for dtype in ("int64", "int32", "float16", "bfloat16")
    },
    **{
        f"mv 1024 {dtype}": (f"a = torch.ones(1024, 1024).to(torch.{dtype}); v = a[0]", "a @ v")
        for dtype in ("int64", "int32", "int8", "float16", "bfloat16")
    },
    **{
        f"vm 1024 {dtype}": (f"a = torch.ones(1024, 1024).to(torch.{dtype}); v = a[0]", "v @ a")
        for dtype in ("int64", "float16", "bfloat16")
    },
    **{
        f"bmm 32x64 {dtype}": (f"a = torch.ones(32, 64, 64).to(torch.{dtype})", "a @ a")
        for dtype in ("int64", "int32", "int8", "float16", "bfloat16")
    },
    **{
        f"dot 1e5 {dtype}": (f"a = torch.ones(100000).to(torch.{dtype})", "a @ a")
        for dtype in ("int64", "int32", "float16", "bfloat16", "float32")
    },
    **{
        f"linear 64x512x512 {dtype}": (
            f"x = torch.rand(64, 512).to(torch.{dtype}); w = torch.rand(512, 512).to(torch.{dtype}); b = w[0]",
            "F.linear(x, w, b)",
        )
        for dtype in ("float16", "bfloat16")
    },
    **{
        f"linear 1x1024x1024 {dtype}": (
            f"x = torch.rand(1, 1024).to(torch.{dtype}); w = torch.rand(1024, 1024).to(torch.{dtype}); b = w[0]",
            "F.linear(x, w, b)",
        )
        for dtype in ("float16", "bfloat16", "float32")
    },
    "linear backward 64x512 float16": (
        "x = torch.rand(64, 512).half().requires_grad_(); w = torch.rand(512, 512).half().requires_grad_()",
        "F.linear(x, w).sum().backward()",
    ),
    "linear backward 64x512 bfloat16": (
        "x = torch.rand(64, 512).bfloat16().requires_grad_(); w = torch.rand(512, 512).bfloat16().requires_grad_()",
        "F.linear(x, w).sum().backward()",
    ),
    "addmm 256 int64": ("a = torch.randint(0, 99, (256, 256))", "torch.addmm(a, a, a)"),
    "addmv 1024 int64": ("a = torch.randint(0, 99, (1024, 1024)); v = a[0]", "torch.addmv(v, a, v)"),
    "baddbmm 16x64 int64": ("a = torch.randint(0, 99, (16, 64, 64))", "torch.baddbmm(a, a, a)"),
    "einsum ij,jk int64": ("a = torch.randint(0, 99, (256, 256))", "torch.einsum('ij,jk->ik', a, a)"),
    "tensordot int64": (
        "a = torch.randint(0, 99, (16, 16, 64)); b = torch.randint(0, 99, (64, 50))",
        "torch.tensordot(a, b, 1)",
    ),
    "matmul broadcast int64": ("a = torch.randint(0, 99, (16, 64, 64)); b = torch.randint(0, 99, (64, 64))", "a @ b"),
    "outer int64": ("a = torch.randint(0, 99, (512,))", "torch.outer(a, a)"),
    "kron int64": ("a = torch.randint(0, 99, (20, 20))", "torch.kron(a, a)"),
    "matrix_power int64": ("a = torch.randint(0, 3, (128, 128))", "torch.matrix_power(a, 5)"),
}


def _with_backward(rows: dict[str, Row]) -> dict[str, Row]:
    """Return the rows, and for each one also with its backward pass."""
    out = {}
    for name, (prepare, statement) in rows.items():
        out[name] = prepare, statement
        out[name + ", backward"] = prepare + "; x.requires_grad_()", f"({statement}).sum().backward()"
    return out


_WEIGHT = (
    "w = torch.quantize_per_channel(torch.randn(1024, 1024), torch.full((1024,), .03), torch.zeros(1024).int(), 0, "
)
_LAYER = (
    _WEIGHT + "torch.qint8); m = torch.ao.nn.quantized.{}Linear(1024, 1024); m.set_weight_bias(w, torch.randn(1024)); "
)
_PACKED = "p = torch._convert_weight_to_int4pack_for_cpu(torch.randint(0, 16, (2048, 2048)).int(), 2); "
_FOUR_BITS = (
    "u = torch.randint(0, 256, (2048, 1024)).to(torch.uint8); "
    "p = torch._dyn_quant_pack_4bit_weight(u, torch.rand(2048, 64), None, 32, 2048, 2048); "
)

QUANTIZED_ROWS: dict[str, Row] = {
    **{
        f"dynamic Linear 1024, {n} rows": (_LAYER.format("dynamic.") + f"x = torch.randn({n}, 1024)", "m(x)")
        for n in (1, 8, 32, 256)
    },
    **{
        f"linear_relu_dynamic 1024, {n} rows": (
            _LAYER.format("dynamic.") + f"p = m._packed_params._packed_params; x = torch.randn({n}, 1024)",
            "torch.ops.quantized.linear_relu_dynamic(x, p)",
        )
        for n in (1, 32)
    },
    **{
        f"static Linear 1024, {n} rows": (
            _LAYER.format("") + f"x = torch.quantize_per_tensor(torch.randn({n}, 1024), .03, 128, torch.quint8)",
            "m(x)",
        )
        for n in (1, 8, 32, 256)
    },
    **{
        f"linear_dynamic_fp16 1024, {n} rows": (
            f"p = torch.ops.quantized.linear_prepack_fp16(torch.randn(1024, 1024), None); x = torch.randn({n}, 1024)",
            "torch.ops.quantized.linear_dynamic_fp16(x, p)",
        )
        for n in (1, 8, 32)
    },
    **{
        f"_int_mm 1024, {n} rows": (
            f"a = torch.randint(-99, 99, ({n}, 1024)).to(torch.int8); "
            "w = torch.randint(-99, 99, (1024, 1024)).to(torch.int8).t()",
            "torch._int_mm(a, w)",
        )
        for n in (1, 8, 32, 256)
    },
    **{
        f"_weight_int8pack_mm 2048, {n} rows": (
            f"x = torch.randn({n}, 2048); s = torch.rand(2048); "
            "w = torch.randint(-99, 99, (2048, 2048)).to(torch.int8)",
            "torch._weight_int8pack_mm(x, w, s)",
        )
        for n in (1, 8, 32)
    },
    **{
        f"_weight_int4pack_mm_for_cpu 2048, {n} rows": (
            _PACKED + f"x = torch.randn({n}, 2048); f = torch.rand(64, 2048, 2)",
            "torch._weight_int4pack_mm_for_cpu(x, p, 32, f)",
        )
        for n in (1, 8, 32)
    },
    **{
        f"_dyn_quant_matmul_4bit 2048, {n} rows": (
            _FOUR_BITS + f"x = torch.randn({n}, 2048)",
            "torch._dyn_quant_matmul_4bit(x, p, 32, 2048, 2048)",
        )
        for n in (1, 8)
    },
    "linear 2048, 1 row": ("x = torch.randn(1, 2048); w = torch.randn(2048, 2048)", "F.linear(x, w)"),
    **{
        f"matmul {'x'.join(map(str, shape))} {dtype}": (
            f"a = torch.randint(0, 99, {shape}).to(torch.{dtype}); "
            f"b = torch.randint(0, 99, {(*shape[:-2], shape[-1], shape[-1])}).to(torch.{dtype})",
            "a @ b",
        )
        for shape in ((64, 64), (256, 256), (512, 512), (1, 512), (32, 64, 64))
        for dtype in ("uint8", "int8", "int16", "int32", "int64")
    },
}

POOLING_ROWS: dict[str, Row] = {
    **_with_backward(
        {
            "adaptive_max_pool1d(1e5 -> 1)": ("x = torch.rand(1, 1, 10**5)", "F.adaptive_max_pool1d(x, 1)"),
            "adaptive_max_pool1d(1e5 -> 7)": ("x = torch.rand(1, 1, 10**5)", "F.adaptive_max_pool1d(x, 7)"),
            "adaptive_max_pool2d(300 -> 1)": ("x = torch.rand(2, 2, 300, 300)", "F.adaptive_max_pool2d(x, 1)"),
            "adaptive_max_pool2d(300 -> 7)": ("x = torch.rand(2, 2, 300, 300)", "F.adaptive_max_pool2d(x, 7)"),
            "adaptive_max_pool3d(50 -> 2)": ("x = torch.rand(1, 2, 50, 50, 50)", "F.adaptive_max_pool3d(x, 2)"),
            "adaptive_avg_pool1d(1e5 -> 1)": ("x = torch.rand(1, 1, 10**5)", "F.adaptive_avg_pool1d(x, 1)"),
            "adaptive_avg_pool1d(1e5 -> 7)": ("x = torch.rand(1, 1, 10**5)", "F.adaptive_avg_pool1d(x, 7)"),
            "adaptive_avg_pool2d(300 -> 7)": ("x = torch.rand(2, 2, 300, 300)", "F.adaptive_avg_pool2d(x, 7)"),
            "adaptive_avg_pool3d(50 -> 2)": ("x = torch.rand(1, 2, 50, 50, 50)", "F.adaptive_avg_pool3d(x, 2)"),
            "max_pool1d(1e5, k 1e5)": ("x = torch.rand(1, 1, 10**5)", "F.max_pool1d(x, 10**5)"),
            "max_pool1d(1e5, k 1000)": ("x = torch.rand(1, 1, 10**5)", "F.max_pool1d(x, 1000)"),
            "max_pool1d(1e4, k 100, stride 1)": ("x = torch.rand(1, 1, 10**4)", "F.max_pool1d(x, 100, 1)"),
            "max_pool2d(300, k 100)": ("x = torch.rand(2, 2, 300, 300)", "F.max_pool2d(x, 100)"),
            "max_pool2d(100, k 21, stride 1)": ("x = torch.rand(1, 4, 100, 100)", "F.max_pool2d(x, 21, 1)"),
            "max_pool2d(100, k 13, stride 1, pad 6)": ("x = torch.rand(1, 4, 40, 40)", "F.max_pool2d(x, 13, 1, 6)"),
            "max_pool2d(56, k 3, stride 2)": ("x = torch.rand(4, 16, 56, 56)", "F.max_pool2d(x, 3, 2, 1)"),
            "max_pool3d(50, k 25)": ("x = torch.rand(1, 2, 50, 50, 50)", "F.max_pool3d(x, 25)"),
            "avg_pool1d(1e5, k 1e5)": ("x = torch.rand(1, 1, 10**5)", "F.avg_pool1d(x, 10**5)"),
            "avg_pool1d(1e4, k 100, stride 1)": ("x = torch.rand(1, 1, 10**4)", "F.avg_pool1d(x, 100, 1)"),
            "avg_pool2d(300, k 100)": ("x = torch.rand(2, 2, 300, 300)", "F.avg_pool2d(x, 100)"),
            "avg_pool2d(100, k 21, stride 1)": ("x = torch.rand(1, 4, 100, 100)", "F.avg_pool2d(x, 21, 1)"),
            "avg_pool3d(50, k 25)": ("x = torch.rand(1, 2, 50, 50, 50)", "F.avg_pool3d(x, 25)"),
            "lp_pool1d(1e5, k 1e5)": ("x = torch.rand(1, 1, 10**5)", "F.lp_pool1d(x, 2, 10**5)"),
            "lp_pool2d(300, k 100)": ("x = torch.rand(2, 2, 300, 300)", "F.lp_pool2d(x, 2, 100)"),
            "lp_pool2d(100, k 21, stride 1)": ("x = torch.rand(1, 4, 100, 100)", "F.lp_pool2d(x, 2, 21, 1)"),
            "fractional_max_pool2d(300, k 100)": (
                "x = torch.rand(1, 2, 300, 300)",
                "F.fractional_max_pool2d(x, 100, output_size=2)",
            ),
            "fractional_max_pool2d(64, k 2)": (
                "x = torch.rand(2, 8, 64, 64)",
                "F.fractional_max_pool2d(x, 2, output_ratio=(.5, .5))",
            ),
            "fractional_max_pool3d(50, k 20)": (
                "x = torch.rand(1, 2, 50, 50, 50)",
                "F.fractional_max_pool3d(x, 20, output_size=2)",
            ),
            "max_pool1d, dilation 1000": ("x = torch.rand(1, 1, 10**5)", "F.max_pool1d(x, 50, dilation=1000)"),
        }
    ),
    "max_pool1d(1e5, k 1e5), indices": ("x = torch.rand(1, 1, 10**5)", "F.max_pool1d(x, 10**5, return_indices=True)"),
    "max_pool1d of empty (0, 9, 1e6)": ("x = torch.rand(0, 9, 10**6)", "F.max_pool1d(x, 10**6)"),
    "adaptive_max_pool1d of empty (0, 9, 1e6)": ("x = torch.rand(0, 9, 10**6)", "F.adaptive_max_pool1d(x, 1)"),
    "adaptive_avg_pool1d of empty (0, 9, 1e6)": ("x = torch.rand(0, 9, 10**6)", "F.adaptive_avg_pool1d(x, 1)"),
    "adaptive_avg_pool1d(1e5 -> 1e4)": ("x = torch.rand(1, 1, 10**5)", "F.adaptive_avg_pool1d(x, 10**4)"),
    "adaptive_max_pool1d(1e5 -> 1e4)": ("x = torch.rand(1, 1, 10**5)", "F.adaptive_max_pool1d(x, 10**4)"),
    "adaptive_max_pool1d(10 -> 1e5)": ("x = torch.rand(1, 1, 10)", "F.adaptive_max_pool1d(x, 10**5)"),
    "max_unpool1d": ("x, i = F.max_pool1d(torch.rand(1, 8, 10**4), 2, return_indices=True)", "F.max_unpool1d(x, i, 2)"),
    "max_unpool2d": (
        "x, i = F.max_pool2d(torch.rand(2, 8, 64, 64), 2, return_indices=True)",
        "F.max_unpool2d(x, i, 2)",
    ),
}

CONV_ROWS: dict[str, Row] = {
    "vmap(jacrev(conv2d)) of w": (
        "x = torch.rand(4, 1, 3, 8, 8); w = torch.rand(4, 4, 3, 3, 3)",
        "torch.func.vmap(torch.func.jacrev(lambda w, x: F.conv2d(x, w)))(w, x)",
    ),
    "jacrev(conv2d) of w": (
        "x = torch.rand(1, 3, 8, 8); w = torch.rand(4, 3, 3, 3)",
        "torch.func.jacrev(lambda w: F.conv2d(x, w))(w)",
    ),
    "jacrev(conv2d) of x": (
        "x = torch.rand(1, 3, 8, 8); w = torch.rand(4, 3, 3, 3)",
        "torch.func.jacrev(lambda x: F.conv2d(x, w))(x)",
    ),
    "jacfwd(conv2d) of w": (
        "x = torch.rand(1, 3, 8, 8); w = torch.rand(4, 3, 3, 3)",
        "torch.func.jacfwd(lambda w: F.conv2d(x, w))(w)",
    ),
    "vmap(jacrev(conv2d)), depthwise 7x7": (
        "x = torch.rand(2, 1, 8, 12, 12); w = torch.rand(2, 8, 1, 7, 7)",
        "torch.func.vmap(torch.func.jacrev(lambda w, x: F.conv2d(x, w, groups=8)))(w, x)",
    ),
    "vmap(jacrev(conv1d))": (
        "x = torch.rand(4, 1, 3, 32); w = torch.rand(4, 4, 3, 5)",
        "torch.func.vmap(torch.func.jacrev(lambda w, x: F.conv1d(x, w)))(w, x)",
    ),
    "vmap(jacrev(conv3d))": (
        "x = torch.rand(2, 1, 2, 6, 6, 6); w = torch.rand(2, 2, 2, 3, 3, 3)",
        "torch.func.vmap(torch.func.jacrev(lambda w, x: F.conv3d(x, w)))(w, x)",
    ),
    "vmap(jacrev(conv_transpose2d))": (
        "x = torch.rand(2, 1, 3, 6, 6); w = torch.rand(2, 3, 2, 3, 3)",
        "torch.func.vmap(torch.func.jacrev(lambda w, x: F.conv_transpose2d(x, w)))(w, x)",
    ),
    "per-sample gradients, conv2d": (
        "m = nn.Conv2d(3, 16, 3); p = {k: v.detach() for k, v in m.named_parameters()}; x = torch.rand(16, 3, 32, 32); "
        + _LOSS,
        "torch.func.vmap(torch.func.grad(loss), (None, 0))(p, x)",
    ),
    "per-sample gradients, depthwise 7x7": (
        "m = nn.Conv2d(16, 16, 7, groups=16); " + _PARAMETERS + "x = torch.rand(16, 16, 32, 32); " + _LOSS,
        "torch.func.vmap(torch.func.grad(loss), (None, 0))(p, x)",
    ),
    "per-sample gradients, depthwise 31x31": (
        "m = nn.Conv2d(8, 8, 31, groups=8, padding=15); " + _PARAMETERS + "x = torch.rand(4, 8, 32, 32); " + _LOSS,
        "torch.func.vmap(torch.func.grad(loss), (None, 0))(p, x)",
    ),
    "per-sample gradients, conv1d": (
        "m = nn.Conv1d(4, 16, 9); p = {k: v.detach() for k, v in m.named_parameters()}; x = torch.rand(16, 4, 200); "
        + _LOSS,
        "torch.func.vmap(torch.func.grad(loss), (None, 0))(p, x)",
    ),
    "per-sample gradients, two layers": (
        "m = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(1152, 10));"
        "p = {k: v.detach() for k, v in m.named_parameters()}; x = torch.rand(16, 1, 16, 16); " + _LOSS,
        "torch.func.vmap(torch.func.grad(loss), (None, 0))(p, x)",
    ),
    "ensemble of conv2d": (
        "x = torch.rand(4, 3, 32, 32); w = torch.rand(8, 16, 3, 3, 3)",
        "torch.func.vmap(lambda w: F.conv2d(x, w))(w)",
    ),
    **{
        f"depthwise conv2d {c}x{s}, k {k}": (
            f"x = torch.rand(1, {c}, {s}, {s}); w = torch.rand({c}, 1, {k}, {k}); torch.set_grad_enabled(False)",
            f"F.conv2d(x, w, padding={k // 2}, groups={c})",
        )
        for c, s, k in [(64, 64, 3), (64, 56, 7), (128, 28, 9), (256, 14, 13), (64, 32, 31), (384, 8, 3), (512, 8, 7)]
    },
    **{
        f"depthwise conv2d {c}x{s}, k {k}, training": (
            f"x = torch.rand(4, {c}, {s}, {s}).requires_grad_(); w = torch.rand({c}, 1, {k}, {k}).requires_grad_()",
            f"F.conv2d(x, w, padding={k // 2}, groups={c}).sum().backward()",
        )
        for c, s, k in [(32, 56, 3), (32, 56, 7), (64, 14, 13), (16, 32, 31)]
    },
    "depthwise conv2d 64x56, k 7, stride 2": (
        "x = torch.rand(1, 64, 56, 56); w = torch.rand(128, 1, 7, 7)",
        "F.conv2d(x, w, padding=3, stride=2, groups=64)",
    ),
    "depthwise conv1d 256x1000, k 31": (
        "x = torch.rand(1, 256, 1000); w = torch.rand(256, 1, 31)",
        "F.conv1d(x, w, padding=15, groups=256)",
    ),
    "grouped conv2d 128x28, 32 groups": (
        "x = torch.rand(1, 128, 28, 28); w = torch.rand(128, 4, 3, 3)",
        "F.conv2d(x, w, padding=1, groups=32)",
    ),
    "conv2d 1x1 64x56": ("x = torch.rand(1, 64, 56, 56); w = torch.rand(256, 64, 1, 1)", "F.conv2d(x, w)"),
    "conv2d 3x3 64x56": ("x = torch.rand(1, 64, 56, 56); w = torch.rand(64, 64, 3, 3)", "F.conv2d(x, w, padding=1)"),
    "conv2d 7x7 3x224, stride 2": (
        "x = torch.rand(1, 3, 224, 224); w = torch.rand(64, 3, 7, 7)",
        "F.conv2d(x, w, padding=3, stride=2)",
    ),
    "conv2d 64x64, k 31": ("x = torch.rand(1, 4, 64, 64); w = torch.rand(4, 4, 31, 31)", "F.conv2d(x, w)"),
}

# Samples of distributions: 1e5 values each.
_SAMPLES = "D = torch.distributions; a = torch.rand(100000); "
SAMPLER_ROWS: dict[str, Row] = {
    name: (_SAMPLES + "d = " + text, "d.sample()")
    for name, text in {
        "Gamma(2)": "D.Gamma(a * 0 + 2, a * 0 + 1)",
        "Gamma(1 to 10)": "D.Gamma(a * 9 + 1, a * 0 + 1)",
        "Gamma(0 to 1)": "D.Gamma(a, a * 0 + 1)",
        "Beta(2, 3)": "D.Beta(a * 0 + 2, a * 0 + 3)",
        "Beta(0 to 1, 0.5)": "D.Beta(a, a * 0 + .5)",
        "Dirichlet of 5": "D.Dirichlet(a.view(-1, 5) + 1)",
        "Dirichlet of 100": "D.Dirichlet(a.view(-1, 100) + .1)",
        "Binomial(10, 0.3)": "D.Binomial(10, a * 0 + .3)",
        "Binomial(1000, 0.3)": "D.Binomial(1000, a * 0 + .3)",
        "Binomial(100, 0 to 1)": "D.Binomial(100, a)",
        "Binomial(0 to 100, 0 to 1)": "D.Binomial((a * 100).round(), a.flip(0))",
        "Poisson(0 to 5)": "D.Poisson(a * 5)",
        "Poisson(3)": "D.Poisson(a * 0 + 3)",
        "Poisson(100)": "D.Poisson(a * 0 + 100)",
        "NegativeBinomial(10, 0.5)": "D.NegativeBinomial(10, a * 0 + .5)",
        "StudentT(3)": "D.StudentT(a * 0 + 3)",
        "VonMises(0, 1)": "D.VonMises(a * 0, a * 0 + 1)",
        "Normal(0, 1)": "D.Normal(a, a + 1)",
    }.items()
}
SAMPLER_ROWS |= {
    "Multinomial(100) of 10, 1e4": ("d = torch.distributions.Multinomial(100, torch.rand(10))", "d.sample((10000,))"),
    "Multinomial(100) of 1000 x 10": ("d = torch.distributions.Multinomial(100, torch.rand(1000, 10))", "d.sample()"),
    "Categorical of 10, 1e5": ("d = torch.distributions.Categorical(torch.rand(10))", "d.sample((100000,))"),
    "multinomial 1000 x 100, replacement": ("p = torch.rand(1000, 100)", "torch.multinomial(p, 100, True)"),
    "multinomial of 1e5": ("p = torch.rand(100000)", "torch.multinomial(p, 1000)"),
}

# Every op on 1e5 elements: x, y are positive floats, n an integer matrix, b booleans, v a vector, q a small square.
_OPS_PREPARE = (
    "torch.set_grad_enabled(False); x = torch.rand(316, 316) + .1; y = torch.rand(316, 316) + .1; s = x[0];"
    "n = torch.randint(1, 9, (316, 316)); k = torch.randint(0, 316, (316, 316)); b = x > .5; v = torch.rand(100000);"
    "q = torch.rand(64, 64) + torch.eye(64) * 9; c = torch.complex(x, y); h = x.half();"
    "i = torch.randint(0, 316, (100,));"
    "im = torch.rand(4, 8, 56, 56); e = torch.rand(8, 40, 312); w = torch.rand(312, 312); z = x.clone()"
)
_OPS = """
abs acos acosh angle asin asinh atan atanh bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1
floor frac i0 isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2 logit neg positive rad2deg
reciprocal relu round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc nan_to_num logical_not
sum mean prod std var amax amin max min argmax argmin norm median any all count_nonzero logsumexp nansum nanmean
nanmedian flatten clone flip fliplr flipud rot90 t nonzero unique cumsum cumprod cummax cummin logcumsumexp sort argsort
tril triu diag trace msort diff histc bincount std_mean var_mean aminmax quantile nanquantile mode kthvalue topk
renorm corrcoef cov logdet
"""
_ARGUMENTS = {
    "cumsum": "1",
    "cumprod": "1",
    "cummax": "1",
    "cummin": "1",
    "logcumsumexp": "1",
    "logsumexp": "1",
    "kthvalue": "5",
    "topk": "5",
    "quantile": ".5",
    "nanquantile": ".5",
    "renorm": "2, 0, 1.",
    "flip": "(0,)",
    "mode": "1",
}
_SKIPPED = "bitwise_not bincount positive asin acosh logdet".split()
_BINARY = """
add sub mul div pow atan2 copysign hypot maximum minimum fmax fmin fmod remainder floor_divide logaddexp logaddexp2
nextafter eq ne lt le gt ge isclose xlogy heaviside ldexp float_power
"""
_BITWISE = "bitwise_and bitwise_or bitwise_xor gcd lcm add mul floor_divide remainder eq lt maximum sub"
_BY_HAND = """
x.sum(0) | x.sum(1) | x.mean(0) | x.var(1) | x.std(0) | x.amax(0) | x.max(1) | x.argmax(0) | x.prod(1) | x.norm(dim=1)
x.median(1) | x.any(1) | b.any(0) | b.all(1) | n.sum() | n.sum(1) | n.max(0) | n.sort(1) | n.argsort(0) | n.prod(1)
x.sort(0) | v.sort() | v.topk(100) | v.kthvalue(500) | v.cumsum(0) | v.median() | v.unique() | n.unique()
n.cumsum(0) | x.logsumexp(0) | x.softmax(1) | x.softmax(0) | x.log_softmax(1) | F.softmin(x, 1) | F.normalize(x)
F.gelu(x) | F.silu(x) | F.elu(x) | F.selu(x) | F.celu(x) | F.leaky_relu(x) | F.hardtanh(x) | F.hardswish(x)
F.hardsigmoid(x) | F.softplus(x) | F.mish(x) | F.logsigmoid(x) | F.softsign(x) | F.tanhshrink(x) | F.relu6(x)
F.prelu(x, s[:1]) | F.rrelu(x) | F.glu(x) | F.threshold(x, .5, 0.) | F.softshrink(x) | F.hardshrink(x)
F.gelu(x, approximate='tanh') | F.dropout(x) | F.alpha_dropout(x) | F.layer_norm(x, (316,)) | F.group_norm(im, 2)
F.instance_norm(im) | F.batch_norm(im, None, None, training=True) | F.rms_norm(x, (316,))
F.local_response_norm(im, 3) | F.mse_loss(x, y) | F.l1_loss(x, y) | F.smooth_l1_loss(x, y) | F.huber_loss(x, y)
F.binary_cross_entropy(x.clamp(0, 1), y.clamp(0, 1)) | F.binary_cross_entropy_with_logits(x, y) | F.kl_div(x, y)
F.poisson_nll_loss(x, y) | F.gaussian_nll_loss(x, y, y) | F.cross_entropy(x, k[0]) | F.nll_loss(x, k[0])
F.cosine_similarity(x, y) | F.pairwise_distance(x, y) | F.hinge_embedding_loss(x, y) | F.soft_margin_loss(x, y)
F.margin_ranking_loss(x, y, y) | F.triplet_margin_loss(x, y, z) | F.multi_margin_loss(x, k[0])
F.multilabel_margin_loss(x, k) | F.multilabel_soft_margin_loss(x, y) | F.cosine_embedding_loss(x, y, s)
F.interpolate(im, scale_factor=2) | F.interpolate(im, scale_factor=2, mode='bilinear')
F.interpolate(im, scale_factor=.5, mode='area') | F.interpolate(im, scale_factor=2, mode='bicubic')
F.pad(im, (1, 1, 1, 1)) | F.pad(im, (1, 1, 1, 1), mode='reflect') | F.pad(im, (1, 1, 1, 1), mode='replicate')
F.pad(im, (1, 1, 1, 1), mode='circular') | F.unfold(im, 3) | F.fold(F.unfold(im, 3), (56, 56), 3)
F.pixel_shuffle(im, 2) | F.pixel_unshuffle(im, 2) | F.channel_shuffle(im, 2)
F.grid_sample(im, torch.rand(4, 56, 56, 2), align_corners=False)
F.affine_grid(torch.rand(4, 2, 3), (4, 8, 56, 56), align_corners=False) | F.one_hot(k, 316) | F.embedding(k, x)
F.embedding_bag(k, x) | F.linear(x, y, s) | F.bilinear(x[:, :8], y[:, :8], torch.rand(4, 8, 8))
F.scaled_dot_product_attention(e, e, e) | F.conv1d(e, torch.rand(40, 40, 3)) | F.conv2d(im, torch.rand(8, 8, 3, 3))
F.conv_transpose2d(im, torch.rand(8, 8, 3, 3)) | x @ y | x @ s | s @ s | torch.outer(s, s) | torch.dot(v, v)
torch.cdist(x, y) | torch.pdist(x[:100]) | torch.kron(q[:17, :17], q[:17, :17]) | torch.einsum('ij,jk->ik', x, y)
torch.einsum('ij,ij->i', x, y) | torch.tensordot(x, y, 1) | torch.addmm(x, x, y) | torch.addmv(s, x, s)
torch.addr(x, s, s) | torch.addcmul(x, x, y) | torch.addcdiv(x, x, y) | torch.lerp(x, y, .5) | torch.lerp(x, y, z)
torch.where(b, x, y) | torch.where(b, x, 0.) | torch.clamp(x, .2, .8) | torch.clamp(x, y, z) | torch.cat([x, y])
torch.cat([x, y], 1) | torch.stack([x, y]) | torch.stack([x, y], 2) | torch.gather(x, 1, k) | torch.gather(x, 0, k)
torch.scatter(x, 1, k, y) | torch.scatter_add(x, 0, k, y) | torch.scatter_reduce(x, 0, k, y, 'amax')
torch.index_select(x, 0, i) | torch.index_select(x, 1, i) | torch.index_add(x, 0, i, y[:100])
torch.index_copy(x, 0, i, y[:100]) | x.index_fill(0, i, 1.) | torch.masked_select(x, b) | torch.masked_fill(x, b, 0.)
x.masked_scatter(b, y) | torch.take(x, k) | torch.take_along_dim(x, k, 1) | x.put(k, y) | x[i] | x[:, i] | x[b]
x[k, k] | x[::2, ::3].clone() | x.t().contiguous() | x.repeat(2, 2) | x.expand(4, 316, 316).clone() | x.roll(3, 1)
x.tile(2) | torch.repeat_interleave(x, 2, 0) | torch.searchsorted(s.sort()[0], x) | torch.bucketize(x, s.sort()[0])
torch.histc(x, 50) | torch.histogram(x, 50) | torch.bincount(n.view(-1)) | torch.isin(n, n[0, :5])
torch.unique_consecutive(n.view(-1)) | torch.combinations(v[:300]) | torch.cartesian_prod(v[:316], v[:316])
torch.meshgrid(s, s, indexing='ij')[0].clone() | torch.tril_indices(316, 316) | torch.triu_indices(316, 316)
torch.block_diag(q, q, q) | torch.diag_embed(x[:10]) | torch.cross(v[:99999].view(-1, 3), v[1:].view(-1, 3), dim=1)
torch.cov(x) | torch.corrcoef(x) | torch.trapezoid(x) | torch.cumulative_trapezoid(x) | torch.gradient(v)[0]
torch.vander(s, 316) | torch.logspace(0, 1, 100000) | torch.linspace(0, 1, 100000) | torch.arange(100000)
torch.zeros(316, 316) | torch.full((316, 316), 2.) | torch.eye(316) | torch.rand(316, 316) | torch.randn(316, 316)
torch.randint(9, (316, 316)) | torch.randperm(100000) | torch.bernoulli(x.clamp(0, 1)) | torch.normal(x, y)
torch.multinomial(v[:5000], 1000) | torch.poisson(x) | z.exponential_() | z.uniform_() | z.normal_()
z.geometric_(.5) | z.log_normal_() | z.cauchy_() | torch.empty_like(x).random_() | torch.linalg.inv(q)
torch.linalg.solve(q, q) | torch.linalg.det(q) | torch.linalg.qr(q)[0] | torch.linalg.svd(q)[1]
torch.linalg.eigh(q + q.T)[0] | torch.linalg.eig(q)[0] | torch.linalg.cholesky(q @ q.T)
torch.linalg.matrix_exp(q * .01) | torch.linalg.matrix_power(q, 3) | torch.linalg.pinv(q)
torch.linalg.lstsq(q, q)[0] | torch.linalg.slogdet(q)[1] | torch.linalg.vector_norm(x)
torch.linalg.vector_norm(x, dim=1) | torch.linalg.matrix_norm(x) | torch.linalg.cond(q) | torch.linalg.matrix_rank(q)
torch.linalg.lu_factor(q)[0] | torch.linalg.vander(s[:300])
torch.linalg.cross(v[:99999].view(-1, 3), v[1:].view(-1, 3)) | torch.linalg.multi_dot([x, y, z])
torch.linalg.householder_product(q, q[0]) | torch.fft.fft(x) | torch.fft.rfft(x) | torch.fft.ifft(c)
torch.fft.irfft(c) | torch.fft.fft2(x) | torch.fft.fftn(x) | torch.fft.fftshift(x)
torch.stft(v, 256, return_complex=True) | c.abs() | c.angle() | c * c | c / c | c.exp() | c.conj().resolve_conj()
c.sum() | c @ c | torch.view_as_real(c).clone() | torch.polar(x, y) | c.sqrt() | c.log() | h + h | h * h | h.exp()
h.sum() | h @ h | h.float() | x.half() | x.bfloat16() | x.double() | x.long() | n.float() | b.float() | x.bool()
n.int() | h.softmax(1) | n << 2 | n >> 1 | n // 3 | n % 3 | n / 3 | n ** 2 | x ** 2 | x ** 3 | x ** .5 | x ** -1
2 ** x | x % .3 | x // .3 | ~b | b & b | b ^ b | -x | x > .5 | x == y | x.add_(1) | x.mul_(1.) | x.clamp_(0, 2)
x.copy_(y) | x.zero_() | z.fill_(1.) | x.tolist() | x.numpy() | x.equal(y) | torch.allclose(x, y)
v.view(10, -1).sum(0) | torch.special.bessel_j0(x) | torch.special.bessel_j1(x) | torch.special.bessel_y0(x)
torch.special.modified_bessel_i0(x) | torch.special.i0e(x) | torch.special.i1(x) | torch.special.i1e(x)
torch.special.entr(x) | torch.special.ndtr(x) | torch.special.ndtri(x.clamp(0, 1)) | torch.special.log_ndtr(x)
torch.special.erfcx(x) | torch.special.zeta(x + 1.5, y) | torch.special.polygamma(1, x) | torch.special.gammainc(x, y)
torch.special.gammaincc(x, y) | torch.special.multigammaln(x + 3, 2) | torch.special.xlog1py(x, y)
torch.special.spherical_bessel_j0(x) | torch.special.airy_ai(x) | torch.special.chebyshev_polynomial_t(x, 5)
torch.special.hermite_polynomial_h(x, 5) | torch.special.laguerre_polynomial_l(x, 5)
torch.special.legendre_polynomial_p(x, 5) | torch.nn.utils.rnn.pad_sequence([s] * 300)
torch.nn.utils.clip_grad_norm_([nn.Parameter(x)], 1.) | torch.nn.utils.parameters_to_vector([x, y])
torch.unravel_index(k, (316, 316))[0] | torch.count_nonzero(x, 1) | torch.nan_to_num(x)
torch.tensor_split(x, 4)[0].clone() | torch.movedim(im, 1, 3).contiguous() | torch.column_stack([x, y])
torch.dstack([x, y]) | torch.hstack([x, y]) | torch.vstack([x, y]) | torch.tensor(x.tolist()[0])
torch.segment_reduce(v, 'sum', lengths=torch.full((100,), 1000))
"""


def _op_rows() -> dict[str, Row]:
    """Return a row for each op, named by its text."""
    texts = [f"torch.{name}({', '.join(filter(None, ('x', _ARGUMENTS.get(name, ''))))})" for name in _OPS.split()]
    texts = [text for text, name in zip(texts, _OPS.split(), strict=True) if name not in _SKIPPED]
    texts += [f"torch.{name}(x, y)" for name in _BINARY.split()] + [
        f"torch.{name}(n, k + 1)" for name in _BITWISE.split()
    ]
    for line in _BY_HAND.strip().splitlines():
        texts += [text.strip() for text in line.split(" | ")]
    return {text: (_OPS_PREPARE, text) for text in texts}


OP_ROWS = _op_rows()

# Rows of packages, which both interpreters need. Under torchlite `import torch` means torchlite.
_GEOMETRIC = "getattr(torch, 'as_torch', int)(); import torch_geometric; "
_EDGES = "e = torch_geometric.EdgeIndex([[0, 1, 1, 2], [1, 0, 2, 1]], sort_order='row'); e.fill_cache_()"
PACKAGE_ROWS: dict[str, Row] = {
    **{
        f"reversible layer, {groups} groups": (
            _GEOMETRIC + f"g = torch_geometric.nn; s = g.SAGEConv({32 // groups}, {32 // groups}); "
            f"c = g.GroupAddRev(s, num_groups={groups}); "
            "l = nn.Linear(32, 32); x = torch.randn(4, 32); e = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])",
            "c(l(x), e).mean().backward()",
        )
        for groups in (2, 16)
    },
    "EdgeIndex in shared memory": (_GEOMETRIC + _EDGES, "e.clone().share_memory_()"),
    "EdgeIndex, already shared": (_GEOMETRIC + _EDGES, "e.share_memory_()"),
}

GROUPS: dict[str, dict[str, Row]] = {
    "data": DATA_ROWS,
    "products": PRODUCT_ROWS,
    "quantized": QUANTIZED_ROWS,
    "pooling": POOLING_ROWS,
    "convolutions": CONV_ROWS,
    "samplers": SAMPLER_ROWS,
    "packages": PACKAGE_ROWS,
    "ops": OP_ROWS,
}
