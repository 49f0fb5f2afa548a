"""Views, joins, repetitions and other rearrangements."""

from tests.ops.op_db import A, S, row

C = {"dtype": "complex128"}

row("reshape", S((2, 6), (3, 4)), S((2, 3, 4), (4, -1)), S((2, 0), (0, 5)), S((), (1, 1)))
row("view", S((2, 6), 3, 4), S((2, 3, 4), (-1, 4)), covers=("_view",), noncontiguous=False)
row("_view_dtype", S((2, 3)), oracle=lambda torch, x: x.view(torch.int64), grad=False, noncontiguous=False)
row("permute", S((2, 3, 4), (2, 0, 1)), S((2, 3), (-1, 0)), S((), ()))
row("transpose", S((2, 3, 4), 0, 2), S((2, 3), -1, 0))
row("expand", S((3, 1), 2, 3, 4), S((3,), (2, -1)), S((), (2, 3)), oracle=lambda torch, x, *size: x.expand(*size))
row("squeeze", S((1, 3, 1)), S((1, 3, 1), 0), S((1, 3, 1), (0, -1)), S((2, 3), 1))
row("unsqueeze", S((2, 3), 1), S((2, 3), -1), S((), 0))
row(
    "as_strided",
    S((4, 3), (2, 2), (3, 1), 1),
    S((5,), (3, 2), (1, 1)),
    covers=("_as_strided", "_move_strided"),
    noncontiguous=False,
)
row("flip", S((2, 3), (0, 1)), S((2, 3), (-1,)), S((3,), [0]), S((0, 2), (1,)), covers=("_with_strides",))
row("clone", S((2, 3)), S(()))
row("_lazy_clone", S((2, 3)), S(()), oracle=lambda torch, x: x.clone(), covers=("_cow_clone",))
row("contiguous", S((2, 3)), oracle=lambda torch, x: x.contiguous())
row("cat", S([(2, 3), (1, 3)]), S([(2, 3), (2, 2)], -1), S([(0,), (2,)]), S([A((2,), dtype="int64"), A((3,))]))
row(
    "_slice",
    S((5, 3), 0, 1, 4, 2),
    S((5, 3), 1, -2, None, 1),
    oracle=lambda torch, x, dim, a, b, step: x[(slice(None),) * dim + (slice(a, b, step),)],
    call=lambda x, dim, a, b, step: _slice(x, dim, a, b, step),
    covers=("_slice_backward",),
)
row("narrow", S((5, 3), 0, 1, 3), S((5, 3), -1, -2, 2), S((5,), 0, 5, 0), covers=("_narrow",))
row("select", S((5, 3), 0, -1), S((2, 3, 4), 1, 2), covers=("_select_backward",))
row("split_with_sizes", S((5, 2), [2, 0, 3]), S((2, 4), (1, 3), -1))
row("unbind", S((2, 3)), S((2, 3), 1), S((1, 0, 2)))
# Those that may be written to: tests/autograd/test_views.py.
_UNSAFE = ("unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk")
row("split", S((5, 2), 2), S((2, 5), [1, 4], 1), S((0, 2), 3), covers=_UNSAFE)
row("chunk", S((5, 2), 3), S((2, 6), 4, -1), S((0,), 2))
row("tensor_split", S((7, 2), 3), S((7, 2), (1, 5)), S((2, 7), (3, 2), 1), S((3,), 5))
row("hsplit", S((4,), 2), S((2, 6), [1, 4]))
row("vsplit", S((4, 2), 2), S((4, 2), [1]))
row("dsplit", S((2, 2, 4), 2), S((1, 2, 4), [3]))
row("stack", S([(2, 3), (2, 3)]), S([(2,), (2,), (2,)], -1), S([(), ()]), S([A((2,), dtype="int64"), A((2,))]))
for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    row(_name, S(A(())), S(A((3,))), S(A((2, 3))), S(A(()), A((2,))))
row("hstack", S([(2,), (3,)]), S([(2, 1), (2, 3)]), S([()]))
row("vstack", S([(3,), (3,)]), S([(2, 3), (1, 3)]))
row("dstack", S([(3,), (3,)]), S([(2, 3), (2, 3)]))
row("_chunk_cat", S([(4, 3), (3, 2)], 0, 2), S([(2, 3, 4), (2, 4)], 1, 3))
row("column_stack", S([(3,), (3, 2)]), S([(), ()]))
row("block_diag", S(A((2, 3)), A((1, 2))), S(A((2,)), A(())))
row("broadcast_to", S((3, 1), (2, 3, 4)))
row("broadcast_tensors", S(A((3, 1)), A((4,))), S(A(())))
row("expand_as", S((3, 1), (3, 4)))
row("view_as", S((2, 6), (3, 4)), noncontiguous=False)
row("reshape_as", S((2, 6), (3, 4)))
row("movedim", S((2, 3, 4), 0, -1), S((2, 3, 4), (0, 2), (1, 0)))
row("t", S((2, 3)), S((3,)), S(()))
row("adjoint", S((2, 3)), S(A((2, 2, 3), **C)))
row("flatten", S((2, 3, 4)), S((2, 3, 4), 1), S(()), S((2, 3, 4), 0, 1))
row("unflatten", S((2, 6), 1, (2, -1)), S((4,), 0, [2, 2]))
row("ravel", S((2, 3)), S(()))
row("rot90", S((2, 3)), S((2, 3), -1), S((2, 3, 4), 2, (0, 2)), S((2, 2), 4))
row("fliplr", S((2, 3)))
row("flipud", S((2, 3)))
row("roll", S((2, 3), 1), S((2, 3), (1, -2), (0, 1)), S((4,), -1, 0))
row("repeat", S((2, 3), 2, 1), S((3,), (2, 2)), S((), 3), S((2, 0), (1, 2)))
row("tile", S((2, 3), (2,)), S((2,), (2, 2)), S((2, 3), (1, 2)))
row("diagonal", S((3, 3)), S((3, 4), 1), S((2, 3, 4), -1, 1, 2), S((2, 2), 3), covers=("_diagonal_backward",))
row("diag_embed", S((3,)), S((2, 3), 1), S((2, 3), -1, 0, 2))
row("diag", S((3,)), S((3, 4), 1), S((2,), -1))
row("diagflat", S((2, 2)), S((3,), 1))
row("trace", S((3, 3)), S((2, 4)))
row("tril", S((3, 4)), S((2, 3, 3), 1), S((3, 2), -1))
row("triu", S((3, 4)), S((2, 3, 3), 1), S((3, 2), -1))
row("unfold", S((5, 2), 0, 3, 1), S((2, 7), -1, 2, 3), S((4,), 0, 4, 1), covers=("_unfold_backward",))
row("view_as_real", S(A((2, 3), **C)), S(A((), **C)))
row("view_as_complex", S((3, 2)), S((2, 3, 2)), noncontiguous=False)
row("expand_copy", S((3, 1), (2, 3, 4)))
row("diagonal_copy", S((3, 4), 1))
row("as_strided_copy", S((4, 3), (2, 2), (3, 1), 1), noncontiguous=False)
row("permute_copy", S((2, 3), (1, 0)))
row("squeeze_copy", S((1, 3, 1)), S((1, 3, 1), 0))
row("unsqueeze_copy", S((2, 3), 1))
row("transpose_copy", S((2, 3), 0, 1))
row("select_copy", S((2, 3), 0, 1))
row("slice_copy", S((5, 2), 0, 1, 4, 2))
row("unfold_copy", S((5,), 0, 2, 2))
row("view_copy", S((2, 6), (3, 4)), noncontiguous=False)
row("t_copy", S((2, 3)))
row("alias_copy", S((2, 3)))
row("narrow_copy", S((5, 2), 0, 1, 3))
row("view_as_real_copy", S(A((2,), **C)))
row("view_as_complex_copy", S((3, 2)), noncontiguous=False)
row("unbind_copy", S((2, 3), 1))
row("split_copy", S((5, 2), 2))
row("split_with_sizes_copy", S((5, 2), [2, 3]))
row("sum_to_size", S((2, 3, 4), (3, 1)), S((2, 3), (2, 3)), S((2, 3), ()))


def _slice(x, dim, start, stop, step):
    from torchlite._dispatch import REGISTRY, function_for

    return function_for(REGISTRY["_slice"])(x, dim, start, stop, step)
