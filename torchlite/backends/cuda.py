"""Switches of CUDA's libraries: matrix product precision, allowed attention implementations, the preferred linear
algebra library.
"""

from __future__ import annotations

import contextlib
import enum
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._settings.backend_flags import FLAGS
from ._flag_properties import make_flag_property

__all__ = [
    "allow_fp16_bf16_reduction_math_sdp", "cuBLASModule", "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp",
    "enable_math_sdp", "enable_mem_efficient_sdp", "flash_sdp_enabled", "fp16_bf16_reduction_math_sdp_allowed",
    "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled",
    "preferred_blas_library", "preferred_linalg_library", "sdp_kernel",
]  # fmt: skip


def is_built() -> bool:
    """Returns whether CUDA's libraries are installed: a backend and CuPy.

    `torch.cuda.is_available` returns whether a driver shows a device.

    Example:
        >>> torch.backends.cuda.is_built() >= torch.cuda.is_available()
        True
    """
    from .._dispatch import backend_registry

    try:
        backend = backend_registry.backend_of("cuda")
    except RuntimeError:
        return False
    says = getattr(backend, "is_built", None)
    return says is None or says()


class cuBLASModule:
    """Switches of matrix products on CUDA; `torch.backends.cuda.matmul` is the object.

    Example:
        >>> torch.backends.cuda.matmul.allow_tf32
        False
    """

    allow_fp16_reduced_precision_reduction = make_flag_property(
        "allow_fp16_reduced_precision_reduction",
        "set_allow_fp16_reduction_cublas",
        "Whether sums of float16 products may be kept in float16 for part of the way.",
    )
    allow_bf16_reduced_precision_reduction = make_flag_property(
        "allow_bf16_reduced_precision_reduction",
        "set_allow_bf16_reduction_cublas",
        "Whether sums of bfloat16 products may be kept in bfloat16 for part of the way.",
    )
    allow_fp16_accumulation = make_flag_property(
        "allow_fp16_accumulation",
        "set_allow_fp16_accumulation_cublas",
        "Whether sums of float16 products may be kept in float16.",
    )

    @property
    def allow_tf32(self) -> bool:
        """True if float32 operands may be rounded to TF32 (ten bits of mantissa), which is several times faster."""
        return FLAGS.tf32("matmul")

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
        FLAGS.set_precision("matmul", "tf32" if value else "ieee")

    @property
    def fp32_precision(self) -> str:
        """ "none", "ieee" or "tf32": the newer form of `allow_tf32`."""
        return FLAGS.precision("matmul")

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        FLAGS.set_precision("matmul", value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"Unknown attribute {name}")
        object.__setattr__(self, name, value)


matmul = cuBLASModule()


class _LinalgBackend(enum.Enum):
    Default = 0
    Cusolver = 1
    Magma = 2

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value}>"


class _BlasBackend(enum.Enum):
    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3

    __repr__ = _LinalgBackend.__repr__


def _prefer_backend(switch: str, kinds: type[enum.Enum], backend: Any, choices: str) -> Any:
    if isinstance(backend, str):
        names = {kind.name.lower(): kind for kind in kinds}
        if backend not in names:
            raise RuntimeError(f"Unknown input value. Choose from: {choices}.")
        backend = names[backend]
    if backend is not None:
        if not isinstance(backend, kinds):
            raise RuntimeError("Unknown input value type.")
        if backend.name in ("Magma", "Ck"):
            raise RuntimeError(
                f"Cannot set preferred backend to {backend.name.upper()}: the CUDA backend does not have it."
            )
        setattr(FLAGS, switch, backend.name.lower())
    return next(kind for kind in kinds if kind.name.lower() == getattr(FLAGS, switch))


def preferred_linalg_library(backend: str | _LinalgBackend | None = None) -> _LinalgBackend:
    """Sets the library for linear algebra on CUDA, and returns it.

    Args:
        backend: ``"default"`` or ``"cusolver"``. Default: the present one stays.

    Raises:
        RuntimeError: The library is unknown, or is MAGMA, which the CUDA backend lacks.

    Example:
        >>> torch.backends.cuda.preferred_linalg_library()
        <_LinalgBackend.Default: 0>
    """
    return _prefer_backend("linalg_library", _LinalgBackend, backend, "default, cusolver, magma")


def preferred_blas_library(backend: str | _BlasBackend | None = None) -> _BlasBackend:
    """Sets the library for matrix products on CUDA, and returns it.

    Args:
        backend: ``"default"``, ``"cublas"`` or ``"cublaslt"``. Default: the present one stays.

    Raises:
        RuntimeError: The library is unknown, or is CK, which the CUDA backend lacks.

    Example:
        >>> torch.backends.cuda.preferred_blas_library()
        <_BlasBackend.Default: 0>
    """
    return _prefer_backend("blas_library", _BlasBackend, backend, "default, cublas, hipblas, cublaslt, hipblaslt, ck")


def _make_sdp_switch(name: str, words: str) -> tuple[Any, Any]:
    def is_enabled() -> bool:
        return FLAGS.sdp[name]

    def enable(enabled: bool) -> None:
        FLAGS.sdp[name] = bool(enabled)

    is_enabled.__doc__ = f"Returns whether scaled dot-product attention may use {words}."
    enable.__doc__ = f"""Sets whether scaled dot-product attention may use {words}.

Args:
    enabled: Whether it may.
"""
    is_enabled.__name__, enable.__name__ = f"{name}_sdp_enabled", f"enable_{name}_sdp"
    return is_enabled, enable


flash_sdp_enabled, enable_flash_sdp = _make_sdp_switch("flash", "a fused kernel in tiles (PyTorch's FlashAttention)")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _make_sdp_switch(
    "mem_efficient", "a fused kernel that also takes a mask (PyTorch's memory-efficient attention)"
)
math_sdp_enabled, enable_math_sdp = _make_sdp_switch("math", "ordinary products and a softmax")
cudnn_sdp_enabled, enable_cudnn_sdp = _make_sdp_switch("cudnn", "cuDNN's kernel")


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Returns whether attention by ordinary products may sum in float16 or bfloat16.

    Example:
        >>> torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
        False
    """
    return FLAGS.sdp_math_reduction


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Sets whether attention by ordinary products may sum in float16 or bfloat16.

    Args:
        enabled: Whether it may.

    Example:
        >>> torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(False)
    """
    FLAGS.sdp_math_reduction = bool(enabled)


def is_flash_attention_available() -> bool:
    """Returns whether a fused kernel of attention can run: on any CUDA device.

    Example:
        >>> torch.backends.cuda.is_flash_attention_available() == torch.cuda.is_available()
        True
    """
    from .. import cuda

    return cuda.is_available()


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
):
    """Context manager that selects the kernels of scaled dot-product attention.

    Args:
        enable_flash: Whether the fused kernel in tiles may run. Default: ``True``.
        enable_math: Whether ordinary products and a softmax may. Default: ``True``.
        enable_mem_efficient: Whether the fused kernel that takes a mask may. Default: ``True``.
        enable_cudnn: Whether cuDNN's kernel may. Default: ``True``.

    Example:
        >>> import torchlite as torch
        >>> with torch.backends.cuda.sdp_kernel(enable_flash=False):
        ...     torch.backends.cuda.flash_sdp_enabled()
        False

    See also:
        `torch.nn.attention.sdpa_kernel`, the newer form.
    """
    before = dict(FLAGS.sdp)
    FLAGS.sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield {}
    finally:
        FLAGS.sdp.update(before)


__dir__ = make_module_dir(globals())
