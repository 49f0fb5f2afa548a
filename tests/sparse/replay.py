"""Programs with sparse tensors in every layout and several dtypes, and short descriptions of their results.

`tools/record_sparse.py` records what PyTorch answers; `test_answers.py` asks torchlite on each device.
"""

from __future__ import annotations

import pathlib
import warnings

ANSWERS = pathlib.Path(__file__).with_name("answers.json")
FILE = pathlib.Path(__file__).with_name("written_by_pytorch.pt")
DTYPES = ("float32", "int64", "bool", "complex64", "bfloat16")
LAYOUTS = ("coo", "uncoalesced", "hybrid", "empty", "csr", "csc", "bsr", "bsc")
# `s` and `t` are sparse with other places, `d` is dense of the same shape, `m` can be multiplied with, `v` is a vector,
# and `i` has indices.
OF_ALL_DTYPES = """
s | s.to_dense() | s.coalesce() | s.values() | s.indices() | s._nnz() | s.sparse_dim() | s.dense_dim()
s.is_coalesced() | s.crow_indices() | s.col_indices() | s.ccol_indices() | s.row_indices() | s._indices()
s._values() | s.to_sparse() | s.to_sparse_csr() | s.to_sparse_csc() | s.to_sparse_bsr((2, 2))
s.to_sparse_bsc((2, 2)) | s.to_sparse(layout=torch.sparse_csr) | s.to_sparse(1) | d.to_sparse() | d.to_sparse(1)
d.to_sparse_csr() | d.to_sparse_csc() | d.to_sparse_bsr((2, 2)) | d.to_sparse_bsc((2, 2)) | d.sparse_mask(s)
s.sparse_mask(t) | s + t | s + s | s - t | d + s | d - s | s + d | s + 1 | s * t | s * s | s * d | d * s | s * 2
2 * s | s * 2.5 | s * torch.tensor(2) | s / 2 | s / t | s // 2 | -s | abs(s) | s ** 2 | s ** 0 | s.add(t, alpha=3)
s.clone() | s.to(torch.float64) | s.to(torch.int64) | s.bool() | s.sum() | s.sum(0) | s.sum(1) | s.sum((0, 1))
s.sum(0, keepdim=True) | torch.sparse.sum(s) | torch.sparse.sum(s, 0) | torch.sparse.sum(s, 1)
torch.sparse.sum(s, (0, 1)) | s.any() | s.t() | s.transpose(0, 1) | s.mT | s.select(0, 1) | s.select(1, 2)
s.select(1, -1) | s[0] | s[1, 2] | s[-1] | s.unbind(0)[1] | s.unsqueeze(0) | s.unsqueeze(-1) | s.narrow_copy(1, 1, 2)
s.narrow_copy(0, 0, 3) | s.index_select(0, i) | s.index_select(1, i[1:2] + 3)
torch.cat([s, t]) | torch.cat([s, t], 1) | torch.stack([s, t]) | torch.stack([s, t], 1) | torch.zeros_like(s)
s.is_sparse | s.is_sparse_csr | str(s.layout) | s @ m | torch.mm(s, m) | torch.sparse.mm(s, m) | m.t() @ s.t()
torch.mv(s, v) | s @ v | torch.addmm(d[:, :2], s, m) | torch.sparse.addmm(d[:, :2], s, m, beta=2, alpha=3)
torch.sparse.mm(s, t.t()) | s @ t.t() | s.isnan() | s.sgn() | s.neg() | s.positive() | s.expand(2, 4, 4)
s.reshape(16) | s.stride() | s.shape | torch.ones_like(s) | torch.full_like(s, 2) | torch.real(s) | s.permute(1, 0)
s.permute(0, 2, 1) | s.resize_as_(t) | torch.ones_like(s, layout=torch.strided)
torch.zeros_like(s, layout=torch.strided) | torch.unsqueeze(s, 1).is_coalesced() | torch.cat([s, t]).is_coalesced()
torch.sparse.sum(s, ()) | s[0] @ m | m.t() @ s[0]
""".replace("\n", " | ").split(" | ")
OF_NUMBERS = """
s * torch.stack([d, d]) | torch.stack([m.t(), m.t()]) @ s | torch.mm(s, d[:2]) | torch.mv(s, v[:2]) | s * s.unsqueeze(0)
s.sin() | s.sinh() | s.tan() | s.tanh() | s.asin() | s.asinh() | s.atan() | s.atanh() | s.sqrt() | s.abs() | s.floor()
s.ceil() | s.trunc() | s.round() | s.expm1() | s.log1p() | s.erf() | s.erfinv() | s.deg2rad() | s.rad2deg() | s.relu()
s.sign() | s.isinf() | s.isneginf() | s.isposinf() | s.signbit() | s.nan_to_num() | s.frac() | s.square() | s.pow(3)
s.pow(0.5) | s.cos() | s.exp() | s.sigmoid() | s.max() | s.mean() | s.norm() | s.norm(1) | s > 0 | s == t
s.clamp(0, 1) | s.angle() | torch.sparse.softmax(s, 0) | torch.sparse.softmax(s, 1) | torch.sparse.log_softmax(s, 0)
torch.sparse.log_softmax(s, 1) | torch.sparse.sampled_addmm(s, m, m.t())
torch.sparse.sampled_addmm(s, m, m.t(), beta=2, alpha=3) | torch.dist(s, t) | torch.dist(s, t, 1)
s.detach().clone().pow_(2) | s.detach().clone().abs_() | s.detach().clone().sin_() | s.detach().clone().fill_(3)
torch.imag(s) | torch.sparse.mm(s, m, "prod")
torch.linalg.norm(s.coalesce()) | torch.sparse.mm(s, m, "sum")
torch.sparse.mm(s, m, "mean") | torch.sparse.mm(s, m, "amax") | torch.sparse.mm(s, m, "amin") | torch.smm(s, m)
torch.hspmm(s, m) | torch.sspaddmm(s, s, d) | s.detach().mul_(2) | s.detach().add_(t)
d.detach().add_(s.detach(), alpha=2) | s.detach().zero_() | s.detach().neg_() | s.detach().copy_(t)
s.detach().sub_(t) | torch.bmm(s.unsqueeze(0), m.unsqueeze(0)) | s.cumsum(0) | s.view(16)
torch.div(s, 2, rounding_mode="floor")
""".replace("\n", " | ").split(" | ")
# PyTorch gives a place that is not specified a gradient where one element is picked.
WITHOUT_GRADIENTS = ("s[1, 2]", "s[0] @ m", "m.t() @ s[0]")
ALL = [line.strip() for line in OF_ALL_DTYPES if line.strip()]
NUMBERS = [line.strip() for line in OF_NUMBERS if line.strip()]


