"""Questions to the configuration of a backend, as dictionaries by pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .backend_config import BackendConfig, BackendPatternConfig, DTypeConfig, _check_length

__all__ = [
    "entry_to_pretty_str", "get_fused_module_classes", "get_fuser_method_mapping",
    "get_fusion_pattern_to_extra_inputs_getter", "get_fusion_pattern_to_root_node_getter", "get_module_to_qat_module",
    "get_pattern_to_dtype_configs", "get_pattern_to_input_type_to_index", "get_qat_module_classes",
    "get_root_module_to_quantized_reference_module", "pattern_to_human_readable", "remove_boolean_dispatch_from_name",
]  # fmt: skip


def _by_pattern(backend_config: BackendConfig, name: str) -> dict[Any, Any]:
    """An attribute of the patterns that have it."""
    entries = backend_config._pattern_complex_format_to_config.items()
    return {pattern: getattr(config, name) for pattern, config in entries if getattr(config, name) is not None}


def get_pattern_to_dtype_configs(backend_config: BackendConfig) -> dict[Any, list[DTypeConfig]]:
    """The dtypes of each pattern.

    Args:
        backend_config: The configuration of the backend.
    """
    return _by_pattern(backend_config, "dtype_configs")


def get_qat_module_classes(backend_config: BackendConfig) -> tuple[type, ...]:
    """The classes of quantization aware training.

    Args:
        backend_config: The configuration of the backend.
    """
    return tuple({config.qat_module for config in backend_config.configs} - {None})


def get_fused_module_classes(backend_config: BackendConfig) -> tuple[type, ...]:
    """The classes of containers of layers.

    Args:
        backend_config: The configuration of the backend.
    """
    return tuple({config.fused_module for config in backend_config.configs} - {None})


def get_pattern_to_input_type_to_index(backend_config: BackendConfig) -> dict[Any, dict[str, int]]:
    """The places of weight and bias among the arguments of each pattern.

    Args:
        backend_config: The configuration of the backend.
    """
    return _by_pattern(backend_config, "_input_type_to_index")


def get_root_module_to_quantized_reference_module(backend_config: BackendConfig) -> dict[type, type]:
    """The classes with quantized weights that compute on numbers, by float ones.

    Args:
        backend_config: The configuration of the backend.
    """
    return {
        config.root_module: config.reference_quantized_module
        for config in backend_config.configs
        if config.root_module is not None and config.reference_quantized_module is not None
    }


def get_fuser_method_mapping(backend_config: BackendConfig) -> dict[Any, Callable]:
    """The functions that fuse layers, by pattern; they take the last layer first.

    Args:
        backend_config: The configuration of the backend.
    """
    configs = backend_config._pattern_complex_format_to_config
    return {pattern: _last_first(configs[pattern]) for pattern in _by_pattern(backend_config, "fuser_method")}


def get_module_to_qat_module(backend_config: BackendConfig) -> dict[Any, type]:
    """The classes of quantization aware training, by pattern.

    Args:
        backend_config: The configuration of the backend.
    """
    return _by_pattern(backend_config, "qat_module")


def get_fusion_pattern_to_root_node_getter(backend_config: BackendConfig) -> dict[Any, Callable]:
    """The functions that find the node with the weight, by pattern.

    Args:
        backend_config: The configuration of the backend.
    """
    return _by_pattern(backend_config, "_root_node_getter")


def get_fusion_pattern_to_extra_inputs_getter(backend_config: BackendConfig) -> dict[Any, Callable]:
    """The functions that find more inputs of a pattern than that of its first node.

    Args:
        backend_config: The configuration of the backend.
    """
    return _by_pattern(backend_config, "_extra_inputs_getter")


def remove_boolean_dispatch_from_name(p: Any) -> Any:
    """The full name of a function of pooling, which may return indices or not; other things as they are.

    Args:
        p: The function.
    """
    name = getattr(p, "__name__", "")
    return f"torch.nn.functional.{name}" if "max_pool" in name and name[-1:] == "d" and not isinstance(p, type) else p


def pattern_to_human_readable(p: Any) -> Any:
    """A pattern with the names of functions that have two forms.

    Args:
        p: The pattern.
    """
    if isinstance(p, tuple):
        return tuple(pattern_to_human_readable(part) for part in p)
    return p if isinstance(p, str) else remove_boolean_dispatch_from_name(p)


def entry_to_pretty_str(entry: dict[str, Any]) -> str:
    """The dictionary of a pattern's configuration as lines of text.

    Args:
        entry: What `BackendPatternConfig.to_dict` returned.
    """
    lines = ["{"]
    if "pattern" in entry:
        lines.append(f"  'pattern': {pattern_to_human_readable(entry['pattern'])},")
    if "dtype_configs" in entry:
        lines.append("  'dtype_configs': [")
        for dtypes in entry["dtype_configs"]:
            lines += ["    {", *(f"      '{key}': {value}," for key, value in dtypes.items()), "    },"]
        lines.append("  ],")
    types = "num_tensor_args_to_observation_type"
    if types in entry:
        lines += [f"  '{types}': {{", *(f"    {key}: {value}," for key, value in entry[types].items()), "  },"]
    done = ("pattern", "dtype_configs", types)
    lines += [f"  '{key}': {value}," for key, value in entry.items() if key not in done]
    return "\n".join([*lines, "}"])


def _last_first(config: BackendPatternConfig) -> Any:
    """The function that fuses a pattern, with arguments as in the nested tuples."""
    fuse = config.fuser_method
    if config._pattern_complex_format is not None:
        return fuse
    if not isinstance(config.pattern, tuple):
        raise ValueError(f"Expected pattern to be a tuple, got: {config.pattern}")
    _check_length(config.pattern)

    def fuse_reversed(is_qat: bool, last: Any, before: Any) -> Any:
        modules = [last, *before] if isinstance(before, tuple) else [last, before]
        return fuse(is_qat, *reversed(modules))  # type: ignore[misc]

    return fuse_reversed
