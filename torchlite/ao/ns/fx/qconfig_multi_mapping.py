"""Several configurations for the same layers, which are compared."""

from __future__ import annotations

import copy
from typing import Any

from torchlite.ao.quantization.qconfig import qconfig_equals
from torchlite.ao.quantization.qconfig_mapping import QConfigMapping

__all__ = ["QConfigMultiMapping"]
_QCONFIG_STYLE_TO_METHOD: dict[str, str] = {
    "global_qconfig": "set_global", "object_type_qconfigs": "set_object_type",
    "module_name_regex_qconfigs": "set_module_name_regex", "module_name_qconfigs": "set_module_name",
    "module_name_object_type_order_qconfigs": "set_module_name_object_type_order",
}  # fmt: skip
_BY_KEY = [style for style in _QCONFIG_STYLE_TO_METHOD if style != "global_qconfig"]


def _remove_duplicates_and_none(qconfig_list: list[Any]) -> None:
    """Remove configurations that a list has before, and None."""
    kept: list[Any] = []
    for qconfig in qconfig_list:
        if qconfig is not None and not any(qconfig_equals(qconfig, other) for other in kept):
            kept.append(qconfig)
    qconfig_list[:] = kept


class QConfigMultiMapping:
    """Configurations like those of `QConfigMapping`, of which each layer has several.

    Example:
        >>> from torchlite.ao.ns.fx.qconfig_multi_mapping import QConfigMultiMapping
        >>> ao = torch.ao.quantization
        >>> mapping = QConfigMultiMapping().set_global([ao.default_qconfig, ao.default_dynamic_qconfig])
        >>> len(mapping.qconfig_mappings_list)
        2
    """

    def __init__(self) -> None:
        self.qconfig_mappings_list: list[QConfigMapping] = [QConfigMapping()]

    def _make_as_many(self, qconfig_list: list[Any]) -> None:
        """Make the list and the mappings equally long. New mappings have the keys of the first, without values."""
        mappings = self.qconfig_mappings_list
        while len(qconfig_list) < len(mappings):
            qconfig_list.append(None)
        while len(qconfig_list) > len(mappings):
            made = QConfigMapping()
            for style in _BY_KEY:
                getattr(made, style).update(dict.fromkeys(getattr(mappings[0], style)))
            mappings.append(made)

    def _insert_qconfig_list(self, style: str, args: list[Any], qconfig_list: list[Any]) -> QConfigMultiMapping:
        _remove_duplicates_and_none(qconfig_list)
        self._make_as_many(qconfig_list)
        for mapping, qconfig in zip(self.qconfig_mappings_list, qconfig_list, strict=True):
            getattr(mapping, _QCONFIG_STYLE_TO_METHOD[style])(*args, qconfig)
        return self

    def set_global(self, global_qconfig_list: list[Any]) -> QConfigMultiMapping:
        """Sets the configurations of all layers.

        Args:
            global_qconfig_list: The configurations.
        """
        return self._insert_qconfig_list("global_qconfig", [], global_qconfig_list)

    def set_object_type(self, object_type: Any, qconfig_list: list[Any]) -> QConfigMultiMapping:
        """Sets the configurations of a class or function.

        Args:
            object_type: The class, the function, or the name of a method.
            qconfig_list: The configurations.
        """
        return self._insert_qconfig_list("object_type_qconfigs", [object_type], qconfig_list)

    def set_module_name_regex(self, module_name_regex: str, qconfig_list: list[Any]) -> QConfigMultiMapping:
        """Sets the configurations of the modules whose names match an expression.

        Args:
            module_name_regex: The expression.
            qconfig_list: The configurations.
        """
        return self._insert_qconfig_list("module_name_regex_qconfigs", [module_name_regex], qconfig_list)

    def set_module_name(self, module_name: str, qconfig_list: list[Any]) -> QConfigMultiMapping:
        """Sets the configurations of a module.

        Args:
            module_name: The name.
            qconfig_list: The configurations.
        """
        return self._insert_qconfig_list("module_name_qconfigs", [module_name], qconfig_list)

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig_list: list[Any]
    ) -> QConfigMultiMapping:
        """Sets the configurations of one use of a class or function within a module.

        Args:
            module_name: The name of the module.
            object_type: The class or function.
            index: The number of the use.
            qconfig_list: The configurations.
        """
        place = [module_name, object_type, index]
        return self._insert_qconfig_list("module_name_object_type_order_qconfigs", place, qconfig_list)

    def __repr__(self) -> str:
        parts = "".join(f"\n{mapping!r}," for mapping in self.qconfig_mappings_list)
        return f"{type(self).__name__} [{parts}\n]"

    @classmethod
    def from_list_qconfig_mapping(cls, qconfig_mapping_list: list[QConfigMapping]) -> QConfigMultiMapping:
        """Makes one of several mappings.

        Args:
            qconfig_mapping_list: The mappings.

        Example:
            >>> from torchlite.ao.ns.fx.qconfig_multi_mapping import QConfigMultiMapping
            >>> first = torch.ao.quantization.QConfigMapping().set_global(torch.ao.quantization.default_qconfig)
            >>> len(QConfigMultiMapping.from_list_qconfig_mapping([first]).qconfig_mappings_list)
            1
        """
        made = cls()
        made.qconfig_mappings_list = copy.deepcopy(qconfig_mapping_list)
        for style in _BY_KEY:
            values: dict[Any, list[Any]] = {}
            for mapping in qconfig_mapping_list:
                for key, qconfig in getattr(mapping, style).items():
                    values.setdefault(key, []).append(qconfig)
            for key, qconfigs in values.items():
                made._insert_qconfig_list(style, [*key] if isinstance(key, tuple) else [key], qconfigs)
        return made
