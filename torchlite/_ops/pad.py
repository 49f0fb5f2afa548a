"""Padding: constant, reflect, replicate and circular."""

from torchlite._dispatch import composite, memory_layout, op
from torchlite._dispatch.node_names import saved_argument
from torchlite._types.dtypes import BOOL

from ._dtype_checks import refuse_kinds
from .node_graphs import pad_graph


def _padded_shape(shape, pad):
    shape = list(shape)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {len(shape)}"
        )
    for i in range(len(pad) // 2):
        n = shape[-1 - i]
        shape[-1 - i] = n + pad[2 * i] + pad[2 * i + 1]
        if shape[-1 - i] < 0:
            if min(pad[2 * i], pad[2 * i + 1]) < -n or max(pad[2 * i], pad[2 * i + 1]) < 0:
                raise RuntimeError("narrow(): length must be non-negative.")
            raise RuntimeError(
                f"The input size {n}, plus negative padding {pad[2 * i]} and {pad[2 * i + 1]} resulted in a negative "
                f"output size, which is invalid. Check dimension {len(shape) - 1 - i} of your input."
            )
    return tuple(shape)


def _pad_constant(F, input, pad, value):
    """Padding by concatenation, for backends without a kernel."""
    shape = _padded_shape(input.shape, pad)
    x = input
    for i in range(len(pad) // 2):
        dim = input.ndim - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        if before < 0 or after < 0:
            start = max(0, -before)
            x = F.narrow(x, dim, start, x.shape[dim] - start - max(0, -after))
        pieces = [
            F._new_full(x, (*x.shape[:dim], n, *x.shape[dim + 1 :]), value) for n in (max(before, 0), max(after, 0))
        ]
        pieces = [pieces[0]] * (before > 0) + [x] + [pieces[1]] * (after > 0)
        x = F.cat(pieces, dim) if len(pieces) > 1 else x
    assert tuple(x.shape) == shape
    return x if x is not input else F.clone(x)


op(
    "constant_pad_nd(Tensor input, pad, value=0)",
    where="torch",
    composite=_pad_constant,
    shape_fn=lambda input, pad: (_padded_shape(input.shape, pad), input.dtype),
    vjp={"input": lambda F, g, pad: F.constant_pad_nd(g, tuple(-n for n in pad), 0)},
    doc="""Adds a border with a value.

    Args:
        pad: Two numbers a dimension, the last dimension first: the elements before and after. A negative number
            removes elements.
        value: The value. Default: 0.

    Example:
        >>> torch.constant_pad_nd(torch.ones(2), (1, 2))
        tensor([0., 1., 1., 0., 0.])

    See also:
        `torch.nn.functional.pad`.
    """,
    layout=memory_layout.suggest_memory_format,
    numbers={"value": False},
)


# -- the modes that repeat the input ---------------------------------------------------------------


def _crop_negative_padding(F, x, dim, before, after):
    """The places that are left after negative padding."""
    start = max(0, -before)
    return x if start == 0 and after >= 0 else F.narrow(x, dim, start, x.shape[dim] - start - max(0, -after))


def _pad_reflect(F, x, dim, before, after):
    n = x.shape[dim]
    pieces = [F.flip(F.narrow(x, dim, 1, before), (dim,))] if before > 0 else []
    pieces.append(_crop_negative_padding(F, x, dim, before, after))
    return pieces + ([F.flip(F.narrow(x, dim, n - 1 - after, after), (dim,))] if after > 0 else [])


def _pad_replicate(F, x, dim, before, after):
    def repeat_edge(start, count):
        return F.expand(F.narrow(x, dim, start, 1), (*x.shape[:dim], count, *x.shape[dim + 1 :]))

    pieces = [repeat_edge(0, before)] if before > 0 else []
    pieces.append(_crop_negative_padding(F, x, dim, before, after))
    return pieces + ([repeat_edge(x.shape[dim] - 1, after)] if after > 0 else [])


def _pad_circular_by_cat(F, x, dim, before, after):
    x = _crop_negative_padding(F, x, dim, before, after)
    pieces = [F.narrow(x, dim, x.shape[dim] - before, before)] if before > 0 else []
    pieces.append(x)
    return pieces + ([F.narrow(x, dim, 0, after)] if after > 0 else [])


_MODES = {"reflect": _pad_reflect, "replicate": _pad_replicate, "circular": _pad_circular_by_cat}


def _pad_border(F, input, pad, mode):
    for i in range(len(pad) // 2):
        dim = input.ndim - 1 - i
        if pad[2 * i] or pad[2 * i + 1]:
            pieces = _MODES[mode](F, input, dim, pad[2 * i], pad[2 * i + 1])
            input = F.cat(pieces, dim) if len(pieces) > 1 else pieces[0]
    return F.clone(input)


def _pad_border_backward(F, grad, pad, mode):
    for i in reversed(range(len(pad) // 2)):
        dim, before, after = grad.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        if not before and not after:
            continue
        length = grad.shape[dim]
        n = length - before - after
        first, last = max(0, -before), n - max(0, -after)
        parts = [(F.narrow(grad, dim, max(0, before), last - first), first)]
        for start, count in ((0, before), (length - after, after)):
            if count <= 0:
                continue
            border, is_first = F.narrow(grad, dim, start, count), start == 0
            if mode == "replicate":
                parts.append((F.sum(border, dim, True), 0 if is_first else n - 1))
            elif mode == "reflect":
                parts.append((F.flip(border, (dim,)), 1 if is_first else n - 1 - count))
            else:
                parts.append((border, last - count if is_first else first))
        grad = _add_parts(F, parts, dim, n)
    return F.clone(grad)


def _add_parts(F, parts, dim, n):
    """The sum of parts, each with its place along a dimension of length n, and zeros elsewhere."""
    total = None
    for part, place in parts:
        ends = (0, 0) * (part.ndim - 1 - dim) + (place, n - place - part.shape[dim])
        spread = F.constant_pad_nd(part, ends, 0)
        total = spread if total is None else F.add(total, spread)
    return total


def _border_rule(input, pad):
    return _padded_shape(input.shape, pad), input.dtype


# A border of the input's own elements, of dimensions and widths that were checked. Each derivative is the other record.
op(
    "_pad_border(Tensor input, pad, mode)",
    where="",
    composite=_pad_border,
    shape_fn=_border_rule,
    vjp={"input": lambda F, g, pad, mode: F._pad_border_backward(g, pad, mode)},
    zero_derivatives=lambda node: {} if saved_argument(node, "mode") == "circular" else {"input": ("input",)},
)
op(
    "_pad_border_backward(Tensor grad, pad, mode)",
    where="",
    composite=_pad_border_backward,
    shape_fn=lambda grad, pad: (_padded_shape(grad.shape, tuple(-n for n in pad)), grad.dtype),
    vjp={"grad": lambda F, g, pad, mode: F._pad_border(g, pad, mode)},
)


def _check_padding_mode(input, pad, mode):
    count = len(pad) // 2
    if len(pad) % 2 or not 1 <= count <= 3 or input.ndim not in (count + 1, count + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode != "circular" and not all(input.shape[1 if input.ndim == count + 2 else 0 :]):
        raise RuntimeError(
            f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    made_sizes = [input.shape[input.ndim - 1 - i] + pad[2 * i] + pad[2 * i + 1] for i in range(count)]
    for i in range(count):
        dim = input.ndim - 1 - i
        before, after, n = pad[2 * i], pad[2 * i + 1], input.shape[dim]
        if mode == "reflect" and (before >= n or after >= n):
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but "
                f"got: padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
            )
        if mode == "circular":
            left = n + min(before, 0) + min(after, 0)  # what negative padding leaves
            if before > n or after > n or 0 <= left < max(before, after):
                raise RuntimeError("Padding value causes wrapping around more than once.")
            if before + after + n < 0:
                raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if mode != "circular" and (n + before + after < 0 or max(made_sizes) < 1):
            words = " ".join(f"{c}: {input.shape[input.ndim - count + j]}" for j, c in enumerate("DHW"[-count:]))
            made = " ".join(
                f"{c}: {input.shape[input.ndim - count + j] + sum(pad[2 * (count - 1 - j) : 2 * (count - j)])}"
                for j, c in enumerate("DHW"[-count:])
            )
            raise RuntimeError(f"input ({words}) is too small. Calculated output {made}")


@composite(
    "pad(Tensor input, pad, mode='constant', value=None)",
    where="nn.functional",
    layout=memory_layout.padding,
    node_name=pad_graph,
)
def pad(F, input, pad, mode, value):
    """Adds a border around the last dimensions.

    Args:
        pad: Two numbers a dimension, the last dimension first: the elements before and after. A negative number
            removes elements.
        mode: ``"constant"``, for any number of dimensions; ``"reflect"``, ``"replicate"`` or ``"circular"``, for
            the last one to three dimensions of an input with one or two more. Default: ``"constant"``.
        value: The value of a constant border. Default: 0.

    Raises:
        RuntimeError: The numbers do not fit the shape.
        NotImplementedError: The mode does not support the number of dimensions.

    Example:
        >>> F.pad(torch.tensor([[1.0, 2.0, 3.0]]), (1, 2), mode="reflect")
        tensor([[2., 1., 2., 3., 2., 1.]])

    See also:
        `torch.nn.ConstantPad1d` and the other padding layers.
    """
    for place, n in enumerate(pad):
        if isinstance(n, float) or not hasattr(n, "__index__"):
            raise TypeError(
                f"pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                f"{type(n).__name__} at pos {place}"
            )
    pad = tuple(int(n) for n in pad)
    if mode == "constant":
        return F.constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check_padding_mode(input, pad, mode)
    if mode != "circular":
        word = {"reflect": "reflection", "replicate": "replication"}[mode]
        refuse_kinds(input.dtype, f"{word}_pad{len(pad) // 2}d", BOOL)
    return F._pad_border(input, pad, mode)
