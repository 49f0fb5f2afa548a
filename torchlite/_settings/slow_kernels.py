"""The warning of a large op that compiled kernels would compute faster: `torchlite.backends.cpu` has it."""


class SlowKernelWarning(UserWarning):
    """Warning that a large op runs on NumPy's kernels, and that compiled kernels would take less time.

    It is given once per process. `warnings.filterwarnings` and `TORCHLITE_KERNEL_HINT=0` silence it. It is never an
    error: a filter that makes errors of warnings drops it.

    Example:
        >>> import warnings
        >>> warnings.filterwarnings("ignore", category=torch.backends.cpu.SlowKernelWarning)
    """
