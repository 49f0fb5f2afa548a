"""Programs that compare networks before and after quantization, and report on them, for torchlite and for PyTorch
(`tools/record_quantization.py`).
"""

from __future__ import annotations

import copy
import io
import pathlib
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from tests.ao.quantization.cases import named, refused, wave

ANSWERS = pathlib.Path(__file__).with_name("answers.json")
PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable) -> Callable:
    PROGRAMS[function.__name__] = function
    return function


def _filled(torch: Any, model: Any) -> Any:
    for number, parameter in enumerate(model.parameters()):
        parameter.data = wave(torch, *parameter.shape, step=0.37 + 0.11 * number, size=0.4)
    return model


def _small(torch: Any) -> Any:
    return _filled(torch, torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)))


def _mapping(torch: Any) -> Any:
    ao = torch.ao.quantization
    return ao.QConfigMapping().set_global(ao.default_qconfig)


def _prepared(torch: Any, model: Any, x: Any) -> Any:
    prepare_fx = named(torch, "ao.quantization.quantize_fx", "prepare_fx")

    prepared = prepare_fx(copy.deepcopy(model).eval(), _mapping(torch), (x,))
    prepared(x)
    return prepared


def _both(torch: Any, model: Any, x: Any) -> tuple[Any, Any]:
    """The prepared network and the converted one."""
    convert_fx = named(torch, "ao.quantization.quantize_fx", "convert_fx")

    prepared = _prepared(torch, model, x)
    return prepared, convert_fx(copy.deepcopy(prepared))


@program
def learnable_fake_quantization(torch: Any) -> Any:
    Learnable = named(torch, "ao.quantization._learnable_fake_quantize", "_LearnableFakeQuantize")

    ao, found = torch.ao.quantization, []
    for options in (
        {"quant_min": 0, "quant_max": 15},
        {"quant_min": -8, "quant_max": 7, "dtype": torch.qint8, "qscheme": torch.per_tensor_symmetric},
        {"quant_min": 0, "quant_max": 255, "use_grad_scaling": True, "scale": 0.1, "zero_point": 3.0},
    ):
        fake = Learnable(ao.MinMaxObserver, **options)
        x = wave(torch, 3, 4).requires_grad_()
        seen = fake(x)
        fake.enable_param_learning()
        (fake(x) ** 2).sum().backward()
        found.append([seen, x.grad, fake.scale.grad, fake.zero_point.grad, fake.calculate_qparams(), fake.bitwidth])
        fake.enable_static_observation()
        found.append([fake(x), fake.fake_quant_enabled, fake.static_enabled, fake.learning_enabled])
    fake = Learnable(ao.PerChannelMinMaxObserver, 0, 15, channel_len=3, ch_axis=0, qscheme=torch.per_channel_affine)
    found.append([fake(wave(torch, 3, 4)), fake.scale, fake.zero_point, sorted(fake.state_dict())])
    return [found, refused(Learnable, ao.MinMaxObserver, channel_len=0)]


@program
def equalization(torch: Any) -> Any:
    equalize = named(torch, "ao.quantization", "_equalize")

    nn = torch.nn
    first, second = _filled(torch, nn.Conv2d(3, 4, 2)), _filled(torch, nn.Linear(4, 4))
    equalize.cross_layer_equalization(first, second)
    found = [first.weight, first.bias, second.weight, second.bias]
    model = _filled(torch, nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5, bias=False), nn.Linear(5, 2)))
    same = equalize.equalize(model, [["0", model[1], "2"]], 1e-6)
    found += [layer.weight for layer in model] + [same is model]
    return [
        found, equalize.channel_range(wave(torch, 2, 3, 4), 1), equalize.max_over_ndim(wave(torch, 2, 3, 4), [0, 2]),
        equalize.expand_groups_in_paired_modules_list([["a", "b"], ["c", "d", "e"]]),
        refused(equalize.expand_groups_in_paired_modules_list, [["a"]]),
        refused(equalize.process_paired_modules_list_to_name, model, [["0", 3]]),
        refused(equalize.get_name_by_module, model, first), refused(equalize.converged, {"a": first}, {"b": first}),
        refused(equalize.cross_layer_equalization, nn.Linear(2, 3), nn.Linear(2, 3)),
        refused(equalize.cross_layer_equalization, nn.ReLU(), nn.Linear(2, 3)).replace("torchlite", "torch"),
        equalize.converged({"a": first}, {"a": first}), equalize.converged({"a": first}, {"a": None}),
    ]  # fmt: skip


