"""Semi-structured (2:4) sparsity: names alone, because its kernels are NVIDIA's libraries, which no backend has."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor

__all__ = [
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]  # fmt: skip

_REASON = "semi-structured (2:4) sparsity needs kernels of NVIDIA's that torchlite has not"


def to_sparse_semi_structured(original_tensor, transposed: bool = False):
    """Raise RuntimeError: semi-structured (2:4) sparsity needs NVIDIA kernels that torchlite does not have.

    Args:
        original_tensor: Dense tensor.
        transposed: Ignored. Default: ``False``.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError(
        f"Error original_tensor.device= {original_tensor.device} is not supported! Only CUDA tensors are currently "
        "supported."
        if original_tensor.device.type != "cuda"
        else _REASON
    )


class SparseSemiStructuredTensor(Tensor):
    """Class of semi-structured matrices. None can be made here; programs ask whether a tensor is one.

    Raises:
        NotImplementedError: The class is called.

    Example:
        >>> isinstance(torch.ones(2, 2), torch.sparse.SparseSemiStructuredTensor)
        False
    """

    _DEFAULT_ALG_ID: int = 0  # packages have it as the default of an argument

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(_REASON)

    @classmethod
    def from_dense(cls, original_tensor: Tensor, alg_id: int = 0) -> Any:
        """Raises an error: `NotImplementedError` for the class without a library, `RuntimeError` for the others.

        Args:
            original_tensor: Dense tensor.
            alg_id: No effect.

        Raises:
            NotImplementedError: The class is `SparseSemiStructuredTensor` itself.
            RuntimeError: The class is another one.

        Example:
            >>> torch.sparse.SparseSemiStructuredTensorCUTLASS.from_dense(torch.ones(4, 4))
            Traceback (most recent call last):
            RuntimeError: ...
        """
        if cls is SparseSemiStructuredTensor:
            raise NotImplementedError(_REASON)
        return to_sparse_semi_structured(original_tensor)


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """Class of semi-structured matrices for CUTLASS. None can be made here.

    Raises:
        NotImplementedError: The class is called.

    Example:
        >>> issubclass(torch.sparse.SparseSemiStructuredTensorCUTLASS, torch.Tensor)
        True
    """


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """Class of semi-structured matrices for cuSPARSELt. None can be made here.

    Raises:
        NotImplementedError: The class is called.

    Example:
        >>> issubclass(torch.sparse.SparseSemiStructuredTensorCUSPARSELT, torch.Tensor)
        True
    """
