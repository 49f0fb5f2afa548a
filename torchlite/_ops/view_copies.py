"""Copies of views: `expand_copy`, `split_copy` and the like."""

from torchlite._dispatch import Out, Overlap, composite, memory_layout


def _title(name):
    return "".join(word.title() for word in name.split("_"))


def _squeeze_copy_graph(call):
    """`squeeze_copy` has an overload for a dimension and one for several."""
    dim = call["dim"]
    return f"SqueezeBackward{0 if dim is None else 2 if isinstance(dim, (tuple, list)) else 1}_copy(input)"


def _make_copy_variant(name, schema, arguments, example):
    kept = name in ("view_as_real", "view_as_complex", "select")  # these lie as the view

    def call_and_clone(F, input, *args):
        if sizes and isinstance(args[0], int):
            raise TypeError(f"{view}_copy() takes a tuple of integers")
        return getattr(F, name)(input, *args).clone()

    view, sizes = name.lstrip("_"), schema in (", size", ", dims")
    text = f"Returns a copy of the view that `{view}` returns.\n\n"
    text += "Args:\n" + "".join(f"    {line}\n" for line in arguments) + "\n" if arguments else ""
    call_and_clone.__doc__ = text + "Example:\n" + "".join(f"    {line}\n" for line in example.splitlines())
    composite(
        f"{view}_copy(Tensor input{schema})",
        where="torch",
        layout=None if kept else memory_layout.contiguous,
        out=Out("same"),
        overlap=Overlap(operands="" if kept or name == "_slice" else "partial"),
        node_name=_squeeze_copy_graph if name == "squeeze" else f"{_title(view)}Backward0_copy(input)",
    )(call_and_clone)


_DIAGONAL = (
    "offset: The diagonal, counted from the main one upwards. Default: 0.",
    "dim1, dim2: The dimensions of the matrices.",
)
_STRIDED = (
    "size: The sizes.",
    "stride: The strides, in elements.",
    "storage_offset: The position of the first element in the storage, in elements. Default: the input's.",
)
_RANGE = (
    "start: The first index. Default: 0.",
    "end: The index after the last one. Default: the size.",
    "step: The distance of the indices. Default: 1.",
)
_WINDOWS = ("dimension: The dimension.", "size: The size of a window.", "step: The distance between windows.")
# {view: parameters, their descriptions, an example}
_VIEWS = {
    "expand": (
        ", size",
        ("size: The sizes; -1 keeps one.",),
        ">>> torch.expand_copy(torch.tensor([[1], [2]]), (2, 2))\ntensor([[1, 1],\n        [2, 2]])",
    ),
    "diagonal": (
        ", offset=0, dim1=0, dim2=1",
        _DIAGONAL,
        ">>> torch.diagonal_copy(torch.tensor([[1, 2], [3, 4]]))\ntensor([1, 4])",
    ),
    "as_strided": (
        ", size, stride, storage_offset=None",
        _STRIDED,
        ">>> torch.as_strided_copy(torch.tensor([1, 2, 3]), (2,), (2,))\ntensor([1, 3])",
    ),
    "permute": (
        ", dims",
        ("dims: The dimensions of the input in the order of the result.",),
        ">>> torch.permute_copy(torch.zeros(2, 3, 4), (2, 0, 1)).shape\ntorch.Size([4, 2, 3])",
    ),
    "squeeze": (
        ", dim=None",
        ("dim: The dimension, or a tuple of them, to remove where its size is 1. Default: all dimensions.",),
        ">>> torch.squeeze_copy(torch.zeros(1, 2)).shape\ntorch.Size([2])",
    ),
    "unsqueeze": (
        ", dim",
        ("dim: The position of the new dimension.",),
        ">>> torch.unsqueeze_copy(torch.tensor([1, 2]), 0)\ntensor([[1, 2]])",
    ),
    "transpose": (
        ", dim0, dim1",
        ("dim0, dim1: The two dimensions.",),
        ">>> torch.transpose_copy(torch.tensor([[1, 2]]), 0, 1)\ntensor([[1],\n        [2]])",
    ),
    "select": (
        ", dim, index",
        ("index: The index along `dim`.",),
        ">>> torch.select_copy(torch.tensor([[1, 2], [3, 4]]), 0, 1)\ntensor([3, 4])",
    ),
    "_slice": (
        ", dim=0, start=None, end=None, step=1",
        _RANGE,
        ">>> torch.slice_copy(torch.tensor([1, 2, 3]), start=1)\ntensor([2, 3])",
    ),
    "unfold": (
        ", dimension, size, step",
        _WINDOWS,
        ">>> torch.unfold_copy(torch.tensor([1, 2, 3]), 0, 2, 1)\ntensor([[1, 2],\n        [2, 3]])",
    ),
    "view": (
        ", size",
        ("size: The sizes, of which one may be -1, or a dtype.",),
        ">>> torch.view_copy(torch.tensor([1, 2]), (2, 1))\ntensor([[1],\n        [2]])",
    ),
    "t": ("", (), ">>> torch.t_copy(torch.tensor([[1, 2]]))\ntensor([[1],\n        [2]])"),
    "alias": ("", (), ">>> torch.alias_copy(torch.tensor([1, 2]))\ntensor([1, 2])"),
    "view_as_real": ("", (), ">>> torch.view_as_real_copy(torch.tensor([1 + 2j]))\ntensor([[1., 2.]])"),
    "view_as_complex": ("", (), ">>> torch.view_as_complex_copy(torch.tensor([[1.0, 2.0]]))\ntensor([1.+2.j])"),
}
for _name, (_schema, _arguments, _example) in _VIEWS.items():
    _make_copy_variant(_name, _schema, _arguments, _example)


