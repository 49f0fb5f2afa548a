"""ONNX ops MatMul, Gemm, Einsum and Det."""

from __future__ import annotations

import collections
import itertools
import math
import re

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .op_registry import fits_into, op
from .resource_limits import check_elements, check_matmul, check_products, check_work, count_value


def checked_matmul(x: Tensor, y: Tensor) -> Tensor:
    check_matmul(x, y)
    return torch.matmul(x, y)


@op("Det")
def det(x: Tensor) -> Tensor:
    check_products("Det", x.numel() * x.shape[-1], x)
    check_work("Det", 128 * math.prod(x.shape[:-2]))  # per matrix, regardless of size
    return torch.linalg.det(x)


@op("MatMul")
def matmul(x: Tensor, y: Tensor) -> Tensor:
    check_matmul(x, y)
    return torch.matmul(x, y)


@op("Gemm")
def gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0, broadcast: int = 0,
) -> Tensor:  # fmt: skip
    if transA:
        a = a.t()
    right = b.t() if transB else b
    check_matmul(a, right)
    if c is not None:
        fits_into("Gemm", c, (a.shape[0], right.shape[1]))
    if alpha == 1 and beta == 1 and transB and c is not None and c.ndim == 1 and a.is_floating_point():
        return F.linear(a, b, c)
    out = torch.matmul(a, right)
    if alpha != 1:
        out = (alpha * out).to(a.dtype)
    if c is None:
        return out
    return out + (c if beta == 1 else (beta * c).to(a.dtype))


_LETTERS = re.compile(r"\.\.\.|[A-Za-z]")


@op("Einsum")
def einsum(*operands: Tensor, equation: str) -> Tensor:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = [_LETTERS.findall(term) for term in left.split(",")]
    if len(terms) != len(operands) or "".join(map("".join, terms)) != left.replace(",", ""):
        raise ValueError(f"Einsum: {equation[:100]!r} is no equation of {len(operands)} operands")
    counts = collections.Counter(c for term in terms for c in term)
    out = _LETTERS.findall(right) if arrow else sorted(c for c, count in counts.items() if c == "..." or count == 1)
    tensors = list(operands)
    result, term = tensors[0], terms[0]
    counts.update(out)
    for c in term:
        counts[c] -= 1
    for i in range(1, len(terms)):  # pairwise, so the size of each step is known
        for c in terms[i]:
            counts[c] -= 1
        kept = [c for c in dict.fromkeys([*term, *terms[i]]) if counts[c]] if i + 1 < len(terms) else out
        result = _einsum_pair((term, terms[i]), (result, tensors[i]), kept)
        term = kept
    return _einsum_pair((terms[0],), (result,), out) if len(terms) == 1 else result


def _einsum_pair(terms: tuple, operands: tuple, out: list[str]) -> Tensor:
    """Return an Einsum of one or two operands."""
    sizes: dict[str, int] = {}
    dots: tuple[int, ...] = ()
    for term, x in zip(terms, operands, strict=True):
        place = term.index("...") if "..." in term else len(term)
        count = x.ndim - len(term) + 1 if "..." in term else 0
        shape = [*x.shape[:place], *x.shape[place + count :]]
        for letter, n in zip([c for c in term if c != "..."], shape, strict=False):
            sizes[letter] = max(sizes.get(letter, 1), n)
        own = tuple(x.shape[place : place + count])
        dots = tuple(max(p) for p in itertools.zip_longest(own[::-1], dots[::-1], fillvalue=1))[::-1]
    size = check_elements("Einsum", *(sizes.get(c, 1) for c in out if c != "..."), *(dots if "..." in out else ()))
    if len(operands) == 2:
        check_products("Einsum", math.prod(sizes.values()) * math.prod(dots), operands[0])
    found = torch.einsum(f"{','.join(map(''.join, terms))}->{''.join(out)}", *operands)
    if size:
        count_value(found)
    return found
