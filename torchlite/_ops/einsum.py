"""`torch.einsum`: the equation taken apart, and the operands contracted two at a time by one batched product each."""

from __future__ import annotations

from .._dispatch import composite

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _subscripts(text, where):
    """The labels of one term: letters, and ... once."""
    labels, i = [], 0
    while i < len(text):
        letter = text[i]
        if letter == " ":
            i += 1
        elif letter == ".":
            if "..." in labels:
                raise RuntimeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
            if text[i : i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis{' (...)' if where == 'output' else ''}")
            labels.append("...")
            i += 3
        else:
            labels.append(letter)
            i += 1
    return labels


def _check_letters(equation):
    body = equation.replace("->", "  ", 1)
    for i, letter in enumerate(body):
        if letter not in _LETTERS and letter not in " .,":
            raise RuntimeError(f"einsum(): invalid subscript given at index {i} in the equation string, subscripts must be in [a-zA-Z]")


def _from_lists(arguments):
    """The form einsum(operand, [0, 1], operand, [1, 2], [0, 2]) as (terms, output, operands)."""
    operands, terms = list(arguments[0 : len(arguments) - 1 : 2]), list(arguments[1::2])
    output = arguments[-1] if len(arguments) % 2 else None

    def labels(numbers):
        found = []
        for n in numbers:
            if n is not Ellipsis and not 0 <= n < 52:
                raise RuntimeError(f"einsum(): subscript in subscript list is not within the valid range [0, 52), got {n}")
            found.append("..." if n is Ellipsis else _LETTERS[n])
        return found

    return [labels(t) for t in terms], None if output is None else labels(output), operands


def _parse(equation, operands):
    if not isinstance(equation, str):
        return _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    _check_letters(equation)
    left, arrow, right = equation.partition("->")
    terms = [_subscripts(t, f"operand {i}") for i, t in enumerate(left.split(","))]
    if len(terms) != len(operands):
        raise RuntimeError(f"einsum(): {'fewer' if len(terms) > len(operands) else 'more'} operands were provided than specified in the equation")
    return terms, _subscripts(right, "output") if arrow else None, list(operands)


def _spelled(terms, output, operands):
    """The terms with each ellipsis replaced by labels of its own, counted from the right; and the output's labels."""
    width = 0
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        named = sum(label != "..." for label in term)
        if named > x.ndim or ("..." not in term and named != x.ndim):
            relation, rest = ("is more than", "") if "..." in term else ("does not match", " and no ellipsis was given")
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) {relation} the number of dimensions ({x.ndim}) for operand {i}{rest}"
            )
        if "..." in term:
            width = max(width, x.ndim - named)
    dots = [f".{k}" for k in range(width)]
    spelled = []
    for term, x in zip(terms, operands, strict=True):
        count = x.ndim - (len(term) - 1)
        spelled.append([label for part in term for label in (dots[width - count :] if part == "..." else [part])])
    every = [label for term in spelled for label in term]
    if output is None:
        output = dots + sorted(label for label in set(every) if every.count(label) == 1 and label[0] != ".")
    else:
        output = [label for part in output for label in (dots if part == "..." else [part])]
        for label in output:
            if label not in every:
                raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input operand")
            if output.count(label) > 1:
                raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
    return spelled, output


def _check_sizes(terms, operands):
    sizes: dict = {}
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        own: dict = {}
        for label, n in zip(term, x.shape, strict=True):
            if label in own and own[label] != n:
                raise RuntimeError(f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {n} != {own[label]}")
            own[label] = n
            if n != 1 and sizes.get(label, 1) not in (1, n):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast with previously seen size {sizes[label]}"
                )
            sizes[label] = max(n, sizes.get(label, n)) if n and sizes.get(label, 1) else 0
    return sizes


def _without_repeats(x, term):
    """The diagonal of every label that comes twice in a term."""
    term = list(term)
    for label in list(term):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            x = x.diagonal(0, first, second)
            del term[second], term[first]
            term.append(label)
    return x, term


