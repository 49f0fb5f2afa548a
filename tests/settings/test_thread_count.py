"""The number of threads is at most the user's setting, counted in subprocesses under different work."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

import torchlite as torch

WORK = """
import os, sys, threading
import torchlite as torch
from torch_work import work, ours
"""
# Training steps with products, convolutions, attention, sorting and elementwise ops, each large enough for several
# threads.
MODULE = """
import threading
import torchlite as torch

def work():
    x = torch.randn(1024, 512)
    (x @ torch.randn(512, 512)).softmax(1).sum().item()
    (x * 2 + x).tanh().sort(1)
    x.t().contiguous(), x.cumsum(1), torch.cat([x, x], 1), x.topk(3)
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10))
    net(torch.randn(32, 3, 32, 32)).sum().backward()
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    layer(torch.randn(16, 64, 64)).sum().backward()
    nn.LSTM(32, 64, batch_first=True)(torch.randn(32, 16, 32))[0].sum().backward()

def ours():
    return sum(t.name.startswith("torchlite-cpu") for t in threading.enumerate())
"""


def printed(code: str, folder, **variables: str) -> list[str]:
    """Return the lines that a program prints."""
    (folder / "torch_work.py").write_text(MODULE)
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", WORK + code],
        capture_output=True,
        text=True,
        env={**kept, "PYTHONPATH": path, **variables},
    )
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_one_thread_starts_no_other(tmp_path):
    assert printed("torch.set_num_threads(1); work(); print(ours(), threading.active_count())", tmp_path) == ["0", "1"]


def test_the_variable_grants_threads_to_all(tmp_path):
    """With one thread of OpenMP the process has one: BLAS's are counted by the system. (Drivers of OpenCL keep some for
    themselves.)
    """
    code = """
work()
threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else threading.active_count()
print(torch.get_num_threads(), ours(), threads)
"""
    found = printed(code, tmp_path, OMP_NUM_THREADS="1", TORCHLITE_CPU_KERNELS="numpy")
    assert found[:2] == ["1", "0"] and int(found[2]) == 1
    assert printed("work(); print(torch.get_num_threads(), ours())", tmp_path, OMP_NUM_THREADS="3") == ["3", "2"]


def test_user_threads_share_the_workers(tmp_path):
    """Two user threads that work at once: the pool has as many workers as one of them was granted."""
    code = """
torch.set_num_threads(2)
users = [threading.Thread(target=work) for _ in range(3)]
for t in users: t.start()
for t in users: t.join()
print(ours())
"""
    assert printed(code, tmp_path) == ["1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_child_starts_new_threads(tmp_path):
    code = """
torch.set_num_threads(2)
work()
read, write = os.pipe()
if not os.fork():
    before = ours()
    work()
    os.write(write, f"{before} {ours()}".encode())
    os._exit(0)
print(os.read(read, 100).decode(), ours())
"""
    assert printed(code, tmp_path) == ["0", "1", "1"]


def test_workers_sleep_when_there_is_nothing_to_do(tmp_path):
    """Every other thread is in the system's sleeping state: none spins."""
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("the system does not tell what threads do")
    code = """
import time
torch.set_num_threads(2)
work()
me = str(threading.get_native_id())
for _ in range(200):
    time.sleep(0.01)
    texts = [open(f"/proc/self/task/{t}/stat").read() for t in os.listdir("/proc/self/task") if t != me]
    states = {text.rpartition(")")[2].split()[0] for text in texts}
    if states == {"S"}: break
print(ours(), *states)
"""
    assert printed(code, tmp_path) == ["1", "S"]


def test_products_leave_the_library_at_one_thread(monkeypatch):
    """While a product is cut over our own threads BLAS has one: seen by the parts."""
    from torchlite_backends.numpy import blas, deterministic_gemm

    controls = blas._find_thread_controls()
    if controls is None:
        pytest.skip("this NumPy's BLAS cannot be told")
    import numpy as np

    monkeypatch.setattr(deterministic_gemm.native_gemm, "parts", None)  # an engine's threads are its own
    seen = []

    class Watched(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            seen.append((controls[1](), threading.current_thread().name))
            out = kwargs.pop("out", None)
            plain = [np.asarray(a) for a in inputs]
            return getattr(ufunc, method)(
                *plain, **({"out": tuple(np.asarray(o) for o in out)} if out else {}), **kwargs
            )

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        a, b = np.ones((1024, 512), np.float32).view(Watched), np.ones((512, 512), np.float32)
        deterministic_gemm.deterministic_matmul(a, b)
    finally:
        torch.set_num_threads(before)
    assert len(seen) > 1 and {count for count, _ in seen} == {1}


class Threads(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.get_num_threads()


def test_workers_of_a_loader_have_one_thread_each():
    before = torch.get_num_threads()
    loader = torch.utils.data.DataLoader(Threads(), batch_size=1, num_workers=2)
    assert [batch.item() for batch in loader] == [1, 1, 1, 1] and torch.get_num_threads() == before
