"""Tensors between processes, and processes started together."""

import os
import signal
import time

import pytest

import torchlite as torch
from torchlite import multiprocessing as mp


def adds_one(queue, answers):
    tensor, whole, parameter = queue.get()
    tensor += 1
    answers.put((tensor.shape, whole.untyped_storage().nbytes(), type(parameter).__name__, parameter.requires_grad))


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    """Each way in which memory is sent."""
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy("file_descriptor")


def test_tensors_are_the_same_memory(strategy):
    assert mp.get_sharing_strategy() == strategy in mp.get_all_sharing_strategies()
    context = mp.get_context("fork")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    x, parameter = torch.zeros(4, 3), torch.nn.Parameter(torch.ones(2))
    queue.put((x[1:].t(), x, parameter))
    process = context.Process(target=adds_one, args=(queue, answers))
    process.start()
    assert answers.get() == ((3, 3), 48, "Parameter", True)
    process.join()
    assert x.sum().item() == 9 and x.is_shared() and parameter.is_shared()
    queue.put(x)
    again = queue.get()
    queue.put(again)
    assert queue.get().fill_(2) is not x and x.sum().item() == 24


def test_what_is_sent():
    queue = mp.SimpleQueue()
    x, empty = torch.arange(4), torch.empty(0, 3)
    queue.put([x, x[2:], x.untyped_storage(), empty, torch.ones(1, device="meta")])
    a, b, storage, nothing, meta = queue.get()
    b.fill_(7)
    assert a.tolist() == x.tolist() == [0, 1, 7, 7] and storage.data_ptr() == a.data_ptr()
    assert nothing.shape == (0, 3) and meta.is_meta
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        queue.put(y)
    queue.put(y.detach())
    assert queue.get().tolist() == [2, 2]
    with pytest.raises(AssertionError, match="invalid sharing strategy 'smoke'"):
        mp.set_sharing_strategy("smoke")


def works(number, shared):
    shared[number] = number + 1


def raises(number):
    if number == 1:
        raise ValueError("of process 1")
    time.sleep(60)


def leaves(number):
    os._exit(3)


def dies(number):
    os.kill(os.getpid(), signal.SIGKILL)


def start(function, *args, **options):
    return mp.start_processes(function, args, start_method="fork", **options)


def test_processes_together():
    shared = torch.zeros(3).share_memory_()
    assert start(works, shared, nprocs=3) is None and shared.tolist() == [1, 2, 3]
    context = start(works, shared.zero_(), nprocs=2, join=False)
    assert len(context.pids()) == 2 and all(context.pids())
    while not context.join(timeout=10):
        pass
    assert shared.tolist() == [1, 2, 0] and context.join()


def test_errors_of_processes():
    with pytest.raises(mp.ProcessRaisedException, match="(?s)Process 1 terminated with the .*of process 1") as caught:
        start(raises, nprocs=2)
    assert caught.value.error_index == 1 and caught.value.error_pid > 0
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3") as caught:
        start(leaves)
    assert caught.value.exit_code == 3 and caught.value.signal_name is None
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with signal SIGKILL") as caught:
        start(dies)
    assert caught.value.signal_name == "SIGKILL"


def test_new_interpreters():
    shared = torch.zeros(1)
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(works, (shared,), start_method="fork")
    assert shared.item() == 1
