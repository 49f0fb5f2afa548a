"""Quantized tensors: memory, devices, copies, and ops that they lack."""

import copy
import pickle

import pytest

import torchlite as torch


@pytest.fixture
def quantized(device):
    x = torch.tensor([[-1.0, 0.0, 1.26], [2.5, 100.0, -3.0]], device=device)
    return torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)


def test_views_share_memory_and_count_writes(quantized):
    view, before = quantized.view(-1)[1:3], quantized._version
    view[0] = 2.0
    assert quantized.dequantize()[0].tolist() == pytest.approx([-1.0, 2.0, 1.3])
    assert view._version == 1 and quantized._version == before


def test_tensors_move_and_compare(quantized, device):
    there = quantized.cpu()
    assert there.device.type == "cpu" and there.q_scale() == 0.1
    assert torch.equal(there.to(device), quantized) and quantized.to(device) is quantized
    assert quantized.type() == f"torch.quantized.{'' if device == 'cpu' else device + '.'}QUInt8Tensor"
    assert not torch.equal(quantized, torch.quantize_per_tensor(quantized.dequantize(), 0.1, 11, torch.quint8))


@pytest.mark.parametrize("copied", [copy.deepcopy, torch.clone, lambda q: pickle.loads(pickle.dumps(q))])
def test_copies_are_equal_and_separate(copied, quantized):
    found = copied(quantized)
    assert torch.equal(found, quantized) and type(found) is type(quantized)
    found[0, 0] = 5.0
    assert not torch.equal(found, quantized)


def test_channels_are_checked_and_copied(device):
    x, scales = torch.ones(2, 3, device=device), torch.tensor([0.5, 0.25], device=device)
    zero_points = torch.zeros(2, dtype=torch.int64, device=device)
    q = torch.quantize_per_channel(x, scales, zero_points, 0, torch.qint8)
    assert q.int_repr().tolist() == [[2, 2, 2], [4, 4, 4]] and q.q_per_channel_axis() == 0
    assert q.q_per_channel_zero_points().dtype is torch.int64 and q.qscheme() is torch.per_channel_affine
    assert torch.equal(q.clone(), q) and torch.equal(q[1], torch.quantize_per_tensor(x[1], 0.25, 0, torch.qint8))
    with pytest.raises(RuntimeError, match="only on uniformly quantized tensor"):
        q.t()
    with pytest.raises(RuntimeError, match="number of elements in scales and zero_points must match"):
        torch.quantize_per_channel(x, scales, zero_points[:1], 0, torch.qint8)


def test_integers_make_a_tensor(device):
    integers = torch.tensor([1, 3], dtype=torch.uint8, device=device)
    q = torch._make_per_tensor_quantized_tensor(integers, 0.5, 1)
    assert q.dequantize().tolist() == [0.0, 1.0]
    integers[0] = 9
    assert q.int_repr().tolist() == [1, 3]
    channels = torch._empty_per_channel_affine_quantized(
        [1, 2, 3, 3], scales=torch.tensor([0.5, 2.0], device=device), zero_points=torch.tensor([0, 1], device=device),
        axis=1, dtype=torch.qint8, device=device, memory_format=torch.channels_last,
    )  # fmt: skip
    assert channels.q_per_channel_scales().tolist() == [0.5, 2] and channels.q_per_channel_axis() == 1
    assert channels.dtype is torch.qint8 and channels.is_contiguous(memory_format=torch.channels_last)
    empty = torch._empty_affine_quantized([2, 3], scale=0.1, zero_point=4, dtype=torch.qint32, device=device)
    assert (empty.shape, empty.q_zero_point(), empty.dtype) == ((2, 3), 4, torch.qint32)


def test_special_numbers_become_limits(device):
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30], device=device)
    limits = {torch.quint8: [255, 255, 0, 255], torch.qint8: [127, 127, -128, 127],
              torch.qint32: [-(2**31), 2**31 - 1, -(2**31), 2**31 - 1]}  # fmt: skip
    for dtype, expected in limits.items():
        assert torch.quantize_per_tensor(x, 0.1, 10, dtype).int_repr().tolist() == expected


def test_no_gradients(quantized):
    x = torch.ones(2, requires_grad=True)
    assert not torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        quantized.requires_grad_()


def test_absent_ops_say_so(quantized):
    where = {"cpu": "CPU", "opencl": "OpenCL", "cuda": "CUDA"}[quantized.device.type]
    for call in (lambda: quantized.exp(), lambda: quantized @ quantized.t(), lambda: quantized.add_(1)):
        with pytest.raises(NotImplementedError, match=f"arguments from the 'Quantized{where}' backend"):
            call()
    with pytest.raises(TypeError, match="torch.quantize_per_tensor makes tensors of this dtype"):
        torch.zeros(2, dtype=torch.qint8)


def test_sparse_and_quantized_tensors_keep_their_own_rules(quantized, device):
    sparse = torch.eye(2, device=device).to_sparse()
    assert (sparse + sparse).to_dense().tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert torch.relu(quantized).is_quantized and sparse.cpu().is_sparse


