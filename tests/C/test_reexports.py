"""The names of `torch._C` are the things themselves."""

import subprocess
import sys

import pytest

import torchlite as torch


def test_names_are_the_public_ones():
    assert torch._C.Size is torch.Size
    assert torch._C.device is torch.device
    assert torch._C._LinAlgError is torch.linalg.LinAlgError
    assert torch._C.default_generator is torch.default_generator
    assert set(torch._C._LAZY) <= set(dir(torch._C))
    for name in dir(torch._C):
        assert getattr(torch._C, name) is not None, name
    with pytest.raises(AttributeError, match="no attribute '_no_such_name'"):
        torch._C._no_such_name


def test_alias():
    x = torch.arange(6.0)
    assert torch._C._is_alias_of(x, x.view(2, 3)[1])
    assert not torch._C._is_alias_of(x, x.clone())


def test_arguments_of_to():
    parse = torch._C._nn._parse_to
    assert parse(torch.ones(2, dtype=torch.half)) == (torch.device("cpu"), torch.half, False, None)
    assert parse(memory_format=torch.channels_last)[3] is torch.channels_last


def test_convolutions_without_dilation():
    x, w, b = torch.randn(2, 3, 5, 6), torch.randn(4, 3, 3, 2), torch.randn(4)
    assert torch.equal(torch._C._nn.thnn_conv2d(x, w, (3, 2), b, 2, 1), torch.conv2d(x, w, b, 2, 1))
    x, w = x[:, :, None], w[:, :, None]
    assert torch.equal(torch._C._nn.slow_conv3d(x, w, (1, 3, 2), b), torch.conv3d(x, w, b))


def test_disabled_torch_function_returns_plain_tensors():
    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    x = torch.ones(2).as_subclass(Plain)
    assert type(x + 1) is torch.Tensor
    assert (x + 1).tolist() == [2.0, 2.0]


def test_usage_is_logged_once():
    code = "import torchlite as t; t._C._log_api_usage_once('a.b'); t._C._log_api_usage_once('a.b')"
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTORCH_API_USAGE_STDERR": "1"}, capture_output=True, text=True
    )
    assert run.stderr.splitlines().count("PYTORCH_API_USAGE a.b") == 1


def test_parts_of_the_build():
    from torchlite import _C

    assert _C.has_lapack and _C.has_spectral
    absent = "has_cuda has_mkl has_openmp _has_cuda _has_cudnn _has_magma _has_mkldnn _has_mps _has_xpu".split()
    assert not any(getattr(_C, name) for name in absent)


@pytest.mark.parametrize("module", ["linalg", "fft", "special"])
def test_functions_under_the_names_of_the_library(module):
    space = getattr(torch._C, f"_{module}")
    for name in dir(space):
        assert callable(getattr(space, name)), name
    with pytest.raises(AttributeError):
        space.nothing
    assert torch._C._linalg.linalg_matrix_norm is torch.linalg.matrix_norm
    assert torch._C._fft._fft_c2c(torch.ones(2, dtype=torch.complex64), [-1], 0, True).tolist() == [2, 0]