@program
def corrected_biases(torch: Any) -> Any:
    bias_correction, get_param, parent_child_names = named(
        torch, "ao.quantization._correct_bias", "bias_correction get_param parent_child_names"
    )

    ao = torch.ao.quantization
    model = ao.QuantWrapper(_small(torch)).eval()
    model.qconfig = ao.default_qconfig
    data = [(wave(torch, 6, 4, step=0.4 + number), None) for number in range(3)]
    small = ao.quantize(copy.deepcopy(model), ao.default_eval_fn, [data])
    before = [get_param(small.module[place], "bias") for place in (0, 2)]
    bias_correction(model, small, data, neval_batches=2)
    after = [get_param(small.module[place].orig_module, "bias") for place in (0, 2)]
    return [[new - old for new, old in zip(after, before, strict=True)], parent_child_names("a.b.c"),
            parent_child_names("a"), type(small.module[0]).__name__]  # fmt: skip


@program
def eager_networks(torch: Any) -> Any:
    ns = named(torch, "ao.ns", "_numeric_suite")

    ao, nn, found = torch.ao.quantization, torch.nn, []
    for dynamic in (False, True):
        model = ao.QuantWrapper(_small(torch)).eval()
        model.qconfig = ao.default_qconfig
        x = wave(torch, 5, 4)
        if dynamic:
            small = ao.quantize_dynamic(model, {nn.Linear})
        else:
            small = ao.quantize(copy.deepcopy(model), ao.default_eval_fn, [[(x, None)]])
        weights = ns.compare_weights(model.state_dict(), small.state_dict())
        found.append({key: [value["float"], value["quantized"].dequantize()] for key, value in weights.items()})
        outputs = ns.compare_model_outputs(copy.deepcopy(model), copy.deepcopy(small), x)
        found.append({key: {name: [list(t.shape) for t in each] for name, each in value.items()}
                      for key, value in outputs.items()})  # fmt: skip
        stubs = ns.compare_model_stub(model, small, {nn.Linear}, x)
        found.append({key: {name: [list(t.shape) for t in each] for name, each in value.items()}
                      for key, value in stubs.items()})  # fmt: skip
    shadow = ns.Shadow(nn.quantized.FloatFunctional(), nn.quantized.FloatFunctional(), ns.ShadowLogger)
    x = torch.ones(2)
    sums = [shadow.add(x, x), shadow.add_scalar(x, 2.0), shadow.mul(x, x), shadow.mul_scalar(x, 3.0),
            shadow.cat([x, x]), shadow.add_relu(x, -2 * x)]  # fmt: skip
    return [found, sums, shadow.logger.stats]


@program
def graphs(torch: Any) -> Any:
    ns = named(torch, "ao.ns", "_numeric_suite_fx")
    compute_sqnr = named(torch, "ao.ns.fx.utils", "compute_sqnr")

    x, model = wave(torch, 5, 4), _small(torch)
    prepared, quantized = _both(torch, model, x)
    weights = ns.extract_weights("a", prepared, "b", quantized)
    ns.extend_logger_results_with_comparison(weights, "a", "b", compute_sqnr, "sqnr")

    def entry(result: Any) -> Any:
        """A result without numbers, and with the last part of classes' names."""
        kept = {key: value for key, value in result.items() if key not in ("values", "sqnr")}
        return {key: value.split(".")[-1] if key.endswith("target_type") else value for key, value in kept.items()}

    def shown(results: Any) -> Any:
        return {
            layer: {
                kind: {name: [entry(one) for one in each] for name, each in models.items()}
                for kind, models in kinds.items()
            }
            for layer, kinds in results.items()
        }

    found = [shown(weights), [kinds["weight"]["b"][0]["values"][0].int_repr() for kinds in weights.values()]]
    for inputs in (False, True):
        pair = ns.add_loggers("a", copy.deepcopy(prepared), "b", copy.deepcopy(quantized), ns.OutputLogger, inputs)
        for one in pair:
            one(x)
        nodes = [[f"{node.op} {node.name}" for node in one.graph.nodes] for one in pair]
        found += [nodes, shown(ns.extract_logger_info(*pair, ns.OutputLogger, "b"))]
        both = ns.add_shadow_loggers(
            "a", copy.deepcopy(prepared), "b", copy.deepcopy(quantized), ns.OutputLogger, inputs
        )
        both(x)
        nodes = [f"{node.op} {node.name}" for node in both.graph.nodes]
        found += [nodes, shown(ns.extract_shadow_logger_info(both, ns.OutputLogger, "b"))]
    return found


