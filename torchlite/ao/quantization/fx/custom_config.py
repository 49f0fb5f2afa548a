"""Choices of a user beside the configurations: layers that are left out, and classes that replace others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..backend_config import BackendConfig
from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType, _get_quant_type_to_str, _quant_type_from_str

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig", "StandaloneModuleConfigEntry"]
# The keys in dictionaries.
STANDALONE_MODULE_NAME_DICT_KEY = "standalone_module_name"
STANDALONE_MODULE_CLASS_DICT_KEY = "standalone_module_class"
FLOAT_TO_OBSERVED_DICT_KEY = "float_to_observed_custom_module_class"
OBSERVED_TO_QUANTIZED_DICT_KEY = "observed_to_quantized_custom_module_class"
NON_TRACEABLE_MODULE_NAME_DICT_KEY = "non_traceable_module_name"
NON_TRACEABLE_MODULE_CLASS_DICT_KEY = "non_traceable_module_class"
INPUT_QUANTIZED_INDEXES_DICT_KEY = "input_quantized_idxs"
OUTPUT_QUANTIZED_INDEXES_DICT_KEY = "output_quantized_idxs"
PRESERVED_ATTRIBUTES_DICT_KEY = "preserved_attributes"


@dataclass
class StandaloneModuleConfigEntry:
    """How a module that is quantized by itself is prepared.

    Args:
        qconfig_mapping: Its configurations, or ``None`` for those of the model.
        example_inputs: Its inputs.
        prepare_custom_config: What else was chosen, or ``None``.
        backend_config: The backend, or ``None`` for the model's.
    """

    qconfig_mapping: QConfigMapping | None
    example_inputs: tuple[Any, ...]
    prepare_custom_config: PrepareCustomConfig | None
    backend_config: BackendConfig | None


def _converted(value: Any, kind: Any, key: str) -> Any:
    """A configuration, or that of a dictionary."""
    if value is None or isinstance(value, kind):
        return value
    if isinstance(value, dict):
        return kind.from_dict(value)
    raise ValueError(f"Expected {kind.__name__} in prepare_custom_config_dict[\"{key}\"], got '{type(value)}'")


def _as_dict(value: Any) -> Any:
    return value.to_dict() if value else None


class _Choices:
    """The part that the three classes share."""

    preserved_attributes: list[str]

    def __repr__(self) -> str:
        found = {name: value for name, value in vars(self).items() if len(value) > 0}
        return f"{type(self).__name__}({found})"

    def set_preserved_attributes(self, attributes: list[str]) -> Any:
        """Sets the names of attributes that the graph's module keeps.

        Args:
            attributes: The names.
        """
        self.preserved_attributes = attributes
        return self


class PrepareCustomConfig(_Choices):
    """What `prepare_fx` leaves out or does in another way.

    Example:
        >>> from torchlite.ao.quantization.fx.custom_config import PrepareCustomConfig
        >>> PrepareCustomConfig().set_input_quantized_indexes([0]).to_dict()
        {'input_quantized_idxs': [0]}
    """

    def __init__(self) -> None:
        self.standalone_module_names: dict[str, StandaloneModuleConfigEntry] = {}
        self.standalone_module_classes: dict[type, StandaloneModuleConfigEntry] = {}
        self.float_to_observed_mapping: dict[QuantType, dict[type, type]] = {}
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []
        self.preserved_attributes: list[str] = []

    def set_standalone_module_name(
        self, module_name: str, qconfig_mapping: QConfigMapping | None, example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None, backend_config: BackendConfig | None,
    ) -> PrepareCustomConfig:  # fmt: skip
        """Sets how a module is prepared by itself.

        Args:
            module_name: Its name.
            qconfig_mapping: Its configurations.
            example_inputs: Its inputs.
            prepare_custom_config: What else was chosen.
            backend_config: The backend.
        """
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_standalone_module_class(
        self, module_class: type, qconfig_mapping: QConfigMapping | None, example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None, backend_config: BackendConfig | None,
    ) -> PrepareCustomConfig:  # fmt: skip
        """Sets how modules of a class are prepared, each by itself.

        Args:
            module_class: The class.
            qconfig_mapping: Their configurations.
            example_inputs: Their inputs.
            prepare_custom_config: What else was chosen.
            backend_config: The backend.
        """
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_float_to_observed_mapping(
        self, float_class: type, observed_class: type, quant_type: QuantType = QuantType.STATIC
    ) -> PrepareCustomConfig:
        """Sets the observed class of a float one.

        Args:
            float_class: The float class.
            observed_class: The observed class.
            quant_type: Must be `QuantType.STATIC`.

        Raises:
            ValueError: `quant_type` is another one.
        """
        if quant_type != QuantType.STATIC:
            raise ValueError("set_float_to_observed_mapping is currently only supported for static quantization")
        self.float_to_observed_mapping.setdefault(quant_type, {})[float_class] = observed_class
        return self

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Sets the names of modules that are not traced.

        Args:
            module_names: The names.
        """
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> PrepareCustomConfig:
        """Sets the classes of modules that are not traced.

        Args:
            module_classes: The classes.
        """
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Sets the inputs that are quantized already.

        Args:
            indexes: Their places.
        """
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Sets the outputs that stay quantized.

        Args:
            indexes: Their places.
        """
        self.output_quantized_indexes = indexes
        return self

    @classmethod
    def from_dict(cls, prepare_custom_config_dict: dict[str, Any]) -> PrepareCustomConfig:
        """The choices of a dictionary that `to_dict` returned.

        Args:
            prepare_custom_config_dict: The dictionary; keys may be absent.

        Raises:
            ValueError: A configuration within it is something else.
        """
        given, made = prepare_custom_config_dict, cls()
        for key, entries in (
            (STANDALONE_MODULE_NAME_DICT_KEY, made.standalone_module_names),
            (STANDALONE_MODULE_CLASS_DICT_KEY, made.standalone_module_classes),
        ):
            for which, mapping, inputs, custom, backend in given.get(key, []):
                entries[which] = StandaloneModuleConfigEntry(  # type: ignore[index]
                    _converted(mapping, QConfigMapping, key), inputs, _converted(custom, PrepareCustomConfig, key),
                    _converted(backend, BackendConfig, key),
                )  # fmt: skip
        for name, classes in given.get(FLOAT_TO_OBSERVED_DICT_KEY, {}).items():
            for float_class, observed in classes.items():
                made.set_float_to_observed_mapping(float_class, observed, _quant_type_from_str(name))
        for name, key in _LISTS.items():
            setattr(made, name, given.get(key, []))
        return made

    def to_dict(self) -> dict[str, Any]:
        """The choices that were made, by name."""
        found: dict[str, Any] = {}
        for key, entries in (
            (STANDALONE_MODULE_NAME_DICT_KEY, self.standalone_module_names),
            (STANDALONE_MODULE_CLASS_DICT_KEY, self.standalone_module_classes),
        ):
            for which, entry in entries.items():  # type: ignore[attr-defined]
                mapping, custom = _as_dict(entry.qconfig_mapping), _as_dict(entry.prepare_custom_config)
                row = (which, mapping, entry.example_inputs, custom, entry.backend_config)
                found.setdefault(key, []).append(row)
        for quant_type, classes in self.float_to_observed_mapping.items():
            named = found.setdefault(FLOAT_TO_OBSERVED_DICT_KEY, {})
            named[_get_quant_type_to_str(quant_type)] = classes
        return {**found, **{key: getattr(self, name) for name, key in _LISTS.items() if getattr(self, name)}}


