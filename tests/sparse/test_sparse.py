"""Sparse tensors beside their ops: construction and checks, printing, files, gradients of embeddings, optimizers."""

import copy
import io
import pickle

import pytest

import torchlite as torch
import torchlite.nn.functional as F
from tests.sparse.replay import FILE, file_contents

INDEX = torch.tensor([1, 2, 1, 3])


def matrix(device="cpu", **more):
    return torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), device=device, **more)


def weight(device="cpu"):
    return torch.nn.Parameter((torch.arange(12.0, device=device) / 10).reshape(4, 3))


def close(found, expected):
    torch.testing.assert_close(found, torch.tensor(expected, device=found.device), rtol=1e-4, atol=1e-4)


# -- what a sparse tensor is --------------------------------------------------------------


def test_a_sparse_tensor_is_a_tensor(device):
    s = matrix(device)
    assert isinstance(s, torch.Tensor) and torch.is_tensor(s)
    assert type(s).__name__ == "Tensor" and s.layout is torch.sparse_coo and s.is_sparse and not s.is_sparse_csr
    assert (s.shape, s.ndim, s.numel(), len(s), s.dtype) == (torch.Size([2, 3]), 2, 6, 2, torch.float32)
    assert s.type() == ("torch.sparse.FloatTensor" if s.is_cpu else f"torch.{s.device.type}.sparse.FloatTensor")
    csr = s.to_sparse_csr()
    assert csr.is_sparse_csr and not csr.is_sparse and csr.crow_indices().tolist() == [0, 1, 3]
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        assert pickle.loads(pickle.dumps(layout)) is layout


@pytest.mark.parametrize(
    "ask, error, words",
    [
        (lambda s: s.numpy(), TypeError, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."),
        (lambda s: s.untyped_storage(), NotImplementedError, "Cannot access storage of SparseTensorImpl"),
        (lambda s: s.data_ptr(), RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage"),
        (lambda s: s.nbytes, RuntimeError, "nbytes is not defined for sparse tensors."),
        (lambda s: s.to_sparse_csr().stride(), RuntimeError, "Sparse CSR tensors do not have strides"),
        (lambda s: s.indices(), RuntimeError, "Cannot get indices on an uncoalesced tensor, please call .coalesce()"),
        (lambda s: s.to_dense().indices(), RuntimeError, "indices expected sparse coordinate tensor layout but got"),
        (lambda s: s.to_dense()._nnz(), NotImplementedError, "Could not run 'aten::_nnz' with arguments from the 'C"),
        (lambda s: s.crow_indices(), RuntimeError, "crow_indices expected sparse row compressed tensor layout but g"),
        (lambda s: s[0:1], NotImplementedError, "Could not run 'aten::as_strided' with arguments from the 'SparseCP"),
        (lambda s: s + 1, RuntimeError, "add(sparse, dense) is not supported. Use add(dense, sparse) instead."),
        (lambda s: s.exp(), NotImplementedError, "Could not run 'aten::exp' with arguments from the 'SparseCPU' bac"),
        (lambda s: torch.ones_like(s), NotImplementedError, "Could not run 'aten::fill_.Scalar' with arguments from"),
        (lambda s: torch.sparse.spsolve(s.to_sparse_csr(), s), NotImplementedError, "Could not run 'aten::_spsolve'"),
        (lambda s: torch.ones(2, 3, layout=torch.sparse_coo), RuntimeError, "full(...) is not implemented for spars"),
        (lambda s: s.requires_grad_().mul_(2), RuntimeError, "a leaf Variable that requires grad is being used in a"),
        (lambda s: torch.ones(4, 4).to_sparse(layout=torch.sparse_bsr), RuntimeError, "dense_to_sparse: conversion"),
    ],
)  # fmt: skip
def test_errors_match_pytorchs_messages(ask, error, words):
    with pytest.raises(error) as found:
        ask(matrix())
    assert str(found.value).startswith(words)


# -- construction ---------------------------------------------------------------------------


def test_sizes_are_inferred_and_values_add_up(device):
    s = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], device=device)
    assert s.shape == (1, 2) and not s.is_coalesced() and s._nnz() == 2
    merged = s.coalesce()
    assert merged.is_coalesced() and merged._nnz() == 1 and merged.values().tolist() == [3.0]
    assert torch.sparse_coo_tensor((2, 3), device=device)._nnz() == 0
    assert torch.sparse_bsr_tensor([0, 1, 2], [0, 1], [[[1.0, 2.0]], [[3.0, 4.0]]], device=device).shape == (2, 4)
    batch = torch.sparse_csr_tensor([[0, 1, 2], [0, 1, 2]], [[0, 1], [1, 0]], [[1.0, 2.0], [3.0, 4.0]], device=device)
    assert batch.to_dense().tolist() == [[[1.0, 0.0], [0.0, 2.0]], [[0.0, 3.0], [4.0, 0.0]]]
    assert batch.to_dense().to_sparse_csr().col_indices().tolist() == [[0, 1], [1, 0]]


