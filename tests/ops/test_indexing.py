"""x[...] and x[...] = v against NumPy (and by hand where PyTorch differs from it)."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch

CASES = [
    0,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, 2),
    ...,
    None,
    (0, 1),
    (slice(None), 2),
    (..., -1),
    (None, 0, ..., None),
    (slice(1, 2), slice(0, 3, 2)),
    [0, 2],
    ([0, 1], [1, 2]),
    (slice(None), [0, 2]),
    (..., [1, 1]),
    ([1], slice(0, 2)),
    (np.array([0, 2]), np.array([1, 3])),
    (slice(None), np.array([[0, 1], [2, 3]])),
    (slice(0, 0),),
    ([],),
    True,
    False,
    np.int64(1),
    (np.array(1), 2),
]


def both(device):
    array = np.arange(60, dtype=np.float64).reshape(3, 4, 5)
    return array, torch.tensor(array, device=device)


@pytest.mark.parametrize("index", CASES, ids=str)
def test_reads_as_numpy(device, index):
    array, x = both(device)
    key = (
        tuple(np.asarray(i, dtype=np.int64) if isinstance(i, list) else i for i in index)
        if isinstance(index, tuple)
        else np.asarray(index, dtype=np.int64)
        if isinstance(index, list)
        else index
    )
    want = array[key]
    have = x[index]
    assert tuple(have.shape) == want.shape
    np.testing.assert_array_equal(have.cpu().numpy(), want)


@pytest.mark.parametrize("index", [c for c in CASES if c is not False], ids=str)
def test_writes_as_numpy(device, index):
    array, x = both(device)
    key = (
        tuple(np.asarray(i, dtype=np.int64) if isinstance(i, list) else i for i in index)
        if isinstance(index, tuple)
        else np.asarray(index, dtype=np.int64)
        if isinstance(index, list)
        else index
    )
    array[key] = -1
    x[index] = -1
    np.testing.assert_array_equal(x.cpu().numpy(), array)


def test_integers_select_before_arrays(device):
    """NumPy moves the arrays' dimension to the front when a slice lies between an integer and an array; PyTorch does
    not.
    """
    _, x = both(device)
    assert x[0, :, [1, 2]].shape == (4, 2)
    assert torch.equal(x[0, :, [1, 2]], x[0][:, [1, 2]])


def test_a_list_of_lists_is_a_tuple_of_indices(device):
    """PyTorch 2.13 still reads it so."""
    _, x = both(device)
    assert torch.equal(x[[[0, 1], [2, 0]]], x[[0, 1], [2, 0]])


def test_masks(device):
    array, x = both(device)
    mask = torch.tensor(array % 7 == 0, device=device)
    np.testing.assert_array_equal(x[mask].cpu().numpy(), array[array % 7 == 0])
    rows = torch.tensor([True, False, True], device=device)
    assert (
        x[rows].shape == (2, 4, 5)
        and x[rows, 1].shape == (2, 5)
        and x[:, torch.tensor([True, False, False, True], device=device)].shape == (3, 2, 5)
    )
    x[mask] = 0
    array[array % 7 == 0] = 0
    np.testing.assert_array_equal(x.cpu().numpy(), array)


def test_tensor_indices(device):
    _, x = both(device)
    i = torch.tensor([0, 2], device=device)
    assert torch.equal(x[i], x[[0, 2]])
    assert x[torch.tensor(1, device=device)].shape == (4, 5)
    assert x[i, None].shape == (2, 1, 4, 5)
    assert x[:, i[:, None], i].shape == (3, 2, 2)


def test_a_basic_index_is_a_view_and_an_advanced_one_a_copy(device):
    _, x = both(device)
    x[1, 2].fill_(-1)
    assert x[1, 2, 0].item() == -1
    x[[0]].fill_(-5)
    assert x[0, 0, 0].item() == 0


def test_values_broadcast_and_are_cast(device):
    _, x = both(device)
    x[:, 0] = torch.arange(5, device=device)
    assert x[2, 0].tolist() == [0, 1, 2, 3, 4]
    x[0] = torch.from_numpy(np.ones((4, 5)))
    assert x[0].sum().item() == 20
    x[0, 0, 0] = np.float64(3)
    assert x[0].sum().item() == 22
    n = torch.zeros(3, dtype=torch.int64, device=device)
    n[1] = 2.7
    assert n.tolist() == [0, 2, 0]


@pytest.mark.parametrize("value", [np.ones(3), np.array(1.0), [1, 2, 3], (1,), range(3), "a", None, {}, torch.float32])
def test_only_tensors_and_numbers_are_assigned(value, device):
    name = {np.ndarray: "numpy.ndarray", torch.dtype: "torch.dtype"}.get(type(value), type(value).__name__)
    x = torch.zeros(3, dtype=torch.float16, device=device)
    for index in (slice(None), 0, [0, 1], torch.tensor([True, False, True], device=device)):
        with pytest.raises(TypeError, match=f"can't assign a {name} to a torch.*HalfTensor"):
            x[index] = value


def test_gradients_of_reads_and_writes(device):
    x = torch.zeros(3, 4, dtype=torch.float64, device=device, requires_grad=True)
    v = torch.ones(2, 4, dtype=torch.float64, device=device, requires_grad=True)
    y = x * 1
    y[[0, 2]] = v * 3
    (y * 2)[[0, 0, 1]].sum().backward()
    assert x.grad.tolist() == [[0] * 4, [2] * 4, [0] * 4]
    assert v.grad.tolist() == [[12] * 4, [0] * 4]


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        ([5], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        (1.5, IndexError, "only integers, slices"),
    ],
)
@pytest.mark.usefixtures("errors_at_once")
def test_bad_indices(device, index, error, words):
    _, x = both(device)
    before = x.clone()
    with pytest.raises(error, match=words):
        x[index]
    with pytest.raises(error, match=words):
        x[index] = 1
    assert torch.equal(x, before) and x._version == 0


def test_a_shape_mismatch_changes_nothing(device):
    _, x = both(device)
    before = x.clone()
    with pytest.raises(RuntimeError):
        x[0] = torch.ones(3, 3, device=device)
    assert torch.equal(x, before)


def test_index_put_without_an_index():
    assert torch.zeros(2, 3).index_put_([], torch.ones(2, 3), True).sum() == 6
    with pytest.raises(RuntimeError, match=r"value tensor of shape \[1\] cannot be broadcast to indexing result"):
        torch.rand([]).index_put_([], torch.tensor([1.0]), True)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_memory_that_may_not_be_written():
    x = torch.from_numpy(np.frombuffer(b"abcd", np.uint8))
    with pytest.raises(RuntimeError, match="memory of NumPy that may not be written"):
        x[0] = 1


def test_writing_rows_reads_none(monkeypatch):
    """A write by index does not first gather the overwritten rows to count them."""
    from torchlite_backends.array import index

    class Written:
        def __setitem__(self, places, value):
            self.got = places, value

    target, value = Written(), np.zeros((2, 3), "f4")
    index._setitem_(target, (np.array([1, 2]),), value)  # reading it would fail
    assert target.got[1] is value


@pytest.mark.parametrize("index", [1, slice(1, 3), (slice(None), 0), [0, 2], "places", "mask"], ids=str)
def test_a_write_counts_and_a_refused_one_changes_nothing(device, index):
    x = torch.arange(12.0, device=device).reshape(3, 4)
    index = (
        {"places": torch.tensor([2, 0], device=device), "mask": x > 5}.get(index, index)
        if index.__class__ is str
        else index
    )
    view, before = x[:, 1:], x.clone()
    version = x._version
    with pytest.raises((RuntimeError, IndexError)):
        x[index] = torch.ones(7, device=device)
    assert torch.equal(x, before) and x._version == version
    x[index] = -1
    assert x._version == version + 1 == view._version and (x[index] == -1).all()
    assert (x == -1).sum() == before[index].numel()
    weight = torch.tensor(3.0, device=device, requires_grad=True)
    y = torch.zeros(3, 4, device=device)
    y[index] = weight
    y.sum().backward()
    assert weight.grad == before[index].numel()


def test_numbers_that_a_dtype_does_not_hold_are_not_written():
    small = torch.zeros(3, dtype=torch.int8)
    for value in (300, float("nan"), 1j, 1 << 70):
        with pytest.raises((RuntimeError, ValueError)):
            small[1] = value
    assert not small.any()
    small[1] = -3.7
    assert small.tolist() == [0, -3, 0]


SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory location"


@pytest.mark.parametrize("write", [
    lambda i: i.__setitem__(i, 5),
    lambda i: i.__setitem__(i[:2], 5),
    lambda i: i.__setitem__(i, i.clone()),
    lambda i: i[:2].__setitem__(i[1:2], 5),
    lambda i: i.index_put_((i,), torch.tensor(5, device=i.device)),
    lambda i: i.index_fill_(0, i[:2], 5),
])  # fmt: skip
def test_an_index_in_the_written_memory_is_refused(write, device):
    i = torch.tensor([0, 1, 2], device=device)
    with pytest.raises(RuntimeError, match=SHARED):
        write(i)
    assert i.tolist() == [0, 1, 2]


def test_an_index_beside_the_written_memory_is_taken(device):
    both = torch.tensor([2, 1, 0, 0, 1, 2], device=device)
    both[:3][both[3:]] = both[3:]
    assert both.tolist() == [0, 1, 2, 0, 1, 2]
    mask = torch.tensor([True, False], device=device)
    mask[mask] = False
    assert mask.tolist() == [False, False]
    with pytest.raises(RuntimeError, match=SHARED):
        mask[mask] = torch.tensor([False], device=device)


@pytest.mark.parametrize("item", ["a", b"a", (slice(None), "a")])
def test_a_string_is_no_index(item, device):
    with pytest.raises(TypeError, match=r"new\(\): invalid data type '(str|bytes)'"):
        torch.zeros(2, 2, device=device)[item]


@pytest.mark.parametrize(
    ("values", "source", "right"),
    [
        ([[1j, 2j], [3j, 4j]], [[2j, 1j], [1j, 1j]], [[-2j, -2j], [3j, 4j]]),
        ([[True, True], [True, False]], [[True, False], [True, True]], [[True, False], [True, False]]),
    ],
    ids=["complex", "bool"],
)
def test_slices_of_any_dtype_are_multiplied(values, source, right, device):
    x, y = torch.tensor(values, device=device), torch.tensor(source, device=device)
    assert x.index_reduce(0, torch.tensor([0, 0], device=device), y, "prod").tolist() == right


def test_a_reduction_without_the_input_names_its_kernel(device):
    x = torch.tensor([True, False], device=device)
    with pytest.raises(NotImplementedError, match="index_reduce_func_exclude_input_init"):
        x.index_reduce(0, torch.tensor([0], device=device), x[:1], "prod", include_self=False)


@pytest.mark.parametrize("index", [[1], [2, 0], [], 1])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_copy_writes_into_the_memory(device, index, dim):
    base = torch.arange(24.0, device=device).reshape(4, 6)
    x, index = base[1:, ::2], torch.tensor(index, dtype=torch.int64, device=device)
    shape = list(x.shape)
    shape[dim] = index.numel()
    source = -torch.rand(shape, device=device) - 1
    expected = x.index_copy(dim, index, source)
    assert x.index_copy_(dim, index, source) is x
    assert x.tolist() == expected.tolist() == base[1:, ::2].tolist() and base[0].tolist() == list(range(6))
    before = base.tolist()
    shape[dim] = 1
    with pytest.raises(IndexError, match="out of bounds"):
        x.index_copy_(dim, torch.tensor([9], device=device), torch.zeros(shape, device=device))
        base.tolist()  # devices check indices as they run
    assert base.tolist() == before


def test_slices_of_a_number(device):
    """A tensor without dimensions is one slice, whether the source has one dimension or none."""
    none, one = torch.tensor([], dtype=torch.int64, device=device), torch.tensor([0], device=device)
    number, vector = torch.tensor(2.0, device=device), torch.tensor([2.0], device=device)
    for dim in (0, -1):
        for source in (number, vector):
            for shape in ((), (1,)):
                x = torch.zeros(shape, device=device)
                assert x.index_copy(dim, one, source).item() == x.index_copy_(dim, one, source).item() == 2
        assert number.index_select(dim, one).item() == 2
        with pytest.raises(RuntimeError, match="Index to scalar can have only 1 value, got 0"):
            number.index_select(dim, none)
        with pytest.raises(RuntimeError, match="Index to scalar can have only 1 value, got 2"):
            number.to("meta").index_select(dim, one.expand(2).to("meta"))


@pytest.mark.parametrize(
    "shapes", [((), (1,)), ((1,), ()), ((3, 4), (2, 5)), ((3, 4), (2, 1)), ((3, 4), (2,))], ids=str
)
def test_slices_of_another_shape_are_refused(device, shapes):
    """A source is not broadcast to the slices that it is added to."""
    x, source = (torch.ones(shape, device=device) for shape in shapes)
    index = torch.zeros(source.shape[0] if source.ndim else 1, dtype=torch.int64, device=device)
    calls = [lambda: x.index_add(0, index, source)]
    calls += [lambda kind=kind: x.index_reduce(0, index, source, kind) for kind in ("prod", "mean", "amax", "amin")]
    for call in calls:
        with pytest.raises(RuntimeError, match="source tensor shape must match self tensor shape, excluding"):
            call()


def test_slices_and_elements_that_a_source_lacks(device):
    none, number = torch.tensor([], dtype=torch.int64, device=device), torch.tensor(2.0, device=device)
    for call in (lambda: number.index_add(-1, none, number), lambda: number.index_reduce(0, none, number, "prod")):
        with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
            call()
    zero = torch.tensor(0, device=device)
    for name in ("scatter", "scatter_add"):
        with pytest.raises(RuntimeError, match=r"Expected index \[\] to be no larger than self \[\] apart"):
            getattr(number, name)(0, zero, none.float())