# The lists among the choices, and their keys in a dictionary.
_LISTS = {
    "non_traceable_module_names": NON_TRACEABLE_MODULE_NAME_DICT_KEY,
    "non_traceable_module_classes": NON_TRACEABLE_MODULE_CLASS_DICT_KEY,
    "input_quantized_indexes": INPUT_QUANTIZED_INDEXES_DICT_KEY,
    "output_quantized_indexes": OUTPUT_QUANTIZED_INDEXES_DICT_KEY,
    "preserved_attributes": PRESERVED_ATTRIBUTES_DICT_KEY,
}


class ConvertCustomConfig(_Choices):
    """What `convert_fx` does in another way.

    Example:
        >>> from torchlite.ao.quantization.fx.custom_config import ConvertCustomConfig
        >>> ConvertCustomConfig().set_preserved_attributes(["name"]).to_dict()
        {'preserved_attributes': ['name']}
    """

    def __init__(self) -> None:
        self.observed_to_quantized_mapping: dict[QuantType, dict[type, type]] = {}
        self.preserved_attributes: list[str] = []

    def set_observed_to_quantized_mapping(
        self, observed_class: type, quantized_class: type, quant_type: QuantType = QuantType.STATIC
    ) -> ConvertCustomConfig:
        """Sets the quantized class of an observed one.

        Args:
            observed_class: The observed class.
            quantized_class: The quantized class.
            quant_type: The kind of quantization. Default: `QuantType.STATIC`.
        """
        self.observed_to_quantized_mapping.setdefault(quant_type, {})[observed_class] = quantized_class
        return self

    @classmethod
    def from_dict(cls, convert_custom_config_dict: dict[str, Any]) -> ConvertCustomConfig:
        """The choices of a dictionary that `to_dict` returned.

        Args:
            convert_custom_config_dict: The dictionary; keys may be absent.
        """
        made = cls()
        for name, classes in convert_custom_config_dict.get(OBSERVED_TO_QUANTIZED_DICT_KEY, {}).items():
            for observed, quantized in classes.items():
                made.set_observed_to_quantized_mapping(observed, quantized, _quant_type_from_str(name))
        return made.set_preserved_attributes(convert_custom_config_dict.get(PRESERVED_ATTRIBUTES_DICT_KEY, []))

    def to_dict(self) -> dict[str, Any]:
        """The choices that were made, by name."""
        found: dict[str, Any] = {}
        for quant_type, classes in self.observed_to_quantized_mapping.items():
            named = found.setdefault(OBSERVED_TO_QUANTIZED_DICT_KEY, {})
            named[_get_quant_type_to_str(quant_type)] = classes
        if self.preserved_attributes:
            found[PRESERVED_ATTRIBUTES_DICT_KEY] = self.preserved_attributes
        return found


class FuseCustomConfig(_Choices):
    """What `fuse_fx` does in another way.

    Example:
        >>> from torchlite.ao.quantization.fx.custom_config import FuseCustomConfig
        >>> FuseCustomConfig().set_preserved_attributes(["name"]).to_dict()
        {'preserved_attributes': ['name']}
    """

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    @classmethod
    def from_dict(cls, fuse_custom_config_dict: dict[str, Any]) -> FuseCustomConfig:
        """The choices of a dictionary that `to_dict` returned.

        Args:
            fuse_custom_config_dict: The dictionary; keys may be absent.
        """
        return cls().set_preserved_attributes(fuse_custom_config_dict.get(PRESERVED_ATTRIBUTES_DICT_KEY, []))

    def to_dict(self) -> dict[str, Any]:
        """The choices that were made, by name."""
        return {"preserved_attributes": self.preserved_attributes} if self.preserved_attributes else {}
