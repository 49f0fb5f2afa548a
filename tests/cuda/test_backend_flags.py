"""torch.backends: the switches that CUDA's kernels read, and questions about libraries. Values and errors are those of
PyTorch 2.13.
"""

from __future__ import annotations

import copy
import importlib.util

import pytest

import torchlite as torch
from torchlite._settings.backend_flags import FLAGS

backends = torch.backends


@pytest.fixture(autouse=True)
def restored():
    before = copy.deepcopy(vars(FLAGS))
    yield
    vars(FLAGS).update(before)


def precisions():
    return (
        backends.fp32_precision,
        backends.cuda.matmul.fp32_precision,
        backends.cudnn.fp32_precision,
        backends.cudnn.conv.fp32_precision,
        backends.cudnn.rnn.fp32_precision,
        backends.cuda.matmul.allow_tf32,
        backends.cudnn.allow_tf32,
    )


def test_defaults():
    matmul, cudnn = backends.cuda.matmul, backends.cudnn
    assert precisions() == ("none", "none", "none", "tf32", "tf32", False, True)
    assert (
        matmul.allow_fp16_reduced_precision_reduction
        and matmul.allow_bf16_reduced_precision_reduction
        and not matmul.allow_fp16_accumulation
    )
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, False, False)
    assert (
        backends.cuda.preferred_linalg_library().name == "Default"
        and backends.cuda.preferred_blas_library().name == "Default"
    )
    assert torch.get_float32_matmul_precision() == "highest"


def test_general_precision_settings_apply_to_specific_ones():
    backends.fp32_precision = "tf32"
    assert precisions()[:5] == ("tf32",) * 5
    backends.fp32_precision = "ieee"
    assert precisions() == ("ieee",) * 5 + (False, False)
    backends.cuda.matmul.fp32_precision = "tf32"
    assert precisions() == ("ieee", "tf32", "ieee", "ieee", "ieee", True, False)
    backends.cudnn.fp32_precision = "tf32"
    backends.cudnn.conv.fp32_precision = "none"
    assert precisions()[:5] == ("ieee", "tf32", "tf32", "tf32", "tf32")
    for owner in (backends, backends.cuda.matmul, backends.cudnn.conv):
        with pytest.raises(RuntimeError, match="Unknown precision: fast"):
            owner.fp32_precision = "fast"
    with pytest.raises(AttributeError, match="Unknown attribute speed"):
        backends.cudnn.conv.speed = 1


def test_tf32_switches():
    backends.cuda.matmul.allow_tf32 = True
    assert precisions()[1] == "tf32" and torch.get_float32_matmul_precision() == "high" and FLAGS.tf32("matmul")
    backends.cuda.matmul.allow_tf32 = False
    assert precisions()[1] == "ieee" and torch.get_float32_matmul_precision() == "highest" and not FLAGS.tf32("matmul")
    backends.cudnn.allow_tf32 = False
    assert precisions()[3:5] == ("none", "none") and not FLAGS.tf32("conv")
    backends.cudnn.allow_tf32 = True
    assert precisions()[3:5] == ("tf32", "tf32") and FLAGS.tf32("rnn")


