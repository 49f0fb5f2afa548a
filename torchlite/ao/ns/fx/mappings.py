"""Tables of the comparison: ops that compute the same, the types that they take, and those without a counterpart."""

from __future__ import annotations

import operator
from typing import Any

import torchlite as torch
import torchlite.ao.nn.qat as nnqat
import torchlite.nn.functional as F
from torchlite import nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn import quantized as nnq
from torchlite.ao.nn.intrinsic import qat as nniqat
from torchlite.ao.nn.intrinsic import quantized as nniq
from torchlite.ao.nn.quantized import dynamic as nnqd
from torchlite.ao.quantization import quantization_mappings
from torchlite.ao.quantization.backend_config import get_native_backend_config
from torchlite.ao.quantization.fx import _lowering_tables as lowering

from .ns_types import NSNodeTargetType

# Related ops, sets between semicolons. Words with a leading dot are methods.
_RELATED = """
nn.Conv1d; nn.Conv2d; nn.Conv3d; F.conv1d; F.conv2d; F.conv3d; nn.Linear; F.linear; nn.AvgPool1d torch.avg_pool1d;
nn.AvgPool2d F.avg_pool2d; nn.AvgPool3d F.avg_pool3d; nn.AdaptiveAvgPool1d F.adaptive_avg_pool1d;
nn.AdaptiveAvgPool2d F.adaptive_avg_pool2d; nn.AdaptiveAvgPool3d F.adaptive_avg_pool3d; nn.LSTM; torch.add operator.add;
torch.cat; torch.mul operator.mul; F.relu nn.ReLU .relu .relu_ torch.relu; nn.MaxPool1d F.max_pool1d;
nn.MaxPool2d F.max_pool2d; nn.MaxPool3d F.max_pool3d; torch.sigmoid .sigmoid .sigmoid_ nn.Sigmoid F.sigmoid;
nn.BatchNorm2d; nn.BatchNorm3d; nn.ConvTranspose1d; nn.ConvTranspose2d; nn.ConvTranspose3d; F.conv_transpose1d;
F.conv_transpose2d; F.conv_transpose3d; nn.ELU; nn.Embedding; nn.EmbeddingBag; nn.GroupNorm; nn.Hardswish;
nn.InstanceNorm1d; nn.InstanceNorm2d; nn.InstanceNorm3d; nn.LayerNorm; nn.LeakyReLU; nn.ReLU6 F.relu6; F.elu;
F.hardswish; F.group_norm; F.instance_norm; F.layer_norm; F.leaky_relu; nn.SiLU F.silu; nn.Mish F.mish;
nn.Tanh F.tanh torch.tanh .tanh_ .tanh; .hardsigmoid_ .hardsigmoid F.hardsigmoid nn.Hardsigmoid;
nn.Hardtanh F.hardtanh F.hardtanh_; operator.floordiv; torch.unsqueeze; torch.stack; torch.squeeze; torch.sort;
torch.repeat_interleave; torch.min; torch.mean; torch.max; torch.transpose; torch.flatten; torch.clamp; torch.chunk;
F.interpolate; nn.Dropout; F.dropout; torch.matmul; nn.Softmax; nn.PReLU nnq.PReLU; F.prelu toq.prelu; nn.PixelShuffle;
F.pixel_shuffle; nn.PixelUnshuffle; F.pixel_unshuffle; torch.narrow
"""
_SPACES: dict[str, Any] = {
    "nn": nn, "F": F, "torch": torch, "operator": operator, "nnq": nnq, "nnqd": nnqd, "nnqat": nnqat,
    "nnqatd": nnqat.dynamic, "nni": nni, "nniq": nniq, "nniqd": nniq.dynamic, "nniqat": nniqat,
    "toq": torch.ops.quantized,
}  # fmt: skip


def _named(text: str) -> set[Any]:
    """Return what words name; a word with a leading dot is a method."""
    found = set()
    for word in text.split():
        space, _, name = word.partition(".")
        found.add(getattr(_SPACES[space], name) if space else name)
    return found


