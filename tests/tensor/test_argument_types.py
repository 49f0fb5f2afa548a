"""Arguments of unusual types: NumPy's numbers in lists, sizes, indices and devices (recorded from torch 2.13)."""

from __future__ import annotations

import re

import numpy as np
import pytest

import torchlite as torch

ANSWERS = [
    ("torch.float64 == np.dtype('float64')", "False"),
    ("torch.float64 != np.dtype('float64')", "True"),
    ("torch.float32 == np.float32", "False"),
    ("torch.float32 == 'float32'", "False"),
    ("torch.float32 == float", "False"),
    ("torch.float64 == float", "False"),
    ("np.dtype('float32') in {torch.float32: 1}", "False"),
    ("torch.nn.functional.interpolate(m[None,None], size=torch.tensor(4)).shape", "torch.Size([1, 1, 4, 4])"),
    (
        "torch.nn.functional.interpolate(m[None,None], size=[torch.tensor(4),torch.tensor(4)]).shape",
        "torch.Size([1, 1, 4, 4])",
    ),
    ("torch.nn.functional.interpolate(m[None,None], size=[np.int64(4),np.int64(4)]).shape", "torch.Size([1, 1, 4, 4])"),
    ("torch.nn.functional.interpolate(m[None,None], size=np.int64(4)).shape", "torch.Size([1, 1, 4, 4])"),
    ("torch.nn.functional.interpolate(m[None,None], scale_factor=2).shape", "torch.Size([1, 1, 4, 4])"),
    ("torch.nn.functional.pad(m, (torch.tensor(1), 1)).shape", "torch.Size([2, 4])"),
    ("torch.Size(torch.tensor([1,2]))", "torch.Size([1, 2])"),
    ("torch.Size([torch.tensor(2), 3])", "torch.Size([2, 3])"),
    ("torch.Size(np.array([1,2]))", "torch.Size([1, 2])"),
    ("torch.Size([np.int64(2)])", "torch.Size([2])"),
    ("torch.device('cpu', 0)", "device(type='cpu', index=0)"),
    ("torch.device(type='cuda')", "device(type='cuda')"),
    ("torch.use_deterministic_algorithms(False)", "None"),
    ("torch.tril_indices(3, 3, device='meta')", "tensor(..., device='meta', size=(2, 6), dtype=torch.int64)"),
    ("torch.triu_indices(3, 3, device='meta')", "tensor(..., device='meta', size=(2, 6), dtype=torch.int64)"),
    (
        "torch.tril_indices(3, 3, 1, dtype=torch.int32, device='meta')",
        "tensor(..., device='meta', size=(2, 8), dtype=torch.int32)",
    ),
    ("torch.tril_indices(0, 3, device='meta').shape", "torch.Size([2, 0])"),
    ("torch.tensor([1, np.float64(2)]).dtype", "torch.float64"),
    ("torch.tensor([np.float32(1), 1.]).dtype", "torch.float32"),
    ("torch.tensor([1., np.float32(1)]).dtype", "torch.float32"),
    ("torch.tensor([np.int32(1), 1.]).dtype", "torch.float32"),
    ("torch.tensor([1., np.int32(1)]).dtype", "torch.float32"),
    ("torch.tensor([np.complex64(1), 1.]).dtype", "torch.complex64"),
    ("torch.tensor([1., np.complex64(1)]).dtype", "torch.complex64"),
    ("torch.tensor([1j, np.float64(1)]).dtype", "torch.complex128"),
    ("torch.tensor([np.float64(1), 1j]).dtype", "torch.complex128"),
    ("torch.tensor([np.bool_(True), np.bool_(False)])", "tensor([ True, False])"),
    ("torch.tensor([True, np.bool_(True)])", "tensor([True, True])"),
    ("torch.tensor([np.int8(1), np.int64(2)]).dtype", "torch.int64"),
    ("torch.tensor([np.int64(1), np.int8(2)]).dtype", "torch.int64"),
    ("torch.tensor([np.uint8(1), 2]).dtype", "torch.int64"),
    ("torch.tensor([np.float16(1), np.float32(2)]).dtype", "torch.float32"),
    ("torch.tensor([np.float16(1), 2]).dtype", "torch.float16"),
    ("torch.tensor([np.float16(1), True]).dtype", "torch.float16"),
    ("torch.tensor([[1, 2], [3, np.float64(4)]]).dtype", "torch.float64"),
    ("torch.tensor([[np.float32(1)], [2]]).dtype", "torch.float32"),
    ("torch.tensor([np.float64(1), torch.tensor(1.)]).dtype", "torch.float64"),
    ("torch.tensor([torch.tensor(1.), np.float64(1)]).dtype", "torch.float64"),
    ("torch.tensor([torch.tensor(1), 2.5]).dtype", "torch.float32"),
    ("torch.tensor([torch.tensor(1.5), 2]).dtype", "torch.float32"),
    ("torch.tensor([torch.tensor(True), 2]).dtype", "torch.int64"),
    ("torch.tensor([torch.tensor(1, dtype=torch.int8), torch.tensor(2)]).dtype", "torch.int64"),
    ("torch.tensor(np.float32(1)).dtype", "torch.float32"),
    ("torch.tensor(np.bool_(True)).dtype", "torch.bool"),
    ("torch.tensor([np.array([1.,2]), np.array([1,2])]).dtype", "torch.float64"),
    ("torch.tensor([np.array([1,2]), np.array([1.,2])]).dtype", "torch.float64"),
    ("torch.tensor([np.array([1,2],dtype=np.int32), [1.,2]]).dtype", "torch.float32"),
    ("torch.tensor((np.float64(1),)).dtype", "torch.float64"),
    ("torch.as_tensor([1, np.float64(2)]).dtype", "torch.float64"),
    ("torch.asarray([1, np.float64(2)]).dtype", "torch.float64"),
    ("torch.asarray([np.float32(1), 1.]).dtype", "torch.float32"),
    ("m.new_tensor([1, np.float64(2)]).dtype", "torch.float32"),
    ("torch.tensor([1, np.float64(2)], dtype=torch.int32)", "tensor([1, 2], dtype=torch.int32)"),
    ("torch.Tensor([1, np.float64(2)]).dtype", "torch.float32"),
    ("torch.FloatTensor([np.int32(1), 1.]).dtype", "torch.float32"),
    ("m[...,...]", "tensor([[1., 1.],        [1., 1.]])"),
    ("m[...,0,...]", "tensor([1., 1.])"),
    ("torch.ones(2,3,4)[...,0,...].shape", "torch.Size([2, 3])"),
    ("torch.ones(2,3,4)[0,...,...].shape", "torch.Size([3, 4])"),
    ("torch.ones(2,3,4)[...,None,...].shape", "torch.Size([2, 3, 4, 1])"),
    ("torch.ones(2,3,4)[...,[0,1],...].shape", "torch.Size([2, 3, 2])"),
    ("torch.ones(2,3,4)[...,torch.tensor([0,1]),...].shape", "torch.Size([2, 3, 2])"),
    ("torch.from_numpy(np.ones((3,0))[::-1])", "tensor([], size=(3, 0), dtype=torch.float64)"),
    ("torch.from_numpy(np.ones((0,))[::-1])", "tensor([], dtype=torch.float64)"),
    ("torch.tensor([1+2j], dtype=torch.complex64) == np.complex128(1+2j)", "tensor([True])"),
    ("torch.tensor([1.5]) == np.float32(1.5)", "tensor([True])"),
    ("torch.tensor([1.5]) * np.float64(1.5)", "tensor([2.2500])"),
    ("torch.tensor([1]) * np.float64(1.5)", "tensor([1.5000])"),
    ("torch.tensor([1]) == np.float64(1.5)", "tensor([False])"),
    ("np.float64(2) * torch.tensor([1.5])", "tensor([3.])"),
    ("torch.tensor([True]) == np.bool_(True)", "tensor([True])"),
    ("torch.tensor([1]) == np.bool_(True)", "tensor([True])"),
    ("m @ np.ones((2,2))", "tensor([[2., 2.],        [2., 2.]], dtype=torch.float64)"),
    ("m @ np.ones((2,2), dtype=np.float32)", "tensor([[2., 2.],        [2., 2.]])"),
    ("m * np.ones((2,2))", "tensor([[1., 1.],        [1., 1.]], dtype=torch.float64)"),
    ("m.double() @ np.ones((2,2), dtype=np.float32)", "tensor([[2., 2.],        [2., 2.]], dtype=torch.float64)"),
    ("m @ np.ones(2)", "tensor([2., 2.], dtype=torch.float64)"),
    ("torch.ones(2,2,dtype=torch.int64) @ np.ones((2,2))", "tensor([[2., 2.],        [2., 2.]], dtype=torch.float64)"),
]
ERRORS = [
    ("torch.nn.functional.interpolate(m[None,None], size=4.0)", TypeError, ""),
    (
        "torch.nn.functional.interpolate(m[None,None], size=(4.0,4))",
        TypeError,
        "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tup",
    ),
    (
        "torch.nn.functional.interpolate(m[None,None], size=(4,4.0), mode='bilinear')",
        TypeError,
        "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tup",
    ),
    ("torch.nn.functional.interpolate(m[None,None], size=torch.tensor([4,4])).shape", TypeError, ""),
    ("torch.nn.functional.interpolate(m[None,None], scale_factor=(2,'a')).shape", TypeError, ""),
    ("torch.nn.functional.interpolate(m[None,None], size=torch.tensor(4.))", TypeError, ""),
    ("torch.nn.functional.interpolate(m[None,None], size='a')", TypeError, ""),
    ("torch.nn.functional.interpolate(m[None,None], size=True).shape", TypeError, ""),
    ("torch.nn.functional.interpolate(m[None], size=4.0, mode='linear')", TypeError, ""),
    (
        "torch.nn.functional.interpolate(m[None,None,None], size=(4,4,4.), mode='trilinear')",
        TypeError,
        "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tup",
    ),
    ("torch.nn.functional.interpolate(m[None,None], size=4.0, mode='area')", TypeError, ""),
    ("torch.nn.functional.interpolate(m[None,None], size=4.0, mode='bicubic')", TypeError, ""),
    ("torch.nn.functional.interpolate(m[None,None], size=4.0, mode='nearest-exact')", TypeError, ""),
    ("torch.nn.Upsample(size=4.0)(m[None,None])", TypeError, ""),
    ("torch.nn.functional.adaptive_avg_pool2d(m[None,None], 2.0)", TypeError, "object of type 'float' has no len()"),
    (
        "torch.nn.functional.adaptive_max_pool2d(m[None,None], (2.0, 1))",
        TypeError,
        "adaptive_max_pool2d(): argument 'output_size' (position 2) must be tup",
    ),
    ("torch.nn.functional.unfold(m[None,None], 2.0)", TypeError, ""),
    (
        "torch.nn.functional.max_pool2d(m[None,None], 2.0)",
        TypeError,
        "max_pool2d(): argument 'kernel_size' (position 2) must be tuple of int",
    ),
    ("torch.nn.functional.avg_pool2d(m[None,None], 2, padding=0.5)", TypeError, ""),
    (
        "torch.nn.functional.pad(m, (1.0, 1))",
        TypeError,
        "pad(): argument 'pad' (position 2) must be tuple of ints, but found el",
    ),
    ("torch.Size(torch.tensor(2))", TypeError, "iteration over a 0-d tensor"),
    ("torch.Size([torch.tensor(2.)])", TypeError, "torch.Size() takes an iterable of 'int' (item 0 is 'Tensor')"),
    ("torch.Size([2.0])", TypeError, "torch.Size() takes an iterable of 'int' (item 0 is 'float')"),
    ("torch.Size('ab')", TypeError, "torch.Size() takes an iterable of 'int' (item 0 is 'str')"),
    ("torch.Size(3)", TypeError, "'int' object is not iterable"),
    ("torch.Size(m)", TypeError, "torch.Size() takes an iterable of 'int' (item 0 is 'Tensor')"),
    ("torch.device(-1)", RuntimeError, "Device index must not be negative"),
    ("torch.device('cpu', -1)", RuntimeError, "Device index must not be negative"),
    ("torch.device('cuda', -1)", RuntimeError, "Device index must not be negative"),
    ("torch.device('cuda:-1')", RuntimeError, "Invalid device string: 'cuda:-1'"),
    ("torch.device(1.0)", TypeError, ""),
    ("torch.device(True)", TypeError, ""),
    ("torch.device(None)", TypeError, ""),
    ("torch.device('cuda', 1.0)", TypeError, "device(): argument 'index' (position 2) must be int, not float"),
    (
        "torch.device('cuda:0', 1)",
        RuntimeError,
        "type (string) must not include an index because index was passed expli",
    ),
    ("torch.device(index=0)", TypeError, ""),
    (
        "torch.use_deterministic_algorithms(1)",
        TypeError,
        "_set_deterministic_algorithms(): argument 'mode' (position 1) must be ",
    ),
    (
        "torch.use_deterministic_algorithms('yes')",
        TypeError,
        "_set_deterministic_algorithms(): argument 'mode' (position 1) must be ",
    ),
    (
        "torch.use_deterministic_algorithms(True, warn_only=1)",
        TypeError,
        "_set_deterministic_algorithms(): argument 'warn_only' must be bool, no",
    ),
    (
        "torch.use_deterministic_algorithms(None)",
        TypeError,
        "_set_deterministic_algorithms(): argument 'mode' (position 1) must be ",
    ),
    ("torch.tensor([np.bool_(True), 1])", TypeError, "'numpy.bool' object cannot be interpreted as an integer"),
    ("torch.tensor([1, np.bool_(True)])", TypeError, "'numpy.bool' object cannot be interpreted as an integer"),
    ("torch.tensor([np.array(1.), 2]).dtype", TypeError, "len() of unsized object"),
    ("torch.tensor([np.str_('a')])", ValueError, "too many dimensions 'str'"),
    (
        "torch.tensor([np.longdouble(1)])",
        TypeError,
        "can't convert np.ndarray of type numpy.longdouble. The only supported ",
    ),
    ("torch.ones(2,3,4)[...,...,0].shape", IndexError, ""),
    (
        "torch.ones(2,3,4)[...,...,...,0].shape",
        IndexError,
        "Dimension out of range (expected to be in range of [-3, 2], but got 5)",
    ),
    (
        "torch.from_numpy(np.ones(1)[::-1]).stride()",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    (
        "torch.from_numpy(np.ones((1,3))[::-1]).stride()",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    (
        "torch.from_numpy(np.ones(3)[::-1])",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    (
        "torch.as_tensor(np.ones(1)[::-1])",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    (
        "torch.tensor(np.ones(3)[::-1])",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    (
        "torch.as_tensor(np.ones(3)[::-1])",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    (
        "torch.asarray(np.ones(3)[::-1])",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    (
        "torch.asarray(np.ones(1)[::-1])",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    (
        "torch.from_numpy(np.lib.stride_tricks.as_strided(np.ones(4), (1,2), (-8, 8))).stride()",
        ValueError,
        "At least one stride in the given numpy array is negative, and tensors ",
    ),
    ("m @ 2", TypeError, ""),
    ("m @ [1,2]", TypeError, "unsupported operand type(s) for @: 'Tensor' and 'list'"),
]


def _names() -> dict[str, object]:
    return {"torch": torch, "np": np, "m": torch.ones(2, 2)}


@pytest.mark.parametrize(("expression", "answer"), ANSWERS)
@pytest.mark.filterwarnings("ignore")
def test_answers(expression, answer):
    assert repr(eval(expression, _names())).replace("\n", "") == answer


@pytest.mark.parametrize(("expression", "kind", "words"), ERRORS)
@pytest.mark.filterwarnings("ignore")
def test_errors(expression, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        eval(expression, _names())


@pytest.mark.parametrize("index", [(..., ...), (..., 0, ...), (0, ..., ...), (..., [1], ...), (..., None, ...)])
def test_writes_with_several_ellipses(index, device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    flat = tuple(i for n, i in enumerate(index) if i is not ... or ... not in index[:n])
    y = x.clone()
    x[index] = -1.0
    y[flat] = -1.0
    assert torch.equal(x, y) and torch.equal(x[index], y[flat])