def test_values_keep_their_history():
    v = torch.tensor([1.0, 2.0], requires_grad=True)
    s = torch.sparse_coo_tensor([[0, 1], [1, 0]], v, (2, 2))
    (s.to_dense() * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert v.grad.tolist() == [2.0, 3.0]
    assert torch.sparse_coo_tensor([[0]], v[:1], (1,), requires_grad=True).is_leaf


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: torch.sparse_coo_tensor([[0, 1], [1, 2]], [1.0, 2.0], (1, 4)), "size is inconsistent with indices:"),
        (lambda: torch.sparse_coo_tensor([[0, -1], [1, 2]], [1.0, 2.0], (3, 3)), "found negative index -1 for dim 0"),
        (lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (3, 2)), "crow_indices.shape[-1] must be eq"),
        (lambda: torch.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0], (2, 2)), "`crow_indices[..., -1] == nnz` is"),
        (lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 2], [1.0, 2.0], (2, 2)), "`0 <= col_indices < ncols` is not"),
        (lambda: torch.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2)), "`col_indices[..., crow_indices[.."),
        (lambda: torch.sparse_csc_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2)), "`0 <= row_indices < nrows` is not"),
        (lambda: torch.sparse_bsr_tensor([0, 1], [0], [1.0], (2, 4)), "values must have dimensionality > sum of bat"),
    ],
)  # fmt: skip
def test_checks_are_off_until_they_are_switched_on(make, words):
    make()
    with torch.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError) as found:
        assert torch.sparse.check_sparse_tensor_invariants.is_enabled()
        make()
    assert str(found.value).startswith(words)
    assert not torch.sparse.check_sparse_tensor_invariants.is_enabled()


def test_indices_of_coo_and_csr():
    rows, columns = torch.tensor([0, 0, 2]), torch.tensor([0, 1, 1])
    first = torch._convert_indices_from_coo_to_csr(rows, 3)
    assert first.tolist() == [0, 2, 2, 3]
    assert torch._convert_indices_from_csr_to_coo(first, columns).tolist() == [[0, 0, 2], [0, 1, 1]]
    assert torch._convert_indices_from_coo_to_csr(rows, 3, out_int32=True).dtype is torch.int32


# -- printing ---------------------------------------------------------------------------------


def test_printing():
    s = matrix(requires_grad=True)
    assert repr(s) == (
        "tensor(indices=tensor([[0, 1, 1],\n                       [2, 0, 2]]),\n       values=tensor([3., 4., 5.]),\n"
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo, requires_grad=True)"
    )
    assert repr(torch.sparse.softmax(s, 1)).endswith(
        "size=(2, 3), nnz=3, layout=torch.sparse_coo,\n       grad_fn=<SparseSoftmaxBackward0>)"
    )
    assert repr(s.detach().double().to_sparse_csr()) == (
        "tensor(crow_indices=tensor([0, 1, 3]),\n       col_indices=tensor([2, 0, 2]),\n"
        "       values=tensor([3., 4., 5.]), size=(2, 3), nnz=3, dtype=torch.float64,\n       layout=torch.sparse_csr)"
    )
    assert repr(torch.nn.Parameter(s)).startswith("Parameter containing:\ntensor(indices=")


# -- files --------------------------------------------------------------------------------------


def _same(found):
    for name, value in file_contents(torch).items():
        assert repr(found[name]) == repr(value), name


@pytest.mark.parametrize("weights_only", [True, False])
def test_pytorchs_file_is_read(weights_only):
    _same(torch.load(FILE, weights_only=weights_only))


@pytest.mark.parametrize("zipped", [True, False])
def test_files_pickles_and_copies(zipped):
    stream = io.BytesIO()
    torch.save(file_contents(torch), stream, _use_new_zipfile_serialization=zipped)
    stream.seek(0)
    _same(torch.load(stream))
    _same(pickle.loads(pickle.dumps(file_contents(torch))))
    _same(copy.deepcopy(file_contents(torch)))