def _summed(x, term, kept):
    """The labels that nothing else needs summed out."""
    gone = [d for d, label in enumerate(term) if label not in kept]
    if not gone:
        return x, term
    return x.sum(gone, dtype=x.dtype), [label for label in term if label in kept]


def _without_ones(x, term, sizes):
    """Dimensions of size 1 that are to be broadcast against a larger one dropped."""
    gone = [d for d, label in enumerate(term) if x.shape[d] == 1 and sizes[label] != 1]
    if not gone:
        return x, term
    return x.squeeze(tuple(gone)), [label for d, label in enumerate(term) if d not in gone]


def _pair(a, one, b, two, kept):
    """The contraction of two operands, with the labels of the result: those in `kept`."""
    shared = [label for label in one if label in two]
    batch = [label for label in shared if label in kept]
    inner = [label for label in shared if label not in kept]
    a, one = _summed(a, one, {*two, *kept})
    b, two = _summed(b, two, {*one, *kept})
    rows, columns = [label for label in one if label not in shared], [label for label in two if label not in shared]
    size = {**dict(zip(one, a.shape, strict=True)), **dict(zip(two, b.shape, strict=True))}
    result = batch + rows + columns
    if not inner:
        left = a.permute([one.index(label) for label in batch + rows]).reshape([size[label] for label in batch + rows] + [1] * len(columns))
        right = b.permute([two.index(label) for label in batch + columns]).reshape(
            [size[label] for label in batch] + [1] * len(rows) + [size[label] for label in columns]
        )
        return left * right, result
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype.scalar_name} but found {b.dtype.scalar_name}")
    lengths = [[size[label] for label in labels] for labels in (batch, rows, inner, columns)]
    n, m, k, p = (_count(length) for length in lengths)
    left = a.permute([one.index(label) for label in batch + rows + inner])
    right = b.permute([two.index(label) for label in batch + inner + columns])
    if batch:
        product = left.reshape(n, m, k) @ right.reshape(n, k, p)
    else:
        product = left.reshape(m, k) @ right.reshape(k, p)
    return product.reshape(lengths[0] + lengths[1] + lengths[3]), result


def _count(shape):
    n = 1
    for length in shape:
        n *= length
    return n


def _cheapest(terms, sizes, output):
    """Which two operands to contract next: the pair with the smallest result (of two, the first two)."""
    best = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            others = {label for k, term in enumerate(terms) if k not in (i, j) for label in term} | set(output)
            left = (set(terms[i]) | set(terms[j])) & others
            cost = _count([sizes[label] for label in left]) - _count([sizes[x] for x in terms[i]]) - _count([sizes[x] for x in terms[j]])
            if best is None or cost < best[0]:
                best = cost, i, j
    return best[1], best[2]


@composite("einsum(equation, *operands)", where="torch")
def einsum(F, equation, operands):
    """Sums of products of operands by index labels: "ij,jk->ik" is the matrix product, "ii->i" the diagonal, "...ij->...ji" a transpose.

    Without "->" the output has the labels that come once, in alphabetical order. Also `einsum(x, [0, 1], y, [1, 2], [0, 2])`. More than two operands
    are contracted in a greedy order.

    >>> torch.einsum("ij,j->i", torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    terms, output, operands = _parse(equation, operands)
    terms, output = _spelled(terms, output, operands)
    sizes = _check_sizes(terms, operands)
    pairs = []
    for x, term in zip(operands, terms, strict=True):
        pairs.append(_without_ones(*_without_repeats(x, term), sizes))
    while len(pairs) > 1:
        i, j = _cheapest([term for _, term in pairs], sizes, output) if len(pairs) > 2 else (0, 1)
        (b, two), (a, one) = pairs.pop(j), pairs.pop(i)
        kept = {*output, *(label for _, term in pairs for label in term)}
        pairs.insert(i, _pair(a, one, b, two, kept))
    x, term = _summed(*pairs[0], set(output))
    missing = [label for label in output if label not in term]
    for label in missing:
        x, term = x.unsqueeze(-1), [*term, label]
    x = x.permute([term.index(label) for label in output])
    return x.expand([sizes[label] for label in output]) if missing else x
