"""AdaptiveLogSoftmaxWithLoss, an approximate softmax for many classes."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Computes the log probability of a target among many classes by a softmax over clusters.

    The classes are sorted by decreasing frequency. The head holds the classes below ``cutoffs[0]`` and one entry for
    each cluster of the rarer ones. The log probability of a class of a cluster is that of the cluster plus that of the
    class within it. Only the clusters of the targets are computed.

    The inputs of cluster ``i`` are first projected to ``in_features // div_value ** (i + 1)`` features, so rare
    classes cost less.

    Args:
        in_features: Size of the input.
        n_classes: Number of classes.
        cutoffs: First class of each cluster: increasing ints from 1 to ``n_classes - 1``.
        div_value: Factor by which the projection shrinks from cluster to cluster. Default: 4.
        head_bias: Whether the head has a bias. Default: ``False``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(N, in_features)``, or ``(in_features)`` without a batch.
        - Target: ``(N)`` or ``()``; indices in [0, n_classes).
        - Output: ``(N)`` or ``()``.
        - Loss: ``()``.

    Attributes:
        head (Linear): ``in_features`` to ``cutoffs[0] + len(cutoffs)`` outputs, initialized as in `Linear`.
        tail (ModuleList): For each cluster a projection and an output layer, without bias.

    Returns:
        A named tuple: ``output``, the log probability of each target, and ``loss``, minus the mean of ``output``.

    Raises:
        ValueError: ``cutoffs`` is empty, not increasing, or out of range.
        RuntimeError: Input and target do not match, or a target is out of range.

    Example:
        >>> loss = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs=[2, 5], div_value=2)
        >>> result = loss(torch.zeros(3, 8), torch.tensor([0, 3, 9]))
        >>> result.output.shape, result.loss.shape
        (torch.Size([3]), torch.Size([]))
        >>> loss.log_prob(torch.zeros(3, 8)).shape
        torch.Size([3, 10])

    References:
        - É. Grave, A. Joulin, M. Cissé, D. Grangier, H. Jégou. Efficient softmax approximation for GPUs. 2017.

    See also:
        `CrossEntropyLoss`, `LinearCrossEntropyLoss`.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Any,
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(cutoff) != cutoff for cutoff in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for cluster in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (cluster + 1)))
            size = self.cutoffs[cluster + 1] - self.cutoffs[cluster]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, device=device, dtype=dtype),
                    Linear(hidden, size, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Initialise the parameters."""
        self.head.reset_parameters()
        for down, out in self.tail:
            down.reset_parameters()
            out.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        _check_shapes(self, input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        head = F.log_softmax(self.head(input), dim=1)
        # Each target's column in the head: its class, or its cluster.
        column, extra = target, input.new_zeros(target.shape)
        for cluster in range(self.n_clusters):
            low, high = self.cutoffs[cluster], self.cutoffs[cluster + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            log_probs = F.log_softmax(self.tail[cluster](input.index_select(0, rows)), dim=1)
            local = log_probs.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            extra = extra.index_add(0, rows, local.to(extra.dtype))
            column = column.index_fill(0, rows, self.shortlist_size + cluster)
        output = extra + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for cluster in range(self.n_clusters):
            within = F.log_softmax(self.tail[cluster](input), dim=1)
            parts.append(within + head[:, self.shortlist_size + cluster].unsqueeze(1))
        return torch.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Any:
        """Computes the log probability of every class.

        Args:
            input: Tensor of shape ``(N, in_features)``.

        Returns:
            Tensor of shape ``(N, n_classes)``.
        """
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Any:
        """Finds the most probable class of each sample.

        Args:
            input: Tensor of shape ``(N, in_features)``.

        Returns:
            Indices of shape ``(N)``. The clusters are computed only if one of them has the largest probability in the
            head for a sample.
        """
        head_output = self.head(input)
        output = torch.argmax(head_output, dim=1)
        if bool((output < self.shortlist_size).all()):
            return output
        return torch.argmax(self._get_full_log_prob(input, head_output), dim=1)


def _check_shapes(module, input, target):
    if target.dim() == 1:
        if input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != 2:
            raise RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with size {input.size()}")
    elif target.dim() == 0:
        if input.dim() != 1:
            raise RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with size {input.size()}")
    else:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.numel() and (target.min() < 0 or target.max() >= module.n_classes):
        raise RuntimeError(
            f"Target values should be in [0, {module.n_classes - 1}], but values in range [{target.min().item()}, "
            f"{target.max().item()}] were found. "
        )
