"""Tensors sent between processes, and `spawn`."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import torchlite as torch
from torchlite import multiprocessing as mp
from torchlite._settings.temporary_folders import process_folder, shared_memory_folder


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


def test_queues_share_tensors():
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


def test_spawn_and_join():
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


def test_storages_are_known_again(strategy):
    queue = mp.SimpleQueue()
    x = torch.randn(5, 5)
    queue.put([x.untyped_storage(), x, x[2], x[:, 1]])
    storage, *tensors = queue.get()
    assert storage is x.untyped_storage() and all(t.untyped_storage() is storage for t in tensors)
    for part in (x[0], x[1:]):  # in two messages
        queue.put(part)
    assert queue.get().untyped_storage() is queue.get().untyped_storage() is storage
    for value in (torch.tensor(3.0), torch.ones(2, dtype=torch.bfloat16), torch.tensor([1 + 2j]).conj()):
        queue.put(value)
        assert torch.equal(queue.get(), value)
    sparse = torch.eye(3).to_sparse_csr()
    queue.put(sparse)
    assert queue.get().values().data_ptr() == sparse.values().data_ptr() and sparse.values().is_shared()


def test_serialization_errors_and_warnings():
    queue = mp.SimpleQueue()
    with pytest.raises(RuntimeError, match="Cannot pickle meta storage; try pickling a meta tensor instead"):
        queue.put(torch.ones(2, device="meta").untyped_storage())
    hooked = torch.ones(2, requires_grad=True)
    hooked.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="will not be serialized"):
        queue.put(hooked)
    assert queue.get().requires_grad
    with pytest.warns(UserWarning, match="SpawnContext is renamed to ProcessContext"):
        mp.SpawnContext([], [])


ALONE = """
    import os, resource, signal, sys
    import torchlite as torch
    mp = torch.multiprocessing
"""


def run_alone(code):
    code = textwrap.dedent(ALONE) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_many_tensors_take_few_descriptors():
    done = run_alone("""
        def receive(tensors, answers):
            got = [tensors.get() for _ in range(300)]
            for tensor in got:
                tensor += 1
            answers.put(len(got))
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        context = mp.get_context("fork")
        tensors, answers = context.SimpleQueue(), context.SimpleQueue()
        process = context.Process(target=receive, args=(tensors, answers))
        process.start()
        sent = [torch.full((2,), float(i)) for i in range(300)]
        for tensor in sent:
            tensors.put(tensor)
        assert answers.get() == 300
        process.join()
        assert [tensor[0].item() for tensor in sent] == [i + 1.0 for i in range(300)]
    """)
    assert done.returncode == 0, done.stderr


def files_in(folder):
    return os.listdir(folder) if os.path.isdir(folder) else []


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="names of shared memory are not seen here")
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(0)", "os._exit(1)"])
def test_no_shared_memory_names_remain(end):
    done = run_alone(f"""
        mp.set_sharing_strategy("file_system")
        queue = mp.SimpleQueue()
        shared = torch.ones(3).share_memory_()
        queue.put(shared)
        queue.put(torch.ones(2))
        a = queue.get()
        from torchlite._settings.temporary_folders import process_folder
        folder = process_folder("/dev/shm")
        print(folder, len(os.listdir(folder)), flush=True)
        {end}
    """)
    folder, during = done.stdout.split()
    assert int(during) >= 2, done.stderr
    deadline = time.monotonic() + 30
    while os.path.exists(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.exists(folder)


def test_shared_memory_names_are_removed_with_their_tensors(strategy):
    def count():
        gc.collect()
        return len(files_in(process_folder(shared_memory_folder())))

    before, queue = count(), mp.SimpleQueue()
    queue.put(torch.ones(3))
    assert count() == before + (strategy == "file_system")  # the receiver's: the tensor is gone, and so is its own
    queue.get()
    assert count() == before


def hogwild(number, model, seed):
    torch.manual_seed(seed + number)
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(60):
        x = torch.randn(16, 4)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_hogwild():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1).share_memory()
    assert all(parameter.is_shared() for parameter in model.parameters())
    addresses = [parameter.data_ptr() for parameter in model.parameters()]
    start(hogwild, model, 5, nprocs=2)
    assert [parameter.data_ptr() for parameter in model.parameters()] == addresses
    x = torch.randn(50, 4)
    assert torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).item() < 0.05
    assert all(parameter.grad is None for parameter in model.parameters())  # gradients are each process's own


def fills(tensor):
    tensor.fill_(4)
    return tensor + 1


def test_pools_and_managers(strategy):
    context = mp.get_context("fork")
    with context.Pool(2) as pool:
        sent = [torch.zeros(2, 2) for _ in range(4)]
        assert all((answer == 5).all() for answer in pool.map(fills, sent, 1))
        assert all((tensor == 4).all() for tensor in sent)
    receiver, sender = context.Pipe(duplex=False)
    x = torch.zeros(2)
    sender.send({"x": x})
    receiver.recv()["x"].add_(1)
    assert x.tolist() == [1, 1]


def sleeps_below(number, queue):
    queue.put(os.getpid())
    time.sleep(60)


def runs(pid):
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())  # empty: a zombie, whose status has not been read
    except OSError:
        return False


def starts_below_and_dies(number, queue):
    mp.start_processes(sleeps_below, (queue,), nprocs=1, join=False, start_method="fork")
    while queue.empty():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_processes_end_with_their_parent():
    queue = mp.get_context("fork").SimpleQueue()
    with pytest.raises(mp.ProcessExitedException):
        start(starts_below_and_dies, queue)
    pid, deadline = queue.get(), time.monotonic() + 30
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not runs(pid)


def test_names_of_threads():
    before = mp._get_thread_name()
    mp._set_thread_name("a name")
    assert mp._get_thread_name() == "a name"
    mp._set_thread_name(before)
