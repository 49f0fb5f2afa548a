"""Handler of the meetings of kind c10d and static: the rounds of `torchlite-run`, for agents of a program's own."""

from __future__ import annotations

import contextlib
import threading
import weakref
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from ..._launch.elastic_agent import free_port, open_meeting
from ..._launch.elastic_meeting import Meeting, RunClosed, Settings
from ..._stores import PrefixStore
from ..._work import DistError
from .api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)

_PORT = 29400  # where machines meet by c10d, if the endpoint has no port
_BEAT = 0.5  # seconds between two signs of life


def find_endpoint(params: RendezvousParameters) -> tuple[str, int]:
    """Return where the machines meet."""
    if params.backend not in ("c10d", "static"):
        raise ValueError(f"rdzv_backend {params.backend!r}: machines meet by c10d or static")
    endpoint = params.endpoint.strip()
    if not endpoint:
        if params.max_nodes > 1 or params.backend == "static":
            raise ValueError("Endpoint is missing in endpoint. Try to add --master-addr and --master-port")
        return "127.0.0.1", 0
    host, colon, port = endpoint.rpartition(":")
    if not colon or endpoint.endswith("]"):
        host, port = endpoint, ""
    if port and not port.isdigit():
        raise ValueError(f"rdzv_endpoint {endpoint!r} is not HOST:PORT")
    if not port and params.backend == "static":
        raise ValueError(f"port is missing in endpoint: {endpoint}. Try to specify --master-port")
    return host.strip("[]"), int(port or _PORT)


def read_settings(params: RendezvousParameters) -> tuple[int, Settings]:
    """Return this machine's number and the limits of time."""
    limits = {name: value for name, value in params.config.items() if name != "rank"}
    return int(params.get("rank", 0)), Settings.parse(",".join(f"{name}={value}" for name, value in limits.items()))


def _beat(meeting: Meeting, ended: threading.Event) -> None:
    """Give signs of life until the end, or until the store has gone."""
    with contextlib.suppress(DistError):
        while not ended.wait(_BEAT):
            meeting.beat()


@contextlib.contextmanager
def _rendezvous_errors() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise RendezvousTimeoutError(str(error)) from None
    except RunClosed as closed:
        raise RendezvousClosedError(str(closed) or "the run has ended") from None
    except DistError as error:
        raise RendezvousConnectionError(f"the store of the machines was lost: {error}") from error


class RoundsHandler(RendezvousHandler):
    """Machines that meet in rounds. A subclass says where: `_make` opens the meeting."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._opened: tuple[Meeting, str, bool, Any] | None = None
        self._ended, self._number = threading.Event(), -1
        weakref.finalize(self, self._ended.set).atexit = False

    @abstractmethod
    def _make(self) -> tuple[Meeting, str, bool, Any]:
        """Return the meeting, this machine's address, whether it serves the store, and the store of the ranks."""

    def _open(self) -> tuple[Meeting, str, bool, Any]:
        if self._opened is None:
            self._opened = self._make()
            beat = threading.Thread(target=_beat, args=(self._opened[0], self._ended), name="rendezvous", daemon=True)
            beat.start()
        return self._opened

    def next_rendezvous(self) -> RendezvousInfo:
        """Waits until the machines have met.

        Raises:
            RendezvousTimeoutError: Too few machines came in time.
            RendezvousClosedError: The run has ended.
        """
        with _rendezvous_errors():
            meeting, address, _, store = self._open()
            place = meeting.join(free_port(address), lambda: False)
        assert place is not None
        self._number, first = place.number, place.machines[0]
        of_round = PrefixStore(f"round/{place.number}", store)
        return RendezvousInfo(of_round, place.node, len(place.machines), RendezvousStoreInfo(first.address, first.port))

    def is_closed(self) -> bool:
        """Returns whether the run has ended."""
        with _rendezvous_errors():
            return self._open()[0].is_closed()

    def set_closed(self) -> None:
        """Ends the run for all machines."""
        with _rendezvous_errors():
            self._open()[0].close("another machine has closed the run")

    def num_nodes_waiting(self) -> int:
        """Returns 1 if the machines must meet again: one waits, has failed, is silent, or has closed the run."""
        with _rendezvous_errors():
            try:
                return int(self._open()[0].must_meet_again(self._number))
            except RunClosed as closed:
                return int(bool(str(closed)))  # without a reason the others have ended well

    def get_run_id(self) -> str:
        """Returns the name of the run."""
        return self._run_id

    def shutdown(self) -> bool:
        """Ends the run, and waits some seconds for the others if this machine serves their store."""
        self._ended.set()
        if self._opened is None:
            return True
        meeting, _, serves, _ = self._opened
        self._opened = None
        try:
            meeting.close("")
            meeting.depart(serves)
        except (DistError, RendezvousError):  # the store has gone
            return False
        return True


class MeetingHandler(RoundsHandler):
    """Machines that meet by a store, which the machine of the address serves."""

    def __init__(self, params: RendezvousParameters) -> None:
        super().__init__(params.run_id)
        self._params, self._endpoint = params, find_endpoint(params)
        self._order, self._settings = read_settings(params)

    def _make(self) -> tuple[Meeting, str, bool, Any]:
        params = self._params
        who = (self._order, params.local_addr or "", 1)  # agents tell each other how many processes they start
        machines = (params.min_nodes, params.max_nodes)
        meeting, own, serves, store = open_meeting(
            self._endpoint, f"agents/{params.run_id}", who, machines, self._settings
        )
        return meeting, own.address, serves, store

    def get_backend(self) -> str:
        """Returns "c10d" or "static"."""
        return self._params.backend