@composite(
    "narrow_copy(Tensor input, dim, start, length)",
    where="torch Tensor",
    layout=memory_layout.contiguous,
    node_name="NarrowCopyBackward0(input)",
)
def narrow_copy(F, input, dim, start, length):
    """Returns a copy of a range of a dimension.

    Args:
        start: The first index; negative values count from the end.
        length: The number of entries.

    Raises:
        RuntimeError: The range ends outside the dimension, or `length` is negative.

    Example:
        >>> torch.narrow_copy(torch.arange(4), 0, 1, 2)
        tensor([1, 2])

    See also:
        `torch.narrow`.
    """
    if dim >= input.ndim > 0:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if input.ndim and length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({input.shape[dim]}).")
    return F.narrow(input, dim, start, length).clone()


@composite(
    "unbind_copy(Tensor input, dim=0)",
    where="torch",
    layout=memory_layout.contiguous,
    out=Out("same"),
    node_name="UnbindBackward0_copy(input)",
)
def unbind_copy(F, input, dim):
    """Returns copies of the slices along a dimension.

    Returns:
        A tuple of tensors without that dimension.

    Example:
        >>> torch.unbind_copy(torch.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))

    See also:
        `torch.unbind`.
    """
    return tuple(t.clone() for t in F.unbind(input, dim))


@composite(
    "split_with_sizes_copy(Tensor input, split_sizes, dim=0)",
    where="torch",
    layout=memory_layout.contiguous,
    out=Out("same"),
    node_name="SplitWithSizesBackward0_copy(input)",
)
def split_with_sizes_copy(F, input, split_sizes, dim):
    """Returns copies of consecutive parts of given sizes.

    Args:
        split_sizes: The sizes, which add up to the size of `dim`.

    Returns:
        A tuple of tensors.

    Example:
        >>> torch.split_with_sizes_copy(torch.tensor([1, 2, 3]), [1, 2])
        (tensor([1]), tensor([2, 3]))

    See also:
        `torch.split_with_sizes`.
    """
    return tuple(t.clone() for t in F.split_with_sizes(input, tuple(split_sizes), dim))


@composite(
    "split_copy(Tensor input, split_size, dim=0)",
    where="torch",
    layout=memory_layout.contiguous,
    node_name="SplitBackward0_copy(input)",
)
def split_copy(F, input, split_size, dim):
    """Returns copies of parts of equal or given sizes.

    Args:
        split_size: The size of each part but the last, or a list of sizes.

    Returns:
        A tuple of tensors.

    Example:
        >>> torch.split_copy(torch.tensor([1, 2, 3]), 2)
        (tensor([1, 2]), tensor([3]))

    See also:
        `torch.split`.
    """
    return tuple(t.clone() for t in F.split(input, split_size, dim))
