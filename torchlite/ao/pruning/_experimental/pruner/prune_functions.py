"""Removal of the masked channels of layers, and of what the layers behind them read of these channels.

Biases of removed channels that are not to be pruned are constants, which the next layer's bias takes over.
"""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.nn.utils import parametrize

from .parametrization import BiasHook, FakeStructuredSparsity

__all__ = [
    "prune_conv2d", "prune_conv2d_activation_conv2d", "prune_conv2d_activation_pool_conv2d", "prune_conv2d_conv2d",
    "prune_conv2d_padded", "prune_conv2d_pool_activation_conv2d", "prune_conv2d_pool_flatten_linear", "prune_linear",
    "prune_linear_activation_linear", "prune_linear_linear", "prune_lstm_output_layernorm_linear",
    "prune_lstm_output_linear",
]  # fmt: skip


def _mask_of(layer: Any, name: str = "weight") -> Tensor:
    """Return the mask of a weight."""
    return next(one.mask for one in layer.parametrizations[name] if isinstance(one, FakeStructuredSparsity))


def _unmask(layer: Any, name: str = "weight") -> Tensor:
    """Remove the mask of a weight, whose numbers become zero, and return the mask."""
    mask = _mask_of(layer, name)
    with torch.no_grad():
        parametrize.remove_parametrizations(layer, name, leave_parametrized=True)
    return mask


def _cut(layer: Any, name: str, index: Any) -> None:
    """Keep a part of a tensor of a layer."""
    setattr(layer, name, nn.Parameter(getattr(layer, name).detach()[index]))


def _read_weight(layer: Any, name: str = "weight") -> Tensor:
    """Return a weight without its mask."""
    return layer.parametrizations[name].original if parametrize.is_parametrized(layer, name) else getattr(layer, name)


def _cut_inputs(layer: Any, mask: Tensor, name: str = "weight") -> int:
    """Keep the columns of a weight, which may have a mask, and return their count."""
    kept = nn.Parameter(_read_weight(layer, name).detach()[:, mask])
    if parametrize.is_parametrized(layer, name):
        layer.parametrizations[name].original = kept
    else:
        setattr(layer, name, kept)
    return kept.shape[1]


def _cut_outputs(layer: Any) -> Tensor:
    """Remove the masked channels of a layer, and return the mask."""
    mask = _unmask(layer)
    _cut(layer, "weight", mask)
    setattr(layer, "out_features" if isinstance(layer, nn.Linear) else "out_channels", layer.weight.shape[0])
    for key in [key for key, hook in layer._forward_hooks.items() if isinstance(hook, BiasHook)]:
        del layer._forward_hooks[key]
    return mask


def _cut_bias(layer: Any, mask: Tensor) -> Tensor | None:
    """Keep the biases of a layer's channels, and return those of removed channels; None if there are none."""
    held = getattr(layer, "_bias", None)
    now = held if layer.bias is None else layer.bias
    if now is not None:
        layer.bias = nn.Parameter(now.detach()[mask])
    if hasattr(layer, "_bias"):
        del layer._bias
    return None if held is None else held.detach()[~mask]


def _adjusted_bias(layer: Any, constants: Tensor, mask: Tensor) -> nn.Parameter:
    """Return the bias of a layer with the constants of removed channels."""
    columns = _read_weight(layer).detach()[:, ~mask]
    if not isinstance(layer, (nn.Conv2d, nn.Linear)):
        raise NotImplementedError(f"Type {type(layer)} not supported yet.")
    bias = columns.flatten(2).sum(2) @ constants if isinstance(layer, nn.Conv2d) else columns @ constants
    old = getattr(layer, "_bias", None) if parametrize.is_parametrized(layer) else layer.bias
    return nn.Parameter(bias if old is None else bias + old.detach())


def _cut_biases(first: Any, activation: Any, second: Any, mask: Tensor, spread: int = 1) -> None:
    """Remove the biases of a layer's masked channels. Unless they are pruned, the next layer's bias takes them over."""
    constants = _cut_bias(first, mask)
    if constants is None or getattr(first, "prune_bias", False):
        return
    if activation:
        constants = activation(constants)
    second.bias = _adjusted_bias(second, constants.repeat_interleave(spread), mask.repeat_interleave(spread))


def prune_linear(linear: Any) -> None:
    """Removes the masked outputs of a layer.

    Args:
        linear: The layer.
    """
    mask = _cut_outputs(linear)
    if getattr(linear, "prune_bias", False):
        _cut_bias(linear, mask)


def prune_linear_linear(linear1: Any, linear2: Any) -> None:
    """Removes the masked outputs of a layer, and the inputs of the next one.

    Args:
        linear1: The layer.
        linear2: The next one.
    """
    prune_linear_activation_linear(linear1, None, linear2)


def prune_linear_activation_linear(linear1: Any, activation: Any, linear2: Any) -> None:
    """Removes the masked outputs of a layer, and the inputs of the one behind an activation.

    Args:
        linear1: The layer.
        activation: The activation, or ``None``.
        linear2: The layer behind it.
    """
    mask = _cut_outputs(linear1)
    _cut_biases(linear1, activation, linear2, mask)
    linear2.in_features = _cut_inputs(linear2, mask)