def _all(space: str, names: str) -> set[Any]:
    return {getattr(_SPACES[space], name) for name in names.split()}


def _connections() -> list[tuple[Any, Any]]:
    """Return pairs of float ops and of those that quantization puts in their place."""
    pairs: list[tuple[Any, Any]] = [(nn.Linear, nn.modules.linear.NonDynamicallyQuantizableLinear)]  # type: ignore[attr-defined]
    for pattern, config in get_native_backend_config()._pattern_complex_format_to_config.items():
        while isinstance(pattern, (list, tuple)):
            pattern = pattern[-1]
        classes = (config.fused_module, config.qat_module, config.reference_quantized_module)
        pairs += [(pattern, kind) for kind in classes if kind is not None]
    for table in (lowering.STATIC, lowering.DYNAMIC, lowering.WEIGHT_ONLY, lowering.SPECIAL):
        pairs += table.items()
    fused = (lowering.STATIC_FUSED, lowering.TWO_INPUTS, lowering.DYNAMIC_FUSED, lowering.functions())
    for both in fused:
        pairs += [(source, target) for source, targets in both.items() for target in targets]
    for source, name in lowering.BINARY.items():
        pairs.append((source, getattr(torch.ops.quantized, name)))
    for source, name in lowering.BINARY.items():
        if name != "matmul":
            pairs.append((source, getattr(torch.ops.quantized, f"{name}_relu")))
    pairs += quantization_mappings.get_default_float_to_quantized_operator_mappings().items()
    pairs += quantization_mappings.get_default_dynamic_quant_module_mappings().items()
    return pairs


def get_base_name_to_sets_of_related_ops() -> dict[str, set[NSNodeTargetType]]:
    """The sets of ops that compute the same, by numbers.

    Example:
        >>> from torchlite.ao.ns.fx.mappings import get_base_name_to_sets_of_related_ops
        >>> any({torch.add, torch.ops.quantized.add} <= ops for ops in get_base_name_to_sets_of_related_ops().values())
        True
    """
    sets = [_named(text) for text in _RELATED.split(";")]
    for pair in _connections():
        for related in sets:
            if not related.isdisjoint(pair):
                related.update(pair)
                break
    return {str(number): related for number, related in enumerate(sets)}


def get_base_name_for_op(
    base_name_to_sets_of_related_ops: dict[str, set[NSNodeTargetType]], op: NSNodeTargetType
) -> str | None:
    """The name of the set that has an op.

    Args:
        base_name_to_sets_of_related_ops: The sets by names.
        op: The op.

    Returns:
        The name, or ``None``.
    """
    return next((name for name, related in base_name_to_sets_of_related_ops.items() if op in related), None)


def add_op_to_sets_of_related_ops(
    base_name_to_sets_of_related_ops: dict[str, set[NSNodeTargetType]], op: NSNodeTargetType,
    related_op: NSNodeTargetType | None,
) -> None:  # fmt: skip
    """Adds an op to the sets of those that compute the same.

    Args:
        base_name_to_sets_of_related_ops: The sets by names, which are changed.
        op: The op.
        related_op: An op that computes the same; with ``None`` there is a new set.

    Raises:
        AssertionError: No set has `related_op`.
    """
    if related_op is None:
        number = 0
        while str(number) in base_name_to_sets_of_related_ops:
            number += 1
        base_name_to_sets_of_related_ops[str(number)] = {op}
        return
    name = get_base_name_for_op(base_name_to_sets_of_related_ops, related_op)
    if name is None:
        raise AssertionError(f"{related_op} was not found")
    base_name_to_sets_of_related_ops[name].add(op)