@pytest.mark.parametrize(
    "parts",
    [
        (torch.sparse_coo, 3),
        (torch.strided, (torch.zeros(1, 1), torch.zeros(1), (1,), False)),
        (torch.sparse_coo, (torch.zeros(1, 2, dtype=torch.int64), torch.zeros(1), (1,), False)),
        (torch.sparse_coo, (torch.zeros(1, 1), torch.zeros(1), (1,), False)),
        (torch.sparse_coo, (torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1), (-1,), False)),
        (torch.sparse_csr, (INDEX[:2], INDEX[:1].reshape(1, 1), torch.ones(1), (1, 1))),
        (torch.sparse_csr, (1, 2, 3, 4)),
    ],
)  # fmt: skip
def test_rebuild_rejects_invalid_sparse_tensors(parts):
    from torchlite._utils import _rebuild_sparse_tensor

    with pytest.raises((RuntimeError, NotImplementedError)):
        _rebuild_sparse_tensor(*parts)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    "parts",
    [
        ([[0], [5]], [1.0], (3, 3)), ([[-1], [0]], [1.0], (3, 3)),
        ([0, 1, 1, 1], [7], [1.0], (3, 3)), ([0, 9, 1, 1], [0], [1.0], (3, 3)),
    ],
)  # fmt: skip
def test_files_have_no_index_outside_of_a_tensor(parts, zipped):
    make = torch.sparse_coo_tensor if len(parts) == 3 else torch.sparse_csr_tensor
    held = io.BytesIO()
    torch.save(make(*map(torch.tensor, parts[:-1]), parts[-1]), held, _use_new_zipfile_serialization=zipped)
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(held.getvalue()))


def test_indices_that_are_views_have_a_budget():
    index, values = torch.zeros(1, 1, dtype=torch.int64).expand(1, 1 << 24), torch.zeros(1).expand(1 << 24)
    held = io.BytesIO()
    torch.save(torch.sparse_coo_tensor(index, values, (1,)), held)
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="more objects than its length"):
        torch.load(io.BytesIO(held.getvalue()))


# -- gradients ---------------------------------------------------------------------------------


def test_embeddings_have_sparse_gradients(device):
    w, index = weight(device), INDEX.to(device)
    (F.embedding(index, w, sparse=True) * torch.arange(12.0, device=device).reshape(4, 3)).sum().backward()
    assert w.grad.is_sparse and w.grad._indices().tolist() == [[1, 2, 1, 3]]
    assert w.grad._values().tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 10.0, 11.0]]
    layer = torch.nn.Embedding(4, 3, padding_idx=1, sparse=True).to(device)
    layer(index).sum().backward()
    assert layer.weight.grad._indices().tolist() == [[2, 3]]
    bag = torch.nn.EmbeddingBag(4, 3, sparse=True, mode="mean").to(device)
    bag(index, torch.tensor([0, 2], device=device)).sum().backward()
    assert bag.weight.grad.is_sparse and bag.weight.grad._values().unique().tolist() == [0.5]
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        F.embedding(index, weight(device), sparse=True, scale_grad_by_freq=True).sum().backward()


def test_ops_that_look_up_take_sparse_gradients(device):
    index = torch.tensor([[0, 2, 1], [2, 2, 0]], device=device)
    w = weight(device)
    torch.embedding(w, index, 2, False, True).sum().backward()
    assert w.grad.is_sparse and w.grad._indices().tolist() == [[0, 1, 0]]
    w = weight(device)
    (torch.gather(w, 0, index, sparse_grad=True) * torch.arange(6.0, device=device).reshape(2, 3)).sum().backward()
    assert w.grad._indices().tolist() == [[0, 2, 1, 2, 2, 0], [0, 1, 2, 0, 1, 2]]
    assert w.grad._values().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    w = weight(device)
    (g,) = torch.autograd.grad(w.gather(1, index[:, :2], sparse_grad=True).pow(2).sum(), w, create_graph=True)
    g.to_dense().sum().backward()
    assert g.is_sparse and w.grad.to_dense().sum().item() == 8.0
    x = torch.tensor(3.0, device=device, requires_grad=True)
    torch.gather(x, 0, torch.tensor(0, device=device), sparse_grad=True).backward()
    assert x.grad.is_sparse and x.grad.shape == () and x.grad.to_dense().item() == 1.0
    assert torch.gather(w.detach(), 0, index, sparse_grad=True).grad_fn is None


