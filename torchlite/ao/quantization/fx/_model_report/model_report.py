"""A report on how the layers of a network can be quantized."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.quantization.qconfig_mapping import QConfigMapping
from torchlite.fx import GraphModule, Node

from .detector import (
    DETECTOR_IS_POST_OBS_KEY,
    DETECTOR_OBS_ARGS_KEY,
    DETECTOR_OBS_TO_INSERT_KEY,
    DETECTOR_TARGET_NODE_KEY,
    DetectorBase,
    DetectorQConfigInfo,
)
from .model_report_visualizer import ModelReportVisualizer


class ModelReport:
    """Gives a prepared model the observers that detectors need, and returns their reports after a run over data.

    Args:
        model: The model of `prepare_fx`.
        desired_report_detectors: The detectors.

    Raises:
        ValueError: There is no detector.

    Example:
        >>> from torchlite.ao.quantization.fx._model_report.detector import OutlierDetector
        >>> from torchlite.ao.quantization.fx._model_report.model_report import ModelReport
        >>> qconfig = torch.ao.quantization.default_symmetric_qnnpack_qconfig
        >>> x, mapping = torch.randn(8, 3), torch.ao.quantization.QConfigMapping().set_global(qconfig)
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2)).eval()
        >>> model = torch.ao.quantization.quantize_fx.prepare_fx(model, mapping, (x,))
        >>> report = ModelReport(model, {OutlierDetector()})
        >>> _ = report.prepare_detailed_calibration()(x)
        >>> [*report.generate_model_report(remove_inserted_observers=True)]
        ['outlier_detector']
    """

    def __init__(self, model: GraphModule, desired_report_detectors: set[DetectorBase]) -> None:
        if len(desired_report_detectors) == 0:
            raise ValueError("Should include at least 1 desired report")
        self._model = model
        self._desired_report_detectors = desired_report_detectors
        self._desired_detector_names = {detector.get_detector_name() for detector in desired_report_detectors}
        self._detector_name_to_observer_fqns: dict[str, set[str]] = {
            name: set() for name in self._desired_detector_names
        }
        self._prepared_flag = self._removed_observers = False
        self._generated_reports: dict[str, dict] = {}

    def get_desired_reports_names(self) -> set[str]:
        """The names of the detectors."""
        return self._desired_detector_names.copy()

    def get_observers_of_interest(self) -> dict[str, set[str]]:
        """The names of the observers by those of detectors."""
        return self._detector_name_to_observer_fqns.copy()

    def prepare_detailed_calibration(self) -> GraphModule:
        """Gives the model observers.

        Returns:
            The model, for a run over data.

        Raises:
            ValueError: It has them.
        """
        if self._prepared_flag:
            raise ValueError(
                "Already ran preparing detailed calibration. Run the report generation next after calibration."
            )
        points: dict[str, Any] = {}
        for detector in self._desired_report_detectors:
            found = detector.determine_observer_insert_points(self._model)
            points.update(found)
            self._detector_name_to_observer_fqns[detector.get_detector_name()] = {*found}
        for name, point in points.items():
            node = point[DETECTOR_TARGET_NODE_KEY]
            place = node.next if point[DETECTOR_IS_POST_OBS_KEY] else node
            self._model.add_submodule(name, point[DETECTOR_OBS_TO_INSERT_KEY])
            with self._model.graph.inserting_before(place):
                self._model.graph.create_node("call_module", name, args=point[DETECTOR_OBS_ARGS_KEY])
        self._model.recompile()
        self._prepared_flag = True
        return self._model

    def _get_node_from_fqn(self, node_fqn: str) -> Node:
        for node in self._model.graph.nodes:
            if node.target == node_fqn:
                return node
        raise ValueError("The node_fqn is was not found within the module.")

    def _check_state(self) -> None:
        if not self._prepared_flag:
            raise Exception("Cannot generate report without preparing model for calibration")
        if self._removed_observers:
            raise Exception("Cannot generate report on model you already removed observers from")

    def generate_model_report(self, remove_inserted_observers: bool) -> dict[str, tuple[str, dict]]:
        """The reports by names of detectors: a text, and what was found by names of modules.

        Args:
            remove_inserted_observers: Whether the model loses the observers; then there are no more reports.

        Raises:
            Exception: The model has no observers.
        """
        self._check_state()
        reports = {
            detector.get_detector_name(): detector.generate_detector_report(self._model)
            for detector in self._desired_report_detectors
        }
        if remove_inserted_observers:
            self._removed_observers = True
            for name in set().union(*self._detector_name_to_observer_fqns.values()):
                self._model.delete_submodule(name)
                self._model.graph.erase_node(self._get_node_from_fqn(name))
            self._model.recompile()
        self._generated_reports = {name: report[1] for name, report in reports.items()}
        return reports

    def _is_same_info_for_same_key(self, info_dict_a: dict, info_dict_b: dict) -> bool:
        """Whether two dictionaries have the same values for the keys of both."""

        def is_same(a: Any, b: Any) -> bool:
            if isinstance(a, torch.Tensor):
                return isinstance(b, torch.Tensor) and bool(torch.all(a == b))
            return a == b

        return all(is_same(info_dict_a[key], info_dict_b[key]) for key in info_dict_a.keys() & info_dict_b.keys())

    def _reformat_reports_for_visualizer(self) -> OrderedDict:
        """Return what all detectors found, by names of modules in the model's order."""
        merged: dict[str, dict] = {}
        for report in self._generated_reports.values():
            for name, found in report.items():
                present = merged.get(name, {})
                if not self._is_same_info_for_same_key(found, present):
                    raise ValueError(
                        "You have the same key with different values across detectors. Someone incorrectly implemented "
                        "a detector with conflicting keys to existing detectors."
                    )
                merged[name] = {**found, **present}
        return OrderedDict((name, merged[name]) for name, _ in self._model.named_modules() if name in merged)

    def generate_visualizer(self) -> ModelReportVisualizer:
        """Tables and plots of the last reports.

        Raises:
            Exception: There are no reports.
        """
        if len(self._generated_reports) == 0:
            raise Exception("Unable to generate visualizers without first generating reports")
        return ModelReportVisualizer(self._reformat_reports_for_visualizer())

    def _generate_qconfig_mapping_helper(
        self, detector_qconfig_info_combined: dict[str, DetectorQConfigInfo], generation_function: Callable
    ) -> QConfigMapping:
        mapping = QConfigMapping()
        for name, module in self._model.named_modules():
            if name in detector_qconfig_info_combined:
                mapping.set_module_name(name, generation_function(detector_qconfig_info_combined[name], module))
        return mapping

    def _combined(self, *attributes: str) -> dict[str, DetectorQConfigInfo]:
        """Return what any detector recommends, by names of modules."""
        self._check_state()
        combined: dict[str, DetectorQConfigInfo] = {}
        for detector in self._desired_report_detectors:
            for name, info in detector.get_qconfig_info(self._model).items():
                present = combined.setdefault(name, info)
                for attribute in attributes:
                    setattr(present, attribute, getattr(present, attribute) or getattr(info, attribute))
        return combined

    def generate_qconfig_mapping(self) -> QConfigMapping:
        """The configurations that the detectors recommend.

        Raises:
            Exception: The model has no observers.
        """
        return self._generate_qconfig_mapping_helper(
            self._combined("is_activation_dynamic", "is_weight_per_channel"), self._quantization_config_generator
        )

    def _quantization_config_generator(self, detector_qconfig_info: DetectorQConfigInfo, module: nn.Module) -> Any:
        return detector_qconfig_info.generate_quantization_qconfig(module)

    def _equalization_config_generator(self, detector_qconfig_info: DetectorQConfigInfo, module: nn.Module) -> Any:
        return detector_qconfig_info.generate_equalization_qconfig()

    def generate_equalization_mapping(self) -> QConfigMapping:
        """The configurations of equalization that the detectors recommend.

        Raises:
            Exception: The model has no observers.
        """
        return self._generate_qconfig_mapping_helper(
            self._combined("is_equalization_recommended"), self._equalization_config_generator
        )
