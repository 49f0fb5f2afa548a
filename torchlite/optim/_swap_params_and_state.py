"""A context manager that swaps the parameters and state of an optimizer."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from torchlite import Tensor

from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Context manager in which an optimizer steps other parameters, with another state.

    On exit the optimizer gets back its parameters and its state. Changes in place stay in the given tensors; the rest
    of the given dict does not change.

    Args:
        optimizer: The optimizer. It must have a state, so at least one step is done.
        swapin_parameters: The parameters by name, in the order of the optimizer's.
        swapin_optim_state: A state as `Optimizer.state_dict` returns it, with the options and the tensors to use.

    Yields:
        ``None``.

    Raises:
        RuntimeError: The optimizer has no state, or the arguments do not fit its groups.

    Example:
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = torch.optim.SGD([weight], lr=1.0, momentum=0.5)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> other = torch.ones(2, requires_grad=True)
        >>> other.grad = torch.ones(2)
        >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, optimizer.state_dict()):
        ...     optimizer.step()
        >>> weight, other
        (tensor([0., 0.], requires_grad=True), tensor([-0.5000, -0.5000], requires_grad=True))
    """
    params = list(swapin_parameters.values())
    groups = swapin_optim_state.get("param_groups", [])
    states: Any = swapin_optim_state.get("state")
    _check_swap(optimizer, len(params), groups, states)
    own_groups, own_state = optimizer.param_groups, optimizer.state
    left = iter(params)
    swapped = [{**group, "params": [next(left) for _ in group["params"]]} for group in groups]
    ids = [number for group in groups for number in group["params"]]
    optimizer.param_groups = swapped
    swapped_state = {param: dict(states.get(number, {})) for param, number in zip(params, ids, strict=True)}
    optimizer.state = defaultdict(dict, swapped_state)
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = own_groups, own_state
        # A multi-tensor step packs states into one buffer.
        for param, number in zip(params, ids, strict=True):
            for name, given in states.get(number, {}).items():
                packed = swapped_state[param].get(name)
                if isinstance(given, Tensor) and isinstance(packed, Tensor) and packed is not given:
                    given.copy_(packed)


def _check_swap(optimizer: Optimizer, count: int, groups: Any, states: Any) -> None:
    own = optimizer.param_groups
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if count != sum(len(group["params"]) for group in own):
        raise RuntimeError(f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering.")
    if len(groups) != len(own):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    for i, (given, group) in enumerate(zip(groups, own, strict=True)):
        if len(given["params"]) != len(group["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {i} has a different number of params than the live optimizer param "
                "group."
            )
        if given.keys() != group.keys():
            raise RuntimeError(
                f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer "
                f"group keys for group {i}. Keys only in swap-in: {sorted(given.keys() - group.keys())}. Keys only in "
                f"live: {sorted(group.keys() - given.keys())}."
            )
    if not isinstance(states, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param "
            f"state dicts, got {type(states).__name__}."
        )
    surplus = sorted(states.keys() - {number for group in groups for number in group["params"]})
    if surplus:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {surplus}."
        )
