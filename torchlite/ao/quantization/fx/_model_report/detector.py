"""Detectors, which recommend how layers can be quantized."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torchlite as torch
import torchlite.ao.nn.qat as nnqat
from torchlite import Tensor, nn
from torchlite._settings.backend_flags import FLAGS
from torchlite.ao.quantization import FakeQuantize, ObserverBase, QConfig
from torchlite.ao.quantization.fx._equalize import default_equalization_qconfig
from torchlite.ao.quantization.observer import (
    _is_activation_post_process,
    default_dynamic_quant_observer,
    default_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
)
from torchlite.ao.quantization.qconfig import _assert_valid_qconfig, default_qconfig

from .model_report_observer import ModelReportObserver, by_channel

DETECTOR_TARGET_NODE_KEY = "target_node"
DETECTOR_OBS_TO_INSERT_KEY = "observer_to_insert"
DETECTOR_IS_POST_OBS_KEY = "is_post_observer"
DETECTOR_OBS_ARGS_KEY = "observer_args"

_PRE, _POST = "model_report_pre_observer", "model_report_post_observer"
_LAYERS: set[Any] = {nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d}
_ALL_LAYERS: set[Any] = _LAYERS | {nnqat.Linear, nnqat.Conv1d, nnqat.Conv2d, nnqat.Conv3d}


class DetectorQConfigInfo:
    """The configuration that detectors recommend for a module.

    Args:
        module_fqn: The name of the module.

    Example:
        >>> from torchlite.ao.quantization.fx._model_report.detector import DetectorQConfigInfo
        >>> DetectorQConfigInfo("a").is_weight_per_channel
        False
    """

    def __init__(self, module_fqn: str) -> None:
        self.module_fqn = module_fqn
        self.is_activation_dynamic = self.is_weight_per_channel = self.is_equalization_recommended = False

    def generate_quantization_qconfig(self, module: nn.Module) -> QConfig:
        """The configuration with as much of it as the module can have.

        Args:
            module: The module.
        """
        dynamic, per_channel = self.is_activation_dynamic, self.is_weight_per_channel
        for wanted in ((dynamic, per_channel), (dynamic, False), (False, per_channel)):
            qconfig = QConfig(
                default_dynamic_quant_observer if wanted[0] else default_observer,
                default_per_channel_weight_observer if wanted[1] else default_weight_observer,
            )
            try:
                _assert_valid_qconfig(qconfig, module)
            except AssertionError:
                continue
            return qconfig
        return default_qconfig

    def generate_equalization_qconfig(self) -> Any:
        """The configuration of equalization."""
        return default_equalization_qconfig


class DetectorBase(ABC):
    """The base class of detectors."""

    def __init__(self) -> None:
        self.detector_config_info = None

    @abstractmethod
    def determine_observer_insert_points(self, model: Any) -> dict[str, dict[str, Any]]:
        """The observers that the detector needs, by name.

        Args:
            model: The prepared model.

        Returns:
            For each the node, the observer, whether it comes behind the node, and what it gets.
        """

    @abstractmethod
    def get_detector_name(self) -> str:
        """The name of the detector."""

    @abstractmethod
    def get_qconfig_info(self, model: Any) -> dict[str, DetectorQConfigInfo]:
        """What the detector recommends, by names of modules.

        Args:
            model: The prepared model.
        """

    @abstractmethod
    def generate_detector_report(self, model: Any) -> tuple[str, dict[str, Any]]:
        """A text and what was found, by names of modules.

        Args:
            model: The prepared model, after a run over data.
        """

    def _get_targeting_node(self, prepared_fx_model: Any, target_fqn: str) -> Any:
        """Return the node that calls a module, or one that it is a part of."""
        while True:
            for node in prepared_fx_model.graph.nodes:
                if node.target == target_fqn:
                    return node
            if "." not in target_fqn:
                raise ValueError("passed in target_fqn not found in graph's targets.")
            target_fqn = target_fqn.rpartition(".")[0]

    def _observers(self, model: Any, is_observed: Any, make: Any, with_outputs: bool = False) -> dict[str, Any]:
        """Return observers before the modules that are to have some, and behind them if `with_outputs`."""
        found: dict[str, Any] = {}
        for name, module in model.named_modules():
            if not is_observed(module):
                continue
            node = self._get_targeting_node(model, name)
            for end, behind in ((_PRE, False), (_POST, True))[: 1 + with_outputs]:
                found[f"{name}.{end}"] = {
                    DETECTOR_TARGET_NODE_KEY: node, DETECTOR_OBS_TO_INSERT_KEY: make(),
                    DETECTOR_IS_POST_OBS_KEY: behind, DETECTOR_OBS_ARGS_KEY: (node,) if behind else node.args,
                }  # fmt: skip
        return found


def _recommended(found: dict[str, Any], attribute: str, answer: Any) -> dict[str, DetectorQConfigInfo]:
    """Return recommendations with one attribute, which is a function of what was found."""
    made = {}
    for name, info in found.items():
        made[name] = DetectorQConfigInfo(name)
        setattr(made[name], attribute, answer(info))
    return made


class PerChannelDetector(DetectorBase):
    """Recommends scales for each channel of weights where there is one for all.

    Args:
        backend: The backend. Default: the engine at import.

    Raises:
        ValueError: The backend is not known.

    Example:
        >>> from torchlite.ao.quantization.fx._model_report.detector import PerChannelDetector
        >>> PerChannelDetector("fbgemm").get_detector_name()
        'per_channel_detector'
    """

    BACKEND_KEY = "backend"
    PER_CHAN_SUPPORTED_KEY = "per_channel_quantization_supported"
    PER_CHAN_USED_KEY = "per_channel_quantization_used"
    DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES: dict[str, set[Any]] = {
        name: {*_ALL_LAYERS} for name in ("fbgemm", "qnnpack", "onednn", "x86")
    }

    def __init__(self, backend: str = FLAGS.quantized_engine) -> None:
        super().__init__()
        self.backend_chosen = backend
        if backend not in self.DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES:
            raise ValueError(f"Not configured to work with {backend}. Try a different default backend")
        self.supported_modules = self.DEFAULT_BACKEND_PER_CHANNEL_SUPPORTED_MODULES[backend]

    def get_detector_name(self) -> str:
        """The name of the detector."""
        return "per_channel_detector"

    def get_qconfig_info(self, model: Any) -> dict[str, DetectorQConfigInfo]:
        """What the detector recommends, by names of modules.

        Args:
            model: The prepared model.
        """
        found = self._detect_per_channel_helper(model)
        return _recommended(found, "is_weight_per_channel", lambda info: info[self.PER_CHAN_SUPPORTED_KEY])

    def determine_observer_insert_points(self, model: Any) -> dict[str, dict[str, Any]]:
        """No observers.

        Args:
            model: The prepared model.
        """
        return {}

    def _detect_per_channel_helper(self, model: Any) -> dict[str, dict[str, Any]]:
        """Return of each layer whether its weight has scales for each channel."""
        found: dict[str, dict[str, Any]] = {}
        for name, module in model.named_modules():
            if not isinstance(module, tuple(self.supported_modules)):
                continue
            qconfig = getattr(module, "qconfig", None)
            if not isinstance(qconfig, QConfig):
                raise AssertionError("module.qconfig must be a QConfig")
            observer = qconfig.weight.p.func()
            if not isinstance(observer, (FakeQuantize, ObserverBase)):
                raise AssertionError("module.qconfig.weight must be a FakeQuantize or ObserverBase")
            used = hasattr(observer, "ch_axis")
            if used and isinstance(observer, FakeQuantize):
                used = bool(getattr(observer, "is_per_channel", False))
            found[name] = {
                self.PER_CHAN_SUPPORTED_KEY: True, self.PER_CHAN_USED_KEY: used,
                self.BACKEND_KEY: self.backend_chosen,
            }  # fmt: skip
        return found

    def generate_detector_report(self, model: Any) -> tuple[str, dict[str, Any]]:
        """A text and what was found, by names of modules.

        Args:
            model: The prepared model.
        """
        found = self._detect_per_channel_helper(model)
        lines = [
            f"Module {name} can be configured to use per_channel quantization."
            for name, info in found.items() if not info[self.PER_CHAN_USED_KEY]
        ]  # fmt: skip
        last = (
            "To use per_channel quantization, make sure the qconfig has a per_channel weight observer." if lines
            else "No further per_channel optimizations possible."
        )  # fmt: skip
        return "\n".join([f"Further Optimizations for backend {self.backend_chosen}: ", *lines, last]), found


class DynamicStaticDetector(DetectorBase):
    """Recommends scales that follow from each input where the ranges of batches differ.

    Args:
        tolerance: The ratio of the mean range of batches to that of all data up to which a distribution changes.
            Default: 0.5.

    Example:
        >>> from torchlite.ao.quantization.fx._model_report.detector import DynamicStaticDetector
        >>> DynamicStaticDetector().get_detector_name()
        'dynamic_vs_static_detector'
    """

    DEFAULT_PRE_OBSERVER_NAME = _PRE
    DEFAULT_POST_OBSERVER_NAME = _POST
    STATIONARY_STR = "stationary"
    NON_STATIONARY_STR = "non-stationary"
    INPUT_ACTIVATION_PREFIX = "input_activation_"
    OUTPUT_ACTIVATION_PREFIX = "output_activation_"
    TOLERANCE_KEY = "dynamic_static_tolerance"
    DEFAULT_DYNAMIC_REC_KEY = "dynamic_recommended"
    PRE_OBS_COMP_STAT_KEY = INPUT_ACTIVATION_PREFIX + "dynamic_static_comp_stat"
    POST_OBS_COMP_STAT_KEY = OUTPUT_ACTIVATION_PREFIX + "dynamic_static_comp_stat"
    PRE_OBS_DATA_DIST_KEY = INPUT_ACTIVATION_PREFIX + "dynamic_static_data_classification"
    POST_OBS_DATA_DIST_KEY = OUTPUT_ACTIVATION_PREFIX + "dynamic_static_data_classification"
    IS_CURRENTLY_SUPPORTED_KEY = "is_dynamic_supported"
    DEFAULT_DYNAMIC_STATIC_CHECK_SUPPORTED: set[Any] = {nn.Linear}
    DEFAULT_DYNAMIC_STATIC_FUTURE_SUPPORTED: set[Any] = {nn.Conv1d, nn.Conv2d, nn.Conv3d}

    def __init__(self, tolerance: float = 0.5) -> None:
        super().__init__()
        self.tolerance = tolerance
        self.useful_observer_fqns: set[str] = set()

    def determine_observer_insert_points(self, prepared_fx_model: Any) -> dict[str, dict[str, Any]]:  # type: ignore[override]
        """Observers before and behind linear layers and convolutions, by name.

        Args:
            prepared_fx_model: The prepared model.
        """
        return self._observers(
            prepared_fx_model, lambda module: self._is_supported(module, True), ModelReportObserver, True
        )

    def get_detector_name(self) -> str:
        """The name of the detector."""
        return "dynamic_vs_static_detector"

    def get_qconfig_info(self, model: Any) -> dict[str, DetectorQConfigInfo]:
        """What the detector recommends, by names of modules.

        Args:
            model: The prepared model.
        """
        found = self._generate_dict_info(model)
        return _recommended(found, "is_activation_dynamic", lambda info: info[self.DEFAULT_DYNAMIC_REC_KEY])

    def _is_supported(self, module: Any, insert: bool = False) -> bool:
        classes = self.DEFAULT_DYNAMIC_STATIC_CHECK_SUPPORTED | self.DEFAULT_DYNAMIC_STATIC_FUTURE_SUPPORTED
        return isinstance(module, tuple(classes)) and (insert or hasattr(module, _PRE) and hasattr(module, _POST))

    def _generate_dict_info(self, model: Any) -> dict[str, dict[str, Any]]:
        """Return the ratios of each layer, and what follows from them."""
        found: dict[str, dict[str, Any]] = {}
        for name, module in model.named_modules():
            if not self._is_supported(module):
                continue
            before, behind = (getattr(module, end).get_batch_to_epoch_ratio() for end in (_PRE, _POST))
            words = [
                self.STATIONARY_STR if ratio > self.tolerance else self.NON_STATIONARY_STR for ratio in (before, behind)
            ]
            found[name] = {
                self.TOLERANCE_KEY: self.tolerance, self.DEFAULT_DYNAMIC_REC_KEY: behind <= self.tolerance,
                self.PRE_OBS_COMP_STAT_KEY: before, self.PRE_OBS_DATA_DIST_KEY: words[0],
                self.POST_OBS_COMP_STAT_KEY: behind, self.POST_OBS_DATA_DIST_KEY: words[1],
                self.IS_CURRENTLY_SUPPORTED_KEY: isinstance(
                    module, tuple(self.DEFAULT_DYNAMIC_STATIC_CHECK_SUPPORTED)
                ),
            }  # fmt: skip
        return found

    def _line(self, name: str, info: dict[str, Any]) -> str:
        """Return the text for one layer."""
        before, behind = info[self.PRE_OBS_DATA_DIST_KEY], info[self.POST_OBS_DATA_DIST_KEY]
        dynamic = info[self.DEFAULT_DYNAMIC_REC_KEY]
        benefit = "get more accurate results" if dynamic else "increase model efficiency"
        kind = "dynamic" if dynamic else "static"
        text = (
            f"For module {name} it is suggested to use {kind} quantization because the distribution of data before "
            f"{name} is {before} and the distribution after is {behind}. You {'will' if dynamic else 'can'} {benefit} "
            f"if you use {kind} quantization"
        )
        if dynamic and not info[self.IS_CURRENTLY_SUPPORTED_KEY]:
            text += ". This layer is not yet supported for dynamic quantization"
        if before == self.NON_STATIONARY_STR and behind == self.STATIONARY_STR:
            text += (
                ". We recommend to add a dynamic quantize per tensor layer before this module if it is static. This is "
                "because the input to this module has a non-stationary distribution"
            )
        return f"{text}.\n"

    def generate_detector_report(self, model: Any) -> tuple[str, dict[str, Any]]:
        """A text and what was found, by names of modules.

        Args:
            model: The prepared model, after a run over data.
        """
        found = self._generate_dict_info(model)
        lines = [self._line(name, info) for name, info in found.items()]
        lines = lines or ["No applicable layers for suggestions. Only linear and conv are valid.\n"]
        return "".join(["Dynamic vs. Static Quantization suggestions: \n", *lines]), found


class InputWeightEqualizationDetector(DetectorBase):
    """Recommends equalization where the channels of input and weight have other shares of their ranges.

    Args:
        ratio_threshold: The least ratio of the shares for which it is recommended, between 0 and 1.
        ch_axis: The dimension of channels. Default: 1.

    Raises:
        ValueError: `ratio_threshold` is not between 0 and 1.

    Example:
        >>> from torchlite.ao.quantization.fx._model_report.detector import InputWeightEqualizationDetector
        >>> InputWeightEqualizationDetector(0.5).get_detector_name()
        'input_weight_equalization_detector'
    """

    SUPPORTED_MODULES: set[Any] = {*_ALL_LAYERS}
    DEFAULT_PRE_OBSERVER_NAME = _PRE
    WEIGHT_PREFIX = "weight_"
    ACTIVATION_PREFIX = "input_activation_"
    PER_CHANNEL_MAX_KEY = "per_channel_max"
    PER_CHANNEL_MIN_KEY = "per_channel_min"
    GLOBAL_MAX_KEY = "global_max"
    GLOBAL_MIN_KEY = "global_min"
    RECOMMENDED_KEY = "input_weight_equalization_recommended"
    COMP_METRIC_KEY = "input_weight_channel_comparison_metrics"
    THRESHOLD_KEY = "input_weight_threshold"
    CHANNEL_KEY = "input_weight_channel_axis"
    WEIGHT_STR = "weight"
    INPUT_STR = "input"
    DEFAULT_RECOMMEND_INPUT_WEIGHT_CHANNEL_RATIO = 0.4

    def __init__(self, ratio_threshold: float, ch_axis: int = 1) -> None:
        super().__init__()
        if ratio_threshold <= 0 or ratio_threshold >= 1:
            raise ValueError("Make sure threshold is > 0 and < 1")
        self.ratio_threshold, self.ch_axis = ratio_threshold, ch_axis

    def _is_supported(self, module: Any, insert: bool = False) -> bool:
        return type(module) in self.SUPPORTED_MODULES and (insert or hasattr(module, _PRE))

    def get_qconfig_info(self, model: Any) -> dict[str, DetectorQConfigInfo]:
        """What the detector recommends, by names of modules.

        Args:
            model: The prepared model.
        """
        return _recommended(self._find(model), "is_equalization_recommended", lambda info: self._benefits(info)[2])

    def _benefits(self, info: dict[str, Any]) -> tuple[int, int, bool]:
        """Return the count of channels for which it is recommended, of all, and whether that is enough."""
        each = info[self.RECOMMENDED_KEY]
        count = sum(each)
        return count, len(each), count / len(each) >= self.DEFAULT_RECOMMEND_INPUT_WEIGHT_CHANNEL_RATIO

    def determine_observer_insert_points(self, prepared_fx_model: Any) -> dict[str, dict[str, Any]]:  # type: ignore[override]
        """Observers before linear layers and convolutions, by name.

        Args:
            prepared_fx_model: The prepared model.
        """
        return self._observers(
            prepared_fx_model, lambda module: self._is_supported(module, True),
            lambda: ModelReportObserver(ch_axis=self.ch_axis),
        )  # fmt: skip

    def get_detector_name(self) -> str:
        """The name of the detector."""
        return "input_weight_equalization_detector"

    def _extremes(self, prefix: str, low: Tensor, high: Tensor) -> dict[str, Tensor]:
        """Return the extremes of channels and of all."""
        return {
            prefix + self.PER_CHANNEL_MAX_KEY: high, prefix + self.PER_CHANNEL_MIN_KEY: low,
            prefix + self.GLOBAL_MAX_KEY: high.max(), prefix + self.GLOBAL_MIN_KEY: low.min(),
        }  # fmt: skip

    def _extract_input_info(self, model: Any) -> dict[str, dict]:
        """Return the extremes of the inputs of all layers."""
        return {
            name: self._extremes(self.ACTIVATION_PREFIX, getattr(module, _PRE).min_val, getattr(module, _PRE).max_val)
            for name, module in model.named_modules()
            if self._is_supported(module)
        }

    def _extract_weight_info(self, model: Any) -> dict[str, dict]:
        """Return the extremes of the weights of all layers."""
        return {
            name: self._extremes(
                self.WEIGHT_PREFIX, *torch.aminmax(by_channel(module.weight, self.ch_axis).float(), dim=1)
            )
            for name, module in model.named_modules()
            if self._is_supported(module)
        }

    def _calculate_range_ratio(self, info_dict: dict, info_str: str, module_fqn: str) -> Tensor:
        """Return the range of each channel divided by that of all."""
        prefix = self.ACTIVATION_PREFIX if info_str == self.INPUT_STR else self.WEIGHT_PREFIX
        each = info_dict[prefix + self.PER_CHANNEL_MAX_KEY] - info_dict[prefix + self.PER_CHANNEL_MIN_KEY]
        whole = info_dict[prefix + self.GLOBAL_MAX_KEY] - info_dict[prefix + self.GLOBAL_MIN_KEY]
        if whole == 0:
            raise ValueError(
                f"The range of the {info_str} data for module {module_fqn} is 0, which means you have a constant value "
                "channel. We recommend removing this channel as it doesn't provide any useful information."
            )
        return each / whole

    def _generate_comparison_values(self, input_info: dict, weight_info: dict) -> dict[str, Tensor]:
        """Return the square roots of the ratios of weights divided by those of inputs."""
        found: dict[str, Tensor] = {}
        for name in input_info:
            if name not in weight_info:
                raise KeyError(f"Unable to find weight range stats for module {name}")
            weight = self._calculate_range_ratio(weight_info[name], self.WEIGHT_STR, name)
            given = self._calculate_range_ratio(input_info[name], self.INPUT_STR, name)
            if len(weight) != len(given):
                if len(given) % len(weight) != 0:
                    raise AssertionError("input channels should be divisible by weight channels.")
                weight = weight.repeat(len(given) // len(weight))
            found[name] = torch.sqrt(weight) / torch.sqrt(given)
        return found

    def _generate_dict_info(self, input_info: dict, weight_info: dict, comp_stats: dict) -> dict[str, dict]:
        """Return all that was found, by names of modules."""
        found: dict[str, dict] = {}
        for name, given in input_info.items():
            least = self.ratio_threshold
            found[name] = {
                self.RECOMMENDED_KEY: [least <= value <= 1 / least for value in comp_stats[name].tolist()],
                self.COMP_METRIC_KEY: comp_stats[name], self.THRESHOLD_KEY: least, self.CHANNEL_KEY: self.ch_axis,
                **given, **weight_info[name],
            }  # fmt: skip
        return found

    def _find(self, model: Any) -> dict[str, dict]:
        inputs, weights = self._extract_input_info(model), self._extract_weight_info(model)
        return self._generate_dict_info(inputs, weights, self._generate_comparison_values(inputs, weights))

    def generate_detector_report(self, model: Any) -> tuple[str, dict[str, Any]]:
        """A text and what was found, by names of modules.

        Args:
            model: The prepared model, after a run over data.

        Raises:
            ValueError: All numbers of a weight or of an input are equal.
        """
        found = self._find(model)
        text = "Input-Weight Equalization suggestions: \n"
        for name, info in found.items():
            count, channels, enough = self._benefits(info)
            text += f"For Module {name} looked at with axis {self.ch_axis}: \n"
            if enough:
                text += (
                    f"\tWe suggest to use input weight equalization because {count}/{channels} channels would benefit "
                    "and we expect significant reduction in quantization error.\n"
                )
            else:
                text += (
                    "\tWe suggest to not use input weight equalization because we don't expect much improvement from "
                    f"input-weight equalization based on {count}/{channels} channels benefitting from input-weight "
                    "equalization being applied.\n"
                )
        if not found:
            text += "No applicable layers for suggestions. Only linear and conv valid.\n"
        return text, found


class OutlierDetector(DetectorBase):
    """Finds channels whose greatest numbers are far above a quantile.

    Args:
        ratio_threshold: The ratio above which a number is an outlier. Default: 3.5.
        reference_percentile: The quantile. Default: 0.975.
        fraction_batches_used_threshold: The share of batches from which a mean ratio is reliable. Default: 0.95.
        ch_axis: The dimension of channels. Default: 1.

    Raises:
        AssertionError: The quantile or the share is not between 0 and 1.

    Example:
        >>> from torchlite.ao.quantization.fx._model_report.detector import OutlierDetector
        >>> OutlierDetector().get_detector_name()
        'outlier_detector'
    """

    DEFAULT_PRE_OBSERVER_NAME = _PRE
    INPUT_ACTIVATION_PREFIX = "input_activation_"
    OUTLIER_KEY = "outliers_detected"
    NUM_BATCHES_KEY = "outlier_detection_batches_used"
    IS_SUFFICIENT_BATCHES_KEY = "outlier_detection_is_sufficient_batches"
    COMP_METRIC_KEY = "outlier_detection_percentile_ratios"
    RATIO_THRES_KEY = "outlier_detection_ratio_threshold"
    REF_PERCENTILE_KEY = "outlier_detection_reference_percentile"
    CHANNEL_AXIS_KEY = "outlier_detection_channel_axis"
    MAX_VALS_KEY = INPUT_ACTIVATION_PREFIX + "per_channel_max"
    CONSTANT_COUNTS_KEY = "constant_batch_counts"

    def __init__(
        self, ratio_threshold: float = 3.5, reference_percentile: float = 0.975,
        fraction_batches_used_threshold: float = 0.95, ch_axis: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        for name, value in (
            ("reference_percentile", reference_percentile),
            ("fraction_batches_used_threshold", fraction_batches_used_threshold),
        ):
            if not 0 <= value <= 1:
                raise AssertionError(f"{name} must be between 0 and 1")
        self.ratio_threshold, self.reference_percentile = ratio_threshold, reference_percentile
        self.fraction_batches_used_threshold, self.ch_axis = fraction_batches_used_threshold, ch_axis

    def get_detector_name(self) -> str:
        """The name of the detector."""
        return "outlier_detector"

    def _supports_insertion(self, module: Any) -> bool:
        return not _is_activation_post_process(module) and next(module.children(), None) is None

    def get_qconfig_info(self, model: Any) -> dict[str, DetectorQConfigInfo]:
        """No recommendations.

        Args:
            model: The prepared model.
        """
        return {}

    def _supports_report_gen(self, module: Any) -> bool:
        return hasattr(module, _PRE)

    def determine_observer_insert_points(self, prepared_fx_model: Any) -> dict[str, dict[str, Any]]:  # type: ignore[override]
        """Observers before all layers, by name.

        Args:
            prepared_fx_model: The prepared model.
        """
        return self._observers(
            prepared_fx_model, self._supports_insertion,
            lambda: ModelReportObserver(ch_axis=self.ch_axis, comp_percentile=self.reference_percentile),
        )  # fmt: skip

    def _calculate_outlier_info(
        self, percentile_ratios: Tensor, counted_batches: Tensor, total_batches: int
    ) -> dict[str, list[bool]]:
        """Return of each channel whether it has outliers, and whether enough batches were counted."""
        least = self.fraction_batches_used_threshold
        return {
            self.OUTLIER_KEY: [ratio > self.ratio_threshold for ratio in percentile_ratios.tolist()],
            self.IS_SUFFICIENT_BATCHES_KEY: [count / total_batches >= least for count in counted_batches.tolist()],
        }

    def _generate_info_dict(self, model: Any) -> dict[str, dict]:
        """Return all that was found, by names of modules."""
        found: dict[str, dict] = {}
        for name, module in model.named_modules():
            if not self._supports_report_gen(module):
                continue
            seen = getattr(module, _PRE)
            ratios, counted = seen.average_percentile_ratio, seen.percentile_batches_tracked
            # A ratio, its inverse and its negative mean the same.
            ratios.copy_(torch.where(ratios.abs() < 1, 1 / ratios.abs(), ratios.abs()))
            found[name] = {
                self.CHANNEL_AXIS_KEY: self.ch_axis, self.REF_PERCENTILE_KEY: self.reference_percentile,
                self.RATIO_THRES_KEY: self.ratio_threshold, self.COMP_METRIC_KEY: ratios,
                self.NUM_BATCHES_KEY: counted,
                **self._calculate_outlier_info(ratios, counted, seen.num_batches_tracked),
                self.CONSTANT_COUNTS_KEY: seen.constant_channels, self.MAX_VALS_KEY: seen.max_val,
            }  # fmt: skip
        return found

    def generate_detector_report(self, model: Any) -> tuple[str, dict[str, Any]]:
        """A text and what was found, by names of modules.

        Args:
            model: The prepared model, after a run over data.
        """
        found, lines = self._generate_info_dict(model), []
        for name, info in found.items():
            of_module = []
            for channel, is_outlier in enumerate(info[self.OUTLIER_KEY]):
                if is_outlier:
                    of_module.append(
                        f"\tFor channel {channel}, we found outliers in the preceding activation data with a max value "
                        f"across all batches of {info[self.MAX_VALS_KEY][channel]}.\n"
                    )
                constant = info[self.CONSTANT_COUNTS_KEY][channel]
                if constant != 0:
                    of_module.append(
                        f"\tFor channel {channel}, we found {constant} constant value batches. We recommend taking a "
                        "look at the dict and data to see how frequent this occurred and why.\n"
                    )
            if of_module:
                lines += [f"For Module {name} looked at with axis {self.ch_axis}: \n", *of_module]
        last = (
            "Note: outlier detection is only reliable for stationary distributions. We recommend running the static "
            "vs. dynamic detector to ensure activation data before modules above is stationary to ensure the most "
            "accurate results."
        )
        if not lines:
            last = "There were no outliers found in the activations.\n"
        return "".join(["Outlier detection report: \n", *lines, last]), found
