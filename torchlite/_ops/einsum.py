"""`torch.einsum`: parses the equation, and contracts two operands at a time with one batched matrix product."""

from __future__ import annotations

import functools
import math
from typing import Any

from .._dispatch import Out, composite

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _parse_subscripts(text, where):
    """The labels of one term: letters, and at most one "..."."""
    labels, i = [], 0
    while i < len(text):
        letter = text[i]
        if letter == " ":
            i += 1
        elif letter == ".":
            if "..." in labels:
                raise RuntimeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
            if text[i : i + 3] != "...":
                raise RuntimeError(
                    f"einsum(): found '.' for {where} that is not part of any "
                    f"ellipsis{' (...)' if where == 'output' else ''}"
                )
            labels.append("...")
            i += 3
        else:
            labels.append(letter)
            i += 1
    return tuple(labels)


def _check_letters(equation):
    body = equation.replace("->", "  ", 1)
    for i, letter in enumerate(body):
        if letter not in _LETTERS and letter not in " .,":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be in [a-zA-Z]"
            )


_NOTHING = (
    "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
    "subscripts list"
)


def _from_lists(arguments):
    """The form einsum(operand, [0, 1], operand, [1, 2], [0, 2]) as (terms, output, operands)."""
    operands, terms = list(arguments[0 : len(arguments) - 1 : 2]), list(arguments[1::2])
    output = arguments[-1] if len(arguments) % 2 else None

    def to_labels(numbers):
        found = []
        for n in numbers:
            if n is not Ellipsis and not 0 <= n < 52:
                raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
            found.append("..." if n is Ellipsis else _LETTERS[n])
        return tuple(found)

    return tuple(to_labels(t) for t in terms), None if output is None else to_labels(output), operands


def _parse_equation(equation, operands):
    """(labels of the operands, labels of the output or None, operands)."""
    if hasattr(equation, "_tl_array"):
        if operands and not isinstance(operands[0], (list, tuple)):
            operands = (operands,)  # one list of subscripts, which was taken for the arguments themselves
        return _from_lists((equation, *operands))
    if not isinstance(equation, str):
        if isinstance(equation, (list, tuple)) and not equation:
            raise ValueError(_NOTHING)
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ValueError(_NOTHING)
    for i, operand in enumerate(operands):
        if not hasattr(operand, "_tl_array"):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(operand).__name__}")
    terms, output = _parse_text(equation)
    if len(terms) != len(operands):
        raise RuntimeError(
            f"einsum(): {'fewer' if len(terms) > len(operands) else 'more'} operands were provided than specified in "
            "the equation"
        )
    return terms, output, list(operands)


@functools.lru_cache(maxsize=512)
def _parse_text(equation):
    """The labels of the operands, and of the output (None when it is not given)."""
    _check_letters(equation)
    left, arrow, right = equation.partition("->")
    terms = tuple(_parse_subscripts(t, f"operand {i}") for i, t in enumerate(left.split(",")))
    return terms, _parse_subscripts(right, "output") if arrow else None


@functools.lru_cache(maxsize=512)
def _expand_ellipses(terms, output, shapes):
    """The terms, with each ellipsis replaced by new labels, counted from the right; the output's labels; and the size
    of every label.
    """
    width = 0
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        named = sum(label != "..." for label in term)
        if named > len(shape) or ("..." not in term and named != len(shape)):
            relation, rest = ("is more than", "") if "..." in term else ("does not match", " and no ellipsis was given")
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) {relation} the number of dimensions "
                f"({len(shape)}) for operand {i}{rest}"
            )
        if "..." in term:
            width = max(width, len(shape) - named)
    dots = [f".{k}" for k in range(width)]
    spelled = []
    for term, shape in zip(terms, shapes, strict=True):
        count = len(shape) - (len(term) - 1)
        spelled.append(tuple(label for part in term for label in (dots[width - count :] if part == "..." else [part])))
    return tuple(spelled), _output_labels(spelled, output, dots), _check_sizes(spelled, shapes)


def _output_labels(terms, output, dots):
    every = [label for term in terms for label in term]
    if output is None:
        return tuple(dots + sorted(label for label in set(every) if every.count(label) == 1 and label[0] != "."))
    output = [label for part in output for label in (dots if part == "..." else [part])]
    for label in output:
        if label not in every:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
        if output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
    return tuple(output)


def _check_sizes(terms, shapes):
    sizes: dict = {}
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        own: dict = {}
        for label, n in zip(term, shape, strict=True):
            if own.get(label, n) != n:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {n} != "
                    f"{own[label]}"
                )
            own[label] = n
            if n != 1 and sizes.get(label, 1) not in (1, n):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast with "
                    f"previously seen size {sizes[label]}"
                )
            sizes[label] = n if sizes.get(label, 1) == 1 else sizes[label]
    return sizes


# --- one operand ----------------------------------------------------------------------------------


