"""The repr of sparse tensors."""

from __future__ import annotations

import torchlite as torch

from .._tensor.printing import _grad_name, add_suffixes, format_array
from .sparse_tensor import ROW_COMPRESSED


def _format_part(tensor, indent: int, prefix: str) -> str:
    """Format one of the tensors that a sparse tensor consists of."""
    lead = f"{prefix}=tensor("
    if tensor.is_meta:
        return f"{lead}..., size={tuple(tensor.shape)})"
    if tensor.numel():
        return lead + format_array(tensor._tl_kernels.to_numpy(tensor._tl_array), indent + len(lead)) + ")"
    return f"{lead}[], size={tuple(tensor.shape)})"


def sparse_repr(tensor) -> str:
    """Return the repr of a sparse tensor: indices, values, size and attributes."""
    data, default = tensor._tl_array, torch.get_default_dtype()
    indent = len("tensor(")
    suffixes = [] if tensor.is_cpu and torch.get_default_device().type == "cpu" else [f"device='{tensor.device}'"]
    suffixes += [f"size={tuple(tensor.shape)}"]
    suffixes += [] if tensor.is_meta else [f"nnz={tensor._nnz()}"]
    if tensor.dtype not in (default, default.to_complex(), torch.int64, torch.bool):
        suffixes.append(f"dtype={tensor.dtype}")
    suffixes.append(f"layout={data.layout}")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{_grad_name(tensor.grad_fn)}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    if data.layout is torch.sparse_coo:
        names: tuple = ("indices",)
    else:
        names = ("crow_indices", "col_indices") if data.layout in ROW_COMPRESSED else ("ccol_indices", "row_indices")
    parts = [_format_part(part, indent, name) for name, part in zip(names, data.parts, strict=True)]
    gap = ",\n" + " " * indent
    text = "tensor(" + gap.join([*parts, _format_part(data.values, indent, "values")])
    return add_suffixes(text, suffixes, indent, own_line=data.layout is torch.sparse_coo)
