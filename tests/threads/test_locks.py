"""Forks and handlers of signals know the locks: each lasting one goes through `forks.hold` or `forks.renew`."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from .shared_state import FUNCTIONS, _last, modules

LOCKS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore"}
OF_A_CALL = "lives as long as one call"
OF_A_GROUP = "of a connection or a group of ranks, which a forked child may not use"
OF_A_DEVICE = "of a device that refuses work in a forked child"
OF_A_TYPE = "its type alone is asked for"
EXCEPTIONS = {
    "torchlite._dispatch.kernel_recorder:": (
        "tried and never waited for; a hook of its own ends other threads' recorders"
    ),
    "torchlite._dynamo.guards:": OF_A_TYPE,
    "torchlite._dynamo.side_effect_monitor:": OF_A_TYPE,
    "torchlite._settings.fork_locks:": "the gate of forks itself",
    "torchlite.distributed._device_comm_backend:DeviceCommunicator.__init__": OF_A_GROUP,
    "torchlite.distributed._distributed_backward:LocalPass.__init__": OF_A_GROUP,
    "torchlite.distributed._launch.process_watcher:ProcessWatchers.__init__": (
        "of the launcher, which starts programs by exec alone"
    ),
    "torchlite.distributed._work:MessageWork.__init__": OF_A_GROUP,
    "torchlite.distributed.rpc._agent:Agent.__init__": OF_A_GROUP,
    "torchlite.distributed.rpc._autograd_context:DistAutogradContext.__init__": OF_A_GROUP,
    "torchlite.distributed.rpc._channel:Channel.__init__": OF_A_GROUP,
    "torchlite.distributed.tensor._arriving_dtensor:wait_at_first_use": OF_A_GROUP,
    "torchlite.futures:Future.__init__": "of an object of the program's",
    "torchlite.futures:collect_all": OF_A_CALL,
    "torchlite.serve._worker_process:_Model.__init__": "a template forks with one thread alone, and holds no lock then",
    "torchlite.serve._workers:WorkerGroup.__init__": "of an event loop, which a forked child may not use",
    "torchlite_backends.cc.prebuild:build_programs": OF_A_CALL,
    "torchlite_backends.cupy.cublas:Cublas.__init__": OF_A_DEVICE,
    "torchlite_backends.cupy.cudnn:Library.__init__": OF_A_DEVICE,
    "torchlite_backends.cupy.cusolver:Cusolver.__init__": OF_A_DEVICE,
    "torchlite_backends.cupy.device:CUDAFunction.__init__": OF_A_DEVICE,
    "torchlite_backends.cupy.allocator:Allocator.__init__": OF_A_DEVICE,
    "torchlite_backends.cupy.cuda_graphs:CapturedFunction.__init__": OF_A_DEVICE,
    "torchlite_backends.mpi.collective_queue:CollectiveQueue.__init__": OF_A_GROUP,
    "torchlite_backends.mpi.requests:Request.__init__": OF_A_GROUP,
    "torchlite_backends.numpy.cache_blocking:_WorkerPool.__init__": "a hook of its own makes it anew",
    "torchlite_backends.numpy.cache_blocking:_Task.__init__": OF_A_CALL,
    "torchlite_backends.opencl.device:OpenCLFunction.__init__": OF_A_DEVICE,
    "torchlite_backends.opencl.host_device:HostDevice._wait_for_kernels": OF_A_CALL,
    "torchlite_backends.opencl.command_buffer:CommandBuffer.__init__": OF_A_DEVICE,
}


def bare(name: str, tree: ast.Module) -> set[str]:
    """Where a module makes locks that are not given to `fork_locks`, as `module:Class.function`."""

    def walk(node: ast.AST, where: str, known: bool) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            inner = where
            if isinstance(child, (ast.ClassDef, *FUNCTIONS)) and not isinstance(child, ast.Lambda):
                inner = f"{where}.{child.name}"
            called = _last(child.func) if isinstance(child, ast.Call) else ""
            if called in LOCKS and not known:
                yield f"{name}:{where[1:]}"
            yield from walk(child, inner, called in ("acquire_before_fork", "reinit_after_fork"))

    return set(walk(tree, "", False))


def test_each_lasting_lock_is_known_to_forks():
    found = {place for name, tree in modules() for place in bare(name, tree)}
    assert found - EXCEPTIONS.keys() == set(), (
        "use fork_locks.acquire_before_fork or reinit_after_fork, or say here why not"
    )
    assert EXCEPTIONS.keys() - found == set(), "these make no lock any more"


def test_the_scanner_finds_bare_locks():
    tree = ast.parse(
        "import threading\nA = threading.Lock()\nB = fork_locks.acquire_before_fork(threading.RLock())\nclass C:\n    "
        "d = Lock()\n"
        "    def e(self):\n        self.f = fork_locks.reinit_after_fork(RLock())\n        self.g = [RLock()]\n"
    )
    assert bare("m", tree) == {"m:", "m:C", "m:C.e"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_locks_in_children():
    """A child has locks that are free, but for those that the forking thread itself has: it gives these back."""
    program = """
    import os, threading, torchlite
    from torchlite._settings import fork_locks
    fork_locks.TIMEOUT = 0.2
    mine, others = fork_locks.acquire_before_fork(threading.RLock()), fork_locks.acquire_before_fork(threading.RLock())
    renewed, own = fork_locks.reinit_after_fork(threading.RLock()), fork_locks.reinit_after_fork(threading.RLock())
    ready = threading.Event()

    def hold():
        with others, renewed:
            ready.set()
            threading.Event().wait()

    threading.Thread(target=hold, daemon=True).start()
    ready.wait()
    with mine, own:
        child = os.fork()
        if child == 0:
            assert mine._is_owned() and own._is_owned()
            assert others.acquire(timeout=1) and renewed.acquire(timeout=1)
    if child == 0:
        assert not mine._is_owned() and not own._is_owned()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
