"""Indexing, scattering and rearranging on OpenCL devices against the CPU: layouts, dtypes, places that occur more than
once, indices out of range.
"""

import itertools

import numpy as np
import pytest

import torchlite as torch

DTYPES = [
    torch.bool, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128,
]  # fmt: skip
ALL = slice(None)


def draw(rng, shape, dtype):
    """A tensor on the CPU, of small numbers so that sums of them are exact."""
    if dtype is torch.bool:
        return torch.from_numpy(rng.random(shape) < 0.5)
    values = torch.from_numpy(rng.integers(0 if dtype is torch.uint8 else -9, 10, shape)).to(dtype)
    return values + 1j * values.flip(0) if dtype.is_complex else values


def layouts(x, where):
    """The tensor on a device in several orders of memory."""
    plain = x.to(where)
    yield plain
    yield plain.transpose(0, -1).contiguous().transpose(0, -1)
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype, device=where)
    wide[..., ::2] = plain
    yield wide[..., ::2]
    yield torch.cat([plain, plain])[x.shape[0] :]


def same(mine, reference):
    assert mine.shape == reference.shape and mine.dtype is reference.dtype
    assert torch.equal(mine.cpu(), reference)


def index_of(rng, size, *shape, negative=True):
    return torch.from_numpy(rng.integers(-size if negative else 0, size, shape))


def indices(rng):
    """Advanced indices into a shape (4, 5, 6)."""
    a, b, c = (index_of(rng, n, 7) for n in (4, 5, 6))
    column, row = index_of(rng, 4, 3, 1), index_of(rng, 5, 2)
    masks = [torch.from_numpy(rng.random(s) < 0.5) for s in ((4,), (5,), (4, 5), (5, 6), (4, 5, 6))]
    yield from [
        (a,),
        (ALL, b),
        (ALL, ALL, c),
        (a, b),
        (ALL, b, c),
        (a, ALL, c),
        (a, b, c),
        (column, row),
        (ALL, row, index_of(rng, 6, 2, 2)),
        (a.int(), b),
    ]
    yield (torch.zeros(0, dtype=torch.int64),)
    yield from [
        (masks[0],),
        (ALL, masks[1]),
        (masks[2],),
        (ALL, masks[3]),
        (masks[4],),
        (masks[0], ALL, index_of(rng, 6, int(masks[0].sum()))),
    ]
    yield from [(1, masks[1]), (..., c), (None, a)]


def on(where, index):
    return tuple(i.to(where) if isinstance(i, torch.Tensor) else i for i in index)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.complex128], ids=str)
def test_reads_and_writes(opencl, rng, dtype):
    x = draw(rng, (4, 5, 6), dtype)
    for index in indices(rng):
        want = x[index]
        for y in layouts(x, opencl):
            same(y[on(opencl, index)], want)
        # Places that occur more than once get the same value here, as the order of writes is undefined.
        for value in (3, torch.full(want.shape[-1:], 2).to(dtype), torch.full(want.shape, 7).to(dtype)):
            changed = x.clone()
            changed[index] = value
            for y in layouts(x, opencl):
                y[on(opencl, index)] = value if isinstance(value, int) else value.to(opencl)
                same(y, changed)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_writes_that_add_up(opencl, rng, dtype):
    x = draw(rng, (4, 5, 6), dtype)
    for index in [
        (index_of(rng, 4, 50),),
        (index_of(rng, 4, 9), index_of(rng, 5, 9)),
        (index_of(rng, 4, 9, 1), index_of(rng, 5, 3), index_of(rng, 6, 3)),
    ]:
        values = draw(rng, x[index].shape, dtype)
        same(
            torch.index_put(x.to(opencl), on(opencl, index), values.to(opencl), True),
            torch.index_put(x, index, values, True),
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_along_a_dimension(opencl, rng, dtype):
    x = draw(rng, (6, 7, 8), dtype)
    for dim in range(3):
        shape = [5, 4, 3]
        shape[dim] = 9
        index, vector = (
            index_of(rng, x.shape[dim], *shape, negative=False),
            index_of(rng, x.shape[dim], 9, negative=False),
        )
        source, slices = (
            draw(rng, shape, dtype),
            draw(rng, [9 if d == dim else n for d, n in enumerate(x.shape)], dtype),
        )
        for y, s in itertools.product(layouts(x, opencl), layouts(slices, opencl)):
            same(y.gather(dim, index.to(opencl)), x.gather(dim, index))
            same(y.index_select(dim, vector.to(opencl)), x.index_select(dim, vector))
            same(y.scatter_add(dim, index.to(opencl), source.to(opencl)), x.scatter_add(dim, index, source))
            same(y.index_add(dim, vector.to(opencl), s), x.index_add(dim, vector, slices))
            same(y.index_fill(dim, vector.to(opencl), 1), x.index_fill(dim, vector, 1))
            some = torch.from_numpy(rng.permutation(x.shape[dim])[:3])
            same(
                y.index_copy(dim, some.to(opencl), s.narrow(dim, 0, 3)),
                x.index_copy(dim, some, slices.narrow(dim, 0, 3)),
            )
            z = y.clone()
            few = some.reshape([3 if d == dim else 1 for d in range(3)])
            same(z.scatter_(dim, few.to(opencl), 1), x.scatter(dim, few, 1))
        same(torch.take(x.to(opencl), index.to(opencl)), torch.take(x, index))


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float16, torch.float32, torch.float64], ids=str)
def test_reductions_into_places(opencl, rng, dtype, reduce):
    x, index = draw(rng, (5, 40), dtype), index_of(rng, 40, 5, 60, negative=False)
    source = draw(rng, (5, 60), dtype).clamp(-2, 2) if reduce == "prod" else draw(rng, (5, 60), dtype)
    for include in (True, False):
        mine = x.to(opencl).scatter_reduce(1, index.to(opencl), source.to(opencl), reduce, include_self=include)
        want = x.scatter_reduce(1, index, source, reduce, include_self=include)
        torch.testing.assert_close(mine.cpu(), want, rtol=2e-3 if dtype is torch.float16 else 1e-6, atol=1e-6)


