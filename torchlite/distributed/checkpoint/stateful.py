"""`Stateful`: protocol of objects with a state to save and load."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """Protocol of objects that are saved through ``state_dict()`` and loaded through ``load_state_dict``.

    Example:
        >>> from torchlite.distributed.checkpoint.stateful import Stateful
        >>> isinstance(torch.nn.Linear(2, 1), Stateful)
        True
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state.

        Args:
            state_dict: The state.
        """


StatefulT = TypeVar("StatefulT", bound=Stateful)
