"""`torchlite._tensor.nested_sequences`: tensors of nested lists. The answers are PyTorch's."""

import sys

import numpy as np
import pytest

import torchlite as torch

f32, i64 = torch.float32, torch.int64


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([1, 2], i64, [1, 2]),
        ([True, False], torch.bool, [True, False]),
        ([True, 2], i64, [1, 2]),
        ([True, 2.5], f32, [1.0, 2.5]),
        ([1, 2.5, 3], f32, [1.0, 2.5, 3.0]),
        ([1j, 2], torch.complex64, [1j, 2 + 0j]),
        ([[1, 2], (3, 4.0)], f32, [[1.0, 2.0], [3.0, 4.0]]),
        ([[True], [1]], i64, [[1], [1]]),
        ([range(3), [1, 2, 3]], i64, [[0, 1, 2], [1, 2, 3]]),
        ([], f32, []),
        ([[], []], f32, [[], []]),
        ([1e300], f32, [float("inf")]),
        ([2**70, 1.5], f32, [float(2**70), 1.5]),
    ],
)
def test_dtype_and_values(data, dtype, expected):
    out = torch.tensor(data)
    assert out.dtype == dtype and out.tolist() == expected and out.is_contiguous()


def test_integers_beside_floats_keep_their_bits():
    """A float64 on the way would round the integer."""
    assert torch.tensor([2**62 + 1, 1.9], dtype=i64).tolist() == [2**62 + 1, 1]
    assert torch.tensor([[-3, -1.9]], dtype=torch.int8).tolist() == [[-3, -1]]


@pytest.mark.parametrize(
    ("data", "dtype", "error"),
    [
        ([300], torch.int8, RuntimeError),
        ([2**63], None, ValueError),
        ([2**64, 1.5], i64, ValueError),
        ([10**400, 1.5], None, (OverflowError, ValueError)),
        ([float("nan")], i64, (RuntimeError, ValueError)),
        ([1j], f32, TypeError),
        ([1, None], None, RuntimeError),
        ([[1], 2], None, TypeError),
        ([[1], [2, 3]], None, ValueError),
    ],
)
def test_errors(data, dtype, error):
    with pytest.raises(error):
        torch.tensor(data, dtype=dtype)


def test_lists_of_tensors():
    ones = [torch.tensor(1.5), torch.tensor([2.5])]
    assert torch.tensor([ones, ones]).tolist() == [[1.5, 2.5], [1.5, 2.5]]
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        torch.tensor(ones, dtype=i64)
    assert torch.tensor([torch.tensor([3]), torch.tensor(True)], dtype=i64).tolist() == [3, 1]
    assert torch.tensor([torch.tensor(1), torch.tensor(2.5)]).dtype == f32
    assert torch.tensor([torch.tensor(1, dtype=torch.int8)]).dtype == torch.int8
    assert torch.tensor([torch.tensor(1.5, requires_grad=True)]).requires_grad is False
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        torch.tensor([torch.ones(2), torch.ones(2)])
    with pytest.raises(RuntimeError, match="overflow"):
        torch.tensor([torch.tensor(300)], dtype=torch.int8)


@pytest.mark.parametrize("data", [[0.5] * 5000, [[1, 2, 3]] * 2000, [[[True]] * 10] * 100], ids=["1d", "2d", "3d"])
def test_python_calls_do_not_grow_with_the_list(data):
    torch.tensor(data)
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        torch.tensor(data)
    finally:
        sys.setprofile(None)
    assert count < 100


def test_numpy_numbers_and_subclasses_take_the_general_path():
    class Whole(int):
        pass

    assert torch.tensor([Whole(3), 4]).tolist() == [3, 4]
    assert torch.tensor([np.float64(1.5)]).dtype == torch.float64
    assert torch.tensor([np.int8(1)]).dtype == torch.int8


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])
def test_stack_of_small_tensors(dim):
    tensors = [torch.arange(6).reshape(2, 3) + 10 * i for i in range(4)]
    expected = np.stack([tensor.numpy() for tensor in tensors], dim)
    assert torch.stack(tensors, dim).tolist() == expected.tolist()
    assert torch.stack(tensors, dim).is_contiguous()
    assert torch.stack([tensor.T for tensor in tensors], dim).tolist() == [
        *np.stack([tensor.numpy().T for tensor in tensors], dim).tolist()
    ]


@pytest.mark.parametrize("shapes", [[(2,), (3,)], [(2, 3), (2, 4)], [(2,), (2, 1)], [(), (1,)], [(2, 3), (3, 2)]])
def test_stack_of_different_shapes(shapes):
    for dim in (0, 1):
        with pytest.raises((RuntimeError, IndexError), match="stack expects each tensor|Dimension out of range"):
            torch.stack([torch.zeros(shape) for shape in shapes], dim)


@pytest.mark.parametrize(
    "kind", [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64, np.bool_, np.complex64]
)
def test_numbers_of_numpy_have_their_dtype(kind):
    found = torch.tensor([[kind(1), kind(0)], [kind(1), kind(1)]])
    assert str(found.dtype).endswith(np.dtype(kind).name) and found.tolist() == [[1, 0], [1, 1]]


def test_numbers_of_numpy_in_another_dtype():
    x = [np.float64(1.5), np.float64(1e300)]
    assert torch.tensor(x, dtype=f32).tolist() == [1.5, float("inf")]
    assert torch.tensor([np.float32(1.5)], dtype=torch.float64).tolist() == [1.5]
    assert torch.tensor([np.int64(3), np.float32(1.5)]).tolist() == [3.0, 1.5]
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor(x, dtype=i64)
