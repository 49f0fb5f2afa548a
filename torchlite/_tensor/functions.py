"""Small functions of PyTorch's top level that are no ops: questions about tensors, threads, switches."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from .._dispatch import call, shapes
from .._dispatch.backend import OutOfMemoryError as OutOfMemoryError
from .._dispatch.promotion import result_dtype
from .._settings.switches import SWITCHES
from .._types.dtypes import dtype
from .._types.layouts import Size

if TYPE_CHECKING:
    from .tensor import Tensor


def is_tensor(obj: Any) -> bool:
    """Whether the object is a Tensor."""
    return isinstance(obj, call.Tensor)


def is_storage(obj: Any) -> bool:
    """Whether the object is a storage."""
    from .storage import UntypedStorage

    return isinstance(obj, UntypedStorage)


def is_floating_point(input: Tensor) -> bool:
    """Whether the tensor's dtype is a floating-point one."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the tensor's dtype is a complex one."""
    return input.is_complex()


def is_signed(input: Tensor) -> bool:
    """Whether the tensor's dtype has negative values."""
    return input.is_signed()


def get_device(input: Tensor) -> int:
    """The index of the tensor's device; -1 on the CPU."""
    return input.get_device()


def is_conj(input: Tensor) -> bool:
    """Always False: conjugates are computed."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Always False: negatives are computed."""
    return input.is_neg()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor carries the mark of inference mode (never)."""
    return input.is_inference()


def is_nonzero(input: Tensor) -> bool:
    """Whether a one-element tensor is not zero. RuntimeError for other sizes."""
    if input.numel() != 1:
        raise RuntimeError(
            "Boolean value of Tensor with no values is ambiguous"
            if not input.numel()
            else "Boolean value of Tensor with more than one value is ambiguous"
        )
    return bool(input)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return input.shape == other.shape


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def typename(obj: Any) -> str:
    """The full name of an object's type; of a tensor such as "torch.FloatTensor"."""
    if isinstance(obj, call.Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")


def result_type(tensor1, tensor2) -> dtype:
    """The dtype in which an arithmetic op combines two tensors or numbers.

    >>> import torchlite as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    return result_dtype((tensor1, tensor2))


def broadcast_shapes(*shapes_) -> Size:
    """The shape that tensors of these shapes broadcast to. RuntimeError when there is none."""
    wanted = [(s,) if isinstance(s, int) else tuple(s) for s in shapes_]
    for shape in wanted:
        if any(n < 0 for n in shape):
            raise RuntimeError(f"Trying to create tensor with negative dimension ({min(shape)}): ({min(shape)})")
    try:
        return Size(shapes.broadcast(*wanted))
    except RuntimeError:
        raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape") from None


def set_num_threads(n: int) -> None:
    """How many threads CPU kernels may use, the BLAS under NumPy included where its library lets itself be told."""
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    from .._settings.threads import set_threads

    set_threads(n)


def get_num_threads() -> int:
    """How many threads CPU kernels may use."""
    from .._settings.threads import get_threads

    return get_threads()


def set_num_interop_threads(n: int) -> None:
    """Accepted for compatibility: ops of one program run in the thread that calls them."""
    SWITCHES.interop_threads = n


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was told."""
    return SWITCHES.interop_threads


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Say that results must not vary between runs. CPU kernels are deterministic anyway; device kernels ask this
    switch.
    """
    SWITCHES.deterministic, SWITCHES.deterministic_warn_only = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` is on."""
    return SWITCHES.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether deterministic mode only warns."""
    return SWITCHES.deterministic_warn_only


def get_deterministic_debug_mode() -> int:
    """0 off, 1 warns, 2 raises."""
    return 0 if not SWITCHES.deterministic else 1 if SWITCHES.deterministic_warn_only else 2


def set_deterministic_debug_mode(debug_mode) -> None:
    """0 or "default", 1 or "warn", 2 or "error"."""
    level = {"default": 0, "warn": 1, "error": 2}.get(debug_mode, debug_mode)
    if level not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
        )
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_float32_matmul_precision() -> str:
    """ "highest", "high" or "medium"."""
    return SWITCHES.matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """How exactly float32 matrix products are computed where a device offers a choice: with "high" and "medium" CUDA
    uses TF32. Warns of other words.
    """
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call "
            "has no effect.",
            UserWarning,
            stacklevel=2,
        )
        return
    SWITCHES.set_precision("matmul", "ieee" if precision == "highest" else "tf32")
    SWITCHES.matmul_precision = precision


def set_flush_denormal(mode: bool) -> bool:
    """False: NumPy offers no such switch, denormals stay."""
    return False


def set_warn_always(b: bool) -> None:
    """Whether warnings that come once may come always."""
    SWITCHES.warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was told."""
    return SWITCHES.warn_always


def set_default_tensor_type(t) -> None:
    """Set the default dtype, and for "torch.cuda.FloatTensor" and its kind the default device, by a
    type or its name.
    """
    from .._types.devices import set_default_device
    from .._types.dtypes import set_default_dtype
    from .legacy_types import place_of

    found = place_of(t)
    if found is None or not found[1].is_floating_point:
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, got {t}")
    where, d = found
    set_default_dtype(d)
    set_default_device(None if where == "cpu" else where)
