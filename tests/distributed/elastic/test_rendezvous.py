"""Meetings whose state a backend of the program keeps, and the backend of a store."""

import threading
from datetime import timedelta

import pytest

import torchlite.distributed as dist
from tests.distributed.test_by_hand import free_port
from torchlite.distributed.elastic import rendezvous
from torchlite.distributed.elastic.rendezvous import RendezvousParameters, static_tcp_rendezvous
from torchlite.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend, create_backend
from torchlite.distributed.elastic.rendezvous.dynamic_rendezvous import (
    DynamicRendezvousHandler,
    RendezvousBackend,
    RendezvousTimeout,
    create_handler,
)
from torchlite.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint


class Counted(RendezvousBackend):
    """The state in this process; tokens are numbers. Each third write comes too late."""

    def __init__(self):
        self.state, self.token, self.lock, self.writes = None, 0, threading.Lock(), 0

    @property
    def name(self):
        return "counted"

    def get_state(self):
        with self.lock:
            return None if self.state is None else (self.state, self.token)

    def set_state(self, state, token=None):
        with self.lock:
            self.writes += 1
            fits = (self.token if self.state is not None else None) == token and self.writes % 3
            if fits:
                self.state, self.token = state, self.token + 1
            return None if self.state is None else (self.state, self.token, bool(fits))


def on_machines(calls):
    """The results, or errors, of calls in threads."""
    found = {}

    def run(number, call):
        try:
            found[number] = call()
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [found[number] for number in range(len(calls))]


@pytest.mark.parametrize("of_store", [False, True])
def test_machines_meet_and_meet_again(of_store):
    store = dist.HashStore()
    backend = C10dRendezvousBackend(store, "run") if of_store else Counted()
    timeout = RendezvousTimeout(join=timedelta(seconds=30), last_call=timedelta(seconds=0.2))
    machines = [
        DynamicRendezvousHandler.from_backend("run", store, backend, 2, 3, "127.0.0.1", timeout) for _ in range(3)
    ]
    met = on_machines([machine.next_rendezvous for machine in machines[:2]])
    assert sorted(one.rank for one in met) == [0, 1] and {one.world_size for one in met} == {2}
    met[0].store.set("x", "1")
    assert met[1].store.get("x") == b"1"
    assert machines[0].num_nodes_waiting() == 0
    late = threading.Thread(target=machines[2].next_rendezvous)
    late.start()
    while not machines[0].num_nodes_waiting():
        pass
    again = on_machines([machine.next_rendezvous for machine in machines[:2]])
    late.join(60)
    assert {one.world_size for one in again} == {3}
    assert machines[0].get_backend() == ("c10d" if of_store else "counted") and machines[0].get_run_id() == "run"
    assert not machines[0].is_closed()
    machines[1].set_closed()
    with pytest.raises(rendezvous.RendezvousClosedError):
        machines[0].next_rendezvous()
    assert machines[0].is_closed() and all(on_machines([machine.shutdown for machine in machines]))


def test_limits():
    store = dist.HashStore()
    params = rendezvous.RendezvousParameters("mine", "", "run", 2, 2, "127.0.0.1", join_timeout=1)
    handler = create_handler(store, Counted(), params)
    with pytest.raises(rendezvous.RendezvousTimeoutError):
        handler.next_rendezvous()
    assert handler.settings.keep_alive_max_attempt == 3 and handler.settings.timeout.heartbeat == timedelta(seconds=5)
    for low, high, words in ((0, 1, "must be greater than zero"), (3, 2, "must be greater than or equal to")):
        with pytest.raises(ValueError, match=words):
            DynamicRendezvousHandler.from_backend("run", store, Counted(), low, high)
    with pytest.raises(ValueError, match="The last_call timeout .* must be positive"):
        RendezvousTimeout(last_call=timedelta(0))


def test_the_state_in_a_store():
    store = dist.HashStore()
    backend = C10dRendezvousBackend(store, "run")
    assert backend.get_state() is None
    state, first, replaced = backend.set_state(b"a")
    assert (state, replaced) == (b"a", True) and backend.get_state() == (b"a", first)
    other = C10dRendezvousBackend(store, "run")
    assert other.set_state(b"b") == (b"a", first, False)
    assert other.set_state(b"b", first)[2] and not backend.set_state(b"c", first)[2]
    assert backend.set_state(b"c", 7)[::2] == (b"b", False)
    store.set("torch.rendezvous.run", "&")
    with pytest.raises(rendezvous.RendezvousStateError, match="corrupt"):
        backend.get_state()


def test_stores_of_backends(tmp_path):
    make = lambda endpoint, **config: create_backend(
        rendezvous.RendezvousParameters("c10d", endpoint, "run", 1, 1, **config)
    )
    backend, server = make("localhost:0", is_host="true")
    other, client = make(f"localhost:{server.port}")
    backend.set_state(b"a")
    assert other.get_state()[0] == b"a" and type(client) is dist.TCPStore
    path = str(tmp_path / "store")
    make(path, store_type="file")[0].set_state(b"b")
    assert make(path, store_type="File")[0].get_state()[0] == b"b"
    for config, words in (({"store_type": "x"}, "Invalid store type"), ({"read_timeout": 0}, "read timeout must be")):
        with pytest.raises(ValueError, match=words):
            make("localhost:0", **config)
    with pytest.raises(rendezvous.RendezvousConnectionError):
        make("localhost:1", is_host="false", read_timeout=1)


@pytest.mark.parametrize(
    "endpoint, expected",
    [
        (None, ("localhost", 5)), (" ", ("localhost", 5)), ("a.b", ("a.b", 5)), ("a:7", ("a", 7)),
        ("[::1]", ("::1", 5)), ("[::1]:7", ("::1", 7)),
        ("a:x", "port number"), ("a:70000", "port number"), ("a b:1", "hostname"),
    ],
)  # fmt: skip
def test_endpoints(endpoint, expected):
    if isinstance(expected, tuple):
        assert parse_rendezvous_endpoint(endpoint, 5) == expected
    else:
        with pytest.raises(ValueError, match=f"The {expected} of the rendezvous endpoint"):
            parse_rendezvous_endpoint(endpoint, 5)


def test_static_meetings():
    port = free_port()

    def meet(rank):
        where = RendezvousParameters("static", f"localhost:{port}", "run", 1, 2, rank=rank, timeout=30)
        handler = static_tcp_rendezvous.create_rdzv_handler(where)
        found[rank] = handler, handler.next_rendezvous()

    found = {}
    other = threading.Thread(target=meet, args=(1,))
    other.start()
    meet(0)
    other.join(60)
    handler, info = found[1]
    assert (info.rank, info.world_size, info.bootstrap_store_info.master_port) == (1, 2, port)
    found[0][1].store.set("key", "value")
    assert info.store.get("key") == b"value"
    assert (handler.get_backend(), handler.get_run_id(), handler.use_agent_store) == ("static", "run", True)
    handler.set_closed()
    assert (handler.is_closed(), handler.num_nodes_waiting(), handler.shutdown()) == (False, 0, True)


@pytest.mark.parametrize(
    "endpoint, config, words",
    [
        ("localhost:1", {}, "rank is absent"),
        ("", {"rank": 0}, "Endpoint is missing"),
        ("localhost", {"rank": 0}, "port is missing"),
    ],
)
def test_static_meetings_without_a_place(endpoint, config, words):
    with pytest.raises(ValueError, match=words):
        static_tcp_rendezvous.create_rdzv_handler(RendezvousParameters("static", endpoint, "run", 2, 2, **config))
