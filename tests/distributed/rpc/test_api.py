"""Calls between three workers; `calls.py` has the cases."""

import json
import socket

import pytest

import torchlite as torch
import torchlite.distributed as dist
import torchlite.distributed.rpc as rpc
from tests.distributed.rank_launcher import ROOT
from tests.distributed.test_by_hand import end, free_port, start
from torchlite.distributed.rpc._agent import Agent

PROGRAM = str(ROOT / "tests" / "distributed" / "rpc" / "calls.py")


@pytest.mark.parametrize("case", ["values", "errors", "nested", "references", "lost"])
def test_three_workers(case):
    address = f"127.0.0.1:{free_port()}"
    codes, outputs = end([start(PROGRAM, case, address, rank, 3) for rank in range(3)])
    if case == "lost":
        assert codes.pop(1) == 3, outputs
        del outputs[1]
    assert not any(codes) and all(output.endswith("done\n") for output in outputs), "\n".join(outputs)


def test_two_workers_of_one_name():
    program = (
        "import sys, torchlite.distributed.rpc as rpc; port, rank = sys.argv[1:]; "
        "o = rpc.TensorPipeRpcBackendOptions(init_method=f'tcp://127.0.0.1:{port}'); "
        "rpc.init_rpc('same', rank=int(rank), world_size=2, rpc_backend_options=o)"
    )
    port = free_port()
    codes, outputs = end([start("-c", program, port, rank) for rank in range(2)])
    assert codes == [1, 1] or 1 in codes
    assert any("RPC worker name same is not unique. Workers 0 and 1 share" in output for output in outputs), "\n".join(
        outputs
    )


def test_a_worker_that_cannot_be_reached():
    """Its system refuses the connection; the error names it."""
    store, listener = dist.TCPStore("127.0.0.1", 0, is_master=True), socket.socket()
    with listener:
        listener.bind(("127.0.0.1", 0))  # it does not listen
        dist.PrefixStore("x", store).set(
            "worker/1", json.dumps({"name": "b", "place": listener.getsockname(), "maps": {}})
        )
        options = rpc.TensorPipeRpcBackendOptions()
        with pytest.raises(RuntimeError, match=r"could not connect to WorkerInfo\(id=1, name=b\): .*refused"):
            Agent(dist.PrefixStore("x", store), "a", 0, 2, options, "127.0.0.1")


def test_calls_without_a_world():
    for call in (rpc.shutdown, rpc.get_worker_info, lambda: rpc.rpc_sync("a", max), lambda: rpc.RRef(1)):
        with pytest.raises(RuntimeError, match="RPC has not been initialized"):
            call()
    with pytest.raises(TypeError, match="must be a member of BackendType"):
        rpc.init_rpc("a", backend="tensorpipe")
    with pytest.raises(TypeError, match="must be an instance of RpcBackendOptions"):
        rpc.init_rpc("a", rpc_backend_options={})
    with pytest.raises(ValueError, match="Worker name must match"):
        rpc.init_rpc("a b", rank=0, world_size=1)


def test_device_maps():
    options = rpc.TensorPipeRpcBackendOptions(device_maps={"b": {"cuda:0": "cuda:1"}})
    assert options.device_maps == {"b": {torch.device("cuda:0"): torch.device("cuda:1")}}
    with pytest.raises(ValueError, match="only supports 1-to-1 mapping"):
        options.set_device_map("b", {"cuda:0": "cuda:2"})
    with pytest.raises(ValueError, match="only supports 1-to-1 mapping"):
        options.set_device_map("b", {"cuda:3": "cuda:1"})