@program
def several_configurations(torch: Any) -> Any:
    ns = named(torch, "ao.ns", "_numeric_suite_fx")
    QConfigMultiMapping = named(torch, "ao.ns.fx.qconfig_multi_mapping", "QConfigMultiMapping")
    get_native_backend_config = named(torch, "ao.quantization.backend_config", "get_native_backend_config")

    ao, nn, x = torch.ao.quantization, torch.nn, wave(torch, 5, 4)
    mapping = QConfigMultiMapping().set_global([ao.default_qconfig, ao.default_dynamic_qconfig])
    mapping.set_module_name("0", [ao.default_qconfig, None, ao.per_channel_dynamic_qconfig])
    lists = [[sorted(one.module_name_qconfigs), one.global_qconfig is None] for one in mapping.qconfig_mappings_list]
    model = ns.prepare_n_shadows_model(_small(torch).eval(), (x,), mapping, get_native_backend_config())
    nodes = [f"{node.op} {node.target}" for node in model.graph.nodes]
    model(x)
    model = ns.convert_n_shadows_model(model)
    ns.loggers_set_enabled(model, True)
    ns.loggers_set_save_activations(model, False)
    model(x)
    results = ns.extract_results_n_shadows_model(model)
    kinds = results["model"]["node_output"]
    counts = {name: [len(one["comparisons"]) for one in each] for name, each in kinds.items()}
    second = ns._prepare_n_shadows_add_loggers_model(
        _small(torch).eval(), (x,), _mapping(torch), get_native_backend_config()
    )
    added = [f"{node.op} {node.target} {[str(arg) for arg in node.args]}" for node in second.graph.nodes]

    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(wave(torch, 3, 4))

        def forward(self, x):
            return nn.functional.relu(nn.functional.linear(x, self.weight))

    weights = ns._n_shadows_compare_weights(
        Functional().eval(), (x,), _mapping(torch), get_native_backend_config()
    )["model"]["weight"]  # fmt: skip
    return [lists, nodes, counts, added, {name: each[0]["comparisons"] for name, each in weights.items()}]


@program
def reports(torch: Any) -> Any:
    detectors = named(torch, "ao.quantization.fx._model_report", "detector")
    ModelReport = named(torch, "ao.quantization.fx._model_report.model_report", "ModelReport")

    model, x = _small(torch), wave(torch, 30, 4)
    x[3, 2], found = 90.0, []
    made = [
        detectors.PerChannelDetector("fbgemm"), detectors.DynamicStaticDetector(0.6),
        detectors.InputWeightEqualizationDetector(0.4), detectors.OutlierDetector(reference_percentile=0.9),
    ]  # fmt: skip
    for one in made:
        prepared = _prepared(torch, model, x)
        report = ModelReport(prepared, {one})
        ready = report.prepare_detailed_calibration()
        nodes = [f"{node.op} {node.target}" for node in ready.graph.nodes]
        for part in (x[:10], x[10:20] * 0.2, x[20:] * 0.5):
            ready(part)
        mapping, equalized = report.generate_qconfig_mapping(), report.generate_equalization_mapping()
        found.append([nodes, sorted(mapping.module_name_qconfigs), sorted(equalized.module_name_qconfigs)])
        found.append([str(mapping.module_name_qconfigs.get("0")).count("PerChannel"), report.get_observers_of_interest()
                      .keys() == {one.get_detector_name()}])  # fmt: skip
        found.append(report.generate_model_report(True))
        visualizer, text = report.generate_visualizer(), io.StringIO()
        with redirect_stdout(text):
            visualizer.generate_table_visualization()
        found.append([visualizer.generate_filtered_tables(), len(text.getvalue()) > 20,
                      sorted(visualizer.get_all_unique_feature_names(False))])  # fmt: skip
        found.append([refused(report.generate_model_report, True), refused(report.prepare_detailed_calibration)])
    return [
        found, refused(detectors.PerChannelDetector, "other"), refused(detectors.OutlierDetector, 1, 2),
        refused(detectors.InputWeightEqualizationDetector, 1.5), refused(ModelReport, None, set()),
    ]  # fmt: skip


