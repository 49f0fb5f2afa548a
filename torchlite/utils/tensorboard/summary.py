"""Summaries: what TensorBoard shows, as protocol buffers."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from ._packages import as_array, proto

__all__ = ["custom_scalars", "histogram", "histogram_raw", "hparams", "image", "make_histogram", "scalar", "text"]


def _summary(**value: Any) -> Any:
    messages = proto("summary_pb2")
    return messages.Summary(value=[messages.Summary.Value(**value)])


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Any:
    """A number. AssertionError for a tensor of several."""
    array = as_array(tensor).squeeze()
    if array.ndim:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and "
                             f"{array.ndim} dimensions.")  # fmt: skip
    if not new_style:
        return _summary(tag=name, simple_value=float(array))
    messages = proto("tensor_pb2"), proto("types_pb2"), proto("summary_pb2")
    kind, values = (messages[1].DT_DOUBLE, "double_val") if double_precision else (messages[1].DT_FLOAT, "float_val")
    content = messages[0].TensorProto(dtype=kind, **{values: [float(array)]})
    plugin = messages[2].SummaryMetadata.PluginData(plugin_name="scalars")
    return _summary(tag=name, tensor=content, metadata=messages[2].SummaryMetadata(plugin_data=plugin))


def make_histogram(values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """The counts of values in bins."""
    values = np.asarray(values).reshape(-1).astype(np.float64)
    if not values.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        factor = len(counts) // max_bins
        counts = np.add.reduceat(counts, np.arange(0, len(counts), factor))
        limits = np.append(limits[:-1:factor], limits[-1])
    taken = np.flatnonzero(counts)
    first, last = (int(taken[0]), int(taken[-1]) + 1) if taken.size else (0, 1)
    first = max(first - 1, 0)
    return proto("summary_pb2").HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=values.dot(values),
        bucket_limit=[float(v) for v in limits[first + 1 : last + 1]], bucket=[float(c) for c in counts[first:last]],
    )  # fmt: skip


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """Values by how many lie where."""
    return _summary(tag=name, histo=make_histogram(as_array(values), bins, max_bins))


def histogram_raw(
    name: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any, bucket_counts: Any
) -> Any:
    """A histogram that was counted already."""
    made = proto("summary_pb2").HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return _summary(tag=name, histo=made)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """An image, as PNG. ImportError without Pillow."""
    from PIL import Image

    array = as_array(tensor)
    order = dataformats.upper()
    if array.ndim == 4:
        array, order = array[0] if order[0] == "N" else array, order.replace("N", "")
    if "C" not in order:
        array, order = array[..., None], order + "C"
    array = array.transpose([order.index(axis) for axis in "HWC"])
    scale = 1 if array.dtype == np.uint8 else 255
    array = np.clip(array * scale * rescale, 0, 255).astype(np.uint8)
    picture = Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    made = proto("summary_pb2").Summary.Image(
        height=array.shape[0], width=array.shape[1], colorspace=array.shape[2], encoded_image_string=buffer.getvalue()
    )
    return _summary(tag=tag, image=made)


def text(tag: str, text: str) -> Any:
    """A text, as Markdown."""
    messages, tensors = proto("summary_pb2"), proto("tensor_pb2")
    plugin = messages.SummaryMetadata.PluginData(
        plugin_name="text", content=proto("plugin_text_pb2").TextPluginData(version=0).SerializeToString()
    )
    shape = proto("tensor_shape_pb2").TensorShapeProto(dim=[proto("tensor_shape_pb2").TensorShapeProto.Dim(size=1)])
    content = tensors.TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=shape)
    return _summary(tag=tag + "/text_summary", metadata=messages.SummaryMetadata(plugin_data=plugin), tensor=content)


def hparams(
    hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list] | None = None
) -> tuple[Any, Any, Any]:
    """(experiment, start, end) of a run with hyperparameters and the metrics that came of them. TypeError for
    dictionaries that are none, ValueError for values that are no number, string, truth or tensor.
    """
    api, plugin, structs = proto("api_pb2"), proto("plugin_hparams_pb2"), _structs()
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    values, infos = {}, []
    for key, value in hparam_dict.items():
        if value is None:
            continue
        kind, made = _hparam(value, structs)
        values[key] = made
        info = {"name": key, "type": api.DataType.Value(kind)}
        if key in domains:
            info["domain_discrete"] = structs.ListValue(values=[_hparam(v, structs)[1] for v in domains[key]])
        infos.append(api.HParamInfo(**info))
    metrics = [api.MetricInfo(name=api.MetricName(tag=key)) for key in metric_dict]
    content = {
        "experiment": plugin.HParamsPluginData(
            experiment=api.Experiment(hparam_infos=infos, metric_infos=metrics), version=0
        ),
        "session_start_info": None,
        "session_end_info": plugin.HParamsPluginData(
            session_end_info=plugin.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS")), version=0
        ),
    }
    begin = plugin.SessionStartInfo()
    for key, made in values.items():
        begin.hparams[key].CopyFrom(made)
    content["session_start_info"] = plugin.HParamsPluginData(session_start_info=begin, version=0)
    messages = proto("summary_pb2")

    def summarized(tag: str) -> Any:
        data = messages.SummaryMetadata.PluginData(plugin_name="hparams", content=content[tag].SerializeToString())
        return _summary(tag=f"_hparams_/{tag}", metadata=messages.SummaryMetadata(plugin_data=data))

    return summarized("experiment"), summarized("session_start_info"), summarized("session_end_info")


def _structs() -> Any:
    import importlib

    return importlib.import_module("google.protobuf.struct_pb2")


def _hparam(value: Any, structs: Any) -> tuple[str, Any]:
    """(kind, value) of a hyperparameter."""
    if isinstance(value, str):
        return "DATA_TYPE_STRING", structs.Value(string_value=value)
    if isinstance(value, (bool, np.bool_)):
        return "DATA_TYPE_BOOL", structs.Value(bool_value=bool(value))
    if isinstance(value, (int, float)) or hasattr(value, "detach") or isinstance(value, np.generic):
        return "DATA_TYPE_FLOAT64", structs.Value(number_value=float(as_array(value).reshape(-1)[0]))
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def custom_scalars(layout: dict[str, Any]) -> Any:
    """How TensorBoard lays scalars out, as JSON of a summary's plugin data."""
    messages = proto("summary_pb2")
    plugin = messages.SummaryMetadata.PluginData(plugin_name="custom_scalars", content=json.dumps(layout).encode())
    return _summary(tag="custom_scalars__config__", metadata=messages.SummaryMetadata(plugin_data=plugin))
