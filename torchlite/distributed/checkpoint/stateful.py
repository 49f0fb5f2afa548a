"""What has a state to be saved and loaded."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object whose `state_dict()` is saved in its place, and whose `load_state_dict` gets what was loaded."""

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what was loaded."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
