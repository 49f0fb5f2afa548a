"""Summaries for TensorBoard, as protocol buffers."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np

from ._image_encoding import draw_boxes, encode_gif, encode_image, make_grid, to_image, to_uint8
from ._plugin_summaries import custom_scalars, mesh, plugin_summary, pr_curve, pr_curve_raw, tensor_proto
from ._tensorboard_imports import as_array, import_proto

__all__ = [
    "audio", "custom_scalars", "histogram", "histogram_raw", "hparams", "image", "image_boxes", "make_histogram",
    "mesh", "pr_curve", "pr_curve_raw", "scalar", "tensor_proto", "text", "video",
]  # fmt: skip


def _make_summary(**value: Any) -> Any:
    messages = import_proto("summary_pb2")
    return messages.Summary(value=[messages.Summary.Value(**value)])


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Any:
    """A number. AssertionError for a tensor of several. `collections` has no effect: PyTorch ignores it too."""
    array = as_array(tensor).squeeze()
    if array.ndim:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and "
                             f"{array.ndim} dimensions.")  # fmt: skip
    if not new_style:
        return _make_summary(tag=name, simple_value=float(array))
    messages = import_proto("tensor_pb2"), import_proto("types_pb2"), import_proto("summary_pb2")
    kind, values = (messages[1].DT_DOUBLE, "double_val") if double_precision else (messages[1].DT_FLOAT, "float_val")
    content = messages[0].TensorProto(dtype=kind, **{values: [float(array)]})
    plugin = messages[2].SummaryMetadata.PluginData(plugin_name="scalars")
    return _make_summary(tag=name, tensor=content, metadata=messages[2].SummaryMetadata(plugin_data=plugin))


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
    shown = np.concatenate([[0], counts])[first : last + 1]  # and the empty one before the first
    return import_proto("summary_pb2").HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=values.dot(values),
        bucket_limit=[float(v) for v in limits[first : last + 1]], bucket=[float(count) for count in shown],
    )  # fmt: skip


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """Return a histogram of values."""
    return _make_summary(tag=name, histo=make_histogram(as_array(values), bins, max_bins))


def histogram_raw(
    name: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any, bucket_counts: Any
) -> Any:
    """A histogram that was counted already."""
    made = import_proto("summary_pb2").HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return _make_summary(tag=name, histo=made)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """An image, as PNG, or several in rows of eight. ImportError without Pillow."""
    return _make_image_summary(tag, to_uint8(to_image(as_array(tensor), dataformats), rescale))


def image_boxes(
    tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW", labels: Any = None
) -> Any:
    """Return an image with boxes (left, top, right, bottom), each with its label."""
    picture = to_uint8(to_image(as_array(tensor_image), dataformats), rescale)
    return _make_image_summary(tag, draw_boxes(picture, as_array(tensor_boxes), labels))


def _make_image_summary(tag: str, picture: np.ndarray) -> Any:
    from PIL import Image

    height, width, channels = picture.shape
    content = encode_image(Image.fromarray(picture))
    kind = import_proto("summary_pb2").Summary.Image
    return _make_summary(
        tag=tag, image=kind(height=height, width=width, colorspace=channels, encoded_image_string=content)
    )


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Return videos (n, time, channels, height, width) in a grid, as GIF. ImportError without Pillow."""
    array = to_uint8(as_array(tensor))
    if array.ndim != 5:
        raise AssertionError(f"a film has dimensions for example, time, channel, height and width, got {array.shape}")
    columns = 1 << (len(array) - 1).bit_length() // 2
    frames = np.stack([make_grid(array[:, t].transpose(0, 2, 3, 1), columns) for t in range(array.shape[1])])
    frames = np.repeat(frames, 3, axis=3) if frames.shape[3] == 1 else frames
    kind = import_proto("summary_pb2").Summary.Image
    _, height, width, channels = frames.shape
    made = kind(height=height, width=width, colorspace=channels, encoded_image_string=encode_gif(frames, fps))
    return _make_summary(tag=tag, image=made)


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """Return mono sound, from -1 to 1, as WAV; larger values are clipped. AssertionError for several channels."""
    sound = as_array(tensor).squeeze()
    if sound.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (np.clip(sound.astype(np.float32), -1, 1) * np.float32(32767.0)).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    clip = import_proto("summary_pb2").Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples), encoded_audio_string=buffer.getvalue(),
        content_type="audio/wav",
    )  # fmt: skip
    return _make_summary(tag=tag, audio=clip)


def text(tag: str, text: str) -> Any:
    """A text, as Markdown."""
    sizes = import_proto("tensor_shape_pb2").TensorShapeProto
    content = import_proto("tensor_pb2").TensorProto(
        dtype="DT_STRING", string_val=[text.encode()], tensor_shape=sizes(dim=[sizes.Dim(size=1)])
    )
    version = import_proto("plugin_text_pb2").TextPluginData(version=0)
    return plugin_summary(tag + "/text_summary", "text", content, version.SerializeToString())


def hparams(
    hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list] | None = None
) -> tuple[Any, Any, Any]:
    """(experiment, start, end) of a run with hyperparameters and the metrics that came of them. TypeError for
    dictionaries that are none, ValueError for values that are no number, string, truth or tensor.
    """
    api, plugin, structs = import_proto("api_pb2"), import_proto("plugin_hparams_pb2"), _import_struct_pb2()
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    values, infos = {}, []
    for key, value in hparam_dict.items():
        if value is None:
            continue
        kind, proto = _hparam_kind_and_value(value, structs)
        values[key] = proto
        info = {"name": key, "type": api.DataType.Value(kind)}
        if key in domains:
            info["domain_discrete"] = structs.ListValue(
                values=[_hparam_kind_and_value(v, structs)[1] for v in domains[key]]
            )
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
    for key, proto in values.items():
        begin.hparams[key].CopyFrom(proto)
    content["session_start_info"] = plugin.HParamsPluginData(session_start_info=begin, version=0)
    messages = import_proto("summary_pb2")

    def summarized(tag: str) -> Any:
        data = messages.SummaryMetadata.PluginData(plugin_name="hparams", content=content[tag].SerializeToString())
        return _make_summary(tag=f"_hparams_/{tag}", metadata=messages.SummaryMetadata(plugin_data=data))

    return summarized("experiment"), summarized("session_start_info"), summarized("session_end_info")


def _import_struct_pb2() -> Any:
    import importlib

    return importlib.import_module("google.protobuf.struct_pb2")


def _hparam_kind_and_value(value: Any, structs: Any) -> tuple[str, Any]:
    """(kind, value) of a hyperparameter."""
    if isinstance(value, str):
        return "DATA_TYPE_STRING", structs.Value(string_value=value)
    if isinstance(value, (int, float)) or hasattr(value, "detach") or isinstance(value, np.generic):
        return "DATA_TYPE_FLOAT64", structs.Value(number_value=float(as_array(value).reshape(-1)[0]))
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
