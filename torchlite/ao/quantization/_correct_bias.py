"""Correction of the biases of quantized layers by the mean errors of their outputs."""

from __future__ import annotations

from typing import Any

from torchlite import Tensor, nn
from torchlite.ao.nn import quantized as nnq
from torchlite.ao.ns import _numeric_suite as ns

__all__ = ["MeanShadowLogger", "bias_correction", "get_module", "get_param", "parent_child_names"]

_supported_modules = {nn.Linear, nn.Conv2d}
_supported_modules_quantized = {nnq.Linear, nnq.Conv2d}


def get_module(model: nn.Module, name: str) -> nn.Module:
    """The module of a name within a model.

    Args:
        model: The model.
        name: The name.
    """
    return dict(model.named_modules())[name]


def parent_child_names(name: str) -> tuple[str, str]:
    """The name of a module's parent, and its name within it.

    Args:
        name: The name of the module.

    Example:
        >>> from torchlite.ao.quantization._correct_bias import parent_child_names
        >>> parent_child_names("a.b.c"), parent_child_names("a")
        (('a.b', 'c'), ('', 'a'))
    """
    parent, _, child = name.rpartition(".")
    return parent, child


def get_param(module: nn.Module, attr: str) -> Any:
    """The weight or bias of a layer, which quantized layers have as a method.

    Args:
        module: The layer.
        attr: ``"weight"`` or ``"bias"``.

    Returns:
        The tensor, or ``None``.
    """
    found = getattr(module, attr, None)
    return found() if callable(found) else found


class MeanShadowLogger(ns.Logger):
    """Notes the means over all calls of the outputs of a quantized module and of its float shadow.

    Example:
        >>> import torchlite as torch
        >>> from torchlite.ao.quantization._correct_bias import MeanShadowLogger
        >>> logger = MeanShadowLogger()
        >>> logger(torch.ones(1), torch.zeros(1))
        >>> logger(torch.zeros(1), torch.zeros(1))
        >>> logger.stats
        {'float': tensor([0.]), 'quantized': tensor([0.5000])}
    """

    float_sum: Tensor | None
    quant_sum: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def forward(self, x: Tensor, y: Tensor) -> None:  # type: ignore[override]
        if x.is_quantized:
            x = x.dequantize()
        self.count += 1
        self.quant_sum = x if self.quant_sum is None else self.quant_sum + x
        self.float_sum = y if self.float_sum is None else self.float_sum + y
        self.stats.update(float=self.float_sum / self.count, quantized=self.quant_sum / self.count)

    def clear(self) -> None:
        """Forgets what it noted."""
        self.stats["float"] = self.stats["quantized"] = self.float_sum = self.quant_sum = None
        self.count = 0


def bias_correction(
    float_model: nn.Module, quantized_model: nn.Module, img_data: Any,
    target_modules: Any = _supported_modules_quantized,
    neval_batches: int | None = None,
) -> None:  # fmt: skip
    """Subtracts the mean error of the outputs from the bias of each quantized layer, in the order of the network.

    Args:
        float_model: The float network.
        quantized_model: The quantized one, which is changed; its layers stay in a `Shadow`.
        img_data: Batches, whose first items are the inputs.
        target_modules: The quantized classes. Default: `Linear` and `Conv2d` of `torch.ao.nn.quantized`.
        neval_batches: The count of batches that are used. Default: all.

    Example:
        >>> import torchlite as torch
        >>> from torchlite.ao.quantization._correct_bias import bias_correction
        >>> model = torch.ao.quantization.QuantWrapper(torch.nn.Sequential(torch.nn.Linear(3, 2)))
        >>> model.qconfig = torch.ao.quantization.default_qconfig
        >>> data = [(torch.randn(4, 3), None)]
        >>> small = torch.ao.quantization.quantize(model, torch.ao.quantization.default_eval_fn, [data])
        >>> bias_correction(model, small, data)
        >>> type(small.module[0]).__name__
        'Shadow'
    """
    ns.prepare_model_with_stubs(float_model, quantized_model, _supported_modules, MeanShadowLogger)
    for name, layer in [*quantized_model.named_modules()]:
        bias = get_param(layer, "bias") if type(layer) in target_modules else None
        if bias is None:
            continue
        for count, data in enumerate(img_data, start=1):
            quantized_model(data[0])
            if count == neval_batches:
                break
        stats = ns.get_logger_dict(quantized_model)[f"{parent_child_names(name)[0]}.stats"]
        error = stats["quantized"] - stats["float"]
        bias.data = bias.data - error.mean([dim for dim in range(error.dim()) if dim != 1])
        for module in quantized_model.modules():
            if isinstance(module, MeanShadowLogger):
                module.clear()