def test_a_gradient_does_not_see_later_changes_of_the_indices():
    w, index = weight(), INDEX.clone()
    F.embedding(index, w, sparse=True).sum().backward()
    index[0] = 3
    assert w.grad._indices().tolist() == [[1, 2, 1, 3]]


@pytest.mark.parametrize("dense_first", [True, False])
def test_sparse_and_dense_gradients_add_up(dense_first, device):
    index = INDEX.to(device)
    expected = [[0.0, 0.2, 0.4], [2.6, 2.8, 3.0], [2.2, 2.4, 2.6], [2.8, 3.0, 3.2]]
    parts = [lambda w: (w * w).sum(), lambda w: F.embedding(index, w, sparse=True).sum()]
    parts = parts if dense_first else parts[::-1]
    w = weight(device)
    for part in parts:
        part(w).backward()
    close(w.grad, expected)
    w = weight(device)
    (parts[0](w) + parts[1](w)).backward()
    close(w.grad, expected)
    w = weight(device)
    for _ in range(2):
        F.embedding(index, w, sparse=True).sum().backward()
    assert w.grad.is_sparse and w.grad._nnz() == 8


def test_the_graph_above_an_embedding():
    w = weight()
    F.embedding(INDEX, w * 2, sparse=True).sum().backward()
    assert w.grad.to_dense()[:, 0].tolist() == [0.0, 4.0, 2.0, 2.0]
    w = weight()
    (g,) = torch.autograd.grad(F.embedding(INDEX, w, sparse=True).pow(2).sum(), w, create_graph=True)
    g.to_dense().pow(2).sum().backward()
    close(w.grad.to_dense()[1], [9.6, 12.8, 16.0])
    w = weight()
    w.register_hook(lambda g: g * 2)
    F.embedding(INDEX, w, sparse=True).sum().backward()
    assert w.grad.is_sparse and w.grad._values().unique().tolist() == [2.0]


def test_products_have_pytorchs_gradients(device):
    s, d = matrix(device, requires_grad=True), torch.arange(6.0, device=device).reshape(3, 2).requires_grad_()
    torch.sparse.mm(s, d).sum().backward()
    assert s.grad.is_sparse and s.grad.to_dense().tolist() == [[0.0, 0.0, 9.0], [1.0, 0.0, 9.0]]
    assert d.grad.tolist() == [[4.0, 4.0], [0.0, 0.0], [8.0, 8.0]]
    s.grad = None
    (s @ d).sum().backward()
    assert s.grad.layout is torch.strided and s.grad.tolist() == [[1.0, 5.0, 9.0], [1.0, 5.0, 9.0]]
    csr = s.detach().to_sparse_csr().requires_grad_()
    torch.sparse.mm(csr, d).sum().backward()
    assert csr.grad.layout is torch.sparse_csr and csr.grad.values().tolist() == [9.0, 1.0, 9.0]


@pytest.mark.parametrize(
    "reduce, out, to_values, to_dense",
    [
        (
            "sum",
            [[3.0, 14.0], [0.0, 0.0], [2.0, 10.0]],
            [51.0, 51.0, 41.0, 17.0],
            [[1.0, 10.0], [5.0, 16.0], [1.0, 10.0]],
        ),
        ("amax", [[1.0, 5.0], [0.0, 0.0], [2.0, 10.0]], [51.0, 0.0, 0.0, 17.0], [[1.0, 10.0], [4.0, 6.0], [0.0, 0.0]]),
        ("amin", [[1.0, 4.0], [0.0, 0.0], [2.0, 10.0]], [1.0, 0.0, 40.0, 17.0], [[1.0, 0.0], [4.0, 6.0], [0.0, 10.0]]),
    ],
)
def test_reduced_products(reduce, out, to_values, to_dense, device):
    """The first of equal products alone has a gradient."""
    csr = torch.sparse_csr_tensor([0, 3, 3, 4], [0, 1, 2, 1], [1.0, 1.0, 1.0, 2.0], (3, 3), device=device)
    csr.requires_grad_()
    d = torch.tensor([[1.0, 5.0], [1.0, 5.0], [1.0, 4.0]], device=device, requires_grad=True)
    found = torch.sparse.mm(csr, d, reduce)
    assert found.tolist() == out
    (found * torch.tensor([[1.0, 10.0], [100.0, 1000.0], [2.0, 3.0]], device=device)).sum().backward()
    assert csr.grad.values().tolist() == to_values and d.grad.tolist() == to_dense


