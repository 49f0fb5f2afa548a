"""`rearrange`: permutes, splits and merges dimensions by an einops pattern."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import torchlite as torch

from .._tensor import Tensor

_TOKENS = re.compile(r"\.\.\.|[()]|\w+|\s+|.", re.DOTALL)
ELLIPSIS = "…"


class DimensionBindError(Exception):
    """Sizes that do not match a pattern."""


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """Permute, split and merge dimensions by a pattern, as in einops.

    In a pattern ``"before -> after"`` a name is a dimension, names in parentheses are one merged dimension, ``...`` is
    any number of dimensions, and ``1`` and ``()`` are dimensions of size 1.

    Args:
        tensor: A tensor, or a sequence of tensors of one shape, which are stacked first.
        pattern: The pattern; both sides have the same names.
        **axes_lengths: Sizes of names in parentheses. One in each pair of parentheses may be omitted.

    Returns:
        The rearranged tensor, a view where that is possible.

    Raises:
        ValueError: The pattern is invalid, or has another number of dimensions than the tensor.
        TypeError: A size is not an int.
        DimensionBindError: The sizes do not fit the tensor's shape.

    Example:
        >>> images = torch.zeros(32, 30, 40, 3)
        >>> torch.func.rearrange(images, "b h w c -> b (c h w)").shape
        torch.Size([32, 3600])
        >>> torch.func.rearrange(images, "b (h1 h) (w1 w) c -> (b h1 w1) h w c", h1=2, w1=2).shape
        torch.Size([128, 15, 20, 3])

    References:
        A. Rogozhnikov, "Einops: clear and reliable tensor manipulations with Einstein-like notation", 2022.
    """
    x: Any = tensor if isinstance(tensor, Tensor) else torch.stack(list(tensor))
    left, right = _parse_pattern(pattern, tuple(axes_lengths))
    for size in axes_lengths.values():
        if not isinstance(size, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(size)}")
    before = _expand_ellipsis(left, x.ndim)
    sizes: dict[str, int] = {}
    numbers = {name: f"d{i}" for i, name in enumerate(name for group in before for name in group)}
    for group, size in zip(before, x.shape, strict=True):
        _bind_sizes(group, size, axes_lengths, sizes, numbers)
    flat = [name for group in before for name in group]
    more = [name for name in flat if name.startswith(ELLIPSIS)]
    after: list[list[str]] = []
    for group in right:
        whole = group == [ELLIPSIS] and not group.in_brackets
        after += [[one] for one in more] if whole else [_expand_group(group, more)]
    split = x.reshape([sizes[name] for name in flat])
    order = [flat.index(name) for group in after for name in group]
    return split.permute(order).reshape([math.prod(sizes[name] for name in group) for group in after])


@functools.lru_cache(256)
def _parse_pattern(pattern: str, given: tuple[str, ...]) -> tuple[list[_AxisGroup], list[_AxisGroup]]:
    """Return both sides of a pattern, each a list of axis groups."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (_parse_side(text) for text in sides)
    names_left, names_right = ({name for group in side for name in group} for side in (left, right))
    if ELLIPSIS in names_right and ELLIPSIS not in names_left:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if any(ELLIPSIS in group and group.in_brackets for group in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    alone = names_left ^ names_right
    if alone:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {alone}")
    unknown = set(given) - names_left
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    return left, right


class _AxisGroup(list):
    """Axis names that share one dimension."""

    in_brackets = False


def _parse_side(text: str) -> list[_AxisGroup]:
    """Parse one side of a pattern."""
    if "." in text.replace("...", "", 1):
        only = "; only one ellipsis for tensor " if "..." in text.replace("...", "", 1) else ""
        raise ValueError(f"Expression may contain dots only inside ellipsis (...){only}")
    groups: list[_AxisGroup] = []
    opened: _AxisGroup | None = None
    seen: set[str] = set()
    for token in _TOKENS.findall(text):
        if token.isspace():
            continue
        if token == "(":
            if opened is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            opened = _AxisGroup()
            opened.in_brackets = True
        elif token == ")":
            if opened is None:
                raise ValueError("Brackets are not balanced")
            groups.append(opened)
            opened = None
        else:
            name = ELLIPSIS if token == "..." else _parse_axis_name(token)
            if name in seen:
                raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
            seen |= {name} - {""}
            if opened is not None:
                opened += [name] if name else []
            else:
                groups.append(_AxisGroup([name] if name else []))
    if opened is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return groups


def _parse_axis_name(token: str) -> str:
    """Return the axis name of a token, an empty group for 1."""
    if token.isdecimal():
        if int(token) == 1:
            return ""
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if not re.fullmatch(r"\w+", token):
        raise ValueError(f"Unknown character '{token}'")
    if not token.isidentifier():
        raise ValueError(f"Invalid axis identifier: {token}\nnot a valid python identifier")
    if token[0] == "_" or token[-1] == "_":
        raise ValueError(f"Invalid axis identifier: {token}\naxis name should should not start or end with underscore")
    return token


def _expand_ellipsis(groups: Sequence[list[str]], ndim: int) -> list[list[str]]:
    """Replace an ellipsis on the left side by one name per dimension."""
    found: list[list[str]] = []
    several = any(ELLIPSIS in group for group in groups)
    count = len(groups) - several
    if count > ndim or not several and count != ndim:
        than = "less than or equal to" if several else "equal to"
        raise ValueError(
            f"Number of dimensions in pattern ({count}) must be {than} the number of dimensions in the tensor ({ndim})"
        )
    for group in groups:
        found += [[f"{ELLIPSIS}{i}"] for i in range(ndim - count)] if ELLIPSIS in group else [list(group)]
    return found


def _expand_group(group: list[str], more: list[str]) -> list[str]:
    """Return a group's names with its ellipsis expanded."""
    return [one for name in group for one in (more if name == ELLIPSIS else [name])]


def _bind_sizes(
    group: list[str], size: int, given: dict[str, Any], sizes: dict[str, int], numbers: dict[str, str]
) -> None:
    """Bind the axis names of one dimension to sizes."""
    unknown = [name for name in group if name not in given]
    known = math.prod(given[name] for name in group if name in given)
    if len(unknown) > 1:
        raise DimensionBindError(
            f"cannot infer the sizes of two dimensions at once {numbers[unknown[0]]} and {numbers[unknown[1]]}"
        )
    if unknown and size % known:
        shown = tuple("?" if name in unknown else given[name] for name in group)
        raise DimensionBindError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {shown}")
    if not unknown and size != known:
        names = ", ".join(numbers[name] for name in group) + "," * (len(group) == 1)
        raise DimensionBindError(
            f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack ({names})"
        )
    for name in group:
        sizes[name] = given[name] if name in given else size // known