def programs():
    """Return (layout, dtype, line) of every program."""
    for layout in LAYOUTS:
        for dtype in DTYPES:
            lines = ALL + (NUMBERS if dtype == "float32" else [])
            for line in lines if dtype in ("float32", "int64") or layout in ("coo", "csr") else ALL[::3]:
                yield layout, dtype, line


def sparse(torch, layout: str, dtype, shift: int, device):
    """A tensor of 4 x 4 (or 4 x 4 x 2) in a layout."""
    index = torch.tensor([[0, 1, 1, 3, 3], [2, 0, 3, 1, (3 - shift) % 4]])
    values = torch.tensor([1, -2, 3, 4, -5]) + shift
    if layout == "hybrid":
        values = torch.stack([values, values * 2], 1)
    if layout == "uncoalesced":
        index, values = torch.cat([index, index[:, 1:3]], 1), torch.cat([values, values[1:3] + 1])
    if layout == "empty":
        index, values = index[:, :0], values[:0]
    values = (values / 4).to(dtype) if dtype.is_floating_point or dtype.is_complex else values.to(dtype)
    shape = (4, 4, 2) if layout == "hybrid" else (4, 4)
    out = torch.sparse_coo_tensor(index.to(device), values.to(device), shape)
    if layout in ("coo", "hybrid"):
        return out.coalesce()
    if layout in ("bsr", "bsc"):
        return getattr(out, f"to_sparse_{layout}")((2, 2))
    return out if layout in ("uncoalesced", "empty") else getattr(out, f"to_sparse_{layout}")()


