"""The base class of pruners."""

from __future__ import annotations

from itertools import product
from operator import getitem
from typing import Any

import torchlite as torch
import torchlite.nn.functional as F
from torchlite import nn
from torchlite.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from torchlite.ao.pruning.sparsifier.utils import module_contains_param
from torchlite.fx import symbolic_trace
from torchlite.nn.utils import parametrize

from . import prune_functions as prune
from .match_utils import apply_match
from .parametrization import BiasHook, FakeStructuredSparsity

__all__ = ["BaseStructuredSparsifier"]
_ACTIVATIONS = (
    "relu rrelu hardtanh relu6 sigmoid hardsigmoid tanh silu mish hardswish elu celu selu hardshrink leaky_relu "
    "logsigmoid softplus prelu softsign tanhshrink gelu"
)
_ACTIVATION_CLASSES = (
    "ReLU RReLU Hardtanh ReLU6 Sigmoid Hardsigmoid Tanh SiLU Mish Hardswish ELU CELU SELU Hardshrink LeakyReLU "
    "LogSigmoid Softplus PReLU Softsign Tanhshrink GELU"
)


def _get_supported_structured_pruning_modules() -> set[Any]:
    """Return the classes of layers that can be pruned."""
    return {nn.Linear, nn.Conv2d, nn.LSTM}


def _get_supported_activation_functions() -> set[Any]:
    """Return the functions that may be between two layers."""
    return {getattr(F, name) for name in _ACTIVATIONS.split()}


def _get_supported_activation_modules() -> set[Any]:
    """Return the classes that may be between two layers."""
    return {getattr(nn, name) for name in _ACTIVATION_CLASSES.split()}


def _get_default_structured_pruning_patterns() -> dict[Any, Any]:
    """Return the functions that prune, by what follows each other."""
    patterns: dict[Any, Any] = {
        (nn.Linear, "output"): prune.prune_linear,
        (nn.Linear, nn.Linear): prune.prune_linear_linear,
        (nn.Conv2d, "output"): prune.prune_conv2d,
        (nn.Conv2d, nn.Conv2d): prune.prune_conv2d_conv2d,
        (nn.LSTM, getitem, nn.Linear): prune.prune_lstm_output_linear,
        (nn.LSTM, getitem, nn.LayerNorm, nn.Linear): prune.prune_lstm_output_layernorm_linear,
    }
    pools = (nn.AvgPool2d, F.avg_pool2d, nn.MaxPool2d, F.max_pool2d)
    for activation in _get_supported_activation_functions() | _get_supported_activation_modules():
        patterns[nn.Linear, activation, nn.Linear] = prune.prune_linear_activation_linear
        patterns[nn.Conv2d, activation, nn.Conv2d] = prune.prune_conv2d_activation_conv2d
        for pool in pools:
            patterns[nn.Conv2d, activation, pool, nn.Conv2d] = prune.prune_conv2d_activation_pool_conv2d
            patterns[nn.Conv2d, pool, activation, nn.Conv2d] = prune.prune_conv2d_pool_activation_conv2d
    for pool, flatten in product((nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d), (nn.Flatten, torch.flatten)):
        patterns[nn.Conv2d, pool, flatten, nn.Linear] = prune.prune_conv2d_pool_flatten_linear
    return patterns


class BaseStructuredSparsifier(BaseSparsifier):
    """The base class of pruners: masks are those of whole channels, which `prune` removes.

    Args:
        defaults: Arguments of `update_mask` that all weights have.
        patterns: The functions that prune, by tuples of the classes and functions that follow each other. Default:
            those of linear layers, convolutions and LSTMs.

    Example:
        >>> from torchlite.ao.pruning._experimental.pruner import SaliencyPruner
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        >>> pruner = SaliencyPruner({})
        >>> pruner.prepare(model, [{"tensor_fqn": "0.weight", "sparsity_level": 0.5}])
        >>> pruner.step()
        >>> pruner.prune().get_submodule("2")
        Linear(in_features=2, out_features=3, bias=True)
    """

    def __init__(self, defaults: dict[str, Any] | None, patterns: dict[Any, Any] | None = None) -> None:
        super().__init__(defaults)
        self.patterns = _get_default_structured_pruning_patterns() if patterns is None else patterns

    def make_config_from_model(self, model: Any, SUPPORTED_MODULES: set[Any] | None = None) -> None:  # type: ignore[override]
        """Sets ``config`` to the weights of a model's layers.

        Args:
            model: The model.
            SUPPORTED_MODULES: The classes of layers. Default: `Linear`, `Conv2d` and `LSTM`.
        """
        classes = _get_supported_structured_pruning_modules() if SUPPORTED_MODULES is None else SUPPORTED_MODULES
        super().make_config_from_model(model, classes)

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        """Register a mask of channels for each group, and hooks that add the biases."""
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            weight = getattr(module, name)
            mask = group.get("mask")
            if mask is None:
                mask = torch.ones(weight.shape[0], dtype=torch.bool, device=weight.device)
            self.state[group["tensor_fqn"]]["mask"] = mask
            make = group.get("parametrization", FakeStructuredSparsity)
            parametrize.register_parametrization(module, name, make(mask))
            if not isinstance(module, (nn.Linear, nn.Conv2d)):
                continue
            prune_bias = group.get("prune_bias", True)
            if module.bias is not None:
                module.register_parameter("_bias", nn.Parameter(module.bias.detach()))
                module.bias = None  # type: ignore[assignment]
                module.prune_bias = prune_bias
            module.register_forward_hook(BiasHook(module.parametrizations["weight"][0], prune_bias))  # type: ignore[index]

    def prune(self) -> Any:
        """Removes the masked channels.

        Returns:
            The traced model.

        Raises:
            Exception: A mask is left, because no pattern has its layer.
        """
        self.traced = symbolic_trace(self.model)
        modules = dict(self.traced.named_modules())
        for node in self.traced.graph.nodes:
            first = modules.get(str(node.target))
            for pattern, function in self.patterns.items():
                found = apply_match(modules, pattern, node, [])
                if found is None or not module_contains_param(first, FakeStructuredSparsity):
                    continue
                parts = [(one.op, modules.get(str(one.target), one.target)) for one in found]
                function(*[part for op, part in parts if op in ("call_module", "call_function")])
        for module in self.traced.modules():
            if module_contains_param(module, FakeStructuredSparsity):
                raise Exception(f"Error: {module} still contains FakeStructuredSparsity parametrizations!")
        self.traced.graph.lint()
        self.traced.recompile()
        return self.traced