@program
def onednn_library(torch: Any) -> Any:
    ops, found = torch.ops.onednn, []
    x = ((torch.arange(12) * 37) % 251).reshape(2, 6).to(torch.uint8)
    weight = ((torch.arange(24) * 53) % 201 - 100).reshape(4, 6).to(torch.int8)
    packed = ops.qlinear_prepack(weight, None)
    scales, zeros, bias = torch.arange(1, 5) * 0.002, torch.zeros(4, dtype=torch.int32), torch.arange(4) * 0.5
    for dtype in (None, torch.int8, torch.float32, torch.bfloat16):
        out = (1.0, 0) if dtype in (torch.float32, torch.bfloat16) else (0.3, 20)
        for name, args, algorithm in (
            ("none", [], ""), ("relu", [], ""), ("gelu", [], "tanh"), ("hardtanh", [-1.0, 2.0], ""), ("swish", [], ""),
            ("hardswish", [], ""), ("leaky_relu", [0.1], ""), ("tanh", [], ""),
        ):  # fmt: skip
            found.append(
                ops.qlinear_pointwise(x, 0.02, 9, packed, scales, zeros, bias, *out, dtype, name, args, algorithm)
            )
    levels = (torch.arange(8) * 11 % 60).reshape(2, 4).to(torch.uint8)
    for kind, other in (("sum", levels.clone()), ("add", wave(torch, 2, 4))):
        scale = (0.1, 3) if kind == "sum" else (1.0, 0)
        found.append(
            ops.qlinear_pointwise.binary(
                x, 0.02, 9, packed, scales, zeros, other, None, 0.3, 20, None, *scale, kind, 1.0, "relu", [], ""
            )
        )
    image = ((torch.arange(50) * 37) % 251).reshape(1, 2, 5, 5).to(torch.uint8)
    kernel = ((torch.arange(54) * 53) % 201 - 100).reshape(3, 2, 3, 3).to(torch.int8)
    place = [1, 1], [1, 0], [1, 1], 1
    packed = ops.qconv_prepack(kernel, scales[:3], 0.02, 9, *place, [1, 2, 5, 5])
    given = (image, 0.02, 9, packed, scales[:3], zeros[:3], bias[:3], *place)
    for name, args in (("none", []), ("relu", []), ("hardtanh", [-1.0, 2.0]), ("hardswish", []), ("swish", [])):
        found.append(ops.qconv2d_pointwise(*given, 0.3, 20, None, name, args, "").contiguous())
    found.append(ops.qconv2d_pointwise(*given, 1.0, 0, torch.float32, "none", [], "").contiguous())
    refusals = [
        refused(ops.qlinear_pointwise, x, 0.02, 9, ops.qlinear_prepack(weight, None), scales, zeros, bias, 0.3, 20,
                torch.float32, "none", [], ""),
        refused(ops.qlinear_pointwise, x, 0.02, 9, ops.qlinear_prepack(weight, None), scales, zeros, bias, 0.3, 20,
                None, "other", [], ""),
        refused(ops.qconv2d_pointwise, *given, 0.3, 20, None, "gelu", [], "tanh"),
    ]  # fmt: skip
    half = ops.linear_prepack_fp16(wave(torch, 3, 4), [2, 4])
    return [
        [value.float() for value in found], [str(value.dtype) for value in found], refusals,
        ops.linear_relu_dynamic_fp16(wave(torch, 2, 4, step=0.2), half, bias[:3]),
    ]  # fmt: skip
