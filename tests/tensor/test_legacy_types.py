"""Constants and old constructors that programs still use."""

import math

import numpy as np
import pytest

import torchlite as torch


def test_constants():
    assert (torch.pi, torch.e, torch.inf, torch.newaxis) == (math.pi, math.e, math.inf, None) and math.isnan(torch.nan)


def test_typed_constructors():
    x = torch.LongTensor([1, 2])
    assert (
        x.dtype is torch.int64
        and x.tolist() == [1, 2]
        and isinstance(x, torch.LongTensor)
        and not isinstance(x, torch.FloatTensor)
    )
    assert torch.FloatTensor(2, 3).shape == (2, 3) and torch.DoubleTensor([1.5]).dtype is torch.float64
    assert torch.is_signed(x) and torch.get_device(x) == -1


def test_new():
    x = torch.ones(2, dtype=torch.int64)
    for made, shape in (
        (x.new(), (0,)), (x.new(2, 3), (2, 3)), (x.new([1, 2]), (2,)), (x.new((2, 3)), (2,)), (x.new(size=(2,)), (2,)),
        (x.new(torch.Size([2, 3])), (2, 3)), (x.new(np.array([1, 2])), (2,)), (x.new([1.5]), (1,)),
    ):  # fmt: skip
        assert made.dtype is torch.int64 and made.shape == shape
    assert torch.ones(1, device="meta").new(2).is_meta and not torch.nn.Parameter(torch.ones(1)).new(3).requires_grad
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: meta was"):
        x.new(2, device="meta")
    for wrong in (1.5, "a"):
        with pytest.raises(TypeError, match=r"new\(\): "):
            x.new(wrong)


def test_legacy_constructors():
    y = torch.ones(2, 2)
    x = torch.tensor([])
    assert x.new(y).data_ptr() == torch.Tensor(y).data_ptr() == x.new(y.untyped_storage()).data_ptr() == y.data_ptr()
    assert x.new(2, 3).shape == x.new(size=(2, 3)).shape == torch.Tensor(torch.Size([2, 3])).shape == (2, 3)
    assert x.new([2, 3]).tolist() == x.new((2, 3)).tolist() == [2, 3] and x.new(()).shape == x.new().shape == (0,)
    assert torch.IntTensor(range(3)).tolist() == [0, 1, 2] and torch.IntTensor([1.5, 2]).tolist() == [1, 2]
    assert torch.Tensor(torch.ones(2, dtype=torch.int32)).dtype is torch.int32
    for wrong, error, message in (
        (lambda: x.new(torch.IntTensor([1])), TypeError, "dtype"),
        (lambda: x.new(torch.IntTensor([1])._typed_storage()), RuntimeError, "Expected a Storage of type Float"),
        (lambda: x.new(3.5), TypeError, r"new\(\): data must be a sequence \(got float\)"),
        (lambda: x.new("a"), TypeError, r"new\(\): invalid data type 'str'"),
        (lambda: torch.Tensor(None), TypeError, r"data must be a sequence \(got NoneType\)"),
        (lambda: torch.Tensor(2, "a"), TypeError, "failed to unpack the object at pos 2"),
        (lambda: torch.Tensor(2, device="meta"), RuntimeError, "expects device type: cpu but device type: meta"),
        (lambda: type("Mine", (torch.FloatTensor,), {}), TypeError, "'torch.FloatTensor' is not an acceptable base"),
    ):
        with pytest.raises(error, match=message):
            wrong()


def test_shapes_with_wrong_negative_lengths(device):
    x = torch.zeros(4, device=device)
    for call in (lambda: x.reshape(-2), lambda: x.view(-3), lambda: x.reshape(2, -2), lambda: x.reshape(-1, -2)):
        with pytest.raises(RuntimeError, match="invalid shape dimension -"):
            call()
    with pytest.raises(RuntimeError, match=r"t_\(\) expects a tensor with <= 2 dimensions, but self is 3D"):
        torch.zeros(3, 3, 3, device=device).t_()


def test_to_dense_of_a_dense_tensor_returns_it():
    x = torch.ones(2, requires_grad=True)
    assert x.to_dense() is x and x.to_dense(torch.float64).dtype is torch.float64


def test_legacy_constructors_ignore_the_default_device():
    """They are on the CPU, whatever the default device; `new` and `torch.Tensor` of a tensor follow the tensor."""
    with torch.device("meta"):
        on_cpu = (
            torch.FloatTensor(1, 2), torch.LongTensor([1, 2]), torch.BoolTensor(3), torch.FloatTensor(torch.Size([2])),
            torch.HalfTensor(), torch.Tensor(1, 2), torch.Tensor([1, 2]), torch.Tensor(),
            torch.nn.Parameter(torch.Tensor(2)), torch.zeros(1, device="cpu").new(2, 3),
        )  # fmt: skip
        assert {t.device.type for t in on_cpu} == {"cpu"}
        on_meta = (torch.zeros(1).new(2, 3), torch.zeros(1).new(), torch.Tensor(torch.ones(2)), torch.nn.Parameter())
        assert {t.device.type for t in on_meta} == {"meta"}
        with pytest.raises(TypeError, match="device=cpu \\(got torch.float32, device=meta\\)"):
            torch.FloatTensor(torch.ones(2))
        with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: meta"):
            torch.Tensor(2, device="meta")
    torch.set_default_device("meta")
    try:
        assert torch.FloatTensor(2).device.type == torch.Tensor([1.0]).device.type == "cpu"
    finally:
        torch.set_default_device(None)
