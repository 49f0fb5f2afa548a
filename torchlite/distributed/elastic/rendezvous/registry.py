"""Handlers by the kind of meeting: those that torchlite has, and those that programs register."""

from __future__ import annotations

from torchlite._settings.module_dir import make_module_dir

from ._meeting_handler import MeetingHandler
from .api import RendezvousHandler, RendezvousParameters
from .api import rendezvous_handler_registry as handler_registry

__all__ = ["get_rendezvous_handler"]

for _kind in ("c10d", "static"):
    handler_registry.register(_kind, MeetingHandler)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Returns a new handler of the kind ``params.backend``.

    Args:
        params: The kind, "c10d", "static" or one that the program has registered, and where the machines meet.

    Raises:
        ValueError: The kind has no maker, or the parameters are wrong.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousParameters
        >>> from torchlite.distributed.elastic.rendezvous.registry import get_rendezvous_handler
        >>> handler = get_rendezvous_handler(RendezvousParameters("c10d", "localhost:0", "run", 1, 1))
        >>> handler.next_rendezvous().world_size
        1
        >>> handler.shutdown()
        True
    """
    return handler_registry.create_handler(params)


__dir__ = make_module_dir(globals(), "handler_registry")
