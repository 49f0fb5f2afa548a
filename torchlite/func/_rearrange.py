"""`rearrange`: axes by name, in einops' notation."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Sequence

import torchlite as torch
from torchlite import Tensor

__all__ = ["rearrange"]

_ELLIPSIS, _MERGED = "...", "(...)"  # dimensions of their own, or merged into one
_Axes = list[list[str]]  # one list for each dimension: the names that make it up, none for a dimension of one


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """The elements with their axes in another order, split and merged as `pattern` says; a list of tensors is stacked
    first. ValueError for a pattern that says nothing, or does not fit.

    >>> import torchlite as torch
    >>> images = torch.zeros(32, 30, 40, 3)
    >>> torch.func.rearrange(images, "b h w c -> b c h w").shape
    torch.Size([32, 3, 30, 40])
    >>> torch.func.rearrange(images, "b (h h1) (w w1) c -> b h w (c h1 w1)", h1=2, w1=2).shape
    torch.Size([32, 15, 20, 12])
    """
    if not isinstance(tensor, Tensor):
        tensor = torch.stack(tuple(tensor))
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (_parsed(side) for side in pattern.split("->"))
    left, right = _checked(left, right, pattern, tensor.ndim, axes_lengths)
    lengths = _lengths(left, tensor.shape, axes_lengths)
    order = {name: i for i, name in enumerate(name for axis in left for name in axis)}
    split = tensor.reshape([lengths[name] for axis in left for name in axis])
    moved = split.permute([order[name] for axis in right for name in axis])
    return moved.reshape([math.prod(lengths[name] for name in axis) for axis in right])


def _parsed(side: str) -> _Axes:
    """The axes of one side; the ellipsis stands among them by that name."""
    if "." in side.replace(_ELLIPSIS, "") or side.count(_ELLIPSIS) > 1:
        only = "; only one ellipsis for tensor " if side.count(_ELLIPSIS) > 1 else ""
        raise ValueError(f"Expression may contain dots only inside ellipsis (...){only}")
    axes: _Axes = []
    seen: set[str] = set()
    group: list[str] | None = None
    for token in re.findall(r"\.\.\.|\w+|\S", side):
        if token == "(":
            if group is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            group = []
        elif token == ")":
            if group is None:
                raise ValueError("Brackets are not balanced")
            axes.append(group)
            group = None
        else:
            name = _name(token)
            if name in seen:
                raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
            seen.update([name] if name else [])
            if group is None:
                axes.append([name] if name else [])
            else:
                group += [_MERGED if name == _ELLIPSIS else name] if name else []
    if group is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{side}'")
    return axes


def _name(token: str) -> str:
    """A name, or "" for the axis 1."""
    if token == _ELLIPSIS or token == "1":
        return "" if token == "1" else token
    if token.isdecimal():
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if not re.fullmatch(r"\w+", token):
        raise ValueError(f"Unknown character '{token}'")
    if not token.isidentifier() or keyword.iskeyword(token):
        raise ValueError(f"Invalid axis identifier: {token}\nnot a valid python identifier")
    if token[0] == "_" or token[-1] == "_":
        raise ValueError(f"Invalid axis identifier: {token}\naxis name should should not start or end with underscore")
    return token


def _checked(left: _Axes, right: _Axes, pattern: str, ndim: int, given: dict[str, int]) -> tuple[_Axes, _Axes]:
    """Both sides fitted to each other and to the number of dimensions, with a name for each that the ellipsis takes."""
    rest: list[str] = []
    if any(_MERGED in axis for axis in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if [_ELLIPSIS] in left:
        rest = [f"...{i}" for i in range(ndim - len(left) + 1)]
        if ndim < len(left) - 1:
            raise ValueError(
                f"Number of dimensions in pattern ({len(left) - 1}) must be less than or equal to the number of "
                f"dimensions in the tensor ({ndim})"
            )
    elif any(_ELLIPSIS in axis or _MERGED in axis for axis in right):
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    elif len(left) != ndim:
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor "
            f"({ndim})"
        )
    left, right = _filled(left, rest), _filled(right, rest)
    names = [{name for axis in side for name in axis} for side in (left, right)]
    if names[0] != names[1]:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {names[0] ^ names[1]}"
        )
    if unknown := given.keys() - names[0]:
        raise ValueError(f"Identifiers not found in rearrange expression: {set(unknown)}")
    return left, right


def _filled(side: _Axes, rest: Sequence[str]) -> _Axes:
    axes: _Axes = []
    for axis in side:
        if axis == [_ELLIPSIS]:
            axes += [[name] for name in rest]
        else:
            axes.append([one for name in axis for one in (rest if name == _MERGED else [name])])
    return axes


def _lengths(left: _Axes, shape: Sequence[int], given: dict[str, int]) -> dict[str, int]:
    """The length of every axis: the given, and what one in each dimension is left with."""
    lengths = dict(given)
    for axis, size in zip(left, shape, strict=True):
        known = math.prod(lengths[name] for name in axis if name in lengths)
        unknown = [name for name in axis if name not in lengths]
        if len(unknown) > 1:
            raise ValueError(f"cannot infer the sizes of several axes at once: {' '.join(unknown)}")
        if size != known if not unknown else known == 0 or size % known:
            raise ValueError(f"axes of length {known} do not fit into a dimension of {size}: {' '.join(axis) or '1'}")
        if unknown:
            lengths[unknown[0]] = size // known
    return lengths
