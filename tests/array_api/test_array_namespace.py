"""The Array API standard (2024.12) on `torchlite` itself, and on what `x.__array_namespace__()` gives. The answers are
NumPy's, whose main namespace follows the standard. `python -m tests.array_api` runs the standard's own suite.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import torchlite as torch
from tests.array_api.suite import expected

SPACE = torch.ones(1).__array_namespace__()
# The standard's functions, with the arguments that must have these names.
FUNCTIONS = {
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan "
    "log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan "
    "tanh trunc add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide "
    "equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor "
    "maximum minimum multiply nextafter not_equal pow remainder subtract can_cast finfo iinfo result_type isdtype "
    "nonzero matmul where broadcast_arrays from_dlpack unique_all unique_counts unique_inverse unique_values "
    "matrix_transpose": "",
    "clip": "min max", "astype": "copy device", "arange": "stop step dtype device", "asarray": "dtype device copy",
    "empty": "shape dtype device", "zeros": "shape dtype device", "ones": "shape dtype device", "eye": "k dtype device",
    "full": "shape fill_value dtype device", "linspace": "num dtype device endpoint", "meshgrid": "indexing",
    "empty_like zeros_like ones_like": "dtype device", "full_like": "fill_value dtype device", "tril triu": "k",
    "take take_along_axis flip": "axis", "tensordot": "axes", "vecdot": "axis", "broadcast_to": "shape",
    "concat stack unstack": "axis", "expand_dims squeeze": "axis", "permute_dims": "axes", "repeat": "axis",
    "reshape": "shape copy", "roll": "shift axis", "argmax argmin": "axis keepdims", "searchsorted": "side sorter",
    "count_nonzero": "axis keepdims", "sort argsort": "axis descending stable", "diff": "axis n prepend append",
    "cumulative_sum cumulative_prod": "axis dtype include_initial", "max min mean": "axis keepdims",
    "prod sum": "axis dtype keepdims", "std var": "axis correction keepdims", "all any": "axis keepdims",
    "linalg.cholesky": "upper", "linalg.cross": "axis", "linalg.diagonal": "offset",
    "linalg.matrix_norm": "keepdims ord",
    "linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.matmul linalg.matrix_power linalg.matrix_transpose "
    "linalg.outer linalg.slogdet linalg.solve linalg.svdvals": "", "linalg.matrix_rank linalg.pinv": "rtol",
    "linalg.qr": "mode", "linalg.svd": "full_matrices", "linalg.tensordot": "axes", "linalg.trace": "offset dtype",
    "linalg.vecdot": "axis", "linalg.vector_norm": "axis keepdims ord", "fft.fftfreq fft.rfftfreq": "d dtype device",
    "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft": "n axis norm", "fft.fftshift fft.ifftshift": "axes",
    "fft.fftn fft.ifftn fft.rfftn fft.irfftn": "s axes norm",
}  # fmt: skip
NAMES = {name: words.split() for names, words in FUNCTIONS.items() for name in names.split()}


def _named(space, name):
    for part in name.split("."):
        space = getattr(space, part)
    return space


@pytest.mark.parametrize("space", [torch, SPACE], ids=["torchlite", "namespace"])
def test_every_name_is_there(space):
    for name, keywords in NAMES.items():
        function = _named(space, name)
        if keywords:
            assert set(keywords) <= set(inspect.signature(function).parameters), name
    for name in ("e", "inf", "nan", "newaxis", "pi", "bool", "int8", "uint64", "complex128", "__array_api_version__"):
        assert hasattr(space, name), name
    x = torch.ones(2, 3)
    assert x.mT.shape == (3, 2) and x.to_device("cpu") is x and x.device == torch.device("cpu")


def test_most_functions_are_the_same():
    for name in ("add", "sin", "astype", "unique_all", "reshape", "where", "argmax", "fft", "float32"):
        assert getattr(SPACE, name) is getattr(torch, name)
    with pytest.raises(ValueError, match="unknown version"):
        torch.ones(1).__array_namespace__(api_version="1999.12")
    assert torch.ones(1).__array_namespace__(api_version="2023.12") is SPACE


ARRAYS = {
    "a": np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]]),
    "b": np.array([[1.5, 2.5, 0.5], [-1.0, 4.0, 3.0]]),
    "i": np.array([[3, 1, 2], [0, 3, 1]]),
    "k": np.array([1, 0]),
    "h": np.array([[200, 100], [3, 4]], dtype=np.uint8),
    "s": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
    "v": np.array([3.0, 1.0, 2.0, 0.5]),
    "z": np.array([1.0 + 2.0j, -0.5j]),
}
# In both spaces.
COMMON = """
xp.flip(a, axis=1) | xp.flip(a, axis=(0, 1)) | xp.roll(a, 1, axis=0) | xp.roll(a, shift=1, axis=1) | xp.roll(a, 1)
xp.take(a, k, axis=1) | xp.take(a, k - 2, axis=0) | xp.take_along_axis(a, i % 2, axis=0)
xp.take_along_axis(a, i % 3, axis=-1)
xp.repeat(a, 2) | xp.repeat(a, 2, axis=1) | xp.repeat(a, k + 1, axis=0) | xp.expand_dims(a, axis=1)
xp.expand_dims(a, axis=(0, -1)) | xp.permute_dims(a, (1, 0)) | xp.matrix_transpose(a) | xp.unstack(a, axis=1)
xp.broadcast_arrays(a, b[:1]) | xp.broadcast_to(a, shape=(2, 2, 3)) | xp.squeeze(a[None], axis=0)
xp.squeeze(a[None, None], axis=(0, 1)) | xp.reshape(a, (3, 2), copy=True) | xp.reshape(a, shape=(-1,))
xp.bitwise_invert(i) | xp.astype(a, xp.int64) | xp.isdtype(xp.int8, "signed integer") | xp.isdtype(xp.bool, "numeric")
xp.isdtype(xp.float32, ("integral", xp.float32)) | xp.isdtype(xp.uint8, "unsigned integer")
xp.isdtype(xp.complex64, "complex floating") | xp.isdtype(xp.float64, "real floating") | xp.isdtype(xp.bool, "bool")
xp.cumulative_sum(v) | xp.cumulative_sum(a, axis=1) | xp.cumulative_sum(a, axis=0, include_initial=True)
xp.cumulative_prod(v, include_initial=True) | xp.cumulative_sum(h, axis=1) | xp.cumulative_prod(a, axis=-1)
xp.vecdot(a, b) | xp.vecdot(a, b, axis=0) | xp.vecdot(z, z) | xp.vecdot(h, h)
xp.unique_all(i) | xp.unique_counts(i) | xp.unique_inverse(i) | xp.unique_all(v)
xp.linalg.trace(s) | xp.linalg.trace(s, offset=1) | xp.linalg.outer(v, v) | xp.linalg.matrix_transpose(a)
xp.linalg.tensordot(a, b, axes=2) | xp.tensordot(a, b, axes=((1,), (1,))) | xp.tril(s, k=-1) | xp.triu(s, k=1)
xp.linalg.vector_norm(a, axis=0, keepdims=True) | xp.linalg.cross(a, b, axis=-1)
xp.fft.fft(v, n=3, axis=0, norm="ortho") | xp.fft.fftn(a, axes=(0,))
xp.fft.rfftn(a, s=(2, 3), axes=(0, 1), norm="forward")
xp.fft.irfftn(a, axes=(0, 1)) | xp.fft.ifftn(a, axes=(1,)) | xp.fft.fftshift(a, axes=(0,)) | xp.fft.ifftshift(v, axes=0)
xp.eye(3, k=1, dtype=xp.float64) | xp.eye(2, 3, k=-1, dtype=xp.float32) | xp.linspace(0, 1, num=4, dtype=xp.float64)
xp.linspace(0, 1, 4, dtype=xp.float64, endpoint=False) | xp.linspace(0, 1, num=0, dtype=xp.float64, endpoint=False)
xp.zeros(shape=(2,), dtype=xp.int8) | xp.ones(shape=3, dtype=xp.int8) | xp.full(shape=(2,), fill_value=7)
xp.arange(1, stop=7, step=2) | xp.count_nonzero(i, axis=1) | xp.count_nonzero(i, keepdims=True)
xp.count_nonzero(i, axis=0, keepdims=True) | xp.sum(a, axis=(0, 1), keepdims=True) | xp.mean(a, axis=0, keepdims=True)
xp.std(a, axis=1, correction=0) | xp.var(a, axis=1, correction=1) | xp.argmax(a, axis=1, keepdims=True)
xp.all(i, axis=1) | xp.any(i, axis=0, keepdims=True) | xp.stack([a, b], axis=2) | xp.concat([a, b], axis=1)
xp.argsort(v, axis=0) | xp.diff(a, axis=0) | xp.result_type(xp.int8, xp.int16, xp.uint8)
xp.result_type(xp.uint16, xp.int8) | xp.result_type(xp.uint32, xp.int32) | xp.result_type(xp.uint16, xp.int64)
xp.astype(h, xp.uint16) + xp.astype(i[:, :2], xp.int16) | xp.astype(h, xp.uint32) * xp.astype(h, xp.int8)
"""
# In the namespace alone: PyTorch gives these names or calls another meaning, or refuses them.
OWN = """
xp.equal(a, b) | xp.sort(a) | xp.sort(a, axis=0) | xp.nonzero(i) | xp.flip(a) | xp.clip(a) | xp.clip(a, 0, b)
xp.meshgrid(v, v[1:]) | xp.meshgrid(v, v[1:], indexing="ij") | xp.std(a) | xp.var(a, axis=0) | xp.sum(h)
xp.prod(h, axis=0)
xp.prod(a, axis=(0, 1), keepdims=True) | xp.max(a, axis=0) | xp.min(a, axis=(0, 1)) | xp.max(a, keepdims=True)
xp.sum(a, axis=()) | xp.sum(a, keepdims=True) | xp.mean(a, keepdims=True) | xp.all(i, axis=(0, 1)) | xp.any(a)
xp.concat([a, i[:1]], axis=None) | xp.matmul(i, a.mT) | xp.linalg.matmul(a, s) | xp.tensordot(i, a, axes=2)
xp.linalg.cross(a, i) | xp.linalg.vecdot(a, i) | xp.atan2(a, 2.0) | xp.hypot(2.0, a) | xp.logaddexp(a, 1) | xp.median(a)
xp.nextafter(a, 1.0) | xp.maximum(a, 0.5) | xp.minimum(1, i) | xp.copysign(a, -1.0) | xp.logical_or(i > 1, True)
xp.less(2, i) | xp.greater_equal(1.5, a) | xp.not_equal(2, i) | xp.equal(i, 3) | xp.less(i, 2) | xp.equal(2, a)
xp.sign(z)
xp.sign(xp.asarray([xp.nan, -2.0], dtype=xp.float64))
xp.arange(3, 1) | xp.full(3, 2) | xp.result_type(a, i) | xp.count_nonzero(i) | xp.finfo(xp.float32).dtype
xp.iinfo(h).dtype | xp.finfo(a).eps | xp.asarray(n[::-1]) | xp.linalg.trace(h)
"""


def _calls(text):
    return [call.strip() for line in text.strip().splitlines() for call in line.split("|")]


def _check(call, space):
    names = {**ARRAYS, "xp": np}
    own = {name: torch.from_numpy(array.copy()) for name, array in ARRAYS.items()}
    numpys = {
        "xp.flip(a)": "np.flip(a)", "xp.clip(a)": "a", "xp.matmul(i, a.mT)": "i @ a.T", "xp.std(a)": "np.std(a)",
        "xp.arange(3, 1)": "np.arange(3, 1)", "xp.iinfo(h).dtype": "h.dtype",
        "xp.finfo(a).eps": "np.finfo(a.dtype).eps",
        "xp.prod(a, axis=(0, 1), keepdims=True)": "np.prod(a, keepdims=True)", "xp.all(i, axis=(0, 1))": "np.all(i)",
    }.get(call, call)  # fmt: skip
    want = eval(numpys, {**names, "np": np, "n": ARRAYS["v"]})
    have = eval(call, {**own, "xp": space, "n": ARRAYS["v"]})
    _same(have, want, call)


def _same(have, want, call):
    if isinstance(want, (tuple, list)):
        assert len(have) == len(want), call
        for h, w in zip(have, want, strict=True):
            _same(h, w, call)
    elif isinstance(want, (np.ndarray, np.generic, float)):
        have, want = np.asarray(have), np.asarray(want)
        assert have.dtype == want.dtype and have.shape == want.shape, (call, have, want)
        np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-14, err_msg=call)
    elif isinstance(want, np.dtype):
        assert have.np == want, call
    else:
        assert have == want, call


@pytest.mark.parametrize("space", [torch, SPACE], ids=["torchlite", "namespace"])
@pytest.mark.parametrize("call", _calls(COMMON))
def test_a_function_is_the_standards(call, space):
    _check(call, space)


@pytest.mark.parametrize("call", _calls(OWN))
def test_where_pytorch_means_something_else(call):
    _check(call, SPACE)


def test_pytorchs_meanings_stay():
    x = torch.tensor([3.0, 1.0, 2.0])
    assert torch.equal(x, x) is True and torch.sort(x).indices.tolist() == [1, 2, 0]
    assert torch.std(x).item() == 1 and torch.nonzero(x).shape == (3, 1)
    assert torch.finfo(torch.float32).dtype == "float32" and torch.sum(x.to(torch.uint8)).dtype is torch.int64
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        torch.atan2(x, 1.0)
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max'"):
        torch.clip(x)
    for limits in (torch.finfo, torch.iinfo):
        with pytest.raises(TypeError, match=r"argument 'type' \(position 1\) must be torch.dtype, not Tensor"):
            limits(x)
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "type"'):
        torch.iinfo()
    with pytest.raises(TypeError, match='missing 2 required positional argument: "size", "fill_value"'):
        torch.full(fill_value=1)


def test_functions_on_devices(device):
    x = torch.tensor([[3.0, 1.0, 2.0], [1.0, 0.0, 3.0]], device=device)
    k = torch.tensor([0, -1], device=device)
    for space in (torch, SPACE):
        for have in (
            space.flip(x, axis=1), space.roll(x, 1, axis=0), space.take(x, k, axis=1),
            space.cumulative_sum(x, axis=1), space.unique_all(x).values, space.vecdot(x, x), space.repeat(x, 2),
            space.eye(2, k=1, device=device), space.linspace(0, 1, 4, endpoint=False, device=device),
        ):  # fmt: skip
            assert have.device.type == torch.device(device).type
        assert space.take(x, k, axis=1).tolist() == [[3, 2], [1, 3]]
        assert space.unique_all(x).indices.tolist() == [4, 1, 2, 0]
    info = torch.__array_namespace_info__()
    assert torch.device("cpu") in info.devices() and info.default_dtypes()["real floating"] is torch.float32
    assert info.dtypes(kind="bool") == {"bool": torch.bool} and info.capabilities()["boolean indexing"]


def test_errors_of_the_standards_functions():
    x = torch.ones(2, 3)
    for call, error in (
        (lambda: torch.vecdot(x, torch.ones(2, 2)), ValueError),
        (lambda: torch.isdtype(torch.int8, "float"), ValueError),
        (lambda: torch.reshape(x.mT, (6,), copy=False), ValueError),
        (lambda: torch.cumulative_sum(x), ValueError),
        (lambda: torch.expand_dims(x, axis=5), IndexError),
        (lambda: torch.roll(x), TypeError),
        (lambda: SPACE.nonzero(torch.tensor(1)), ValueError),
    ):
        with pytest.raises(error):
            call()


def test_gradients_flow_through_the_standards_functions():
    x = torch.tensor([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]], dtype=torch.float64, requires_grad=True)
    k = torch.tensor([0, -1])
    for function in (
        lambda x: torch.take(x, k, axis=1),
        lambda x: torch.vecdot(x, x),
        lambda x: torch.cumulative_prod(x, axis=1, include_initial=True),
        lambda x: torch.repeat(x, 2, axis=0),
        lambda x: torch.linalg.trace(x[:, :2]),
        lambda x: SPACE.prod(x, axis=(0, 1)),
        lambda x: SPACE.std(x, axis=0),
    ):
        assert torch.autograd.gradcheck(function, (x,))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.fft.fft(x, norm="ortho", axis=0),
        lambda x: torch.fft.fft(x, 2, norm="ortho", axis=0),
        lambda x: torch.fft.fft(x, n=2, axis=0, norm="ortho"),
    ],
)
def test_numpys_names_stand_beside_later_arguments(call):
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(call(x), torch.fft.fft(x, 2, 0, "ortho"))


def test_lists_of_the_standards_suite(tmp_path):
    """A line's braces and stars, and the error for a line that no test matches."""
    tests = [f"array_api_tests/test_a.py::{name}" for name in ("test_full", "test_full_like", "test_f[x (a, b) -> 0]")]
    file = tmp_path / "list.txt"
    file.write_text("# why\n\ntest_a.py::test_full{,_like}\n~ test_a.py::test_{f,g}[* (a, b) -> 0]\n")
    assert expected(file, tests) == {tests[0]: True, tests[1]: True, tests[2]: False}
    file.write_text("test_a.py::test_ful\n")
    with pytest.raises(ValueError, match="list.txt: no test of the suite matches test_a.py::test_ful"):
        expected(file, tests)