def test_float32_matmul_precision():
    for name, tf32 in (("medium", True), ("high", True), ("highest", False)):
        torch.set_float32_matmul_precision(name)
        assert torch.get_float32_matmul_precision() == name and backends.cuda.matmul.allow_tf32 is tf32
    with pytest.warns(UserWarning, match="fast is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("fast")
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(
    "owner, name, setter",
    [
        (backends.cuda.matmul, "allow_tf32", "set_allow_tf32_cublas"),
        (backends.cudnn, "allow_tf32", "set_allow_tf32_cudnn"),
        (backends.cuda.matmul, "allow_fp16_accumulation", "set_allow_fp16_accumulation_cublas"),
        (backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", "set_allow_fp16_reduction_cublas"),
        (backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", "set_allow_bf16_reduction_cublas"),
        (backends.cudnn, "enabled", "set_enabled_cudnn"),
        (backends.cudnn, "benchmark", "set_benchmark_cudnn"),
        (backends.cudnn, "deterministic", "set_deterministic_cudnn"),
    ],
)
def test_bools(owner, name, setter):
    before = getattr(owner, name)
    setattr(owner, name, not before)
    assert getattr(owner, name) is not before
    with pytest.raises(RuntimeError, match=f"{setter} expects a bool, but got int"):
        setattr(owner, name, 1)
    assert getattr(owner, name) is not before


def test_unknown_attributes_of_matmul():
    with pytest.raises(AttributeError, match="Unknown attribute fast"):
        backends.cuda.matmul.fast
    with pytest.raises(AttributeError, match="Unknown attribute fast"):
        backends.cuda.matmul.fast = True


def test_cudnn_flags():
    cudnn = backends.cudnn
    with cudnn.flags(enabled=False, benchmark=True, benchmark_limit=3, deterministic=True, allow_tf32=False):
        assert (cudnn.enabled, cudnn.benchmark, cudnn.benchmark_limit, cudnn.deterministic, cudnn.allow_tf32) == (
            False,
            True,
            3,
            True,
            False,
        )
        assert (FLAGS.cudnn_enabled, FLAGS.cudnn_benchmark, FLAGS.cudnn_deterministic) == (False, True, True)
    assert (cudnn.enabled, cudnn.benchmark, cudnn.benchmark_limit, cudnn.deterministic, cudnn.allow_tf32) == (
        True,
        False,
        10,
        False,
        True,
    )
    assert precisions()[:5] == ("none", "none", "none", "tf32", "tf32")
    assert cudnn.set_flags(_enabled=False) == (True, False, 10, False, True, "none") and not cudnn.enabled


def test_cudnn_without_and_with_it(fake):
    assert backends.cudnn.is_available() and backends.cudnn.version() == 91002
    x = torch.ones(1, device="cuda")
    assert (
        backends.cudnn.is_acceptable(x)
        and not backends.cudnn.is_acceptable(x.int())
        and not backends.cudnn.is_acceptable(torch.ones(1))
    )
    with backends.cudnn.flags(enabled=False):
        assert not backends.cudnn.is_acceptable(x)
    fake.cudnn_version = lambda: None
    assert not backends.cudnn.is_available() and backends.cudnn.version() is None
    assert backends.cuda.is_built() and backends.cuda.is_flash_attention_available()


def test_preferred_libraries():
    cuda = backends.cuda
    assert (
        repr(cuda.preferred_linalg_library("cusolver")) == "<_LinalgBackend.Cusolver: 1>"
        and FLAGS.linalg_library == "cusolver"
    )
    assert cuda.preferred_linalg_library("default") == cuda.preferred_linalg_library()
    assert cuda.preferred_blas_library("cublaslt").name == "Cublaslt" and FLAGS.blas_library == "cublaslt"
    with pytest.raises(RuntimeError, match=r"Unknown input value. Choose from: default, cusolver, magma."):
        cuda.preferred_linalg_library("lapack")
    with pytest.raises(RuntimeError, match="MAGMA"):
        cuda.preferred_linalg_library("magma")
    with pytest.raises(RuntimeError, match="Unknown input value type"):
        cuda.preferred_blas_library(3)


def test_attention():
    from torchlite.nn.attention import SDPBackend, sdpa_kernel

    cuda = backends.cuda

    def enabled():
        return (
            cuda.flash_sdp_enabled(),
            cuda.mem_efficient_sdp_enabled(),
            cuda.math_sdp_enabled(),
            cuda.cudnn_sdp_enabled(),
        )

    assert enabled() == (True, True, True, True)
    for enable in (cuda.enable_flash_sdp, cuda.enable_mem_efficient_sdp, cuda.enable_cudnn_sdp):
        enable(False)
    assert enabled() == (False, False, True, False) and FLAGS.sdp["math"] and not FLAGS.sdp["flash"]
    cuda.enable_math_sdp(False)
    assert not any(enabled())
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        assert enabled() == (True, False, True, False)
        with cuda.sdp_kernel(enable_math=False):
            assert enabled() == (True, True, False, True)
        assert enabled() == (True, False, True, False)
    assert not any(enabled()) and not cuda.fp16_bf16_reduction_math_sdp_allowed()
    cuda.allow_fp16_bf16_reduction_math_sdp(True)
    assert cuda.fp16_bf16_reduction_math_sdp_allowed() and FLAGS.sdp_math_reduction


def test_deterministic_algorithms():
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert FLAGS.deterministic and FLAGS.deterministic_warn_only and torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode("default")
    assert not torch.are_deterministic_algorithms_enabled() and not FLAGS.deterministic
    assert torch.get_deterministic_debug_mode() == 0
    torch.set_deterministic_debug_mode("error")
    assert torch.get_deterministic_debug_mode() == 2
    torch.set_deterministic_debug_mode(0)


def test_other_libraries():
    assert not backends.mps.is_available() and not backends.mps.is_built()
    assert (
        isinstance(backends.mkldnn.is_available(), bool)
        and not backends.openmp.is_available()
        and not backends.opt_einsum.is_available()
    )
    with backends.mkldnn.flags(enabled=False, allow_tf32=False):
        assert not backends.mkldnn.enabled and backends.mkldnn.allow_tf32 is False
    assert backends.mkldnn.enabled and backends.mkldnn.allow_tf32 is None
    assert backends.opt_einsum.get_opt_einsum() is None and isinstance(backends.mkl.is_available(), bool)
    assert backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "NEON", "ALTIVEC", "VECTOR", "DEFAULT")
    assert {"cuda", "cudnn", "fp32_precision"} <= set(dir(backends))
    with pytest.raises(AttributeError, match=r"module 'torchlite.backends' has no attribute 'tpu'"):
        backends.tpu


def test_switches_that_are_frozen(monkeypatch):
    monkeypatch.setattr("torchlite._settings.backend_flags.FLAGS.flags_frozen", False)
    backends = torch.backends
    backends.disable_global_flags()
    for module, name in ((backends.cudnn, "benchmark"), (backends.mkldnn, "enabled")):
        words = f"not allowed to set torch.backends.{module.__name__.rpartition('.')[2]} flags after disable_global"
        with pytest.raises(RuntimeError, match=words):
            setattr(module, name, True)
        before = getattr(module, name)
        with module.flags(**{name: not before}):
            assert getattr(module, name) is not before
        assert getattr(module, name) is before
        with getattr(backends, "__allow_nonbracketed_mutation")():
            setattr(module, name, before)
    assert backends.flags_frozen()


def test_cuda_is_built_where_cupy_is_installed(monkeypatch):
    from torchlite_backends.cupy import availability

    assert availability.has_cupy() == (importlib.util.find_spec("cupy") is not None)