def prune_conv2d_padded(conv2d_1: Any) -> None:
    """Makes the masked channels of a convolution zero, without their removal, and gives it its bias back.

    Args:
        conv2d_1: The convolution.
    """
    mask = _unmask(conv2d_1)
    held, now = getattr(conv2d_1, "_bias", None), conv2d_1.bias
    if held is not None:
        found = held.detach() if now is None else torch.where(mask, now.detach(), held.detach())
        conv2d_1.bias = nn.Parameter(found)
    elif now is not None:
        now.data[~mask] = 0
    if hasattr(conv2d_1, "_bias"):
        del conv2d_1._bias


def prune_conv2d(conv2d: Any) -> None:
    """Removes the masked channels of a convolution.

    Args:
        conv2d: The convolution.
    """
    prune_linear(conv2d)


def prune_conv2d_conv2d(conv2d_1: Any, conv2d_2: Any) -> None:
    """Removes the masked channels of a convolution, and the inputs of the next one.

    Args:
        conv2d_1: The convolution.
        conv2d_2: The next one.
    """
    prune_conv2d_activation_conv2d(conv2d_1, None, conv2d_2)


def prune_conv2d_activation_conv2d(conv2d_1: Any, activation: Any, conv2d_2: Any) -> None:
    """Removes the masked channels of a convolution, and the inputs of the one behind an activation.

    Channels stay, with zeros, if the convolution has a bias and the second one pads: at its edges the constants would
    be absent.

    Args:
        conv2d_1: The convolution.
        activation: The activation, or ``None``.
        conv2d_2: The convolution behind it.
    """
    has_bias = conv2d_1.bias is not None or getattr(conv2d_1, "_bias", None) is not None
    if has_bias and hasattr(conv2d_2, "padding") and conv2d_2.padding > (0, 0):
        prune_conv2d_padded(conv2d_1)
        return
    mask = _cut_outputs(conv2d_1)
    _cut_biases(conv2d_1, activation, conv2d_2, mask)
    conv2d_2.in_channels = _cut_inputs(conv2d_2, mask)


def prune_conv2d_pool_activation_conv2d(c1: Any, pool: Any, activation: Any, c2: Any) -> None:
    """Removes the masked channels of a convolution, and the inputs of the one behind pooling and an activation.

    Args:
        c1: The convolution.
        pool: The pooling.
        activation: The activation.
        c2: The convolution behind it.
    """
    prune_conv2d_activation_conv2d(c1, activation, c2)


def prune_conv2d_activation_pool_conv2d(c1: Any, activation: Any, pool: Any, c2: Any) -> None:
    """Removes the masked channels of a convolution, and the inputs of the one behind an activation and pooling.

    Args:
        c1: The convolution.
        activation: The activation.
        pool: The pooling.
        c2: The convolution behind it.
    """
    prune_conv2d_activation_conv2d(c1, activation, c2)


def prune_conv2d_pool_flatten_linear(conv2d: Any, pool: Any, flatten: Any, linear: Any) -> None:
    """Removes the masked channels of a convolution, and the inputs of the linear layer behind pooling.

    Args:
        conv2d: The convolution.
        pool: The pooling.
        flatten: What flattens channels and positions.
        linear: The linear layer.

    Raises:
        AssertionError: The layer's inputs are no multiple of the channels.
    """
    channels, inputs = len(_mask_of(conv2d)), _read_weight(linear).shape[1]
    if inputs % channels:
        raise AssertionError(f"Flattening from dimensions {channels} to {inputs} not supported")
    mask = _cut_outputs(conv2d)
    spread = inputs // channels
    _cut_biases(conv2d, None, linear, mask, spread)
    linear.in_features = _cut_inputs(linear, mask.repeat_interleave(spread))


def prune_lstm_output_linear(lstm: Any, getitem: Any, linear: Any) -> None:
    """Removes the masked rows of an LSTM's weights, and the inputs of the layer behind it.

    Args:
        lstm: The LSTM.
        getitem: What takes its outputs.
        linear: The linear layer.
    """
    prune_lstm_output_layernorm_linear(lstm, getitem, None, linear)


def prune_lstm_output_layernorm_linear(lstm: Any, getitem: Any, layernorm: Any, linear: Any) -> None:
    """Removes the masked rows of an LSTM's weights, and the inputs of the layers behind it.

    Args:
        lstm: The LSTM.
        getitem: What takes its outputs.
        layernorm: The normalization behind it, or ``None``.
        linear: The linear layer.
    """
    for layer in range(lstm.num_layers):
        if parametrize.is_parametrized(lstm, f"weight_ih_l{layer}"):
            mask = _unmask(lstm, f"weight_ih_l{layer}")
            for name in ("weight_ih", "bias_ih"):
                _cut(lstm, f"{name}_l{layer}", mask)
        if not parametrize.is_parametrized(lstm, f"weight_hh_l{layer}"):
            continue
        name = f"weight_hh_l{layer}"
        mask = _unmask(lstm, name)
        masks, weights = (torch.split(value, lstm.hidden_size) for value in (mask, getattr(lstm, name)))
        gates = [weight.detach()[one][:, one] for weight, one in zip(weights, masks, strict=True)]
        setattr(lstm, name, nn.Parameter(torch.cat(gates)))
        _cut(lstm, f"bias_hh_l{layer}", mask)
        outputs = masks[-1]
        if layer + 1 < lstm.num_layers:
            _cut_inputs(lstm, outputs, f"weight_ih_l{layer + 1}")
            continue
        lstm.hidden_size = int(masks[0].sum())
        linear.in_features = _cut_inputs(linear, outputs)
        if layernorm is not None:
            layernorm.normalized_shape = (linear.in_features,)
            _cut(layernorm, "weight", outputs)
            _cut(layernorm, "bias", outputs)
