"""The class Tensor: creation, conversion, storages, printing and sharing of tensors."""

from .tensor import Parameter, Tensor

__all__ = ["Parameter", "Tensor"]