def test_resizing_and_other_dtypes(device):
    tensor = torch.quantize_per_tensor(torch.arange(6.0, device=device).reshape(2, 3), 0.5, 1, torch.quint8)
    assert tensor.view(torch.uint8).tolist() == [[1, 3, 5], [7, 9, 11]]
    assert tensor.as_strided_((2, 2), (1, 3)).dequantize().tolist() == [[0, 3], [1, 4]]
    assert tensor.as_strided_((6,), (1,)).resize_(4, memory_format=torch.contiguous_format) is tensor
    assert tensor.resize_(2, 2).int_repr().tolist() == [[1, 3], [5, 7]] and tensor.q_scale() == 0.5
    channels = torch.quantize_per_channel(
        torch.ones(2, 2, device=device), torch.ones(2, device=device), torch.zeros(2, device=device), 0, torch.qint8
    )
    with pytest.raises(RuntimeError, match="only resize quantized tensors with per-tensor"):
        channels.resize_(1)
    with pytest.raises(RuntimeError, match="uniformly quantized"):
        channels.as_strided_((1,), (1,))
    with pytest.raises(RuntimeError, match="load_scalar: invalid type"):
        tensor.apply_(lambda x: x)
    assert channels.shape == (2, 2) and tensor.shape == (2, 2)


def test_padding_quantizes_its_number(device):
    numbers = torch.tensor([[1.0, 2.0, -0.3]], device=device)
    pad = torch.nn.functional.pad
    for dtype, limits in ((torch.quint8, (0, 255)), (torch.qint8, (-128, 127)), (torch.qint32, (-9990, 10010))):
        q = torch.quantize_per_tensor(numbers, 0.1, 10, dtype)
        for value, level in ((0.5, 15), (None, 10), (0.57, 16), (True, 20), (-1e3, limits[0]), (1e3, limits[1])):
            found = pad(q, (1, 2), value=value)
            assert found.dtype is dtype and found.q_zero_point() == 10
            assert found.int_repr().tolist() == [[level, 20, 30, 7, level, level]]
        for found in (torch.nn.ConstantPad1d((1, -1), 0.5)(q), torch.constant_pad_nd(q, (1, -1), 0.5)):
            assert found.int_repr().tolist() == [[15, 20, 30]]
        assert torch.nn.ZeroPad1d(1)(q).int_repr().tolist() == [[10, 20, 30, 7, 10]]
        assert pad(q, (1, 1), "reflect").int_repr().tolist() == [[30, 20, 30, 7, 30]]
    wide = torch._make_per_tensor_quantized_tensor(torch.tensor([2**28 + 1], dtype=torch.int32, device=device), 0.5, 0)
    assert pad(wide, (1, 1), value=3.0).int_repr().tolist() == [6, 2**28 + 1, 6]
    channels = torch.quantize_per_channel(numbers, torch.tensor([0.1]), torch.tensor([3]), 0, torch.quint8)
    with pytest.raises(RuntimeError, match="Only per-tensor padding is supported"):
        pad(channels, (1, 1), value=0.5)


CHANNEL_PARTS = {
    "q[1]": lambda q: q[1],
    "q[0][1]": lambda q: q[0][1],
    "q[:, 1]": lambda q: q[:, 1],
    "q[:, 1:3]": lambda q: q[:, 1:3],
    "q[:, 1:2]": lambda q: q[:, 1:2],
    "q[..., 1]": lambda q: q[..., 1],
    "q[1, ..., ::2, :]": lambda q: q[1, ..., ::2, :],
    "q[None, 0, :, None, -2:]": lambda q: q[None, 0, :, None, -2:],
    "narrow": lambda q: q.narrow(2, 1, 2),
    "unbind": lambda q: q.unbind(1)[2],
    "split": lambda q: q.split([1, 2], 1)[1],
    "chunk": lambda q: q.chunk(2, -1)[1],
}


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("name", CHANNEL_PARTS)
def test_parts_of_a_tensor_with_channels(name, axis):
    x = torch.rand(2, 3, 4, 5)
    scales, zero_points = torch.rand(x.shape[axis]) + 0.1, torch.randint(0, 9, (x.shape[axis],))
    q = torch.quantize_per_channel(x, scales, zero_points, axis, torch.quint8)
    part, numbers = CHANNEL_PARTS[name](q), CHANNEL_PARTS[name](q.dequantize())
    assert part.shape == numbers.shape and torch.equal(part.dequantize(), numbers)
    part._values.fill_(0)  # the parts share memory
    assert torch.equal(CHANNEL_PARTS[name](q.int_repr()), torch.zeros(part.shape, dtype=torch.uint8))


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("index", [1, (0, 2), (slice(None), 1), (..., slice(1, 3)), slice(None), (0, slice(0, 2), 3)])
def test_numbers_are_written_to_channels(axis, index):
    x, y = torch.rand(2, 3, 4), torch.rand(2, 3, 4)
    scales, zero_points = torch.rand(x.shape[axis]) / 9 + 0.01, torch.randint(0, 9, (x.shape[axis],))
    q, other = (torch.quantize_per_channel(each, scales, zero_points, axis, torch.quint8) for each in (x, y))
    expected = q.int_repr()
    expected[index] = other.int_repr()[index]
    q[index] = y[index]
    assert torch.equal(q.int_repr(), expected)


def test_a_tensor_with_channels_takes_no_tensors_as_indices():
    q = torch.quantize_per_channel(torch.rand(2, 3), torch.ones(2), torch.zeros(2).int(), 0, torch.quint8)
    with pytest.raises(RuntimeError, match="uniformly quantized"):
        q[torch.tensor([0])]
    for index, message in (((0, 0, 0), "too many indices"), ((..., 0, ...), "single ellipsis")):
        with pytest.raises(IndexError, match=message):
            q[index]


def test_strides_of_another_memory_format():
    q = torch.quantize_per_tensor(torch.rand(10, 2, 1, 1), 0.1, 0, torch.quint8)
    assert q.to(memory_format=torch.channels_last).stride() == (2, 1, 2, 2)
    assert q.contiguous(memory_format=torch.channels_last) is q
    assert q.to(memory_format=torch.preserve_format) is q
