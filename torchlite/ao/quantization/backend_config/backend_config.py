"""Configuration of a backend: patterns of layers and functions, the dtypes of each, and their classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torchlite as torch

__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType"]


class ObservationType(Enum):
    """How the observer of a pattern's output relates to that of its input.

    Example:
        >>> torch.ao.quantization.backend_config.ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT.value
        1
    """

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclass
class DTypeWithConstraints:
    """A dtype, and what a backend demands of the integers, scales and zero points of its tensors.

    Args:
        dtype: The dtype.
        quant_min_lower_bound: The least integer is not below it.
        quant_max_upper_bound: The greatest integer is not above it.
        scale_min_lower_bound: The least scale is not below it.
        scale_max_upper_bound: The greatest scale is not above it.
        scale_exact_match: The one scale.
        zero_point_exact_match: The one zero point.

    Example:
        >>> torch.ao.quantization.backend_config.DTypeWithConstraints(torch.qint8, -127, 127).quant_min_lower_bound
        -127
    """

    dtype: Any = None
    quant_min_lower_bound: float | None = None
    quant_max_upper_bound: float | None = None
    scale_min_lower_bound: float | None = None
    scale_max_upper_bound: float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


_CONSTRAINED = ("input_dtype", "output_dtype", "weight_dtype")


@dataclass(init=False)
class DTypeConfig:
    """The dtypes of a pattern's inputs, outputs, weight and bias.

    Args:
        input_dtype: The dtype of inputs, or a `DTypeWithConstraints`.
        output_dtype: The dtype of outputs, or a `DTypeWithConstraints`.
        weight_dtype: The dtype of the weight, or a `DTypeWithConstraints`.
        bias_dtype: The dtype of the bias.
        is_dynamic: Whether inputs are quantized by their range.

    Example:
        >>> torch.ao.quantization.backend_config.DTypeConfig(input_dtype=torch.quint8).input_dtype
        torch.quint8
    """

    input_dtype_with_constraints: DTypeWithConstraints
    output_dtype_with_constraints: DTypeWithConstraints
    weight_dtype_with_constraints: DTypeWithConstraints
    bias_dtype: Any
    is_dynamic: bool | None

    def __init__(
        self, input_dtype: Any = None, output_dtype: Any = None, weight_dtype: Any = None, bias_dtype: Any = None,
        is_dynamic: bool | None = None,
    ) -> None:  # fmt: skip
        for name, dtype in zip(_CONSTRAINED, (input_dtype, output_dtype, weight_dtype), strict=True):
            made = dtype if isinstance(dtype, DTypeWithConstraints) else DTypeWithConstraints(dtype)
            setattr(self, f"{name}_with_constraints", made)
        self.bias_dtype, self.is_dynamic = bias_dtype, is_dynamic

    @property
    def input_dtype(self) -> Any:
        """The dtype of inputs."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> Any:
        """The dtype of outputs."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> Any:
        """The dtype of the weight."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """The configuration of a dictionary that `to_dict` returned.

        Args:
            dtype_config_dict: The dictionary; keys may be absent.

        Raises:
            ValueError: A dtype is something else.
        """
        for name in _CONSTRAINED:
            value = dtype_config_dict.get(name)
            if value is not None and not isinstance(value, (torch.dtype, DTypeWithConstraints)):
                raise ValueError(f"Expected {name} to be a torch.dtype or DTypeWithConstraints")
        return cls(*(dtype_config_dict.get(name) for name in (*_CONSTRAINED, "bias_dtype", "is_dynamic")))

    def to_dict(self) -> dict[str, Any]:
        """The parts that are set, by name."""
        found = {name: getattr(self, f"{name}_with_constraints") for name in _CONSTRAINED}
        found = {name: value for name, value in found.items() if value.dtype is not None}
        rest = {"bias_dtype": self.bias_dtype, "is_dynamic": self.is_dynamic}
        return {**found, **{name: value for name, value in rest.items() if value is not None}}


def _dtype_config(value: Any) -> DTypeConfig:
    if isinstance(value, DTypeConfig):
        return value
    if isinstance(value, dict):
        return DTypeConfig.from_dict(value)
    raise ValueError(
        f"Expected a list of DTypeConfigs in backend_pattern_config_dict[\"dtype_configs\"], got '{type(value)}'"
    )


# The attributes of a pattern's configuration, and their keys in a dictionary.
_KEYS = {
    "pattern": "pattern", "root_module": "root_module", "qat_module": "qat_module",
    "reference_quantized_module": "reference_quantized_module_for_root", "fused_module": "fused_module",
    "fuser_method": "fuser_method", "_root_node_getter": "root_node_getter",
    "_extra_inputs_getter": "extra_inputs_getter",
    "_num_tensor_args_to_observation_type": "num_tensor_args_to_observation_type",
    "_input_type_to_index": "input_type_to_index", "_pattern_complex_format": "pattern_complex_format",
}  # fmt: skip


def _is_set(value: Any) -> bool:
    return bool(value) if isinstance(value, (list, dict)) else value is not None


class BackendPatternConfig:
    """The quantization of one pattern by a backend.

    Args:
        pattern: A class of modules, a function, the name of a method, or a tuple of these in the order of the calls.

    Example:
        >>> config = torch.ao.quantization.backend_config.BackendPatternConfig((torch.nn.Linear, torch.nn.ReLU))
        >>> config.set_fused_module(torch.ao.nn.intrinsic.LinearReLU).fused_module.__name__
        'LinearReLU'
    """

    def __init__(self, pattern: Any = None) -> None:
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: Any = None
        self.qat_module: Any = None
        self.reference_quantized_module: Any = None
        self.fused_module: Any = None
        self.fuser_method: Callable | None = None
        self._root_node_getter: Callable | None = None
        self._extra_inputs_getter: Callable | None = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}
        self._pattern_complex_format: Any = None

    def __repr__(self) -> str:
        found = {name: value for name, value in vars(self).items() if _is_set(value)}
        return f"BackendPatternConfig({found})"

    def _with(self, name: str, value: Any) -> BackendPatternConfig:
        setattr(self, name, value)
        return self

    def _set_one_pattern(self, name: str, other: str, pattern: Any) -> BackendPatternConfig:
        if getattr(self, other) is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        return self._with(name, pattern)

    def set_pattern(self, pattern: Any) -> BackendPatternConfig:
        """Sets the pattern.

        Args:
            pattern: A class, a function, the name of a method, or a tuple of these in the order of the calls.

        Raises:
            ValueError: There is a pattern in nested tuples.
        """
        return self._set_one_pattern("pattern", "_pattern_complex_format", pattern)

    def set_observation_type(self, observation_type: ObservationType) -> BackendPatternConfig:
        """Sets how the output's observer relates to the input's.

        Args:
            observation_type: The relation.
        """
        return self._with("observation_type", observation_type)

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """Adds dtypes that the backend supports.

        Args:
            dtype_config: The dtypes.
        """
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
        """Sets the dtypes that the backend supports.

        Args:
            dtype_configs: The list of them.
        """
        return self._with("dtype_configs", dtype_configs)

    def set_root_module(self, root_module: Any) -> BackendPatternConfig:
        """Sets the class of the layer with the weight.

        Args:
            root_module: The class.
        """
        return self._with("root_module", root_module)

    def set_qat_module(self, qat_module: Any) -> BackendPatternConfig:
        """Sets the class of quantization aware training.

        Args:
            qat_module: The class.
        """
        return self._with("qat_module", qat_module)

    def set_reference_quantized_module(self, reference_quantized_module: Any) -> BackendPatternConfig:
        """Sets the class of the layer with a quantized weight that computes on numbers.

        Args:
            reference_quantized_module: The class.
        """
        return self._with("reference_quantized_module", reference_quantized_module)

    def set_fused_module(self, fused_module: Any) -> BackendPatternConfig:
        """Sets the class of the container of the pattern's layers.

        Args:
            fused_module: The class.
        """
        return self._with("fused_module", fused_module)

    def set_fuser_method(self, fuser_method: Callable) -> BackendPatternConfig:
        """Sets the function that makes one layer of the pattern's.

        Args:
            fuser_method: The function, of whether the layers are trained and the layers.
        """
        return self._with("fuser_method", fuser_method)

    def _set_root_node_getter(self, root_node_getter: Callable) -> BackendPatternConfig:
        return self._with("_root_node_getter", root_node_getter)

    def _set_extra_inputs_getter(self, extra_inputs_getter: Callable) -> BackendPatternConfig:
        return self._with("_extra_inputs_getter", extra_inputs_getter)

    def _set_num_tensor_args_to_observation_type(self, types: dict[int, ObservationType]) -> BackendPatternConfig:
        return self._with("_num_tensor_args_to_observation_type", types)

    def _set_input_type_to_index(self, input_type_to_index: dict[str, int]) -> BackendPatternConfig:
        return self._with("_input_type_to_index", input_type_to_index)

    def _set_pattern_complex_format(self, pattern: Any) -> BackendPatternConfig:
        return self._set_one_pattern("_pattern_complex_format", "pattern", pattern)

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """The configuration of a dictionary that `to_dict` returned.

        Args:
            backend_pattern_config_dict: The dictionary; keys may be absent.

        Raises:
            ValueError: An entry of ``"dtype_configs"`` is neither a configuration nor a dictionary.
        """
        made = cls()
        for name, key in _KEYS.items():
            if key in backend_pattern_config_dict:
                setattr(made, name, backend_pattern_config_dict[key])
        if "observation_type" in backend_pattern_config_dict:
            made.observation_type = backend_pattern_config_dict["observation_type"]
        made.dtype_configs = [_dtype_config(value) for value in backend_pattern_config_dict.get("dtype_configs", [])]
        return made

    def to_dict(self) -> dict[str, Any]:
        """The parts that are set, by name."""
        found = {"observation_type": self.observation_type, "dtype_configs": [d.to_dict() for d in self.dtype_configs]}
        return {**found, **{key: getattr(self, name) for name, key in _KEYS.items() if _is_set(getattr(self, name))}}


def _check_length(pattern: Any) -> None:
    if len(pattern) not in (2, 3):
        raise ValueError(f"Expected a tuple with 2 or 3 elements, got: {pattern}")


def _get_pattern_in_reversed_nested_tuple_format(config: BackendPatternConfig) -> Any:
    """The pattern in nested tuples: the last call, and that which makes its argument."""
    if config._pattern_complex_format is not None:
        return config._pattern_complex_format
    if config.pattern is None:
        raise ValueError("Either 'pattern' or 'pattern_complex_format' must be specified")
    if not isinstance(config.pattern, tuple):
        return config.pattern
    _check_length(config.pattern)
    first, *rest = config.pattern
    for part in rest:
        first = (part, first)
    return first


class BackendConfig:
    """The patterns that a backend quantizes.

    Args:
        name: The backend's name. Default: none.

    Example:
        >>> from torchlite.ao.quantization.backend_config import BackendConfig, BackendPatternConfig
        >>> len(BackendConfig("mine").set_backend_pattern_config(BackendPatternConfig(torch.nn.Linear)).configs)
        1
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        # By patterns in nested tuples, the last call first.
        self._pattern_complex_format_to_config: dict[Any, BackendPatternConfig] = {}

    def __repr__(self) -> str:
        return f"BackendConfig({vars(self)})"

    def set_name(self, name: str) -> BackendConfig:
        """Sets the backend's name.

        Args:
            name: The name.
        """
        self.name = name
        return self

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """Adds a pattern, in place of an equal one.

        Args:
            config: Its configuration.
        """
        self._pattern_complex_format_to_config[_get_pattern_in_reversed_nested_tuple_format(config)] = config
        return self

    def set_backend_pattern_configs(self, configs: list[BackendPatternConfig]) -> BackendConfig:
        """Adds several patterns.

        Args:
            configs: Their configurations.
        """
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """The configurations of the patterns."""
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """The configuration of a dictionary that `to_dict` returned.

        Args:
            backend_config_dict: The dictionary; keys may be absent.

        Raises:
            ValueError: An entry of ``"configs"`` is neither a configuration nor a dictionary.
        """
        made = cls(backend_config_dict.get("name", ""))
        for value in backend_config_dict.get("configs", []):
            if not isinstance(value, (dict, BackendPatternConfig)):
                raise ValueError("Expected backend_config_dict['configs'] to be a dictionary")
            made.set_backend_pattern_config(
                value if isinstance(value, BackendPatternConfig) else BackendPatternConfig.from_dict(value)
            )
        return made

    def to_dict(self) -> dict[str, Any]:
        """The name and the configurations as a dictionary."""
        return {"name": self.name, "configs": [config.to_dict() for config in self.configs]}
