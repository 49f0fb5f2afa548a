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

GROUPS: dict[str, dict[str, Row]] = {
    "data": DATA_ROWS,
    "products": PRODUCT_ROWS,
    "pooling": POOLING_ROWS,
    "convolutions": CONV_ROWS,
}