def get_node_type_to_io_type_map() -> dict[str, set[NSNodeTargetType]]:
    """The ops that take floats, quantized tensors, or both.

    Example:
        >>> from torchlite.ao.ns.fx.mappings import get_node_type_to_io_type_map
        >>> torch.nn.Linear in get_node_type_to_io_type_map()["mods_io_type_fp32"]
        True
    """
    fused_classes = """BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU LinearLeakyReLU LinearTanh
        ConvAdd2d ConvAddReLU2d"""
    norms = """BatchNorm2d BatchNorm3d Dropout ConvTranspose1d ConvTranspose2d ELU InstanceNorm1d InstanceNorm2d
        InstanceNorm3d LayerNorm Hardswish LeakyReLU Softmax PReLU Linear Conv1d Conv2d Conv3d"""
    return {
        "funs_io_type_fp32": _all("F", """linear conv1d conv2d conv3d elu hardswish instance_norm layer_norm leaky_relu
            dropout silu mish prelu""") | _all("torch", "cat add mul sum") | _all("operator", "add mul"),
        "funs_io_type_fp16": set(),
        "funs_io_type_int8": _all("toq", """linear linear_relu conv1d conv1d_relu conv2d conv2d_relu conv3d conv3d_relu
            cat elu hardswish instance_norm layer_norm leaky_relu dropout prelu"""),
        "funs_io_type_fp32_or_int8": _all("F", """relu tanh sigmoid hardsigmoid adaptive_avg_pool2d adaptive_avg_pool3d
            dropout hardtanh hardtanh_ interpolate max_pool1d max_pool2d max_pool3d relu6 pixel_shuffle pixel_unshuffle
            avg_pool2d avg_pool3d""") | _all("torch", """tanh sigmoid adaptive_avg_pool1d avg_pool1d cat chunk clamp
            flatten transpose max mean min narrow repeat_interleave sort squeeze stack unsqueeze""")
            | _all("operator", "floordiv add"),
        "mods_io_type_fp32": _all("nn", f"{norms} ConvTranspose3d GroupNorm LSTM ReLU6 SiLU Mish")
            | {nn.modules.linear.NonDynamicallyQuantizableLinear}  # type: ignore[attr-defined]
            | _all("nnqat", "Linear Conv1d Conv2d Conv3d Embedding EmbeddingBag") | _named("nnqatd.Linear")
            | _all("nnqd", "Linear LSTM") | _named("nniqd.LinearReLU")
            | _all("nni", f"{fused_classes} LinearBn1d ConvBn1d ConvBn2d ConvBn3d")
            | _all("nniqat", """ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d
            ConvReLU3d LinearReLU LinearBn1d"""),
        "mods_io_type_int8": _all("nnq", f"{norms} Embedding EmbeddingBag") | _all("nniq", fused_classes),
        "mods_io_type_fp32_or_int8": _all("nn", """ReLU Tanh Sigmoid Hardsigmoid AdaptiveAvgPool1d AdaptiveAvgPool2d
            AdaptiveAvgPool3d AvgPool1d AvgPool2d AvgPool3d Dropout Hardtanh Identity MaxPool1d MaxPool2d MaxPool3d
            PixelShuffle PixelUnshuffle ReLU6"""),
        "meths_io_type_fp32_or_int8": {*"sigmoid_ sigmoid tanh_ tanh hardsigmoid_ hardsigmoid relu_ relu".split()},
    }  # fmt: skip


def get_unmatchable_types_map() -> dict[str, set[NSNodeTargetType]]:
    """The ops without a counterpart.

    Example:
        >>> from torchlite.ao.ns.fx.mappings import get_unmatchable_types_map
        >>> torch.quantize_per_tensor in get_unmatchable_types_map()["funs_unmatchable"]
        True
    """
    methods = """to dequantize reshape view unsqueeze_ unsqueeze transpose squeeze_ squeeze size shape resize_
        repeat_interleave repeat permute numel mean detach_ detach contiguous clamp chunk"""
    return {
        "funs_unmatchable": {torch.quantize_per_tensor, operator.getitem}, "mods_unmatchable": {nn.Identity},
        "meths_unmatchable": {*methods.split()},
    }  # fmt: skip