def _take_repeated_label_diagonals(x, term) -> tuple[Any, Any]:
    """Take the diagonal of every label that is repeated in a term."""
    if len(set(term)) == len(term):
        return x, term
    term = list(term)
    for label in list(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            x = x.diagonal(0, first, second)
            del term[second], term[first]
            term.append(label)
    return x, tuple(term)


def _sum_unneeded_labels(x, term, kept):
    """The labels that nothing else needs summed out."""
    gone = [d for d, label in enumerate(term) if label not in kept]
    if not gone:
        return x, term
    return x.sum(gone, dtype=x.dtype), tuple(label for label in term if label in kept)


def _drop_broadcast_dims(x, term, sizes):
    """Dimensions of size 1 that are to be broadcast against a larger one dropped."""
    gone = [d for d, label in enumerate(term) if x.shape[d] == 1 and sizes[label] != 1]
    if not gone:
        return x, term
    return x.squeeze(tuple(gone)), tuple(label for d, label in enumerate(term) if d not in gone)


_SEARCHED = 32  # operands

# --- two operands ---------------------------------------------------------------------------------


def _permute_if_needed(x, order):
    return x if order is None else x.permute(order)


def _reshape_if_needed(x, shape):
    return x if x.shape == shape else x.reshape(shape)


def _permutation_to_labels(term, wanted):
    """The permutation that brings a term's labels into the wanted order; None when they are."""
    return None if term == wanted else tuple(term.index(label) for label in wanted)


@functools.lru_cache(maxsize=512)
def _plan_pair_contraction(one, shape_a, two, shape_b, kept):
    """Plan for the contraction of two operands: their permutations and shapes, whether it is a matrix product, and the
    result's shape and labels.
    """
    size = {**dict(zip(one, shape_a, strict=True)), **dict(zip(two, shape_b, strict=True))}
    batch = tuple(label for label in one if label in two and label in kept)
    summed = tuple(label for label in one if label in two and label not in kept)
    inner = tuple(label for label in summed if size[label] != 1)
    ones = tuple(label for label in summed if size[label] == 1)  # a product over them alone is elementwise
    rows, columns = tuple(label for label in one if label not in two), tuple(label for label in two if label not in one)
    lengths = [tuple(size[label] for label in labels) for labels in (batch, rows, inner, columns)]
    result = batch + rows + columns
    whole = lengths[0] + lengths[1] + lengths[3]
    if not inner:
        left, right = lengths[0] + lengths[1] + (1,) * len(columns), lengths[0] + (1,) * len(rows) + lengths[3]
        return (
            _permutation_to_labels(one, batch + rows + ones),
            left,
            _permutation_to_labels(two, batch + columns + ones),
            right,
            False,
            whole,
            result,
        )
    n, m, k, p = (math.prod(length) for length in lengths)
    left, right = ((n, m, k), (n, k, p)) if batch else ((m, k), (k, p))
    return (
        _permutation_to_labels(one, batch + rows + inner + ones),
        left,
        _permutation_to_labels(two, batch + inner + columns + ones),
        right,
        True,
        whole,
        result,
    )


def _contract_pair(a, one, b, two, kept) -> tuple[Any, Any]:
    """The contraction of two operands over the labels that are not in `kept`, and the labels of the result."""
    a, one = _sum_unneeded_labels(a, one, {*two, *kept})
    b, two = _sum_unneeded_labels(b, two, {*one, *kept})
    order_a, shape_a, order_b, shape_b, is_product, whole, result = _plan_pair_contraction(
        one, tuple(a.shape), two, tuple(b.shape), kept
    )
    left, right = (
        _reshape_if_needed(_permute_if_needed(a, order_a), shape_a),
        _reshape_if_needed(_permute_if_needed(b, order_b), shape_b),
    )
    if not is_product:
        return left * right, result
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype.scalar_name} but found {b.dtype.scalar_name}")
    return _reshape_if_needed(left @ right, whole), result


def _find_cheapest_pair(terms, sizes, output):
    """Indices of the two operands to contract next: the pair with the smallest result. The first two if there are only
    two, or too many to search.
    """
    if len(terms) == 2 or len(terms) > _SEARCHED:
        return 0, 1
    best: Any = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            others = {label for k, term in enumerate(terms) if k not in (i, j) for label in term} | set(output)
            left = (set(terms[i]) | set(terms[j])) & others
            cost = (
                math.prod([sizes[label] for label in left])
                - math.prod([sizes[x] for x in terms[i]])
                - math.prod([sizes[x] for x in terms[j]])
            )
            if best is None or cost < best[0]:
                best = cost, i, j
    return best[1], best[2]


@composite("einsum(equation, *operands)", where="torch", out=Out(supported=False))
def einsum(F, equation, operands):
    """Computes sums of products of tensors in Einstein's notation.

    Each operand has a label a dimension. Labels that are not in the output are summed over: ``"ij,jk->ik"`` is the
    matrix product, ``"ii->i"`` the diagonal, ``"...ij->...ji"`` a transpose. Without ``"->"`` the output has the
    labels that occur once, in alphabetical order.

    Three to 32 operands are contracted in a greedy order, more of them from the left.

    Args:
        equation: The labels.
        operands: The tensors. Also ``einsum(x, [0, 1], y, [1, 2], [0, 2])``, with labels as numbers.

    Raises:
        RuntimeError: The labels do not fit the dimensions or sizes.

    Example:
        >>> torch.einsum("ij,j->i", torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
        tensor([3., 7.])

    See also:
        `numpy.einsum`.
    """
    terms, output, operands = _parse_equation(equation, operands)
    terms, output, sizes = _expand_ellipses(terms, output, tuple(tuple(x.shape) for x in operands))
    pairs: list[Any] = [
        _drop_broadcast_dims(*_take_repeated_label_diagonals(x, term), sizes)
        for x, term in zip(operands, terms, strict=True)
    ]
    while len(pairs) > 1:
        i, j = _find_cheapest_pair([term for _, term in pairs], sizes, output)
        (b, two), (a, one) = pairs.pop(j), pairs.pop(i)
        kept = frozenset(output).union(*(term for _, term in pairs))
        pairs.insert(i, _contract_pair(a, one, b, two, kept))
    ((x, term),) = pairs
    x, term = _sum_unneeded_labels(x, term, output)
    missing = tuple(label for label in output if label not in term)
    for _ in missing:
        x = x.unsqueeze(-1)
    order = _permutation_to_labels(term + missing, output)
    x = x.permute(tuple(range(x.ndim))) if order is None and len(operands) == 1 else _permute_if_needed(x, order)
    return x.expand([sizes[label] for label in output]) if missing else x
