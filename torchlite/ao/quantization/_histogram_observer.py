"""The observer of a histogram, which chooses the range with the least squared error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor

from ._range_observers import _EPS, _ONE, UniformQuantizationObserverBase
from .utils import _unseen, is_per_tensor

_FINER = 16  # the parts of a bin that are moved to another histogram
_PART, _TOGETHER = 1e-5, 1024  # the step from one quantile to the next, and quantiles whose bins are found at once


def _bins_of_quantiles(counts: Any, total: float, first: float, step: float, side: Any) -> Iterator[tuple[float, int]]:
    """Yield quantiles, each the sum of the one before it and a step, with the number of bins below. `counts` are sums
    of bins.
    """
    while True:
        quantiles = np.add.accumulate(np.array([first] + [step] * _TOGETHER))
        first = float(quantiles[-1])
        places = np.searchsorted(counts, (quantiles[1:] * total).astype(counts.dtype), side)
        yield from zip(quantiles[1:].tolist(), places.tolist(), strict=True)


class HistogramObserver(UniformQuantizationObserverBase):
    """Notes a histogram of all tensors, and chooses the range within it whose levels have the least squared error.

    The search drops parts of the outer bins while the error falls. A tensor of a wider range than the histogram's
    spreads it over new bins. Infinite numbers are left out, with a warning.

    Args:
        bins: The number of bins. Default: 2048.
        dtype: The quantized dtype. Default: ``torch.quint8``.
        qscheme: The quantization scheme. Default: ``torch.per_tensor_affine``.
        reduce_range: Whether the range of integers is shorter by a bit. Default: ``False``.
        quant_min: The least integer. Default: the dtype's.
        quant_max: The greatest integer. Default: the dtype's.
        factory_kwargs: Device and dtype of the buffers, as a dictionary. Default: none.
        eps: The least scale. Default: float32's epsilon.
        is_dynamic: Must be ``False``.
        **kwargs: Arguments of `ObserverBase`.

    Raises:
        NotImplementedError: The scheme has a scale for each channel, or the observer is dynamic.

    Example:
        >>> observer = torch.ao.quantization.HistogramObserver(bins=4)
        >>> _ = observer(torch.tensor([0.0, 1.0, 1.5, 2.0]))
        >>> observer.histogram
        tensor([1., 0., 1., 2.])
    """

    _tl_script_methods = ()  # the search for a range uses NumPy
    histogram: Tensor

    def __init__(
        self, bins: int = 2048, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine,
        reduce_range: bool = False, quant_min: Any = None, quant_max: Any = None, factory_kwargs: Any = None,
        eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        self._check_kind(is_per_tensor, qscheme, _ONE, is_dynamic)
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.bins = bins
        self.register_buffer("histogram", torch.zeros(bins, **torch.nn.factory_kwargs(factory_kwargs)))
        self._add_range(float("inf"), float("-inf"), factory_kwargs)
        self.dst_nbins = 2 ** torch.iinfo(dtype).bits
        self.upsample_rate = _FINER

    def _get_norm(self, delta_begin: Any, delta_end: Any, density: Tensor) -> Tensor:
        """``density`` times the integral of the square from begin to end."""
        return density * ((delta_end * delta_end * delta_end - delta_begin * delta_begin * delta_begin) / 3)

    def _compute_quantization_error(self, next_start_bin: int, next_end_bin: int) -> float:
        """The squared error of levels between two bins, where numbers are spread evenly within a bin."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        step = width * (next_end_bin - next_start_bin + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        begin = (torch.arange(self.bins, device=self.histogram.device) - next_start_bin) * width
        end = begin + width
        first, last = (torch.div(x, step, rounding_mode="floor").clamp(0, self.dst_nbins - 1) for x in (begin, end))
        density = self.histogram / width
        half = torch.full_like(begin, step / 2)
        norm = self._get_norm(begin - (first + 0.5) * step, half, density)
        norm += (last - first - 1) * self._get_norm(-half, half, density)
        norm += self._get_norm(-half, end - (last * step + step / 2), density)
        return float(norm.sum().item())

    def _non_linear_param_search(self) -> tuple[Tensor, Tensor]:
        """The range whose levels have the least error. It shrinks by quantiles, first where more bins are dropped."""
        if len(self.histogram) != self.bins:
            raise AssertionError("bins mismatch")
        width = (self.max_val - self.min_val) / self.bins
        total = self.histogram.sum().item()
        counts = self.histogram.cumsum(0).cpu().numpy()
        start, end, least = 0, self.bins - 1, float("inf")
        lows, highs = (
            _bins_of_quantiles(counts, total, *given) for given in ((0.0, _PART, "left"), (1.0, -_PART, "right"))
        )
        alpha, beta = 0.0, 1.0
        (next_alpha, low), (next_beta, high) = next(lows), next(highs)
        while alpha < beta:
            left, right = min(max(low, start), end), min(max(high - 1, start), end)
            next_start, next_end = start, end
            if left - start > end - right:
                next_start, alpha = left, next_alpha
                next_alpha, low = next(lows)
            else:
                next_end, beta = right, next_beta
                next_beta, high = next(highs)
            if next_start == start and next_end == end:
                continue
            error = self._compute_quantization_error(next_start, next_end)
            if error > least:
                break
            least, start, end = error, next_start, next_end
        return self.min_val + width * start, self.min_val + width * (end + 1)

    def _upscale_histogram(
        self, histogram: Tensor, orig_min: Tensor, orig_max: Tensor, update_min: Tensor, update_max: Tensor
    ) -> Tensor:
        """The histogram over the bins of another range: each part of a bin goes where its middle is."""
        fine, device = self.bins * self.upsample_rate, histogram.device
        weights = histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        middles = torch.linspace(orig_min, orig_max, fine + 1, device=device)[:-1]
        middles = middles + 0.5 * ((orig_max - orig_min) / fine)
        edges = torch.linspace(update_min, update_max, self.bins + 1, device=device)
        places = (torch.bucketize(middles, edges, right=True) - 1).clamp(0, self.bins - 1)
        return torch.bincount(places, weights=weights, minlength=self.bins)

    def _combine_histograms(
        self, orig_hist: Tensor, orig_min: Tensor, orig_max: Tensor, update_hist: Tensor, update_min: Tensor,
        update_max: Tensor,
    ) -> Tensor:  # fmt: skip
        """The sum of two histograms over the second one's range, which includes the first one's."""
        if bool(update_min == orig_min) and bool(update_max == orig_max):
            return orig_hist + update_hist
        if bool(orig_min == orig_max):
            at = torch.histc(orig_min, self.bins, min=update_min.item(), max=update_max.item())
            return at * orig_hist.sum() + update_hist
        if bool(update_min > orig_min):
            raise AssertionError("update_min must be <= orig_min")
        if bool(update_max < orig_max):
            raise AssertionError("update_max must be >= orig_max")
        return update_hist + self._upscale_histogram(orig_hist, orig_min, orig_max, update_min, update_max)

    def _keep(self, histogram: Tensor, low: Tensor, high: Tensor) -> None:
        self.min_val.resize_(low.shape)
        self.min_val.copy_(low)
        self.max_val.resize_(high.shape)
        self.max_val.copy_(high)
        self.histogram.resize_(histogram.shape)
        self.histogram.copy_(histogram)

    def reset_histogram(self, x: Tensor, min_val: Tensor, max_val: Tensor) -> None:
        """Replaces the histogram by that of a tensor.

        Args:
            x: The tensor.
            min_val: The lower end of the range.
            max_val: The upper end.
        """
        if min_val.numel() != 1 or max_val.numel() != 1:
            raise AssertionError("histogram min/max values must be scalar.")
        self._keep(torch.histc(x, self.bins, min=min_val.item(), max=max_val.item()), min_val, max_val)

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach()
        low, high = torch.aminmax(x)
        if bool(low == -torch.inf) or bool(high == torch.inf):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != torch.inf]
            if x.numel() == 0:
                return x_orig
            low, high = torch.aminmax(x)
        if bool(self.min_val == float("inf")) or bool(self.max_val == float("-inf")):
            self.reset_histogram(x, low, high)
            return x_orig
        low, high = torch.min(self.min_val, low), torch.max(self.max_val, high)
        update = torch.histc(x, self.bins, min=low.item(), max=high.item()).to(self.histogram.device)
        self._keep(self._combine_histograms(self.histogram, self.min_val, self.max_val, update, low, high), low, high)
        return x_orig

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point of the range with the least error; 1 and 0 with a warning if nothing was
        seen.
        """
        if bool(self.min_val == float("inf")) and bool(self.max_val == float("-inf")):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default scale and zero point ",
                stacklevel=2,
            )
            return _unseen(self.min_val.device.type)
        if self.bins != len(self.histogram):
            raise AssertionError(
                "The number of bins in histogram should be equal to the number of bins supplied while making this "
                "observer"
            )
        return self._calculate_qparams(*self._non_linear_param_search())

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict, strict: bool, missing_keys: list,
        unexpected_keys: list, error_msgs: list,
    ) -> None:  # fmt: skip
        if (local_metadata.get("version") or 1) < 3:
            for name, empty in (("min_val", float("inf")), ("max_val", float("-inf"))):
                if prefix + name in state_dict and state_dict[prefix + name].shape == (0,):
                    state_dict[prefix + name] = torch.tensor(empty)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
