"""The older name of `torch.ao.quantization`."""

from .ao.quantization import DeQuantStub, QuantStub, QuantWrapper
from .ao.quantization import __getattr__ as __getattr__

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]