def test_half_precision_adds_up_in_single(opencl):
    for dtype in (torch.float16, torch.bfloat16):
        where = torch.zeros(4096, dtype=torch.int64, device=opencl)
        x = torch.zeros(3, dtype=dtype, device=opencl).index_add(0, where, torch.ones(4096, dtype=dtype, device=opencl))
        assert x.tolist() == [4096, 0, 0]


@pytest.mark.parametrize(
    ("shape", "dim", "count"), [((3000,), 0, 50000), ((40, 300), 0, 5000), ((2000, 3), 1, 64), ((7, 11, 33), 1, 200)]
)
def test_large_scatter(opencl, rng, shape, dim, count):
    x, vector = draw(rng, shape, torch.float32), index_of(rng, shape[dim], count, negative=False)
    source = draw(rng, [count if d == dim else n for d, n in enumerate(shape)], torch.float32)
    same(x.to(opencl).index_add(dim, vector.to(opencl), source.to(opencl)), x.index_add(dim, vector, source))
    index = index_of(rng, shape[dim], *source.shape, negative=False)
    same(x.to(opencl).scatter_add_(dim, index.to(opencl), source.to(opencl)), x.scatter_add(dim, index, source))


def test_masks_of_many_elements(opencl, rng):
    for n in (255, 256, 257, 70001, 1 << 20):
        x, mask = torch.arange(n), torch.from_numpy(rng.random(n) < 0.3)
        same(x.to(opencl)[mask.to(opencl)], x[mask])
        values = torch.arange(n + 5)
        same(x.to(opencl).masked_scatter(mask.to(opencl), values.to(opencl)), x.masked_scatter(mask, values))
    counts = torch.from_numpy(rng.integers(0, 5, 3000))
    same(torch.repeat_interleave(counts.to(opencl)), torch.repeat_interleave(counts))
    seen_as_bool = torch.tensor([0, 255, 2, 0], dtype=torch.uint8, device=opencl).view(torch.bool)
    assert torch.arange(4, device=opencl)[seen_as_bool].tolist() == [1, 2]


REARRANGED = {
    "flip": lambda x: x.flip(0, -1),
    "roll": lambda x: x.roll((3, -1), (-1, 0)),
    "roll flat": lambda x: x.roll(5),
    "repeat": lambda x: x.repeat(2, 1, 3, 2),
    "tril": lambda x: x.tril(1),
    "triu": lambda x: x.triu(-1),
    "cat": lambda x: torch.cat([x, x[:1], x]),
    "cat last": lambda x: torch.cat([x, x[..., :2], x[..., :0]], -1),
    "cat many": lambda x: torch.cat(list(x.unbind(0)) * 3),
    "stack": lambda x: torch.stack([x, x, x], 1),
    "pad": lambda x: torch.nn.functional.pad(x, (1, 2, -1, 3, 0, 1)),
    "pad last": lambda x: torch.nn.functional.pad(x, (-1, 2), value=1),
    "diagonal": lambda x: x.diagonal(1, 0, 2).contiguous(),
    "diag_embed": lambda x: torch.diag_embed(x, -1, 0, 2),
    "unfold": lambda x: x.unfold(1, 3, 2).contiguous(),
    "transposed": lambda x: x.permute(2, 0, 1).contiguous(),
    "slice_scatter": lambda x: x.slice_scatter(x[:, 1:3], 1, 0, 4, 2),
    "select_scatter": lambda x: x.select_scatter(x[:, 1], 1, -1),
    "as_strided": lambda x: x.contiguous().as_strided((3, 4), (1, 5), 2).clone(),
}


@pytest.mark.parametrize("what", list(REARRANGED))
def test_rearranged(opencl, rng, what):
    for dtype in DTYPES:
        for shape in (
            ((4, 5, 6), (17, 33, 40)) if dtype in (torch.float32, torch.uint8, torch.float64) else ((4, 5, 6),)
        ):
            x = draw(rng, shape, dtype)
            for y in layouts(x, opencl):
                same(REARRANGED[what](y), REARRANGED[what](x))


