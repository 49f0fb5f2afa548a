"""The state of a meeting as a value of a store."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ..._launch.elastic_agent import open_store
from ..._stores import FileStore
from ..._work import DistError
from .api import RendezvousConnectionError, RendezvousParameters, RendezvousStateError
from .dynamic_rendezvous import RendezvousBackend
from .utils import parse_rendezvous_endpoint

__all__ = ["C10dRendezvousBackend", "create_backend"]

_PORT = 29400
_NO_STATE = b"none"  # no base64 of a state, which begins with a brace


@contextlib.contextmanager
def _connection_errors() -> Iterator[None]:
    try:
        yield
    except DistError as error:
        raise RendezvousConnectionError(
            "The connection to the C10d store has failed. See inner exception for details."
        ) from error


class C10dRendezvousBackend(RendezvousBackend):
    """Backend whose state is a value of a store, as base64. Its tokens are values.

    Args:
        store: The store.
        run_id: The name of the run, a part of the value's name.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
        >>> backend = C10dRendezvousBackend(torch.distributed.HashStore(), "run")
        >>> backend.get_state()
        >>> state, token, replaced = backend.set_state(b"first")
        >>> state, replaced, backend.set_state(b"second")[::2]
        (b'first', True, (b'first', False))
    """

    def __init__(self, store: Any, run_id: str) -> None:
        self._store, self._key = store, f"torch.rendezvous.{run_id}"
        with _connection_errors():
            store.compare_set(self._key, "", _NO_STATE)

    @property
    def name(self) -> str:
        """The kind of meeting, "c10d"."""
        return "c10d"

    def get_state(self) -> tuple[bytes, Any] | None:
        """Returns the state with its token, or ``None`` before the first `set_state`.

        Raises:
            RendezvousConnectionError: The store cannot be reached.
            RendezvousStateError: The value is no state.
        """
        with _connection_errors():
            return self._decoded(self._store.get(self._key))

    def set_state(self, state: bytes, token: Any | None = None) -> tuple[bytes, Any, bool] | None:
        """Replaces the state of a token.

        Args:
            state: The new state.
            token: The token of the version. Default: there is no state yet.

        Returns:
            The present state, its token, and whether the state was replaced. ``None`` if there is no state.

        Raises:
            RendezvousConnectionError: The store cannot be reached.
            RendezvousStateError: The value is no state.
        """
        wanted = base64.b64encode(state)
        if token is not None and not isinstance(token, bytes):
            found = self.get_state()
            return None if found is None else (*found, False)
        with _connection_errors():
            present = self._store.compare_set(self._key, _NO_STATE if token is None else token, wanted)
        decoded = self._decoded(present)
        return None if decoded is None else (*decoded, present == wanted)

    def _decoded(self, value: bytes) -> tuple[bytes, Any] | None:
        if value == _NO_STATE:
            return None
        try:
            return base64.b64decode(value, validate=True), value
        except binascii.Error as error:
            raise RendezvousStateError("The state object is corrupt. See inner exception for details.") from error


def create_backend(params: RendezvousParameters) -> tuple[C10dRendezvousBackend, Any]:
    """Returns a backend and its store.

    Args:
        params: The endpoint. In its configuration ``store_type``: "tcp" (default), whose server is on the machine of
            the endpoint or where ``is_host`` is true, or "file", whose path is the endpoint or a new file. And
            ``read_timeout``, seconds to wait for a value, 60 by default.

    Raises:
        ValueError: A setting is wrong.
        RendezvousConnectionError: The store cannot be reached.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousParameters
        >>> from torchlite.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
        >>> backend, store = create_backend(RendezvousParameters("c10d", "localhost:0", "run", 1, 1))
        >>> backend.name, type(store).__name__
        ('c10d', 'TCPStore')
    """
    kind = str(params.get("store_type", "tcp")).strip().lower()
    seconds = params.get_as_int("read_timeout", 60)
    if seconds is None or seconds <= 0:
        raise ValueError("The read timeout must be a positive integer.")
    if kind == "file":
        with _connection_errors():
            store: Any = FileStore(params.endpoint or os.path.join(tempfile.mkdtemp(), "store"))
    elif kind == "tcp":
        host, port = parse_rendezvous_endpoint(params.endpoint, _PORT)
        with _connection_errors():
            store, _ = open_store(host, port, seconds, params.get_as_bool("is_host"))
    else:
        raise ValueError("Invalid store type given. Currently only supports file and tcp.")
    return C10dRendezvousBackend(store, params.run_id), store


__dir__ = make_module_dir(globals())
