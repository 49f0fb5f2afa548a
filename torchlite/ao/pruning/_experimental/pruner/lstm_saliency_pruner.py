"""A pruner of LSTMs that removes the rows with the least weights of each gate."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .base_structured_sparsifier import BaseStructuredSparsifier
from .parametrization import FakeStructuredSparsity

__all__ = ["LSTMSaliencyPruner"]


class LSTMSaliencyPruner(BaseStructuredSparsifier):
    """Masks the rows of an LSTM's weights that have the least sums of absolute values, as many of each gate. Each
    weight needs the argument ``sparsity_level``, the share of rows.

    Example:
        >>> from torchlite.ao.pruning._experimental.pruner import LSTMSaliencyPruner
        >>> model, pruner = torch.nn.Sequential(torch.nn.LSTM(2, 4)), LSTMSaliencyPruner({})
        >>> pruner.prepare(model, [{"tensor_fqn": "0.weight_hh_l0", "sparsity_level": 0.5}])
        >>> pruner.step()
        >>> pruner.state["0.weight_hh_l0"]["mask"].view(4, 4).sum(1)
        tensor([2, 2, 2, 2])
    """

    def update_mask(self, module: Any, tensor_name: str, **kwargs: Any) -> None:
        """Chooses the mask of a weight.

        Args:
            module: The module.
            tensor_name: The name of the weight.
            **kwargs: ``sparsity_level``, the share of rows.

        Raises:
            Exception: The weight has one dimension.
        """
        weight = getattr(module, tensor_name)
        for parametrization in getattr(module.parametrizations, tensor_name):
            if not isinstance(parametrization, FakeStructuredSparsity):
                continue
            if weight.dim() <= 1:
                raise Exception("Structured pruning can only be applied to a 2+dim weight tensor!")
            saliency = weight.norm(dim=tuple(range(1, weight.dim())), p=1)
            rows = len(parametrization.mask) // 4
            for mask, values in zip(torch.split(parametrization.mask, rows), torch.split(saliency, rows), strict=True):
                count = int(len(mask) * kwargs["sparsity_level"])
                mask.data[values.topk(count, largest=False, sorted=False).indices] = False