def test_transposed_copies_on_cpus_and_gpus(opencl, rng, monkeypatch):
    """The kernel for GPUs runs on a CPU too, if slowly."""
    from torchlite_backends.device_runtime.core import contiguous_copy

    monkeypatch.setattr(contiguous_copy, "_MIN_SIZE", 1)
    for shape in ((67, 129), (3, 40, 50), (2, 9, 33, 47)):
        x = draw(rng, shape, torch.float32)
        y = x.to(opencl)
        for is_cpu in {y._tl_array.device.is_cpu, False}:
            monkeypatch.setattr(y._tl_array.device, "is_cpu", is_cpu)
            for order in itertools.permutations(range(len(shape))):
                same(y.permute(order).contiguous(), x.permute(order).contiguous())
                same(y[1:, 2:].permute(order).contiguous(), x[1:, 2:].permute(order).contiguous())


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in (torch.float16, torch.bfloat16)], ids=str)
def test_atomic_scatter(opencl, rng, dtype, monkeypatch):
    """The kernels for GPUs, which add, multiply and compare by compare-and-exchange, give a CPU's results."""
    x, index = draw(rng, (5, 40), dtype), index_of(rng, 40, 5, 60, negative=False)
    source = draw(rng, (5, 60), dtype)
    y, i, s = x.to(opencl), index.to(opencl), source.to(opencl)
    monkeypatch.setattr(y._tl_array.device, "is_cpu", False)
    same(y.scatter_add(1, i, s), x.scatter_add(1, index, source))
    same(y.gather(1, i), x.gather(1, index))
    same(y[:, i[0]], x[:, index[0]])
    if not dtype.is_complex:
        for reduce in ("prod", "amax", "amin"):
            if dtype.is_floating_point and reduce == "prod":
                continue
            same(y.scatter_reduce(1, i, s, reduce), x.scatter_reduce(1, index, source, reduce))


@pytest.mark.parametrize(
    "how",
    [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, i],
        lambda x, i: x[:0][i],
        lambda x, i: x.gather(0, i[:, None]),
        lambda x, i: x.scatter(0, i[:, None], 1.0),
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.index_add(0, i, x[:1]),
        lambda x, i: x.index_copy(0, i, x[:1]),
        lambda x, i: x.index_fill(0, i, 1),
        lambda x, i: torch.take(x, i),
        lambda x, i: x.index_put((i,), x[0]),
        lambda x, i: torch.nn.functional.embedding(i, x),
    ],
)
@pytest.mark.parametrize("bad", [40, -40])
def test_out_of_range(opencl, how, bad, monkeypatch):
    """The CPU's error, when the host waits for the device or, on demand, at the op; memory is left alone and the next
    op works.
    """
    x, i = torch.arange(12.0).reshape(3, 4), torch.tensor([bad])
    y, j = x.to(opencl), i.to(opencl)
    with pytest.raises((IndexError, RuntimeError)) as expected:
        how(x, i)
    with pytest.raises(type(expected.value)) as late:
        how(y, j)
        torch.opencl.synchronize()
    with monkeypatch.context() as here, pytest.raises(type(expected.value)) as at_once:
        here.setenv("TORCHLITE_OPENCL_BLOCKING", "1")
        how(y, j)
    assert str(late.value) == str(at_once.value) == str(expected.value)
    assert torch.equal(y.cpu(), x)


def test_views_of_other_dtypes(opencl, rng):
    x = torch.from_numpy(rng.standard_normal((3, 4, 6)).astype(np.float32))
    y = x.to(opencl)
    for dtype in (torch.int32, torch.uint8, torch.float64, torch.complex64, torch.int16):
        same(y[1:].view(dtype), x[1:].view(dtype))
    z = torch.view_as_complex(y.reshape(3, 4, 3, 2))
    same(z, torch.view_as_complex(x.reshape(3, 4, 3, 2)))
    torch.view_as_real(z)[..., 1] = 0
    assert float(y[..., 1::2].abs().sum()) == 0


def test_ranges(opencl):
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.complex64):
        for steps in (0, 1, 2, 7, 100):
            for function, low, high, tolerance in (
                (torch.linspace, -3, 9, 1e-6),
                (torch.logspace, -1, 2, 1e-3 if dtype is torch.float16 else 1e-5),
            ):
                found, expected = (
                    function(low, high, steps, dtype=dtype, device=opencl),
                    function(low, high, steps, dtype=dtype),
                )
                torch.testing.assert_close(found.cpu(), expected, rtol=tolerance, atol=1e-6)
    for shape in ((4, 7), (7, 4), (0, 3), (1, 1)):
        for offset in (-3, -1, 0, 2, 9):
            same(torch.tril_indices(*shape, offset, device=opencl), torch.tril_indices(*shape, offset))
            same(torch.triu_indices(*shape, offset, device=opencl), torch.triu_indices(*shape, offset))
        same(torch.eye(*shape, device=opencl), torch.eye(*shape))
