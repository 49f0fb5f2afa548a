"""PyTorch's flags for devices: plain state, set by `torch.backends` and a few top-level functions, and read by
backends.
"""

from __future__ import annotations

import warnings

PRECISIONS = ("none", "ieee", "tf32", "bf16")
# Whose answer counts where a precision is "none": an op asks its library, a library the general switch.
_PARENTS = {
    "matmul": "cuda", "conv": "cuda", "rnn": "cuda", "cuda": "all", "mkldnn_matmul": "mkldnn", "mkldnn_conv": "mkldnn",
    "mkldnn_rnn": "mkldnn", "mkldnn": "all",
}  # fmt: skip


class BackendFlags:
    """The flags of the process; `FLAGS` is the only instance."""

    def __init__(self) -> None:
        self.flags_frozen = False  # attributes of cuDNN's and oneDNN's modules are set within `flags(...)` only
        self.deterministic = False
        self.deterministic_warn_only = False
        self.fill_uninitialized_memory = True  # in deterministic mode
        self.warn_always = False
        self.interop_threads = 1
        self.matmul_precision = (
            "highest"  # set by `set_float32_matmul_precision`: "high" and "medium" mean TF32 on CUDA
        )
        onednn = ("mkldnn", "mkldnn_matmul", "mkldnn_conv", "mkldnn_rnn")
        self.precisions: dict[str, str | None] = dict.fromkeys(("all", "cuda", "matmul", *onednn), "none") | {
            "conv": None,
            "rnn": None,
        }  # None: never set
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False
        self.cudnn_enabled = True
        self.cudnn_benchmark = False
        self.cudnn_benchmark_limit: int | None = 10
        self.cudnn_deterministic = False
        self.mkldnn_enabled = True
        self.mkldnn_deterministic = False
        self.mkldnn_allow_tf32: bool | None = None  # never set
        self.quantized_engine = "x86"
        self.linalg_library = "default"
        self.blas_library = "default"
        self.sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}  # which attention may run
        self.sdp_math_reduction = False

    def precision(self, what: str) -> str:
        """The precision of "matmul", "conv" or "rnn" on CUDA, of all of them ("cuda"), or of everything ("all"):
        "none", "ieee", "tf32" or "bf16".

        >>> from torchlite._settings.backend_flags import BackendFlags
        >>> BackendFlags().precision("conv"), BackendFlags().precision("matmul")
        ('tf32', 'none')
        """
        own, at = self.precisions[what], what
        while (self.precisions[at] or "none") == "none" and at in _PARENTS:
            at = _PARENTS[at]
        found = self.precisions[at] or "none"
        return "tf32" if found == "none" and own is None else found

    def set_precision(self, what: str, value: str) -> None:
        """Set it. RuntimeError for an unknown one."""
        if value not in PRECISIONS:
            raise RuntimeError(f"Unknown precision: {value}")
        self.precisions[what] = value
        if what == "matmul":
            self.matmul_precision = (
                "highest" if value != "tf32" else "medium" if self.matmul_precision == "medium" else "high"
            )

    def tf32(self, what: str) -> bool:
        """True if float32 operands of "matmul", "conv" or "rnn" may be rounded to TF32 on CUDA."""
        return self.precision(what) == "tf32"


FLAGS = BackendFlags()


_WARNED: set[str] = set()


def warn_once(message: str, stacklevel: int = 3) -> None:
    """A UserWarning once in a process, or always after `set_warn_always(True)`."""
    if message not in _WARNED or FLAGS.warn_always:
        _WARNED.add(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel)
