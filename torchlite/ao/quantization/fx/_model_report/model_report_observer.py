"""The observer of model reports."""

from __future__ import annotations

from typing import NoReturn

import torchlite as torch
from torchlite import Tensor
from torchlite.ao.quantization.observer import ObserverBase


def by_channel(x: Tensor, axis: int) -> Tensor:
    """Return a tensor as a matrix with a row for each channel."""
    return x.transpose(0, axis).flatten(1)


class ModelReportObserver(ObserverBase):
    """Notes ranges of batches and of all data, the least and greatest number of each channel, and the ratio of the
    greatest number to a quantile.

    Args:
        ch_axis: The dimension of channels. Default: 1.
        comp_percentile: The quantile. Default: 0.9.

    Example:
        >>> from torchlite.ao.quantization.fx._model_report.model_report_observer import ModelReportObserver
        >>> observer = ModelReportObserver()
        >>> _ = observer(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
        >>> observer.min_val, observer.max_val, observer.get_batch_to_epoch_ratio()
        (tensor([1., 2.]), tensor([3., 5.]), tensor(1.))
    """

    epoch_activation_min: Tensor
    epoch_activation_max: Tensor
    min_val: Tensor
    max_val: Tensor
    comp_percentile: Tensor
    average_percentile_ratio: Tensor
    percentile_batches_tracked: Tensor
    constant_channels: Tensor

    def __init__(self, ch_axis: int = 1, comp_percentile: float = 0.9) -> None:
        super().__init__(torch.qint8)
        self.ch_axis = ch_axis
        self.register_buffer("epoch_activation_min", torch.tensor(float("inf")))
        self.register_buffer("epoch_activation_max", torch.tensor(float("-inf")))
        for name in ("min_val", "max_val"):
            self.register_buffer(name, torch.tensor([]))
        self.register_buffer("comp_percentile", torch.tensor([comp_percentile]))
        for name in ("average_percentile_ratio", "percentile_batches_tracked", "constant_channels"):
            self.register_buffer(name, torch.tensor([]))
        self.num_batches_tracked = 0
        self.average_batch_activation_range = torch.tensor(0.0)

    def forward(self, x: Tensor) -> Tensor:
        numbers = x.detach().to(self.epoch_activation_min.dtype)
        self._note_range(numbers)
        rows = by_channel(numbers, self.ch_axis)
        self._note_extremes(rows)
        self._note_quantiles(rows.to("cpu"))
        return x

    def _note_range(self, x: Tensor) -> None:
        low, high = torch.aminmax(x)
        self.epoch_activation_min.copy_(torch.minimum(self.epoch_activation_min, low))
        self.epoch_activation_max.copy_(torch.maximum(self.epoch_activation_max, high))
        total = self.average_batch_activation_range * self.num_batches_tracked + (high - low)
        self.num_batches_tracked += 1
        self.average_batch_activation_range = total / self.num_batches_tracked

    def _note_extremes(self, rows: Tensor) -> None:
        low, high = torch.aminmax(rows, dim=1)
        if self.min_val.numel() > 0 and self.max_val.numel() > 0:
            low, high = torch.minimum(low, self.min_val), torch.maximum(high, self.max_val)
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)

    def _note_quantiles(self, rows: Tensor) -> None:
        places = torch.tensor([0.0, self.comp_percentile.item(), 1.0], dtype=rows.dtype)
        low, middle, high = torch.quantile(rows, places, dim=self.ch_axis, interpolation="lower")
        counts = ((middle != 0) | (high != 0)).int()
        ratios = counts * torch.nan_to_num(high / middle)
        constant = (high == low).int()
        if self.percentile_batches_tracked.shape[0] == 0 or self.average_percentile_ratio.shape[0] == 0:
            self.percentile_batches_tracked = torch.zeros_like(counts)
            self.average_percentile_ratio = torch.zeros_like(ratios)
        if self.constant_channels.shape[0] == 0:
            self.constant_channels = torch.zeros_like(constant)
        tracked = self.percentile_batches_tracked + counts
        means = (self.average_percentile_ratio * self.percentile_batches_tracked + ratios) / tracked
        self.average_percentile_ratio.copy_(torch.nan_to_num(means))
        self.percentile_batches_tracked.copy_(tracked)
        self.constant_channels.copy_(self.constant_channels + constant)

    @torch.jit.export
    def get_batch_to_epoch_ratio(self) -> Tensor:
        """The mean range of batches divided by the range of all data.

        Raises:
            ValueError: All data is equal, or there was none.
        """
        whole = self.epoch_activation_max - self.epoch_activation_min
        if whole == 0.0:
            raise ValueError("Range for Epoch is 0")
        if whole == float("inf"):
            raise ValueError("No data has been run through observer or infinity value present")
        return self.average_batch_activation_range / whole

    @torch.jit.export
    def reset_batch_and_epoch_values(self) -> None:
        """Forgets what it noted."""
        device = self.max_val.device
        self.num_batches_tracked = 0
        self.average_batch_activation_range = torch.tensor(0.0, device=device)
        self.epoch_activation_min = torch.tensor(float("inf"), device=device)
        self.epoch_activation_max = torch.tensor(float("-inf"), device=device)
        for name in (
            "min_val", "max_val", "average_percentile_ratio", "percentile_batches_tracked", "constant_channels",
        ):  # fmt: skip
            setattr(self, name, torch.tensor([], device=device))

    @torch.jit.export
    def calculate_qparams(self) -> NoReturn:  # type: ignore[override]
        """Has no meaning here.

        Raises:
            Exception: Always.
        """
        raise Exception("calculate_qparams should not be called for ModelReportObserver")
