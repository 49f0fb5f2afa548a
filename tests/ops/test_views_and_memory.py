"""Which shape and index ops share memory, what in-place writes do to it, and dtypes that fall outside the op table."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY
from torchlite._dispatch.backend import owner_of
from torchlite._dispatch.op_record import MAYBE_VIEW, VIEW

from .op_db import ROWS, leaves, load_rows, to_tensors

VIEWS = {
    "view": lambda x: x.view(2, 12),
    "reshape": lambda x: x.reshape(6, 4),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, 2),
    "expand": lambda x: x.expand(5, 2, 3, 4),
    "squeeze": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "select": lambda x: x.select(1, 2),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "split": lambda x: x.split(2, 2)[1],
    "chunk": lambda x: x.chunk(2, 1)[0],
    "tensor_split": lambda x: x.tensor_split(2, 2)[1],
    "unbind": lambda x: x.unbind(1)[1],
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "movedim": lambda x: x.movedim(0, -1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "as_strided": lambda x: x.as_strided((2, 2), (12, 1), 1),
    "T": lambda x: x[0].T,
    "mT": lambda x: x.mT,
    "ravel": lambda x: x.ravel(),
    "view_dtype": lambda x: x.view(torch.int32),
    "index": lambda x: x[:, 1:, ::2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(name):
    x = torch.arange(24.0).reshape(2, 3, 4)
    part = VIEWS[name](x)
    assert np.shares_memory(part.numpy(), x.numpy())
    before = x._version
    part.fill_(7)
    assert x._version > before and (x == 7).any() if part.dtype is x.dtype else x._version > before


COPIES = {
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1),
    "repeat": lambda x: x.repeat(1, 1, 1),
    "index": lambda x: x[[0, 1]],
    "diag": lambda x: x[0].diag(),
    "rot90": lambda x: x.rot90(0),
    "view_copy": lambda x: torch.view_copy(x, (24,)),
    "contiguous": lambda x: x.mT.contiguous(),
    "clone": lambda x: x.clone(),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_do_not(name):
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert not np.shares_memory(COPIES[name](x).numpy(), x.numpy())


def test_writes_through_views_reach_the_gradient():
    x = torch.ones(3, 3, dtype=torch.float64, requires_grad=True)
    y = x * 2
    y.diagonal().mul_(10)
    first, rest = y.split([1, 2])
    ((first * 3).sum() + rest.sum()).backward()
    want = np.array([[60.0, 6, 6], [2, 20, 2], [2, 2, 20]])
    np.testing.assert_array_equal(x.grad.numpy(), want)


def test_in_place_transpose_keeps_memory_and_history():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    pointer = y.data_ptr()
    assert y.t_() is y and y.shape == (3, 2) and y.data_ptr() == pointer
    (y * torch.arange(6.0).reshape(3, 2)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.arange(6).reshape(3, 2).T)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    x = torch.tensor([[1.0, 3.0, 2.0], [4.0, float("nan"), 6.0]]).to(dtype)
    for found in (
        x.sum(1),
        x.var(1),
        x.cumsum(1),
        x.max(1).values,
        x.sort(1).values,
        x.nanmedian(1).values,
        x.logsumexp(1),
        x.prod(1),
        x.cummax(1).values,
    ):
        assert found.dtype is dtype
    assert x.sort(1).indices.tolist() == [[0, 2, 1], [0, 2, 1]]
    assert x.topk(2, 1).indices[0].tolist() == [1, 2] and x.nanmedian(1).values.tolist() == [2.0, 4.0]


def test_low_precision_sums_do_not_saturate():
    assert torch.ones(4096, dtype=torch.float16).cumsum(0)[-1].item() == 4096


@pytest.mark.parametrize(
    "count,rows,width",
    [(300, 7, 1), (300, 50, 16), (400, 200, 200), (400, 3, 200), (50, 20, 600), (0, 3, 4), (4, 3, 0)],
)
def test_every_way_to_add_rows(rng, count, rows, width):
    index, values = rng.integers(0, rows, count), rng.standard_normal((count, width))
    want = np.zeros((rows, width))
    np.add.at(want, index, values)
    i, v = torch.tensor(index), torch.tensor(values)
    np.testing.assert_allclose(
        torch.zeros(rows, width, dtype=torch.float64).index_add(0, i, v).numpy(), want, atol=1e-12
    )
    np.testing.assert_allclose(
        torch.zeros(rows, width, dtype=torch.float64).index_put_((i,), v, accumulate=True).numpy(), want, atol=1e-12
    )


def test_long_recurrences_agree_with_short_ones(rng):
    """The derivative of cumprod takes another path for few long rows."""
    x = torch.tensor(rng.uniform(0.5, 1.5, (2, 100)), requires_grad=True)
    with torch.no_grad():
        x[0, 5] = 0
    torch.cumprod(x, 1).sum().backward()
    array, step = x.detach().numpy(), 1e-6
    for at in ((0, 3), (0, 5), (1, 50)):
        up, down = array.copy(), array.copy()
        up[at] += step
        down[at] -= step
        assert np.isclose(x.grad[at].item(), (up.cumprod(1).sum() - down.cumprod(1).sum()) / (2 * step), rtol=1e-5)


def test_numpy_names_of_dimensions():
    """PyTorch takes axis= and keepdims= for dim= and keepdim=."""
    x = torch.arange(6.0).reshape(2, 3)
    assert (
        x.sum(axis=1, keepdims=True).shape == (2, 1)
        and torch.cat([x, x], axis=1).shape == (2, 6)
        and x.max(axis=0).indices.tolist() == [1, 1, 1]
    )
    assert torch.equal(x.std(axis=0), x.std(dim=0)) and torch.equal(torch.stack([x, x], axis=2), torch.stack([x, x], 2))
    assert torch.aminmax(x, axis=1, keepdims=True).min.shape == (2, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        x.sum(axes=1)


# Ops without a view's tag whose result may lie in an argument's memory, in PyTorch too: made of views, or the argument
# itself where there is nothing to do.
MADE_OF_VIEWS = {
    "torch_alpha_dropout", "torch_dropout", "torch_feature_alpha_dropout", "torch_feature_dropout", "adjoint",
    "alpha_dropout", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "broadcast_to", "cartesian_prod",
    "chain_matmul", "chunk", "dropout", "dsplit", "einsum", "expand_as", "feature_alpha_dropout", "flatten", "hsplit",
    "linalg_diagonal", "meshgrid", "movedim", "ravel", "reshape_as", "resolve_conj", "resolve_neg", "set_", "split",
    "sum_to_size", "t", "tensor_split", "unflatten", "view", "view_as", "vsplit",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_only_views_share_memory():
    load_rows()
    sharing = set()
    for name, row in ROWS.items():
        record = REGISTRY[name]
        if record.tags & (VIEW | MAYBE_VIEW) or name.endswith("_") and name != "set_":
            continue
        for i in range(len(row.samples)):
            args, kwargs = to_tensors(row.values(i))
            torch.manual_seed(0)
            results = [r for r in leaves(row.function()(*args, **kwargs)) if isinstance(r, torch.Tensor)]
            given = {id(owner_of(t._tl_array)) for t in leaves((args, kwargs))}
            if any(id(owner_of(r._tl_array)) in given for r in results):
                sharing.add(name)
    assert sharing <= MADE_OF_VIEWS


F = torch.nn.functional
NOTHING_TO_DO = {
    "avg_pool2d": lambda x: F.avg_pool2d(x, 1, divisor_override=7),
    "avg_pool1d": lambda x: F.avg_pool1d(x[0], 1),
    "max_pool2d": lambda x: F.max_pool2d(x, 1),
    "max_pool3d": lambda x: F.max_pool3d(x, 1),
    "max_pool with indices": lambda x: F.max_pool2d(x, 1, return_indices=True)[0],
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 4),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 4),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 1),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 1),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 1),
    "repeat_interleave": lambda x: torch.repeat_interleave(x, 1, 0),
    "repeat_interleave, flat": lambda x: torch.repeat_interleave(x, 1),
    "diff": lambda x: torch.diff(x, n=0),
    "roll": lambda x: torch.roll(x, 0, 0),
    "flip": lambda x: torch.flip(x, ()),
    "tile": lambda x: torch.tile(x, (1,)),
    "repeat": lambda x: x.repeat(1, 1, 1, 1),
    "rot90": lambda x: torch.rot90(x, 0),
    "pad": lambda x: F.pad(x, (0, 0)),
    "pad reflect": lambda x: F.pad(x, (0, 0, 0, 0), mode="reflect"),
    "pad circular": lambda x: F.pad(x, (0, 0, 0, 0), mode="circular"),
    "interpolate": lambda x: F.interpolate(x, size=(4, 4)),
    "interpolate bilinear": lambda x: F.interpolate(x, size=(4, 4), mode="bilinear"),
    "cat": lambda x: torch.cat([x]),
    "index": lambda x: x[[0, 1]],
    "tril": lambda x: torch.tril(x, 9),
    "sum of one": lambda x: torch.sum(x[:1], 0),
    "amax of one": lambda x: torch.amax(x[:1], 0),
    "cumsum of one": lambda x: torch.cumsum(x[:1], 0),
    "softmax of 0-d": lambda x: torch.softmax(x[0, 0, 0, 0], 0),
    "sort of 0-d": lambda x: torch.sort(x[0, 0, 0, 0])[0],
    "renorm": lambda x: torch.renorm(x, 2, 0, 1e9),
    "nan_to_num": lambda x: torch.nan_to_num(x),
    "pow": lambda x: x**1,
    "matrix_power": lambda x: torch.linalg.matrix_power(x, 1),
    "clamp": lambda x: x.clamp(min=-9),
    "round of integers": lambda x: torch.round(x),
    "masked.sum": lambda x: torch.masked.sum(x[0, 0, 0, 0]),
    "masked.amax": lambda x: torch.masked.amax(x[0, 0, 0, 0]),
    "histogram's edges": lambda x: torch.histogram(x, x[0, 0, 0])[1],
    "lstsq's residuals": lambda x: torch.linalg.lstsq(x[0, 0], x[0, 0]).residuals,
    "ormqr": lambda x: torch.ormqr(x[0, 0][:, :0], x[0, 0, 0, :0], x[0, 0]),
    "to another dtype": lambda x: x.to(torch.float64),
    "masked_fill": lambda x: x.masked_fill(x < -9, 0),
    "where": lambda x: torch.where(x > -9, x, x),
    "slice_scatter": lambda x: torch.slice_scatter(x, x),
    "unique of one": lambda x: torch.unique(x[0, 0, 0, :1]),
    "kron": lambda x: torch.kron(x[0, 0, 0, 0], x[0, 0, 0, 0]),
    "as_strided_copy": lambda x: torch.as_strided_copy(x, (2,), (1,)),
}


@pytest.mark.parametrize("name", NOTHING_TO_DO)
def test_copies_though_there_is_nothing_to_do(name, device):
    x = torch.arange(128.0, device=device).reshape(2, 4, 4, 4)
    result = NOTHING_TO_DO[name](x)
    assert owner_of(result._tl_array) is not owner_of(x._tl_array)
    assert x.flatten().tolist() == list(range(128))


ITSELF = {
    "contiguous": lambda x: x.contiguous(),
    "conj": lambda x: x.conj(),
    "conj_physical": lambda x: x.conj_physical(),
    "resolve_conj": lambda x: x.resolve_conj(),
    "resolve_neg": lambda x: x.resolve_neg(),
    "positive": lambda x: +x,
    "real": lambda x: x.real,
    "to": lambda x: x.to(torch.float32),
    "type": lambda x: x.type(torch.float32),
    "float": lambda x: x.float(),
    "flatten of a vector": lambda x: x.flatten(),
    "atleast_1d": lambda x: torch.atleast_1d(x),
    "dropout outside training": lambda x: F.dropout(x, 0.5, False),
    "as_tensor": lambda x: torch.as_tensor(x),
}


@pytest.mark.parametrize("name", ITSELF)
def test_the_tensor_itself_where_there_is_nothing_to_do(name, device):
    for x in (torch.zeros(4, device=device), torch.zeros(4, device=device, requires_grad=True)):
        assert ITSELF[name](x) is x


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("descending", [False, True])
def test_stable_sorts_take_zeros_of_both_signs_for_equal(device, dtype, descending):
    for n in (7, 65, 1200):
        values = np.resize([0.0, -0.0, 1.0, -0.0, 0.0, -1.0, -0.0, np.nan], n)
        ranks = np.where(np.isnan(values), 9, values)
        wanted = np.argsort(-ranks if descending else ranks, kind="stable")
        x = torch.tensor(values, device=device).to(dtype)
        for dim, each in ((1, x.expand(2, n)), (0, x.unsqueeze(1).expand(n, 2))):
            found, order = each.sort(dim=dim, stable=True, descending=descending)
            assert all(np.array_equal(part.cpu().numpy(), wanted) for part in order.unbind(1 - dim))
            signs = found.select(1 - dim, 0).to(torch.float64).cpu().numpy()
            np.testing.assert_array_equal(
                np.signbit(signs[ranks[wanted] < 9]), np.signbit(values[wanted][ranks[wanted] < 9])
            )
