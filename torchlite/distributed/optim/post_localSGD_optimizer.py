"""Post-local SGD optimizer: local steps with periodic parameter averaging."""

from __future__ import annotations

import warnings
from typing import Any

from torchlite.optim import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Runs an optimizer, and after each of its steps an averager of parameters.

    Args:
        optim: The optimizer.
        averager: The averager, such as `PeriodicModelAverager`.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
        >>> model = torch.nn.Linear(2, 1)
        >>> averager = PeriodicModelAverager(period=4, warmup_steps=100)
        >>> inner = torch.optim.SGD(model.parameters(), 0.1)
        >>> optimizer = torch.distributed.optim.PostLocalSGDOptimizer(inner, averager)
        >>> model(torch.ones(1, 2)).sum().backward()
        >>> optimizer.step()
        >>> averager.step
        1
        >>> dist.destroy_process_group()

    References:
        - T. Lin, S. U. Stich, K. K. Patel, M. Jaggi. Don't use large mini-batches, use local SGD. 2020.
    """

    def __init__(self, optim: Optimizer, averager: Any) -> None:
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The optimizer's state."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state, and the averager's under "step"."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads what `state_dict` returned; without a ``"step"`` the averager begins at 0, with a warning.

        Args:
            state_dict: The state.
        """
        self.optim.load_state_dict({name: value for name, value in state_dict.items() if name != "step"})
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
                stacklevel=2,
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        """Runs a step of the optimizer, then averages the parameters if it is due.

        Args:
            closure: As for the optimizer. Default: ``None``.

        Returns:
            The result of the optimizer's step.
        """
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of the optimizer's parameters.

        Args:
            set_to_none: Whether they become ``None``; otherwise zeros. Default: ``True``.
        """
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters to the optimizer.

        Args:
            param_group: The group.
        """
        self.optim.add_param_group(param_group)
