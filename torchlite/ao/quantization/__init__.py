"""Names of quantization. torchlite does not quantize: modules that mark where it would happen pass tensors on, as
PyTorch's do until a model is converted.
"""

from __future__ import annotations

from typing import Any

from torchlite._settings.module_dir import make_module_dir
from torchlite.nn.modules.module import Module

__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub", "QuantWrapper"]


class QuantStub(Module):
    """Marks where tensors would be quantized; it returns its input.

    Args:
        qconfig: Kept as an attribute. Default: none.

    Example:
        >>> torch.ao.quantization.QuantStub()(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        return x


class DeQuantStub(QuantStub):
    """Marks where tensors would be dequantized; it returns its input.

    Args:
        qconfig: Kept as an attribute. Default: none.

    Example:
        >>> torch.ao.quantization.DeQuantStub()(torch.ones(2))
        tensor([1., 1.])
    """


class QuantWrapper(Module):
    """A module between a `QuantStub` and a `DeQuantStub`.

    Args:
        module: The module.

    Example:
        >>> torch.ao.quantization.QuantWrapper(torch.nn.ReLU())(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        return self.dequant(self.module(self.quant(X)))


class ObserverBase(Module):
    """Class for `isinstance` checks: no module is one.

    Args:
        *args: No effect.
        **kwargs: No effect.

    Raises:
        NotImplementedError: The class is called.

    Example:
        >>> isinstance(torch.nn.ReLU(), torch.ao.quantization.ObserverBase)
        False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"torch.ao.quantization.{type(self).__name__}: torchlite does not quantise models")


class FakeQuantizeBase(ObserverBase):
    """Class for `isinstance` checks: no module is one.

    Args:
        *args: No effect.
        **kwargs: No effect.

    Raises:
        NotImplementedError: The class is called.

    Example:
        >>> isinstance(torch.nn.ReLU(), torch.ao.quantization.FakeQuantizeBase)
        False
    """


_ABSENT = (
    "convert", "fuse_modules", "fuse_modules_qat", "prepare", "prepare_qat", "quantize", "quantize_dynamic",
    "quantize_qat", "get_default_qconfig", "get_default_qat_qconfig", "get_default_qconfig_mapping",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _ABSENT:

        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(f"torch.ao.quantization.{name}: torchlite does not quantise models")

        return refuse
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = make_module_dir(globals())
