"""Data sets, samplers and the DataLoader. Orders in `ORDERS` were printed by PyTorch 2.13 for the same seeds."""

import collections
import errno
import gc
import itertools
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
import tracemalloc

import numpy as np
import pytest

import torchlite as torch
from torchlite.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)
from torchlite.utils.data._utils import transport
from torchlite.utils.data._utils.transport import receive, send
from torchlite.utils.data._utils.worker import _stop_workers


class Squares(Dataset):
    def __init__(self, count=20):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"index": index, "square": torch.tensor(float(index * index))}


class Stream(IterableDataset):
    def __init__(self, count=10):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        step = 1 if info is None else info.num_workers
        return iter(range(0 if info is None else info.id, self.count, step))


class Failing(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 2:
            raise KeyError("no item two")
        return index


class Dying(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        os._exit(7)


class Slow(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(30)


class Large(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.full((300, 300), float(index)), np.full((4,), index), "name"


class Seeds(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = get_worker_info()
        return info.id, info.seed, random.random(), float(np.random.rand()), float(torch.rand(()))  # noqa: NPY002


ORDERS = {"shuffled epochs": ([6, 7, 1, 4, 2, 0, 9, 8, 3, 5], [2, 4, 7, 0, 8, 9, 5, 3, 6, 1])}


def indices(loader):
    return [int(i) for batch in loader for i in batch]


def test_tensor_dataset():
    data = TensorDataset(torch.arange(6), torch.arange(6) * 2)
    assert len(data) == 6 and [int(v) for v in data[2]] == [2, 4]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.arange(6), torch.arange(5))


def test_concatenated_data_sets():
    first, second = TensorDataset(torch.arange(3)), TensorDataset(torch.arange(3, 5))
    both = first + second
    assert (
        isinstance(both, ConcatDataset)
        and [int(v[0]) for v in (both[i] for i in range(5))] == [0, 1, 2, 3, 4]
        and int(both[-1][0]) == 4
    )
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        both[-6]
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2] and isinstance(Stream(1) + Stream(1), ChainDataset)
    assert StackDataset(first, first)[1][0][0] == 1 and set(StackDataset(a=first, b=first)[0]) == {"a", "b"}
    assert [item["a"] for item in StackDataset(a=range(5)).__getitems__([3, 1])] == [3, 1]
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        StackDataset(first, second)
    assert [Subset(range(10), [7, 8, 9])[i] for i in (0, 2)] == [7, 9]


def test_random_split():
    parts = random_split(range(10), [3, 7], generator=torch.Generator().manual_seed(42))
    assert [list(p.indices) for p in parts] == [[2, 6, 1], [8, 4, 5, 0, 9, 3, 7]]  # PyTorch's own
    assert [len(p) for p in random_split(range(30), [0.3, 0.3, 0.4])] == [9, 9, 12]
    assert [len(p) for p in random_split(range(10), [0.34, 0.66])] == [4, 6]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
        random_split(range(10), [3, 8])


def test_shuffled_order_is_pytorchs():
    torch.manual_seed(0)
    loader = DataLoader(range(10), batch_size=3, shuffle=True)
    assert (indices(loader), indices(loader)) == ORDERS["shuffled epochs"]
    torch.manual_seed(0)
    loader = DataLoader(range(10), batch_size=3, shuffle=True, num_workers=2, multiprocessing_context="fork")
    assert (indices(loader), indices(loader)) == ORDERS["shuffled epochs"]


def test_samplers():
    def generator():
        return torch.Generator().manual_seed(1)

    assert list(SequentialSampler(range(4))) == [0, 1, 2, 3]
    assert sorted(RandomSampler(range(5))) == [0, 1, 2, 3, 4]
    assert len(list(RandomSampler(range(5), num_samples=12))) == 12
    assert set(RandomSampler(range(3), replacement=True, num_samples=70)) == {0, 1, 2}
    assert sorted(SubsetRandomSampler([5, 7, 9], generator())) == [5, 7, 9]
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 50, generator=generator())) == {1, 3}
    assert list(BatchSampler(SequentialSampler(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(SequentialSampler(range(5)), 2, True)) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
        RandomSampler([])
    with pytest.raises(ValueError, match="batch_size should be a positive integer value, but got batch_size=0"):
        BatchSampler(SequentialSampler(range(5)), 0, False)


def test_distributed_sampler():
    parts = [list(DistributedSampler(range(10), 3, rank, shuffle=False)) for rank in range(3)]
    assert parts == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    dropped = [list(DistributedSampler(range(10), 3, rank, shuffle=False, drop_last=True)) for rank in range(3)]
    assert dropped == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    sampler = DistributedSampler(range(100), 2, 0)
    before = list(sampler)
    sampler.set_epoch(1)
    assert before != list(sampler) and len(sampler) == 50


Point = collections.namedtuple("Point", "x y")


def test_collate():
    assert torch.equal(default_collate([1, 2]), torch.tensor([1, 2]))
    assert default_collate([1.0, 2.0]).dtype is torch.float64
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert torch.equal(
        default_collate([np.ones(2), np.zeros(2)]), torch.tensor([[1.0, 1], [0, 0]], dtype=torch.float64)
    )
    assert default_collate([np.float32(1), np.float32(2)]).dtype is torch.float32
    point = default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert isinstance(point, Point) and torch.equal(point.x, torch.tensor([1, 3]))
    nested = default_collate([{"a": [1, (2, 3)]}, {"a": [4, (5, 6)]}])
    assert torch.equal(nested["a"][1][0], torch.tensor([2, 5]))
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(
        TypeError,
        match="default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class "
        "'object'>",
    ):
        default_collate([object()])
    assert isinstance(default_convert({"a": np.ones(2)})["a"], torch.Tensor)


@pytest.mark.parametrize("workers", [0, 2])
def test_loader(workers):
    loader = DataLoader(Squares(), batch_size=8, num_workers=workers)
    batches = list(loader)
    assert len(loader) == 3 and [len(b["index"]) for b in batches] == [8, 8, 4]
    assert torch.equal(torch.cat([b["square"] for b in batches]), torch.arange(20).float() ** 2)
    assert len(list(DataLoader(Squares(), batch_size=8, drop_last=True, num_workers=workers))) == 2
    assert [item["index"] for item in DataLoader(Squares(3), batch_size=None, num_workers=workers)] == [0, 1, 2]
    assert list(DataLoader(range(5), batch_size=2, collate_fn=sum, num_workers=workers)) == [1, 5, 4]
    assert indices(DataLoader(range(6), batch_sampler=[[5, 0], [1]], num_workers=workers)) == [5, 0, 1]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_streams(workers):
    loader = DataLoader(Stream(), batch_size=2, num_workers=workers)
    assert sorted(indices(loader)) == list(range(10))
    assert sorted(int(i) for i in DataLoader(Stream(), batch_size=None, num_workers=workers)) == list(range(10))


def test_rows_of_tensors_at_once_equal_rows_one_by_one():
    data = Subset(TensorDataset(torch.arange(12).reshape(6, 2), torch.arange(6)), [5, 1, 3])
    quick = list(DataLoader(data, batch_size=2))
    slow = list(DataLoader(data, batch_size=2, collate_fn=lambda rows: default_collate(rows)))
    assert len(quick) == len(slow) and all(
        torch.equal(a, b) for x, y in zip(quick, slow, strict=True) for a, b in zip(x, y, strict=True)
    )


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_large_batches_leave_no_files(context, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    loader = DataLoader(Large(), batch_size=2, num_workers=2, multiprocessing_context=context)
    iterator = iter(loader)
    batches = list(iterator)
    assert [float(b[0][1, 7, 9]) for b in batches] == [1.0, 3.0, 5.0] and batches[0][2] == ("name", "name")
    batches[0][0].add_(1)
    assert not list(tmp_path.iterdir())


def test_dropping_the_iterator_ends_the_workers():
    iterator = iter(DataLoader(Large(), batch_size=1, num_workers=2))
    next(iterator)
    processes = list(iterator._workers)
    del iterator
    assert not any(p.is_alive() for p in processes)


def exchanged(message, limit=100):
    a, b = multiprocessing.Pipe()
    send(a, message, limit)
    return receive(b)


@pytest.mark.parametrize("way", ["memory", "folder", "folder without O_TMPFILE", "named"])
def test_ways_of_large_messages(monkeypatch, tmp_path, way):
    """Each system has one of them; none leaves a file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if way.startswith("folder"):
        monkeypatch.delattr(os, "memfd_create", raising=False)
    if way == "folder without O_TMPFILE":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    monkeypatch.setattr(transport, "_CAN_SEND_FDS", way != "named")
    sent = [np.arange(30_000.0).reshape(100, 300), "text", np.empty(0), np.asfortranarray(np.ones((40, 50)))]
    got = exchanged(sent)
    assert all(np.array_equal(x, y) for x, y in zip(sent, got, strict=True)) and got[0].flags.writeable
    assert not os.listdir(tmp_path)


def test_a_message_that_cannot_be_sent_is_taken_back(monkeypatch):
    """The next one arrives: the worker's error, for which there was no descriptor."""
    a, b = multiprocessing.Pipe()
    given = transport.socket.send_fds

    def full(*arguments):
        raise OSError(errno.ETOOMANYREFS, "Too many references")

    monkeypatch.setattr(transport, "_TIMEOUT", 0.05)
    monkeypatch.setattr(transport.socket, "send_fds", full)
    with pytest.raises(OSError, match="Too many references"):
        send(a, np.ones(10_000))
    monkeypatch.setattr(transport.socket, "send_fds", given)
    send(a, np.ones(20_000))
    assert receive(b).shape == (20_000,)


def test_an_iterator_that_a_forked_process_collects_is_silent():
    """Its workers are those of the process that it forked from."""
    code = """
import gc, os, sys
import torchlite as torch
from torchlite.utils.data import DataLoader
iterator = iter(DataLoader(torch.arange(100), batch_size=2, num_workers=2))
next(iterator)
cycle = [iterator]
cycle.append(cycle)
child = os.fork()
if not child:
    del iterator, cycle
    gc.collect()
    sys.stderr.flush()
    os._exit(0)
os.waitpid(child, 0)
print(len(list(iterator)))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("49\n", "")


def test_persistent_workers():
    loader = DataLoader(Squares(), batch_size=4, num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    pids = [p.pid for p in iterator._workers]
    next(iterator)  # abandoned half way
    assert [int(b["index"][0]) for b in loader] == [0, 4, 8, 12, 16]
    assert [p.pid for p in iter(loader)._workers] == pids
    loader._iterator._shutdown_workers()


def test_out_of_order_gives_all():
    assert sorted(indices(DataLoader(range(20), batch_size=3, num_workers=2, in_order=False))) == list(range(20))


def test_seeds_of_workers():
    torch.manual_seed(3)
    expected = int(torch.empty((), dtype=torch.int64).random_().item())
    torch.manual_seed(3)
    rows = list(DataLoader(Seeds(), batch_size=None, num_workers=2))
    assert [(row[0], row[1]) for row in rows] == [(0, expected), (1, expected + 1), (0, expected), (1, expected + 1)]
    assert rows[0][2] == random.Random(expected).random()
    assert len({row[3] for row in rows}) == 4 and len({row[4] for row in rows}) == 4
    assert get_worker_info() is None


def test_worker_init_fn(tmp_path):
    list(
        DataLoader(
            range(2),
            num_workers=2,
            worker_init_fn=lambda worker: (tmp_path / str(worker)).touch(),
            multiprocessing_context="fork",
        )
    )
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


def test_errors_of_workers_are_raised():
    iterator = iter(DataLoader(Failing(), num_workers=2))
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(KeyError) as error:
        next(iterator)
    text = str(error.value)
    assert (
        text.startswith(
            "Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        )
        and "no item two" in text
    )
    assert int(next(iterator)) == 3


def test_a_dead_worker_is_an_error():
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+.*\) exited unexpectedly"):
        list(DataLoader(Dying(), num_workers=1))


def test_timeout():
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        list(DataLoader(Slow(), num_workers=1, timeout=0.2))


def test_unpicklable_batch_is_an_error():
    with pytest.raises(RuntimeError, match="Caught RuntimeError in DataLoader worker process 0"):
        list(
            DataLoader(range(2), num_workers=1, collate_fn=lambda batch: lambda: batch, multiprocessing_context="fork")
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [0], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        (
            {"batch_sampler": [[0]], "batch_size": 3},
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last",
        ),
        (
            {"batch_size": None, "drop_last": True},
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last",
        ),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context can only be used with multi-process loading"),
    ],
)
def test_options_that_exclude_each_other(options, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(range(3), **options)


def test_a_stream_has_no_order_to_choose():
    with pytest.raises(
        ValueError, match="DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle=True"
    ):
        DataLoader(Stream(), shuffle=True)


def test_loader_attributes_are_read_only():
    loader = DataLoader(range(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 2


def test_a_stream_longer_than_its_len_warns():
    class Liar(Stream):
        def __len__(self):
            return 4

    loader = DataLoader(Liar(), batch_size=2)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 4"):
        list(loader)


class _Stream:
    """Loader as fastai passes it to the iterators: its attributes declare an iterable dataset."""

    from torchlite.utils.data.dataloader import _DatasetKind

    _dataset_kind = _DatasetKind.Iterable
    _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
    generator, prefetch_factor, timeout, pin_memory, persistent_workers = None, 2, 0, False, False
    worker_init_fn = multiprocessing_context = None

    def __init__(self, num_workers):
        self.dataset, self.num_workers, self._index_sampler = self, num_workers, itertools.count()

    def collate_fn(self, item):
        return item

    def __iter__(self):
        return iter(["a", "b"])


@pytest.mark.parametrize("num_workers", [0, 1])
def test_iterators_read_the_loaders_dataset_kind(num_workers):
    from torchlite.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

    kind = _MultiProcessingDataLoaderIter if num_workers else _SingleProcessDataLoaderIter
    assert list(kind(_Stream(num_workers))) == ["a", "b"]


def test_iter_of_a_stream_is_called_once():
    """litdata's streams begin anew whenever `iter` is called."""

    class Restarting(IterableDataset):
        def __iter__(self):
            self.items = iter(range(5))
            return self

        def __next__(self):
            return next(self.items)

    assert [batch.tolist() for batch in DataLoader(Restarting(), batch_size=2)] == [[0, 1], [2, 3], [4]]


# -- memory and laziness ---------------------------------------------------------------------------


def test_random_sampler_with_replacement_is_lazy():
    """A pass of 10**10 items takes no memory ahead, and the order of a seed is that of blocks of 32."""
    sampler = RandomSampler(range(9), replacement=True, num_samples=10**10)
    tracemalloc.start()
    items = list(itertools.islice(iter(sampler), 40))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(items) == 40 and len(sampler) == 10**10 and peak < 1 << 20
    assert next(iter(BatchSampler(sampler, 4, True))) is not None
    assert len(next(iter(DataLoader(range(9), batch_size=5, sampler=sampler)))) == 5


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 70])
def test_random_sampler_with_replacement_draws_blocks(count):
    sampler = RandomSampler(range(100), True, count, torch.Generator().manual_seed(3))
    generator, expected = torch.Generator().manual_seed(3), []
    while len(expected) < count:
        expected += torch.randint(100, (min(32, count - len(expected)),), generator=generator).tolist()
    assert list(sampler) == expected


def test_repeated_permutations_are_lazy():
    sampler = RandomSampler(range(5), num_samples=10**10)
    assert sorted(itertools.islice(iter(sampler), 10)) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("subset", [False, True], ids=lambda subset: f"subset={subset}")
def test_index_list_is_converted_once(subset, monkeypatch):
    """The rows of all tensors of a data set come from one index tensor."""
    tensors = torch.arange(20.0), torch.arange(40).reshape(20, 2), torch.arange(20) % 2 == 0
    dataset = TensorDataset(*tensors)
    if subset:
        dataset = Subset(Subset(dataset, range(19, -1, -1)), range(0, 20, 2))
    seen, getitem = [], torch.Tensor.__getitem__

    def record(self, index):
        seen.append(index)
        return getitem(self, index)

    monkeypatch.setattr(torch.Tensor, "__getitem__", record)
    batches = list(DataLoader(dataset, batch_size=4))
    monkeypatch.undo()
    assert {type(index) for index in seen} == {torch.Tensor}
    assert len({id(index) for index in seen[:3]}) == 1
    order = range(19, -1, -2) if subset else range(20)
    for column, tensor in zip(zip(*batches, strict=True), tensors, strict=True):
        assert torch.equal(torch.cat(column), tensor[list(order)])


@pytest.mark.parametrize("index", [20, -21])
def test_rows_out_of_range(index):
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for dimension 0 with size 20"):
        next(iter(DataLoader(TensorDataset(torch.arange(20)), batch_sampler=[[0, index]])))


def test_arrays_are_collated():
    batch = [np.arange(3, dtype=np.float32) + i for i in range(4)]
    assert torch.equal(default_collate(batch), torch.arange(3.0) + torch.arange(4.0)[:, None])
    assert default_collate([np.ones((2, 0), np.int16)] * 2).shape == (2, 2, 0)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        default_collate([np.ones(2), np.ones(3)])
    with pytest.raises(ValueError, match="negative"):
        default_collate([np.ones(3)[::-1], np.ones(3)])


class _Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((3,), float(index)), torch.full((100, 100), float(index)), index


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_batches_are_in_shared_memory(method):
    loader = DataLoader(_Rows(), batch_size=2, num_workers=1, multiprocessing_context=method)
    for number, batch in enumerate(loader):
        assert [tensor.is_shared() for tensor in batch] == [True, True, True]
        assert batch[2].tolist() == [2 * number, 2 * number + 1] == batch[1][:, 0, 0].tolist()
        batch[0].add_(1)  # writable
    assert not next(iter(DataLoader(_Rows(), batch_size=2)))[0].is_shared()


class _Collecting(_Rows):
    def __getitem__(self, index):
        gc.collect()
        return super().__getitem__(index)


def test_iterator_that_a_forked_worker_collects_is_silent(capfd):
    """The worker closes what it inherited, and leaves the owner's workers alone."""
    iterator = iter(DataLoader(_Rows(), batch_size=1, num_workers=1, multiprocessing_context="fork"))
    next(iterator)
    workers = iterator._workers
    iterator.itself = iterator
    gc.disable()
    try:
        del iterator
        loader = DataLoader(_Collecting(), batch_size=2, num_workers=1, multiprocessing_context="fork")
        assert len(list(loader)) == 2
        assert all(worker.is_alive() for worker in workers)
    finally:
        gc.enable()
        gc.collect()
    assert not any(worker.is_alive() for worker in workers)
    assert capfd.readouterr().err == ""


def test_a_pipe_that_a_worker_closed_is_no_error():
    class Pipe:
        def close(self):
            raise OSError(errno.EBADF, "Bad file descriptor")

    _stop_workers([], [Pipe()], os.getpid() + 1)
