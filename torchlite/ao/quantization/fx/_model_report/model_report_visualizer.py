"""Tables and plots of model reports."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torchlite as torch


class ModelReportVisualizer:
    """Shows what detectors found.

    Args:
        generated_reports: What was found, by names of modules.

    Example:
        >>> from torchlite.ao.quantization.fx._model_report.model_report_visualizer import ModelReportVisualizer
        >>> shown = ModelReportVisualizer({"a": {"share": torch.tensor(0.5)}, "b": {"share": torch.tensor(0.25)}})
        >>> shown.generate_filtered_tables()["tensor_level_info"]
        (['idx', 'layer_fqn', 'share'], [[0, 'a', 0.5], [1, 'b', 0.25]])
    """

    TABLE_TENSOR_KEY = "tensor_level_info"
    TABLE_CHANNEL_KEY = "channel_level_info"
    NUM_NON_FEATURE_TENSOR_HEADERS = 2
    NUM_NON_FEATURE_CHANNEL_HEADERS = 3
    CHANNEL_NUM_INDEX = 2

    def __init__(self, generated_reports: dict[str, Any]) -> None:
        self.generated_reports = generated_reports

    def get_all_unique_module_fqns(self) -> set[str]:
        """The names of modules."""
        return {*self.generated_reports}

    def get_all_unique_feature_names(self, plottable_features_only: bool = True) -> set[str]:
        """The names of what was found.

        Args:
            plottable_features_only: Whether these are tensors only. Default: ``True``.
        """
        return {
            name
            for found in self.generated_reports.values()
            for name, value in found.items()
            if not plottable_features_only or isinstance(value, torch.Tensor)
        }

    def _get_filtered_data(self, feature_filter: str, module_fqn_filter: str) -> OrderedDict[str, Any]:
        """Return what was found whose names have a text."""
        return OrderedDict(
            (module, {name: value for name, value in found.items() if feature_filter in name})
            for module, found in self.generated_reports.items()
            if module_fqn_filter in module
        )

    def _generate_tensor_table(
        self, filtered_data: dict[str, dict[str, Any]], tensor_features: list[str]
    ) -> tuple[list, list]:
        """Return the headers and the rows of numbers, one row for each module."""
        rows: list[list[Any]] = []
        for number, (module, found) in enumerate(filtered_data.items() if tensor_features else ()):
            rows.append([number, module, *(_cell(found.get(name, "Not Applicable")) for name in tensor_features)])
        return (["idx", "layer_fqn", *tensor_features] if rows else []), rows

    def _generate_channels_table(
        self, filtered_data: dict[str, Any], channel_features: list[str], num_channels: int
    ) -> tuple[list, list]:
        """Return the headers and the rows of lists, one row for each channel."""
        rows: list[list[Any]] = []
        for module, found in filtered_data.items() if channel_features else ():
            for channel in range(num_channels):
                cells = [
                    _cell(found[name][channel]) if name in found else "Not Applicable" for name in channel_features
                ]
                rows.append([len(rows), module, channel, *cells])
        return (["idx", "layer_fqn", "channel", *channel_features] if rows else []), rows

    def generate_filtered_tables(
        self, feature_filter: str = "", module_fqn_filter: str = ""
    ) -> dict[str, tuple[list, list]]:
        """The headers and rows of two tables: of numbers, and of lists with a value for each channel.

        Args:
            feature_filter: A text that names of what was found have. Default: all.
            module_fqn_filter: A text that names of modules have. Default: all.
        """
        data = self._get_filtered_data(feature_filter, module_fqn_filter)
        whole: set[str] = set()
        by_channel: set[str] = set()
        count = 0
        for found in data.values():
            for name, value in found.items():
                if isinstance(value, list) or isinstance(value, torch.Tensor) and value.dim() > 0:
                    by_channel.add(name)
                    count = len(value)
                else:
                    whole.add(name)
        return {
            self.TABLE_TENSOR_KEY: self._generate_tensor_table(data, sorted(whole)),
            self.TABLE_CHANNEL_KEY: self._generate_channels_table(data, sorted(by_channel), count),
        }

    def generate_table_visualization(self, feature_filter: str = "", module_fqn_filter: str = "") -> None:
        """Prints both tables.

        Args:
            feature_filter: A text that names of what was found have. Default: all.
            module_fqn_filter: A text that names of modules have. Default: all.
        """
        try:
            from tabulate import tabulate
        except ImportError:
            print("Make sure to install tabulate and try again.")
            return
        tables = self.generate_filtered_tables(feature_filter, module_fqn_filter)
        text = ""
        headers, rows = tables[self.TABLE_TENSOR_KEY]
        if len(headers) > self.NUM_NON_FEATURE_TENSOR_HEADERS:
            text += "Tensor Level Information \n" + tabulate(rows, headers=headers)
        headers, rows = tables[self.TABLE_CHANNEL_KEY]
        if len(headers) > self.NUM_NON_FEATURE_CHANNEL_HEADERS:
            text += "\n\n Channel Level Information \n" + tabulate(rows, headers=headers)
        print(text or "No data points to generate table with.")

    def _get_plottable_data(self, feature_filter: str, module_fqn_filter: str) -> tuple[list, list, bool]:
        """Return the numbers of modules, their values, and whether these are lists by channels."""
        tables = self.generate_filtered_tables(feature_filter, module_fqn_filter)
        headers, rows = tables[self.TABLE_TENSOR_KEY]
        channel_headers, channel_rows = tables[self.TABLE_CHANNEL_KEY]
        if len(channel_headers) - self.NUM_NON_FEATURE_CHANNEL_HEADERS == 1:
            count = max(row[self.CHANNEL_NUM_INDEX] for row in channel_rows) + 1
            shown = [(place // count, row) for place, row in enumerate(channel_rows) if not isinstance(row[-1], str)]
            values: list[list] = [[] for _ in range(count)]
            for _, row in shown:
                values[row[self.CHANNEL_NUM_INDEX]].append(row[-1])
            return [*dict.fromkeys(module for module, _ in shown)], values, True
        if len(headers) - self.NUM_NON_FEATURE_TENSOR_HEADERS == 1:
            pairs = [(place, row[-1]) for place, row in enumerate(rows) if not isinstance(row[-1], str)]
            return [place for place, _ in pairs], [value for _, value in pairs], False
        raise ValueError(
            "Make sure to pick only a single feature with your filter to plot a graph. We recommend calling "
            "get_all_unique_feature_names() to find unique feature names. Pick one of those features to plot."
        )

    def generate_plot_visualization(self, feature_filter: str, module_fqn_filter: str = "") -> None:
        """Plots one number of each module, or the mean over its channels.

        Args:
            feature_filter: A text that the name of what was found has.
            module_fqn_filter: A text that names of modules have. Default: all.

        Raises:
            ValueError: No name has the text, or several.
        """
        try:
            from matplotlib import pyplot
        except ImportError:
            print("make sure to install matplotlib and try again.")
            return
        places, values, is_by_channel = self._get_plottable_data(feature_filter, module_fqn_filter)
        axes = pyplot.subplot()
        axes.set_ylabel(feature_filter)
        axes.set_title(f"{feature_filter} Plot")
        pyplot.xticks(places)
        if is_by_channel:
            axes.set_xlabel("First idx of module")
            means = [sum(column) / len(values) for column in zip(*values, strict=True)]
            axes.plot(places, means, label=f"Average Value Across {len(values)} Channels")
            axes.legend(loc="upper right")
        else:
            axes.set_xlabel("idx")
            axes.plot(places, values)
        pyplot.show()

    def generate_histogram_visualization(
        self, feature_filter: str, module_fqn_filter: str = "", num_bins: int = 10
    ) -> None:
        """Plots how often values occur.

        Args:
            feature_filter: A text that the name of what was found has.
            module_fqn_filter: A text that names of modules have. Default: all.
            num_bins: The count of bins. Default: 10.

        Raises:
            ValueError: No name has the text, or several.
        """
        try:
            from matplotlib import pyplot
        except ImportError:
            print("make sure to install matplotlib and try again.")
            return
        _, values, is_by_channel = self._get_plottable_data(feature_filter, module_fqn_filter)
        axes = pyplot.subplot()
        axes.set_xlabel(feature_filter)
        axes.set_ylabel("Frequency")
        axes.set_title(f"{feature_filter} Histogram")
        if is_by_channel:
            values = [value for channel in values for value in channel]
        _, bins, _ = pyplot.hist(values, bins=num_bins, stacked=is_by_channel, rwidth=0.8)
        pyplot.xticks(bins)
        pyplot.show()


def _cell(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value
