"""Modules that note what they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor, nn

from .utils import compute_sqnr

RNNReturnType = tuple[Tensor, tuple[Tensor, Tensor]]


class OutputLogger(nn.Module):
    """Notes each tensor that it gets, and returns it.

    Args:
        ref_node_name: The node for which it is there.
        prev_node_name: The node whose output it gets.
        model_name: The name of the model.
        ref_name: The name of the pair of nodes.
        prev_node_target_type: What `prev_node_name` calls.
        ref_node_target_type: What `ref_node_name` calls.
        results_type: What it notes, as in `NSSingleResultValuesType`.
        index_within_arg: The place within a list of tensors.
        index_of_arg: The place of the argument.
        fqn: The name of the module that the node is from.
        qconfig_str: The configuration as a text. Default: empty.

    Example:
        >>> from torchlite.ao.ns._numeric_suite_fx import OutputLogger
        >>> logger = OutputLogger("a", "a", "float", "a", "", "", "node_output", 0, 0, "")
        >>> logger(torch.ones(1))
        tensor([1.])
        >>> logger.stats
        [tensor([1.])]
    """

    stats: list[torch.Tensor]
    stats_rnn: list[RNNReturnType]
    _is_impure = True  # it stays in a graph though nothing reads it

    def __init__(
        self, ref_node_name: str, prev_node_name: str, model_name: str, ref_name: str, prev_node_target_type: str,
        ref_node_target_type: str, results_type: str, index_within_arg: int, index_of_arg: int, fqn: str | None,
        qconfig_str: str | None = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.stats, self.stats_rnn = [], []
        self.ref_node_name, self.prev_node_name = ref_node_name, prev_node_name
        self.model_name, self.ref_name = model_name, ref_name
        self.prev_node_target_type, self.ref_node_target_type = prev_node_target_type, ref_node_target_type
        self.results_type = results_type
        self.index_within_arg, self.index_of_arg = index_within_arg, index_of_arg
        self.fqn, self.qconfig_str = fqn, qconfig_str
        self.enabled = self.save_activations = True

    def forward(self, x: Any) -> Any:
        if not self.enabled:
            return x
        if not self.save_activations:
            return x
        if isinstance(x, torch.Tensor):
            self.stats.append(x.detach())
        elif isinstance(x, tuple) and len(x) == 2 and len(x[1]) == 2:
            self.stats_rnn.append((x[0].detach(), (x[1][0].detach(), x[1][1].detach())))
        return x

    def __repr__(self) -> str:
        shown = {key: value for key, value in vars(self).items() if key != "training" and not key.startswith("_")}
        return f"{type(self).__name__}({shown})"


class OutputComparisonLogger(OutputLogger):
    """Notes a tensor, and the ratio of signal to noise in comparison with another one.

    Args:
        *args: Those of `OutputLogger`.
        **kwargs: The same by name.

    Example:
        >>> from torchlite.ao.ns._numeric_suite_fx import OutputComparisonLogger
        >>> logger = OutputComparisonLogger("a", "a", "float", "a", "", "", "node_output", 0, 0, "")
        >>> _ = logger(torch.tensor([10.0]), torch.tensor([9.0]))
        >>> logger.comparisons
        [tensor(20.)]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.comparison_fn: Callable = compute_sqnr
        self.comparison_fn_name = "sqnr"
        self.comparisons: list[Any] = []

    def forward(self, x: Any, x_ref: Any) -> Any:  # type: ignore[override]
        if not self.enabled:
            return x
        if not isinstance(x, torch.Tensor):
            raise AssertionError("non-tensor inputs not yet supported")
        if self.save_activations:
            self.stats.append(x.detach())
        self.comparisons.append(self.comparison_fn(x, x_ref))
        return x
