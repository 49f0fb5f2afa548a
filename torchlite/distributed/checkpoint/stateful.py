"""`Stateful`: protocol of objects with a state to save and load."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """Object saved through `state_dict()`, and loaded through `load_state_dict`."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