def test_reduced_products_raise_pytorchs_messages():
    csr, d = torch.eye(2, dtype=torch.int64).to_sparse_csr(), torch.eye(2, dtype=torch.int64)
    for reduce, error, words in (
        ("sum", NotImplementedError, "\"spmm_reduce_kernel\" not implemented for 'Long'"),
        ("prod", RuntimeError, "sparse_mm_reduce: reduce type of prod has not been enabled."),
        ("median", RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got median"),
    ):
        with pytest.raises(error) as found:
            torch.sparse.mm(csr, d, reduce)
        assert str(found.value) == words


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_a_dense_matrix_times_a_sparse_one(layout, device):
    a = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    b = torch.tensor([[0.0, 1.0], [2.0, 0.0], [0.0, 3.0]], device=device)
    s = b.to_sparse(layout=getattr(torch, f"sparse_{layout}")).requires_grad_()
    out = torch.sparse.mm(a, s)
    assert out.tolist() == [[2.0, 6.0], [8.0, 18.0]] and out.stride() == (1, 2)
    out.sum().backward()
    assert a.grad.tolist() == [[1.0, 2.0, 3.0]] * 2
    assert s.grad.layout is s.layout and s.grad.to_dense().tolist() == [[0.0, 3.0], [5.0, 0.0], [0.0, 7.0]]


def test_compressed_tensors_with_dense_dimensions_have_no_transpose():
    x = torch.arange(12.0).reshape(3, 2, 2).to_sparse_csr(dense_dim=1)
    for turn in (lambda: x.transpose(0, 1), lambda: x.transpose(0, 0), lambda: torch.swapaxes(x, 0, 1), lambda: x.mT):
        with pytest.raises(RuntimeError, match="hybrid sparse compressed tensors with dense dimensions"):
            turn()


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_gradients_of_large_matrices_are_never_dense(layout):
    n = 1 << 18
    at = torch.arange(n, dtype=torch.float64)
    s = torch.sparse_coo_tensor(torch.stack([at.long(), at.long().flip(0)]), at, (n, n), is_coalesced=True)
    if layout != "coo":
        s = s.to_sparse(layout=getattr(torch, f"sparse_{layout}"), blocksize=(2, 1) if layout[0] == "b" else None)
    s.requires_grad_()
    d = at.flip(0).unsqueeze(1).requires_grad_()
    torch.sparse.mm(s, d).sum().backward()
    assert s.grad.layout is s.layout and d.grad[:, 0].equal(at.flip(0))
    both = s.grad.to_sparse_coo().coalesce()
    assert (both.values() == both.indices()[1].flip(0)).all() if layout[0] != "b" else both._nnz() == 2 * n


@pytest.mark.parametrize(
    "function",
    [
        lambda v, d: torch.sparse.mm(v, d),
        lambda v, d: torch.sparse.mm(v.to_sparse_csc(), d),
        lambda v, d: torch.sparse.mm(d.t(), v.t().to_sparse_csr()),
        lambda v, d: torch.sparse.mm(v.to_sparse_bsr((2, 3)), d),
        lambda v, d: torch.sparse.mm(v.to_sparse_csr(), d, "amax"),
        lambda v, d: torch.sparse.softmax(v, 1).to_dense(),
        lambda v, d: torch.sparse.log_softmax(v, 0).to_dense(),
        lambda v, d: torch.sparse.sampled_addmm(v.to_sparse_csr(), d[:2], d.t()).to_dense(),
        lambda v, d: torch.sparse.mm(v.to_sparse_csr(), d, "mean"),
        lambda v, d: (v.sin() * d.t() - v * v).to_dense(),
        lambda v, d: torch.sparse.sum(v, 0).to_dense(),
        lambda v, d: torch.cat([v, v.neg()], 1).index_select(1, torch.tensor([4, 0, 0])).to_dense(),
        lambda v, d: torch.sparse.mm(v, v.t()).to_dense(),
        lambda v, d: torch.addmm(d[:2], v, d, alpha=2),
    ],
)
def test_first_and_second_derivatives(function):
    index = torch.tensor([[0, 1, 1], [2, 0, 2]])
    values = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    dense = torch.arange(6, dtype=torch.float64).reshape(3, 2).div(4).requires_grad_()

    def of_values(values, dense):
        return function(torch.sparse_coo_tensor(index, values, (2, 3), is_coalesced=True), dense)

    assert torch.autograd.gradcheck(of_values, (values, dense))
    assert torch.autograd.gradgradcheck(of_values, (values, dense))


def test_gradients_are_as_sparse_as_pytorchs(device):
    """Of linear functions as they come; of a product the other factor times the gradient."""
    ones = torch.ones(2, 3, device=device)
    for function in (lambda s: s * 2, lambda s: 4 * s / 2, lambda s: -(s * -2)):
        s = matrix(device, requires_grad=True)
        function(s).backward(ones)
        assert s.grad.layout is torch.strided and s.grad.unique().tolist() == [2.0]
        s.grad = None
        function(s).backward(matrix(device))
        assert s.grad.is_sparse and s.grad.to_dense().tolist() == [[0.0, 0.0, 6.0], [8.0, 0.0, 10.0]]
    s, d = matrix(device).coalesce().requires_grad_(), (ones * 2).requires_grad_()
    (s * d).to_dense().sum().backward()
    assert s.grad.to_dense().tolist() == [[0.0, 0.0, 2.0], [2.0, 0.0, 2.0]]
    assert d.grad.is_sparse and d.grad.to_dense().tolist() == [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]
    row = torch.ones(3, device=device, requires_grad=True)
    (s * row).to_dense().sum().backward()
    assert row.grad.tolist() == [4.0, 0.0, 8.0]
    d = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    d.to_sparse().sum().backward()
    assert d.grad.tolist() == ones.tolist()
    d.grad = None
    d.to_sparse_csr().values().sum().backward()
    assert d.grad.tolist() == [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]


def test_uncoalesced_values_have_the_gradient_of_their_place():
    s = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2), requires_grad=True)
    (s.to_dense() * 3).sum().backward()
    assert s.grad.to_dense().tolist() == [[0.0, 3.0], [0.0, 0.0]]


