"""The CPU: its vector instructions, and the engine that computes large tensors."""

from torchlite._settings.module_dir import make_module_dir
from torchlite._settings.slow_kernels import SlowKernelWarning as SlowKernelWarning


def get_kernel_engine() -> str:
    """Return the engine that computes large tensors on the CPU: "numpy", "cc" (compiled C++ kernels) or "opencl" (a
    driver for CPUs). It is fixed for the lifetime of a process. `TORCHLITE_CPU_KERNELS` names one, or several in order
    of preference. By default it is "cc" after `python -m torchlite build-kernels`, or if the package
    `torchlite-nd-kernels` is installed, else "numpy"; "opencl" must be named, since its results differ in the last
    bits. `python -m torchlite info` lists why the others are not used.

    >>> torch.backends.cpu.get_kernel_engine() in ("numpy", "cc", "opencl")
    True
    """
    from .._dispatch.backend_registry import backend_of

    return backend_of("cpu").engine()


def get_cpu_capability() -> str:
    """Returns the widest vector instructions that NumPy finds: "AVX512", "AVX2", "NEON", … or "DEFAULT".

    Example:
        >>> torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "NEON", "ALTIVEC", "VECTOR", "DEFAULT")
        True
    """
    from numpy._core._multiarray_umath import __cpu_features__ as features

    names = {
        "AVX512": ("AVX512F", "X86_V4"),
        "AVX2": ("AVX2", "X86_V3"),
        "NEON": ("NEON", "ASIMD"),
        "ALTIVEC": ("VSX",),
        "VECTOR": ("VX",),
    }
    return next((name for name, keys in names.items() if any(features.get(key) for key in keys)), "DEFAULT")


__dir__ = make_module_dir(globals(), hidden="get_kernel_engine")