def inputs(torch, layout: str, name: str, device) -> dict:
    """Return the tensors that programs use."""
    dtype = getattr(torch, name)
    s, t = (sparse(torch, layout, dtype, shift, device) for shift in (0, 2))
    d = (torch.arange(s.numel(), device=device).reshape(s.shape) % 7 - 3).to(dtype)
    m = (torch.arange(8, device=device).reshape(4, 2) % 5 - 1).to(dtype)
    found = {"s": s, "t": t, "d": d, "m": m, "v": m[:, 0].clone(), "i": torch.tensor([2, 0, 2], device=device)}
    if name in ("float32", "complex64"):
        for letter in "stdmv":
            found[letter].requires_grad_()
    return found


def _numbers(tensor) -> str:
    def shown(value):
        if isinstance(value, complex):
            return f"{shown(value.real)}{value.imag + 0.0:+.4g}j"
        return str(int(value)) if isinstance(value, (bool, int)) else f"{value + 0.0:.4g}"

    return " ".join(shown(value) for value in tensor.detach().cpu().reshape(-1).tolist())


def described(value, counted=True):
    """Return a short description of a result."""
    if isinstance(value, (tuple, list)):
        return [described(item, counted) for item in value]
    if not hasattr(value, "layout"):
        return str(value)
    dense = value.detach().to_dense()
    # The number of elements of a sum of uncoalesced tensors is unspecified.
    known = value._nnz() if counted and "sparse" in str(value.layout) else ""
    words = f"{str(value.layout)[6:]} {str(value.dtype)[6:]} {list(value.shape)} {known}".strip()
    return f"{words}: {_numbers(dense)}"


def answer(torch, layout: str, dtype: str, line: str, device="cpu"):
    """Return a program's result and the gradients, or the error."""
    given = inputs(torch, layout, dtype, device)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = eval(line, {"torch": torch, **given})
            found = [described(out, layout != "uncoalesced")]
            if getattr(out, "requires_grad", False) and out.grad_fn is not None and line not in WITHOUT_GRADIENTS:
                found.append(_gradients(torch, out, given))
            return found
    except Exception as error:
        words = str(error).replace("\n", " ").partition(" with arguments from")[0]
        words = words.replace(f"_{torch.device(device).type}(", "_cpu(")  # PyTorch's words name the device
        return [f"{type(error).__name__}: {words[:60]}", "refused"]


def _gradients(torch, out, given):
    """The gradients of a weighted sum of the results, as dense tensors."""
    dense = out if str(out.layout) == "torch.strided" else out.to_dense()
    weights = torch.arange(1, dense.numel() + 1, device=dense.device).reshape(dense.shape).to(dense.dtype)
    try:
        (dense * weights).sum().real.backward() if dense.is_complex() else (dense * weights).sum().backward()
    except (RuntimeError, NotImplementedError) as error:
        return type(error).__name__
    return {
        name: _numbers(value.grad.to_dense())
        for name, value in given.items()
        if getattr(value, "grad", None) is not None
    }


def file_contents(torch) -> dict:
    """Return the contents of FILE: a sparse tensor of each layout."""
    coo = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    hybrid = torch.sparse_coo_tensor([[0, 1, 1]], [[3.0, 1.0], [4.0, 2.0], [5.0, 2.0]], (2, 2))
    blocks = torch.eye(4)
    return {
        "coo": coo, "coalesced": coo.coalesce(), "hybrid": hybrid, "csr": coo.to_sparse_csr(),
        "csc": coo.to_sparse_csc(), "bsr": blocks.to_sparse_bsr((2, 2)), "bsc": blocks.to_sparse_bsc((2, 2)),
        "parameter": torch.nn.Parameter(coo.coalesce()),
    }  # fmt: skip
