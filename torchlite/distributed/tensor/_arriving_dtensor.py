"""DTensors whose messages are on the way: `redistribute(async_op=True)`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ._api import DTensor
from ._dtensor_factory import ARRIVALS


class _ArrivingDTensor(DTensor):
    """A DTensor whose messages are on the way; it becomes a DTensor at the first use of its part."""

    __slots__ = ()

    @property
    def _local_tensor(self) -> Any:  # type: ignore[override]
        arrival = self.__dict__.get("_arrival")
        if arrival is not None:
            local, later, lock = arrival
            with lock:  # of two threads one waits for the messages
                while later:
                    later[0]()
                    later.pop(0)
                self.__dict__["_local_tensor"] = local
                self.__dict__.pop("_arrival", None)
                self.__class__ = DTensor  # type: ignore[assignment]
        return self.__dict__["_local_tensor"]


_ArrivingDTensor.__name__ = _ArrivingDTensor.__qualname__ = "DTensor"


def wait_at_first_use(made: DTensor, later: list[Callable[[], object]]) -> DTensor:
    """Have a DTensor call functions, in this order, before its part is used; return it."""
    made.__dict__["_arrival"] = made.__dict__.pop("_local_tensor"), later, threading.RLock()
    made.__class__ = _ArrivingDTensor
    return made


ARRIVALS[:] = [wait_at_first_use]
