"""Elementwise comparisons, extremes, and logic of elements and bits."""

from torchlite._dispatch import ALWAYS_BOOL, DEFAULT, INPLACE, NONDIFF, POINTWISE, Out, op

TEST = POINTWISE | INPLACE | NONDIFF


def make_extreme_vjp(pick: str):
    """Gradients of maximum and minimum: shared equally at ties, and where an element is NaN."""

    def gradient(F, g, input, other):
        return F.where(F.eq(input, other), F.mul(g, 0.5), F.where(getattr(F, pick)(other, input), 0, g))

    return {"input": gradient, "other": lambda F, g, input, other: gradient(F, g, other, input)}


op(
    "maximum(Tensor input, Tensor other)",
    promote=DEFAULT,
    vjp=make_extreme_vjp("gt"),
    tags=POINTWISE,
    doc="""The larger of two elements, with broadcasting; NaN where either is NaN.

    The operands promote to a common dtype. Where they are equal, each gets half of the gradient.

    Example:
        >>> torch.maximum(torch.tensor([1.0, 5.0]), torch.tensor([3.0, float("nan")]))
        tensor([3., nan])

    See also:
        `torch.fmax`, which prefers a number to NaN.
    """,
)
op(
    "minimum(Tensor input, Tensor other)",
    promote=DEFAULT,
    vjp=make_extreme_vjp("lt"),
    tags=POINTWISE,
    doc="""The smaller of two elements, with broadcasting; NaN where either is NaN.

    The operands promote to a common dtype. Where they are equal, each gets half of the gradient.

    Example:
        >>> torch.minimum(torch.tensor([1.0, 5.0]), torch.tensor([3.0, float("nan")]))
        tensor([1., nan])

    See also:
        `torch.fmin`, which prefers a number to NaN.
    """,
)
for _name, _alias, _sign, _of_123 in (  # the last: of 1, 2, 3 and 2
    ("eq", "", "==", "[False,  True, False]"),
    ("ne", "not_equal", "!=", "[ True, False,  True]"),
    ("lt", "less", "<", "[ True, False, False]"),
    ("le", "less_equal", "<=", "[ True,  True, False]"),
    ("gt", "greater", ">", "[False, False,  True]"),
    ("ge", "greater_equal", ">=", "[False,  True,  True]"),
):
    op(
        f"{_name}(Tensor input, Tensor|Number other)",
        promote=ALWAYS_BOOL,
        tags=TEST,
        alias=_alias,
        scalar_rounding="always",
        opaque="values" if _name in ("eq", "ne") else "",
        out=Out("unchecked"),
        doc=f"""``input {_sign} other``, elementwise with broadcasting: a bool tensor.

        Example:
            >>> torch.{_name}(torch.tensor([1, 2, 3]), 2)
            tensor({_of_123})
        """,
    )
for _name, _what, _of_bits in (
    ("and", "both elements are", "[False, False,  True]"),
    ("or", "either element is", "[False,  True,  True]"),
    ("xor", "exactly one element is", "[False,  True, False]"),
):
    op(
        f"logical_{_name}(Tensor input, Tensor other)",
        promote=ALWAYS_BOOL,
        tags=TEST,
        out=Out("unchecked"),
        doc=f"""Whether {_what} not zero, with broadcasting: a bool tensor.

        Args:
            other: The second operand: a tensor that broadcasts with `input`.

        Example:
            >>> torch.logical_{_name}(torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3]))
            tensor({_of_bits})
        """,
    )
op(
    "logical_not(Tensor input)",
    promote=ALWAYS_BOOL,
    tags=TEST,
    doc="""Whether each element is zero: a bool tensor.

    Example:
        >>> torch.logical_not(torch.tensor([0, 1, 2]))
        tensor([ True, False, False])
    """,
    out=Out("unchecked"),
)
for _name, _what, _of_12_and_10 in (("and", "and", 8), ("or", "or", 14), ("xor", "exclusive or", 6)):
    op(
        f"bitwise_{_name}(Tensor|Number input, Tensor|Number other)",
        promote=DEFAULT,
        tags=TEST,
        doc=f"""The {_what} of every bit of two integers, with broadcasting; of bools, the logical {_what}.

        Example:
            >>> torch.bitwise_{_name}(torch.tensor(12), torch.tensor(10))
            tensor({_of_12_and_10})
        """,
    )
for _name, _by, _shifted in (("left", "2 ** other", "[ 4, -4]"), ("right", "2 ** -other", "[ 0, -1]")):
    op(
        f"bitwise_{_name}_shift(Tensor|Number input, Tensor|Number other)",
        promote=DEFAULT,
        tags=TEST,
        doc=f"""The arithmetic shift of integers to the {_name}: ``input * {_by}``, rounded down.

        Args:
            other: The number of bits: a tensor that broadcasts with `input`, or a number.

        Example:
            >>> torch.bitwise_{_name}_shift(torch.tensor([1, -1]), 2)
            tensor({_shifted})
        """,
    )