def test_places_keep_their_type():
    csr = torch.sparse_csr_tensor(torch.tensor([0, 1], dtype=torch.int32), torch.tensor([1], dtype=torch.int32), [3.0])
    assert torch.zeros_like(csr).crow_indices().dtype is torch.int32
    for made in (torch.ones_like(csr), torch.full_like(csr, 1), csr.clone().fill_(1)):
        assert made.values().tolist() == [1.0] and made.col_indices().dtype is torch.int32

    assert csr.to_sparse_csc().row_indices().dtype is torch.int32


def test_products_of_layouts_have_the_first_ones_layout():
    csr = torch.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csr()
    for other in (csr.to_sparse_csc(), csr.to_sparse_coo(), csr.to_sparse_bsr((1, 2))):
        assert (csr * other).layout is torch.sparse_csr and (csr * other).to_dense().tolist() == [[0, 4], [9, 16]]
    none = torch.sparse_coo_tensor((2, 2), dtype=torch.bool)
    assert (none * none).dtype is torch.bool and none.sparse_mask(csr.to_sparse_coo()).dtype is torch.bool


def test_triangles_in_rows_are_solved(device):
    A = torch.tensor([[2.0, 1.0], [0.0, 4.0]], device=device)
    b = torch.ones(2, 1, device=device)
    for how in ({}, {"transpose": True}, {"unitriangular": True}):
        found = torch.triangular_solve(b, A.to_sparse_csr(), **how)
        close(found.solution, torch.triangular_solve(b, A, **how).solution.tolist())
        assert found.cloned_coefficient.shape == (0,)
    with pytest.raises(ValueError, match="triangular_solve: unsupported sparse layout."):
        torch.triangular_solve(b, A.to_sparse_csc())


def test_addmm_of_dense_matrices(device):
    a, b, c = (torch.arange(n, dtype=torch.float32, device=device).reshape(shape) for n, shape in (
        (4, (2, 2)), (6, (2, 3)), (6, (3, 2)),
    ))  # fmt: skip
    assert torch.equal(torch.sparse.addmm(a, b, c, beta=2, alpha=3), torch.addmm(a, b, c, beta=2, alpha=3))


def test_autocast_has_sparse_products(device):
    csr, d = matrix(device).to_sparse_csr(), torch.ones(3, 2, device=device)
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        assert torch.sparse.mm(csr, d).dtype is torch.sparse.addmm(d[:2], csr, d).dtype is torch.bfloat16
        assert torch.sparse.mm(csr.double(), d.double()).dtype is torch.float64


