"""Summaries of TensorBoard's plugins: curves, chart layouts, meshes, tensors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ._tensorboard_imports import as_array, import_proto


def plugin_summary(tag: str, name: str, tensor: Any, content: bytes = b"") -> Any:
    """Return a tensor summary for a plugin."""
    messages = import_proto("summary_pb2")
    plugin = messages.SummaryMetadata.PluginData(plugin_name=name, content=content)
    made = messages.Summary.Value(tag=tag, metadata=messages.SummaryMetadata(plugin_data=plugin), tensor=tensor)
    return messages.Summary(value=[made])


def to_tensor_proto(array: np.ndarray) -> Any:
    """Convert an array of numbers. ValueError for a dtype that TensorBoard does not support."""
    kinds = {
        "f2": ("DT_HALF", "half_val"), "f4": ("DT_FLOAT", "float_val"), "f8": ("DT_DOUBLE", "double_val"),
        "i1": ("DT_INT8", "int_val"), "i2": ("DT_INT16", "int_val"), "i4": ("DT_INT32", "int_val"),
        "i8": ("DT_INT64", "int64_val"), "u1": ("DT_UINT8", "int_val"), "b1": ("DT_BOOL", "bool_val"),
        "c8": ("DT_COMPLEX64", "scomplex_val"), "c16": ("DT_COMPLEX128", "dcomplex_val"),
    }  # fmt: skip
    found = kinds.get(array.dtype.str[1:])
    if found is None:
        raise ValueError(f"{array.dtype} is not supported by TensorBoard")
    dtype, field = found
    flat = array.reshape(-1)
    if dtype == "DT_HALF":
        flat = flat.view(np.uint16)
    elif array.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return import_proto("tensor_pb2").TensorProto(dtype=dtype, tensor_shape=shape_of(array), **{field: flat.tolist()})


def shape_of(array: np.ndarray) -> Any:
    """An array's shape."""
    sizes = import_proto("tensor_shape_pb2").TensorShapeProto
    return sizes(dim=[sizes.Dim(size=size) for size in array.shape])


def tensor_proto(tag: str, tensor: Any) -> Any:
    """A tensor, number by number."""
    return plugin_summary(tag, "tensor", to_tensor_proto(as_array(tensor)))


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Return the precision-recall curve of predictions from 0 to 1 with true `labels`, over a range of thresholds."""
    count = min(num_thresholds, 127)
    truth, weight = as_array(labels).reshape(-1).astype(bool), 1.0 if weights is None else as_array(weights).reshape(-1)
    places = np.floor(as_array(predictions).reshape(-1).astype(np.float32) * (count - 1)).astype(np.int64)
    shares = [np.bincount(places, chosen * weight, count)[:count] for chosen in (truth, ~truth)]
    true_positive, false_positive = (np.cumsum(share[::-1])[::-1] for share in shares)
    true_negative, false_negative = false_positive[0] - false_positive, true_positive[0] - true_positive
    precision = true_positive / np.maximum(true_positive + false_positive, 1e-7)
    recall = true_positive / np.maximum(true_positive + false_negative, 1e-7)
    rows = (true_positive, false_positive, true_negative, false_negative, precision, recall)
    return pr_curve_raw(tag, *rows, count)


def pr_curve_raw(
    tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any, num_thresholds: int = 127,
    weights: Any = None,
) -> Any:  # fmt: skip
    """A curve that was computed already. `weights` has no effect: they are counted in the curve already."""
    rows = np.stack([as_array(row) for row in (tp, fp, tn, fn, precision, recall)]).astype(np.float32)
    content = import_proto("plugin_pr_curve_pb2").PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, 127))
    return plugin_summary(tag, "pr_curves", to_tensor_proto(rows), content.SerializeToString())


def custom_scalars(layout: dict[str, Any]) -> Any:
    """Return a layout of charts: `{category: {chart: ["Multiline" or "Margin", [tags]]}}`. ValueError for a margin
    chart whose tags are not three.
    """
    layout_proto = import_proto("layout_pb2")
    categories = []
    for name, charts in layout.items():
        drawn = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise ValueError(f"a chart with margins shows three tags: the value and its limits, got {tags}")
                series = layout_proto.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                drawn.append(layout_proto.Chart(title=title, margin=layout_proto.MarginChartContent(series=[series])))
            else:
                drawn.append(layout_proto.Chart(title=title, multiline=layout_proto.MultilineChartContent(tag=tags)))
        categories.append(layout_proto.Category(title=name, chart=drawn))
    content = layout_proto.Layout(category=categories).SerializeToString()
    sizes = import_proto("tensor_shape_pb2").TensorShapeProto()
    tensor = import_proto("tensor_pb2").TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=sizes)
    return plugin_summary("custom_scalars__config__", "custom_scalars", tensor)


def mesh(
    tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None,
    display_name: str | None = None, description: str | None = None,
) -> Any:  # fmt: skip
    """Points in space (n, points, 3), with colours and triangles."""
    kinds = import_proto("plugin_mesh_pb2").MeshPluginData
    given = [("VERTEX", vertices, kinds.VERTEX), ("FACE", faces, kinds.FACE), ("COLOR", colors, kinds.COLOR)]
    there = [(name, as_array(array), kind) for name, array, kind in given if array is not None]
    components = sum(1 << kind for _, _, kind in there)
    messages, values = import_proto("summary_pb2"), []
    for name, array, kind in there:
        content = kinds(
            version=0, name=tag, content_type=kind, components=components, shape=array.shape,
            json_config=json.dumps(config_dict or {}, sort_keys=True),
        )  # fmt: skip
        tensor = to_tensor_proto(array.astype(np.float32))
        summary = plugin_summary(f"{tag}_{name}", "mesh", tensor, content.SerializeToString()).value[0]
        summary.metadata.display_name, summary.metadata.summary_description = display_name or "", description or ""
        values.append(summary)
    return messages.Summary(value=values)
