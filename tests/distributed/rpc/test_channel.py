"""Only ranks that prove the secret are read."""

import contextlib
import pickle
import socket
import threading

import pytest

import torchlite.distributed.rpc as rpc
from torchlite.distributed.rpc import _state
from torchlite.distributed.rpc._channel import CALL, SILENT_SECONDS, Channel

RAN = []


def stranger(*_):
    RAN.append(1)


@pytest.fixture
def place():
    options = rpc.TensorPipeRpcBackendOptions(init_method="tcp://127.0.0.1:0")
    rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
    yield _state.agent()._listener.getsockname()
    rpc.shutdown()


def message():
    data = pickle.dumps((stranger, (), {}))
    return CALL.to_bytes(1, "big") + bytes(8) + len(data).to_bytes(8, "big") + data


@pytest.mark.parametrize("before", [b"", bytes(4 + 32 + 32), b"\xff" * 68])
def test_a_stranger_is_closed_unread(place, before):
    assert place[0] == "127.0.0.1"
    RAN.clear()
    with socket.create_connection(place, 20) as connection:
        assert len(connection.recv(32, socket.MSG_WAITALL)) == 32
        connection.sendall(before + message() * 3)
        with contextlib.suppress(ConnectionResetError):  # closed with bytes that were not read
            assert connection.recv(1) == b""
    assert rpc.rpc_sync("alone", max, (1, 2)) == 2 and not RAN


def test_another_secret_and_another_rank(place):
    secret = _state.agent()._secret
    for wrong in ((bytes(32), 0, 0), (secret, 0, 1), (secret, 1, 0)):
        with pytest.raises(OSError):
            Channel.dial(place, *wrong, 20)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such option")
def test_connections_know_when_a_peer_is_silent(place):
    agent = _state.agent()
    assert rpc.rpc_sync("alone", max, (1, 2)) == 2
    for channel in (agent._channels[0], agent._accepted[0]):
        limits = {
            name: channel._socket.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"))
            for name in ("USER_TIMEOUT", "KEEPIDLE", "KEEPINTVL", "KEEPCNT")
        }
        assert channel._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert limits["USER_TIMEOUT"] == 1000 * SILENT_SECONDS
        assert limits["KEEPIDLE"] + limits["KEEPINTVL"] * limits["KEEPCNT"] == SILENT_SECONDS


def test_a_listener_without_the_secret_gets_no_message():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(bytes(32))
                connection.recv(68, socket.MSG_WAITALL)
                connection.sendall(bytes(32))

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionError, match="did not prove"):
            Channel.dial(listener.getsockname(), bytes(32), 0, 0, 20)
        thread.join()