def test_unsupported_layouts_raise():
    with pytest.raises(RuntimeError, match="Error original_tensor.device= cpu is not supported! Only CUDA tensors are"):
        torch.sparse.to_sparse_semi_structured(torch.ones(4, 4))
    with pytest.raises(RuntimeError, match="Offset Tensor must have dtype Long but got Int"):
        torch.sparse.spdiags(torch.ones(1, 2), torch.tensor([0], dtype=torch.int32), (2, 2))
    with pytest.raises(RuntimeError, match="zeros_sparse_compressed expected sparse compressed \\(non-block\\) tensor"):
        torch.mm(torch.eye(2).to_sparse_bsr((1, 1)), torch.eye(2).to_sparse_bsr((1, 1)))


def test_ops_in_place_need_one_value_a_place():
    s = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,))
    for ask, error, words in (
        (lambda: s.sin_(), RuntimeError, "sin_ requires coalesced input"),
        (lambda: s.pow_(2), NotImplementedError, "Could not run 'aten::pow_.Scalar'"),
        (lambda: s.share_memory_(), NotImplementedError, "Cannot access storage of SparseTensorImpl"),
    ):
        with pytest.raises(error) as found:
            ask()
        assert str(found.value).startswith(words)
    assert s.neg_()._values().tolist() == [-1.0, -2.0]


def test_hooks_and_in_place_ops():
    s = matrix(requires_grad=True)
    y = s * 3
    y.retain_grad()
    y.mul_(2)
    torch.sparse.sum(y).backward()
    assert s.grad.to_dense().sum().item() == 18.0
    p = torch.nn.Parameter(matrix().coalesce())
    torch.sparse.mm(p, torch.ones(3, 2)).sum().backward()
    torch.optim.SGD([p], 0.1).step()
    assert p.requires_grad and p.is_leaf and p.is_sparse
    close(p.detach().to_dense(), [[0.0, 0.0, 2.8], [3.8, 0.0, 4.8]])


# -- optimizers ------------------------------------------------------------------------------------


def steps(optimizer, device, count=3):
    w = weight(device)
    made = optimizer([w])
    for i in range(count):
        made.zero_grad()
        (F.embedding(INDEX[i:].to(device), w, sparse=True) ** 2).sum().backward()
        made.step()
    return w.detach()


@pytest.mark.parametrize(
    "optimizer, expected",
    [
        (lambda p: torch.optim.SGD(p, 0.1), [0.1152, 0.1536, 0.1920]),
        (lambda p: torch.optim.SGD(p, 0.1, foreach=True), [0.1152, 0.1536, 0.1920]),
        (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), [-0.1008, -0.1344, -0.1680]),
        (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True), [-0.1317, -0.1756, -0.2196]),
        (lambda p: torch.optim.SGD(p, 0.1, maximize=True), [0.6048, 0.8064, 1.0080]),
        (lambda p: torch.optim.Adagrad(p, 0.1), [0.1427, 0.2353, 0.3309]),
        (lambda p: torch.optim.Adagrad(p, 0.1, maximize=True), [0.5089, 0.6036, 0.7002]),
        (lambda p: torch.optim.SparseAdam(p, 0.1), [0.0354, 0.1291, 0.2257]),
        (lambda p: torch.optim.SparseAdam(p, 0.1, maximize=True), [0.5951, 0.6933, 0.7920]),
    ],
)
def test_steps_are_pytorchs(optimizer, expected, device):
    found = steps(optimizer, device)
    close(found[1], expected)
    close(found[0], [0.0, 0.1, 0.2])


@pytest.mark.parametrize(
    "optimizer, words",
    [
        (lambda p: torch.optim.Adam(p), "Adam does not support sparse gradients, please consider SparseAdam instead"),
        (lambda p: torch.optim.AdamW(p), "Adam does not support sparse gradients, please consider SparseAdam instead"),
        (lambda p: torch.optim.RMSprop(p), "RMSprop does not support sparse gradients"),
        (lambda p: torch.optim.SGD(p, 0.1, fused=True), "`_fused_sgd` does not support sparse gradients"),
        (lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.1), "add(sparse, dense) is not supported. Use add(dense, sp"),
        (lambda p: torch.optim.Adagrad(p, weight_decay=0.1), "weight_decay option is not compatible with sparse gradi"),
    ],
)
def test_optimizers_raise_pytorchs_messages(optimizer, words):
    with pytest.raises(RuntimeError) as found:
        steps(optimizer, "cpu")
    assert str(found.value).startswith(words)


