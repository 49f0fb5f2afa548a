"""Comparison of a float network with its quantized one: weights, outputs of layers, and outputs for the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.nn import quantized as nnq
from torchlite.ao.nn.quantized import dynamic as nnqd
from torchlite.ao.quantization import QConfig, prepare
from torchlite.ao.quantization.quantization_mappings import get_default_compare_output_module_list

NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST: set[Any] = {nnqd.Linear, nnq.Linear, nnqd.LSTM, nn.LSTM}


def _find_match(str_list: Iterable[str], key_str: str, postfix: str) -> str | None:
    """Return the first name of the same module as a name that ends with a word: it ends with another word or two."""
    path = key_str.split(".")
    if path[-1] != postfix:
        return None
    stems = [path[:-1]]
    if postfix == "_packed_params" and len(path) > 2:
        stems.append(path[:-2])
    for stem in stems:
        for name in str_list:
            parts = name.split(".")
            if stem in (parts[:-1], parts[:-2]):
                return name
    return None


def _state_weight(packed: Any) -> Any:
    """Return the weight of the state in the packed weights of a recurrent layer: an object, or weights and biases."""
    if isinstance(packed, tuple):
        return packed[2]
    return packed.__getstate__()[0][4][1].__getstate__()[0][0]


def compare_weights(float_dict: dict[str, Any], quantized_dict: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The weights of both networks side by side.

    Args:
        float_dict: The state dictionary of the float network.
        quantized_dict: That of the quantized one.

    Returns:
        Dictionaries with ``"float"`` and ``"quantized"`` by the quantized network's keys.

    Example:
        >>> from torchlite.ao.ns._numeric_suite import compare_weights
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2))
        >>> small = torch.ao.quantization.quantize_dynamic(model)
        >>> [*compare_weights(model.state_dict(), small.state_dict())]
        ['0._packed_params._packed_params']
    """
    found: dict[str, dict[str, Any]] = {}
    for key, value in quantized_dict.items():
        match = _find_match(float_dict, key, "weight")
        if match is not None:
            found[key] = {"float": float_dict[match], "quantized": value}
            continue
        match = _find_match(float_dict, key, "_packed_params")
        if match is not None:
            found[key] = {"float": float_dict[match], "quantized": value[0]}
        path = key.split(".")
        if path[-1] == "param" and len(path) > 2 and path[-3] == "_all_weight_values":
            inputs, hidden = (".".join([*path[:-3], f"weight_{kind}_l{path[-2]}"]) for kind in ("ih", "hh"))
            if inputs in float_dict and hidden in float_dict:
                found[key] = {"float": float_dict[hidden], "quantized": _state_weight(value)}
    return found


def _get_logger_dict_helper(mod: nn.Module, target_dict: dict[str, Any], prefix: str = "") -> None:
    """Put what the loggers within a module noted into a dictionary, by name."""
    start = f"{prefix}." if prefix else ""
    logger = next((child for child in mod.children() if isinstance(child, Logger)), None)
    if logger is not None:
        target_dict[f"{start}stats"] = logger.stats
    for name, child in mod.named_children():
        _get_logger_dict_helper(child, target_dict, start + name)


def get_logger_dict(mod: nn.Module, prefix: str = "") -> dict[str, dict]:
    """Returns the tensors that the loggers within a network recorded, by their names.

    Args:
        mod: The network.
        prefix: The beginning of the names. Default: none.

    Example:
        >>> from torchlite.ao.ns._numeric_suite import OutputLogger, get_logger_dict
        >>> get_logger_dict(torch.nn.Sequential(OutputLogger()))
        {'stats': {'tensor_val': []}}
    """
    found: dict[str, dict] = {}
    _get_logger_dict_helper(mod, found, prefix)
    return found


class Logger(nn.Module):
    """The base class of modules that note tensors in the dictionary ``stats``."""

    def __init__(self) -> None:
        super().__init__()
        self.stats: dict[str, Any] = {}
        self.dtype = torch.quint8

    def forward(self, x: Any) -> Any:
        return None


