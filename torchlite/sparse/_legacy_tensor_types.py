"""torch.sparse.FloatTensor and the other legacy types: constructors of COO tensors that also support isinstance."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from .._sparse.constructors import sparse_coo_tensor
from .._tensor import Tensor
from .._tensor.legacy_types import _TypedTensor, typed_tensor_class
from .._types.layouts import sparse_coo

if TYPE_CHECKING:
    from .._types import dtypes

NAMES = (
    "BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor",
)  # fmt: skip


class _SparseType(_TypedTensor):
    """`torch.sparse.FloatTensor(indices, values, size)`, `torch.sparse.FloatTensor(2, 3)`, `isinstance`."""

    layout = sparse_coo
    is_sparse = True

    def __call__(cls, *args: Any, device: Any = None, size: Any = None) -> Tensor:
        cls._check_there()
        device = device or cls.where
        args = args if size is None else (*args, size)
        tensors = [isinstance(arg, Tensor) for arg in args]
        if not any(tensors):
            return cls._of_size(args, device)
        if tensors not in ([True, True], [True, True, False]):
            got = ", ".join(type(arg).__name__ for arg in args)
            raise TypeError(
                f"new() received an invalid combination of arguments - got ({got}), but expected one of:\n"
                " * (*, torch.device device = None)\n"
                " * (Tensor indices, Tensor values, *, torch.device device = None)\n"
                " * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)\n"
                " * (tuple of ints size, *, torch.device device = None)\n"
            )
        _warn_legacy_type("(indices, values, *, device=)" if len(args) == 2 else "(indices, values, shape, *, device=)")
        return sparse_coo_tensor(*args, device=device)

    def _of_size(cls, args: tuple, device: Any) -> Tensor:
        if len(args) == 1 and not hasattr(args[0], "__index__"):
            if isinstance(args[0], list):
                raise TypeError(
                    "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or "
                    "construct a strided tensor and convert it to sparse via to_sparse."
                )
            args = tuple(args[0])
        _warn_legacy_type("(shape, *, device=)" if args else "()")
        return sparse_coo_tensor(size=args or (0,), dtype=cls.dtype, device=device)


def _warn_legacy_type(form: str) -> None:
    warnings.warn(
        f"torch.sparse.SparseTensor{form} is deprecated.  Please use torch.sparse_coo_tensor.",
        UserWarning,
        stacklevel=4,
    )


def find_sparse_type(name: str, where: str = "cpu") -> Any:
    """The class of that name: `torch.sparse.FloatTensor`, `torch.cuda.sparse.FloatTensor`."""
    d: dtypes.dtype = typed_tensor_class(name, where).dtype
    module = "torch.sparse" if where == "cpu" else f"torch.{where}.sparse"
    doc = f"COO tensors of {d} on {where}: made from indices and values, or from sizes (without elements)."
    return _SparseType(name, (), {"dtype": d, "where": where, "__module__": module, "__doc__": doc})
