"""Writers of TensorBoard's files."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np

from . import summary
from ._embedding import write_embedding
from ._pytorch_graph import graph
from ._tensorboard_imports import as_array, import_proto, make_event_writer

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Appends summaries to a file of TensorBoard's format.

        writer = FileWriter("runs/first")

    Args:
        log_dir: Folder of the file.
        max_queue: Number of events that are kept before they are written. Default: 10.
        flush_secs: Seconds after which events are written. Default: 120.
        filename_suffix: Text at the end of the file's name. Default: ``""``.

    Raises:
        ImportError: Neither tensorboard nor tensorboardX is installed.
    """

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self._folder = str(log_dir)
        self.event_writer = make_event_writer(self._folder, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self._folder

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Appends an event.

        Args:
            event: Message of TensorBoard.
            step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
        """
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Appends a summary.

        Args:
            summary: Message of TensorBoard.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
        """
        self.add_event(import_proto("event_pb2").Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write pending events."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write pending events, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Open another file."""
        self.event_writer = make_event_writer(self._folder, 10, 120, "")


def _histogram_bins() -> list[float]:
    """Limits of bins that grow by a tenth."""
    found, limit = [], 1e-12
    while limit < 1e20:
        found.append(limit)
        limit *= 1.1
    return [-v for v in reversed(found)] + [0.0] + found


class SummaryWriter:
    """Writes scalars, histograms, texts, images, sounds, curves and hyperparameters for TensorBoard.

        with SummaryWriter("runs/first") as writer:
            for step in range(100):
                writer.add_scalar("loss", loss, step)

    Args:
        log_dir: Folder of the files. Default: a folder of ``runs`` with the time and the name of the host.
        comment: Text at the end of the default folder's name. Default: ``""``.
        purge_step: Step from which TensorBoard hides what an earlier run wrote. Default: none.
        max_queue: Number of events that are kept before they are written. Default: 10.
        flush_secs: Seconds after which events are written. Default: 120.
        filename_suffix: Text at the end of files' names. Default: ``""``.

    Raises:
        ImportError: Neither tensorboard nor tensorboardX is installed.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self.default_bins = _histogram_bins()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None or self.all_writers is None:
            made = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            self.file_writer, self.all_writers = made, {made.get_logdir(): made}
            if self.purge_step is not None:
                log = import_proto("event_pb2").SessionLog
                made.add_event(import_proto("event_pb2").Event(step=self.purge_step, file_version="brain.Event:2"))
                made.add_event(import_proto("event_pb2").Event(session_log=log(status=log.START)), self.purge_step)
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Adds a number to a chart.

        Args:
            tag: Name of the chart.
            scalar_value: The number.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
            new_style: Whether the number is stored as a tensor. Default: ``False``.
            double_precision: Whether it is stored in double precision. Default: ``False``.
        """
        made = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds several numbers to one chart, each in a separate folder.

        Args:
            main_tag: Name of the chart.
            tag_scalar_dict: Numbers by name.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
        """
        self._get_file_writer()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            writer = self.all_writers.get(folder)
            if writer is None:
                writer = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
                self.all_writers[folder] = writer
            writer.add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Adds a histogram of values.

        Args:
            tag: Name of the chart.
            values: Tensor or array.
            global_step: Step of the training. Default: none.
            bins: Limits of bins, or a rule of ``numpy.histogram``. Default: ``"tensorflow"``, limits that grow by a
                tenth.
            walltime: Time in seconds since 1970. Default: now.
            max_bins: Largest number of bins. Default: no limit.
        """
        limits = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        made = summary.histogram(tag, values, limits, max_bins)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any,
        bucket_counts: Any, global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds a histogram that was counted already.

        Args:
            tag: Name of the chart.
            min: Smallest value.
            max: Largest value.
            num: Number of values.
            sum: Their sum.
            sum_squares: Sum of their squares.
            bucket_limits: Upper limit of each bin.
            bucket_counts: Number of values in each bin.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.

        Raises:
            ValueError: The numbers of limits and counts differ.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Adds an image; Pillow is needed.

        Args:
            tag: Name of the image.
            img_tensor: The image; floating-point values from 0 to 1, or uint8.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
            dataformats: Order of the dimensions. Default: ``"CHW"``.
        """
        self._get_file_writer().add_summary(summary.image(tag, img_tensor, 1, dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Adds images in rows of eight; Pillow is needed.

        Args:
            tag: Name of the images.
            img_tensor: The images; floating-point values from 0 to 1, or uint8.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
            dataformats: Order of the dimensions. Default: ``"NCHW"``.
        """
        self._get_file_writer().add_summary(summary.image(tag, img_tensor, 1, dataformats), global_step, walltime)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None,
        walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW", labels: Any = None,
    ) -> None:  # fmt: skip
        """Adds an image with boxes; Pillow is needed.

        Args:
            tag: Name of the image.
            img_tensor: The image.
            box_tensor: Boxes of shape ``(n, 4)``: left, top, right, bottom.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
            rescale: Factor of the image's size. Default: 1.
            dataformats: Order of the dimensions. Default: ``"CHW"``.
            labels: A text for each box. Default: none.
        """
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != as_array(box_tensor).shape[0]:
            labels = None
        made = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """Adds videos; Pillow is needed.

        Args:
            tag: Name of the video.
            vid_tensor: Videos of shape ``(n, time, channels, height, width)``.
            global_step: Step of the training. Default: none.
            fps: Pictures a second. Default: 4.
            walltime: Time in seconds since 1970. Default: now.
        """
        self._get_file_writer().add_summary(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds a sound of one channel.

        Args:
            tag: Name of the sound.
            snd_tensor: Values from -1 to 1.
            global_step: Step of the training. Default: none.
            sample_rate: Samples a second. Default: 44100.
            walltime: Time in seconds since 1970. Default: now.
        """
        self._get_file_writer().add_summary(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Adds all numbers of a tensor.

        Args:
            tag: Name of the tensor.
            tensor: The tensor.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
        """
        self._get_file_writer().add_summary(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127,
        weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds the curve of precision against recall of predictions.

        Args:
            tag: Name of the curve.
            labels: The truth: 0 or 1 for each example.
            predictions: Values from 0 to 1.
            global_step: Step of the training. Default: none.
            num_thresholds: Number of points of the curve. Default: 127.
            weights: Weights of the examples. Default: 1.
            walltime: Time in seconds since 1970. Default: now.
        """
        made = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
        false_negative_counts: Any, precision: Any, recall: Any, global_step: int | None = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds a curve of precision against recall that was computed already.

        Args:
            tag: Name of the curve.
            true_positive_counts: Number of true positives at each threshold.
            false_positive_counts: Number of false positives at each threshold.
            true_negative_counts: Number of true negatives at each threshold.
            false_negative_counts: Number of false negatives at each threshold.
            precision: Precision at each threshold.
            recall: Recall at each threshold.
            global_step: Step of the training. Default: none.
            num_thresholds: Number of thresholds. Default: 127.
            weights: No effect: the counts have them.
            walltime: Time in seconds since 1970. Default: now.
        """
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        made = summary.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, Any]) -> None:
        """Adds a layout of charts.

        Args:
            layout: ``{category: {chart: ["Multiline" or "Margin", [tags]]}}``.
        """
        self._get_file_writer().add_summary(summary.custom_scalars(layout))

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Adds a chart of several scalars.

        Args:
            tags: Names of the scalars.
            category: Category of the chart. Default: ``"default"``.
            title: Title of the chart. Default: ``"untitled"``.
        """
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Adds a chart of a scalar between a lower and an upper one.

        Args:
            tags: Names of the three scalars.
            category: Category of the chart. Default: ``"default"``.
            title: Title of the chart. Default: ``"untitled"``.

        Raises:
            AssertionError: There are not three names.
        """
        if len(tags) != 3:
            raise AssertionError(f"a chart with margins shows three tags, got {tags}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: Any = None,
        global_step: int | None = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Adds points in space, with colors and triangles.

        Args:
            tag: Name of the mesh.
            vertices: Points of shape ``(n, points, 3)``.
            colors: Colors of shape ``(n, points, 3)``. Default: none.
            faces: Indices of triangles' points, of shape ``(n, triangles, 3)``. Default: none.
            config_dict: Settings of the view. Default: none.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
        """
        made = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._get_file_writer().add_summary(made, global_step, walltime)

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: int | None = None,
        tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Adds vectors for TensorBoard's projector.

        Args:
            mat: Vectors of shape ``(n, features)``.
            metadata: Label of each, or a list of labels if there is a header. Default: none.
            label_img: Picture of each, of shape ``(n, channels, size, size)``. Default: none.
            global_step: Step of the training. Default: 0.
            tag: Name of the vectors. Default: ``"default"``.
            metadata_header: Names of the labels. Default: none.
        """
        step = str(global_step or 0).zfill(5)
        name = tag.replace("%", "%25").replace("\\", "%5c").replace("/", "%2f")
        images = None if label_img is None else as_array(label_img)
        write_embedding(
            Path(self.log_dir), f"{step}/{name}", f"{tag}:{step}", as_array(mat), metadata, metadata_header, images
        )

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Adds a figure of Matplotlib as an image; Pillow is needed.

        Args:
            tag: Name of the image.
            figure: A figure, or a list of figures.
            global_step: Step of the training. Default: none.
            close: Whether to close the figures. Default: ``True``.
            walltime: Time in seconds since 1970. Default: now.
        """
        figures = figure if isinstance(figure, list) else [figure]
        for one in figures:
            one.canvas.draw()
            pixels = np.asarray(one.canvas.buffer_rgba())[..., :3]
            self.add_image(tag, pixels, global_step, walltime, "HWC")
            if close:
                import importlib

                importlib.import_module("matplotlib.pyplot").close(one)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Adds a text, which TensorBoard shows as Markdown.

        Args:
            tag: Name of the text.
            text_string: The text.
            global_step: Step of the training. Default: none.
            walltime: Time in seconds since 1970. Default: now.
        """
        self._get_file_writer().add_summary(summary.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list] | None = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Adds the hyperparameters of a run together with its metrics, in a folder of their own.

        Args:
            hparam_dict: Hyperparameters by name.
            metric_dict: Metrics by name.
            hparam_domain_discrete: Possible values of hyperparameters by name. Default: none.
            run_name: Name of the folder. Default: the time.
            global_step: Step of the training. Default: none.
        """
        made = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for part in made:
                writer._get_file_writer().add_summary(part, global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Raises NotImplementedError: graphs are not written for TensorBoard.

        Args:
            model: No effect.
            input_to_model: No effect.
            verbose: No effect.
            use_strict_trace: No effect.
        """
        graph(model, input_to_model, verbose, use_strict_trace)

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Raises NotImplementedError: graphs are not written for TensorBoard.

        Args:
            prototxt: No effect.
        """
        graph(prototxt, None)

    def flush(self) -> None:
        """Write pending events."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write pending events, and close the files; later additions open new ones."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
