"""The class Tensor and what makes, keeps, shows and shares tensors."""

from .tensor import Parameter, Tensor

__all__ = ["Parameter", "Tensor"]
