"""Linear layers with sparse quantized weights, for float inputs."""

from .linear import Linear

__all__ = ["Linear"]
