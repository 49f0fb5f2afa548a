"""repr of tensors. The expected texts were printed by PyTorch 2.13 for the same values; tests/oracle compares thousands
more live.
"""

import numpy as np
import pytest

import torchlite as torch
from torchlite._tensor import printing as _printing

CASES = {
    "tensor(1.5000)": 1.5,
    "tensor(3)": 3,
    "tensor(True)": True,
    "tensor([])": np.zeros(0, np.float32),
    "tensor([], size=(2, 0))": np.zeros((2, 0), np.float32),
    "tensor([], size=(0, 3), dtype=torch.int64)": np.zeros((0, 3), np.int64),
    "tensor([1., 2.])": [1.0, 2.0],
    "tensor([1.0000, 2.5000])": [1.0, 2.5],
    "tensor([1., nan])": [1.0, float("nan")],
    "tensor([    nan,     inf, -1.5000])": [float("nan"), float("inf"), -1.5],
    "tensor([1.0000e-05, 1.0000e+00])": [1e-5, 1.0],
    "tensor([1.0000e+00, 1.0000e+06])": [1.0, 1e6],
    "tensor([ 1, -2, 30])": [1, -2, 30],
    "tensor([ True, False])": [True, False],
    "tensor([1.+2.j, 3.-4.j])": [1 + 2j, 3 - 4j],
    "tensor([0.5000+1.j, 1.0000-2.j])": [0.5 + 1j, 1 - 2j],
    "tensor([1., 2.], dtype=torch.float64)": np.array([1.0, 2.0]),
    "tensor([1, 2], dtype=torch.uint8)": np.array([1, 2], np.uint8),
    "tensor([1, 2], dtype=torch.int32)": np.array([1, 2], np.int32),
    "tensor([1., 2.], dtype=torch.float16)": np.array([1, 2], np.float16),
    "tensor([0., -0.])": [0.0, -0.0],
    "tensor([[1, 2],\n        [3, 4]])": [[1, 2], [3, 4]],
    "tensor([[[1],\n         [2]],\n\n        [[3],\n         [4]]])": [[[1], [2]], [[3], [4]]],
    "tensor([   0,    1,    2,  ..., 1098, 1099, 1100])": np.arange(1101),
    "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
    "        18, 19, 20, 21, 22, 23, 24])": np.arange(25),
}


@pytest.mark.parametrize("text", CASES)
def test_repr(text):
    assert repr(torch.tensor(CASES[text])) == text


def test_two_dimensional_summary():
    assert repr(torch.tensor(np.arange(2000.0, dtype=np.float32).reshape(40, 50))) == (
        "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 4.7000e+01, 4.8000e+01,\n"
        "         4.9000e+01],\n"
        "        [5.0000e+01, 5.1000e+01, 5.2000e+01,  ..., 9.7000e+01, 9.8000e+01,\n"
        "         9.9000e+01],\n"
        "        [1.0000e+02, 1.0100e+02, 1.0200e+02,  ..., 1.4700e+02, 1.4800e+02,\n"
        "         1.4900e+02],\n"
        "        ...,\n"
        "        [1.8500e+03, 1.8510e+03, 1.8520e+03,  ..., 1.8970e+03, 1.8980e+03,\n"
        "         1.8990e+03],\n"
        "        [1.9000e+03, 1.9010e+03, 1.9020e+03,  ..., 1.9470e+03, 1.9480e+03,\n"
        "         1.9490e+03],\n"
        "        [1.9500e+03, 1.9510e+03, 1.9520e+03,  ..., 1.9970e+03, 1.9980e+03,\n"
        "         1.9990e+03]])"
    )


def test_suffixes():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert repr(x) == "tensor([1., 2.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 4.], grad_fn=<MulBackward0>)"
    assert repr(torch.Parameter(torch.tensor([1.0]))) == "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert repr(torch.tensor([1.0, 2.0]).to("meta")) == "tensor(..., device='meta', size=(2,))"
    assert repr(torch.tensor([1, 2]).to("meta")) == "tensor(..., device='meta', size=(2,), dtype=torch.int64)"


def test_long_suffixes_wrap():
    x = torch.tensor(np.linspace(0, 1, 9), requires_grad=True)
    assert repr(x) == (
        "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000],\n"
        "       dtype=torch.float64, requires_grad=True)"
    )


def test_a_subclass_shows_its_name():
    class Marked(torch.Tensor):
        pass

    assert repr(torch.tensor([1.0]).as_subclass(Marked)) == "Marked([1.])"


def test_bfloat16():
    assert repr(torch.tensor([1.0, 2.5]).bfloat16()) == "tensor([1.0000, 2.5000], dtype=torch.bfloat16)"


def test_options():
    x = torch.tensor([1.23456, 1000.5])
    with _printing.printoptions(precision=2):
        assert repr(x) == "tensor([   1.23, 1000.50])"
    with _printing.printoptions(sci_mode=True):
        assert repr(x) == "tensor([1.2346e+00, 1.0005e+03])"
    with _printing.printoptions(profile="short"):
        assert repr(x) == "tensor([   1.23, 1000.50])"
    with _printing.printoptions(threshold=1, edgeitems=1, linewidth=20):
        assert repr(torch.tensor([1, 2, 3])) == "tensor([1,  ..., 3])"
    with _printing.printoptions(edgeitems=0, threshold=1):
        assert repr(torch.tensor([1, 2])) == "tensor([...], size=(2,))"
    assert repr(x) == "tensor([   1.2346, 1000.5000])"
    assert _printing.get_printoptions() == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }


def test_format():
    assert f"{torch.tensor(1.23456):.2f}" == "1.23"
    assert f"{torch.tensor(7):4d}" == "   7"
    assert f"{torch.tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError):
        f"{torch.tensor([1.0]):.2f}"


def test_names_of_types():
    assert [repr(v) for v in (torch.float32, torch.bool, torch.Size([2, 3]), torch.device("cpu"), torch.strided)] == [
        "torch.float32",
        "torch.bool",
        "torch.Size([2, 3])",
        "device(type='cpu')",
        "torch.strided",
    ]


def test_other_text_in_place_of_the_numbers():
    from torchlite._tensor_str import _str, _str_intern

    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    for text in (_str(x, tensor_contents="XX"), _str_intern(x, tensor_contents="XX"), x.__repr__(tensor_contents="XX")):
        assert text == "tensor(XX, dtype=torch.float64, requires_grad=True)"
    assert _str_intern(torch.ones(2, device="meta"), tensor_contents="XX") == "tensor(XX, device='meta', size=(2,))"
    assert _str_intern(torch.ones(2, 0), tensor_contents="XX") == "tensor(XX, size=(2, 0))"
    assert _str_intern(x) == repr(x)
