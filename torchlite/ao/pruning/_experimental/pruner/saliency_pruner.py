"""A pruner that removes the channels with the least weights."""

from __future__ import annotations

from typing import Any

from .base_structured_sparsifier import BaseStructuredSparsifier

__all__ = ["SaliencyPruner"]


class SaliencyPruner(BaseStructuredSparsifier):
    """Masks the channels whose weights have the least sums of absolute values. Each weight needs the argument
    ``sparsity_level``, the share of channels.

    Example:
        >>> from torchlite.ao.pruning._experimental.pruner import SaliencyPruner
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4))
        >>> pruner = SaliencyPruner({})
        >>> pruner.prepare(model, [{"tensor_fqn": "0.weight", "sparsity_level": 0.25}])
        >>> pruner.step()
        >>> pruner.prune().get_submodule("0")
        Linear(in_features=2, out_features=3, bias=True)
    """

    def update_mask(self, module: Any, tensor_name: str, **kwargs: Any) -> None:
        """Chooses the mask of a weight.

        Args:
            module: The module.
            tensor_name: The name of the weight.
            **kwargs: ``sparsity_level``, the share of channels.

        Raises:
            Exception: The weight has one dimension.
            AssertionError: The mask is not that of the weight's channels.
        """
        weight, mask = getattr(module, tensor_name), getattr(module.parametrizations, tensor_name)[0].mask
        if weight.dim() <= 1:
            raise Exception("Structured pruning can only be applied to a 2+dim weight tensor!")
        saliency = -weight.norm(dim=tuple(range(1, weight.dim())), p=1)
        if saliency.shape != mask.shape:
            raise AssertionError(f"saliency shape ({saliency.shape}) must match mask shape ({mask.shape})")
        mask.data[saliency.topk(int(len(mask) * kwargs["sparsity_level"])).indices] = False