class ShadowLogger(Logger):
    """Notes the outputs of a quantized module and of its float shadow.

    Example:
        >>> from torchlite.ao.ns._numeric_suite import ShadowLogger
        >>> logger = ShadowLogger()
        >>> logger(torch.ones(1), torch.zeros(1))
        >>> logger.stats
        {'float': [tensor([0.])], 'quantized': [tensor([1.])]}
    """

    def __init__(self) -> None:
        super().__init__()
        self.stats["float"], self.stats["quantized"] = [], []

    def forward(self, x: Any, y: Any) -> None:  # type: ignore[override]
        for name, value in (("quantized", x), ("float", y)):
            self.stats[name].append((value[0] if len(value) > 1 else value).detach())


class OutputLogger(Logger):
    """Notes each tensor that it gets, and returns it.

    Example:
        >>> from torchlite.ao.ns._numeric_suite import OutputLogger
        >>> OutputLogger()(torch.ones(1))
        tensor([1.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.stats["tensor_val"] = []

    def forward(self, x: Any) -> Any:
        self.stats["tensor_val"].append(x)
        return x


def _convert_tuple_to_list(t: Any) -> Any:
    return [_convert_tuple_to_list(item) for item in t] if type(t) is tuple else t


def _dequantize_tensor_list(t: Any) -> Any:
    if type(t) is list:
        return [_dequantize_tensor_list(item) for item in t]
    return t.dequantize() if t.is_quantized else t


class Shadow(nn.Module):
    """A quantized module with its float one, which gets the same inputs as numbers. A logger gets both outputs.

    Args:
        q_module: The quantized module.
        float_module: The float one.
        logger_cls: The class of the logger.

    Example:
        >>> from torchlite.ao.ns._numeric_suite import Shadow, ShadowLogger
        >>> shadow = Shadow(torch.nn.ReLU(), torch.nn.ReLU6(), ShadowLogger)
        >>> shadow(torch.tensor([7.0]))
        tensor([7.])
        >>> shadow.logger.stats
        {'float': [tensor([6.])], 'quantized': [tensor([7.])]}
    """

    def __init__(self, q_module: Any, float_module: Any, logger_cls: Callable) -> None:
        super().__init__()
        self.orig_module = q_module
        self.shadow_module = float_module
        self.dequant = nnq.DeQuantize()
        self.logger = logger_cls()

    def forward(self, *x: Any) -> Any:
        inputs = _convert_tuple_to_list(x)
        output = self.orig_module(*inputs)
        self.logger(output, self.shadow_module(*_dequantize_tensor_list(inputs)))
        return output

    def _call(self, name: str, inputs: Any, *others: Any) -> Any:
        """Call a method of both modules. Tensors of `inputs`, or of its list, become numbers for the float one."""
        output = getattr(self.orig_module, name)(*inputs, *others)
        self.logger(output, getattr(self.shadow_module, name)(*_dequantize_tensor_list(inputs), *others))
        return output

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two tensors.

        Args:
            x: The first one.
            y: The second one.
        """
        return self._call("add", [x, y])

    def add_scalar(self, x: Any, y: float) -> Any:
        """The sum of a tensor and a number.

        Args:
            x: The tensor.
            y: The number.
        """
        return self._call("add_scalar", [x], y)

    def mul(self, x: Any, y: Any) -> Any:
        """The product of two tensors.

        Args:
            x: The first one.
            y: The second one.
        """
        return self._call("mul", [x, y])

    def mul_scalar(self, x: Any, y: float) -> Any:
        """The product of a tensor and a number.

        Args:
            x: The tensor.
            y: The number.
        """
        return self._call("mul_scalar", [x], y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Tensors one after another.

        Args:
            x: The tensors.
            dim: The dimension. Default: 0.
        """
        return self._call("cat", [[*x]], dim)

    def add_relu(self, x: Any, y: Any) -> Any:
        """The sum of two tensors, at least zero.

        Args:
            x: The first one.
            y: The second one.
        """
        return self._call("add_relu", [x, y])


def prepare_model_with_stubs(float_module: Any, q_module: Any, module_swap_list: Any, logger_cls: Callable) -> None:
    """Puts a `Shadow` in place of each quantized module whose float one has a class of a list.

    Args:
        float_module: The float network.
        q_module: The quantized network, which is changed.
        module_swap_list: The classes of float modules.
        logger_cls: The class of loggers.
    """
    children = dict(float_module.named_children())
    for name, module in list(q_module.named_children()):
        if name not in children:
            continue
        original = children[name]
        if type(original) not in module_swap_list:
            prepare_model_with_stubs(original, module, module_swap_list, logger_cls)
        elif not _is_identical_module_type(module, original):
            q_module._modules[name] = Shadow(module, original, logger_cls)


def _is_identical_module_type(mod1: nn.Module, mod2: nn.Module) -> bool:
    first, second = ([type(part) for part in mod.modules()] for mod in (mod1, mod2))
    return first == second


def compare_model_stub(
    float_model: Any, q_model: Any, module_swap_list: Any, *data: Any, logger_cls: Any = ShadowLogger
) -> dict[str, dict]:
    """Runs a quantized network and compares its modules with float ones that get the same inputs.

    Args:
        float_model: The float network.
        q_model: The quantized network, which is changed.
        module_swap_list: The classes of float modules that are compared.
        *data: The inputs.
        logger_cls: The class of loggers. Default: `ShadowLogger`.

    Returns:
        Dictionaries with ``"float"`` and ``"quantized"`` by the names of modules.

    Example:
        >>> from torchlite.ao.ns._numeric_suite import compare_model_stub
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2))
        >>> small = torch.ao.quantization.quantize_dynamic(model)
        >>> found = compare_model_stub(model, small, {torch.nn.Linear}, torch.ones(1, 3))
        >>> {key: [*value] for key, value in found.items()}
        {'0.stats': ['float', 'quantized']}
    """
    prepare_model_with_stubs(float_model, q_model, module_swap_list, logger_cls)
    q_model(*data)
    return get_logger_dict(q_model)


def get_matching_activations(float_module: nn.Module, q_module: nn.Module) -> dict[str, dict[str, Any]]:
    """Returns the tensors that the loggers of both networks recorded, side by side.

    Args:
        float_module: The float network, after `prepare_model_outputs`.
        q_module: The quantized one.

    Returns:
        Dictionaries with ``"float"`` and ``"quantized"`` by the names of modules.
    """
    floats = get_logger_dict(float_module)
    names = sorted(floats, reverse=True)
    found: dict[str, dict[str, Any]] = {}
    for key, stats in get_logger_dict(q_module).items():
        match = _find_match(names, key, "stats") if stats["tensor_val"] else None
        if match is not None:
            found[key] = {"float": floats[match]["tensor_val"], "quantized": stats["tensor_val"]}
    return found


def prepare_model_outputs(
    float_module: Any, q_module: Any, logger_cls: Any = OutputLogger, allow_list: Any = None
) -> None:
    """Adds loggers behind the modules of both networks.

    Args:
        float_module: The float network, which is changed.
        q_module: The quantized one, which is changed.
        logger_cls: The class of loggers. Default: `OutputLogger`.
        allow_list: The classes of modules. Default: those of `get_default_compare_output_module_list`.
    """
    if allow_list is None:
        allow_list = get_default_compare_output_module_list()
    qconfig = QConfig(activation=logger_cls, weight=None)
    float_module.qconfig = q_module.qconfig = qconfig
    prepare(float_module, inplace=True, allow_list=allow_list, prepare_custom_config_dict={})
    prepare(
        q_module, inplace=True, allow_list=allow_list, prepare_custom_config_dict={},
        observer_non_leaf_module_list=NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST,
    )  # fmt: skip


def compare_model_outputs(
    float_model: Any, q_model: Any, *data: Any, logger_cls: Any = OutputLogger, allow_list: Any = None
) -> dict[str, dict[str, Any]]:
    """Runs both networks and compares the outputs of their modules.

    Args:
        float_model: The float network, which is changed.
        q_model: The quantized one, which is changed.
        *data: The inputs.
        logger_cls: The class of loggers. Default: `OutputLogger`.
        allow_list: The classes of modules. Default: those of `get_default_compare_output_module_list`.

    Returns:
        Dictionaries with ``"float"`` and ``"quantized"`` by the names of modules.

    Example:
        >>> from torchlite.ao.ns._numeric_suite import compare_model_outputs
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2))
        >>> small = torch.ao.quantization.quantize_dynamic(model)
        >>> [*compare_model_outputs(model, small, torch.ones(1, 3))]
        ['0.stats']
    """
    prepare_model_outputs(float_model, q_model, logger_cls, allow_list)
    float_model(*data)
    q_model(*data)
    return get_matching_activations(float_model, q_model)