def test_a_plan_for_dense_gradients_sees_a_sparse_one():
    w = weight()
    made = torch.optim.SGD([w], 0.1)
    for sparse in (False, True, False):
        made.zero_grad()
        F.embedding(INDEX, w, sparse=sparse).sum().backward()
        made.step()
    close(w.detach()[1], [0.3 - 0.6, 0.4 - 0.6, 0.5 - 0.6])


def test_scaling_and_clipping():
    w = weight()
    made, scaler = torch.optim.SGD([w], 0.1), torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(F.embedding(INDEX, w, sparse=True).sum()).backward()
    scaler.step(made)
    close(w.detach()[1], [0.1, 0.2, 0.3])
    with pytest.raises(NotImplementedError, match="Could not run 'aten::linalg_vector_norm' with arguments from"):
        torch.nn.utils.clip_grad_norm_([w], 0.1)
    made.zero_grad(set_to_none=False)
    assert w.grad.is_sparse and w.grad._nnz() == 0


def test_sparse_tensors_are_compared():
    s = matrix()
    torch.testing.assert_close(s, s.clone())
    torch.testing.assert_close(s.to_sparse_csr(), s.to_sparse_csr())
    with pytest.raises(AssertionError, match="Sparse COO values are not close!"):
        torch.testing.assert_close(s, s * 2)
    with pytest.raises(AssertionError, match="The number of specified values in sparse COO tensors does not match"):
        torch.testing.assert_close(s, torch.sparse_coo_tensor((2, 3)))


def test_lbfgs_takes_sparse_gradients():
    w = weight()
    made = torch.optim.LBFGS([w], lr=0.1)

    def closure():
        made.zero_grad()
        loss = (F.embedding(INDEX, w, sparse=True) ** 2).sum()
        loss.backward()
        return loss

    before = closure().item()
    assert made.step(closure).item() == before and closure().item() < before / 4


def test_gradcheck_takes_sparse_inputs():
    s = matrix(dtype=torch.float64).coalesce().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: torch.sparse.sum(s, 0).to_dense(), s, masked=True)
    assert torch.autograd.gradcheck(lambda s: s.to_dense(masked_grad=False), s)
    assert torch.autograd.gradgradcheck(lambda s: (s * s).to_dense(), s, masked=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(lambda s: s.detach().to_dense() * s.to_dense(), s, masked=True)


def test_gradcheck_of_sparse_functions():
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    s = matrix(dtype=torch.float64).coalesce().requires_grad_()
    d = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    assert check(lambda s, d: torch.sparse.mm(s, d), (s, d), masked=True)
    assert check(lambda s: s.to_dense(), (s,), masked=True)
    assert check(lambda s: s.to_dense(), (s,), masked=False)


def test_dense_ops_are_as_before():
    """A sparse tensor anywhere in the program changes nothing for dense ones."""
    matrix()
    x = torch.ones(2, 2, requires_grad=True)
    ((x @ x) * x + x).sum().backward()
    assert x.grad.layout is torch.strided and type(x.grad) is torch.Tensor


def test_modes_that_see_ops_are_as_before():
    from torchlite.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    matrix()
    w = torch.ones(3, requires_grad=True)
    (w * 2).sum().backward()
    first = w.grad
    with Seen():
        (w * 3).sum().backward()
    assert w.grad is first and first.tolist() == [5.0] * 3
    w = weight()
    with Seen():
        F.embedding(INDEX, w, sparse=True).sum().backward()
    assert w.grad.to_dense()[:, 0].tolist() == [0.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.empty])
def test_out_must_have_the_given_layout(make):
    with pytest.raises(RuntimeError, match=r"layout Sparse does not match layout of out parameter \(Strided\)"):
        make((3, 4), layout=torch.sparse_coo, out=torch.empty(3, 4))
    assert make((3, 4), layout=torch.strided, out=torch.empty(3, 4)).shape == (3, 4)


def test_a_sparse_tensor_stays_sparse_as_a_tensor(device):
    found = matrix(device).as_subclass(torch.Tensor)
    assert found.layout is torch.sparse_coo and torch.equal(found.to_dense(), matrix(device).to_dense())
