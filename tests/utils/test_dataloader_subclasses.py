"""The DataLoader's parts that programs subclass, and what it makes of unusual samplers."""

import multiprocessing
import pickle
import warnings

import numpy as np
import pytest

import torchlite as torch
from torchlite.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, _utils, dataloader

ROWS = TensorDataset(torch.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize(
    ("batch", "want"),
    [
        ((0, 1), (2, 2)), ((2, 1, 0), (3, 2)), ([0, 1], (2, 2)), (range(2), (2, 2)), (np.array([0, 1]), (2, 2)),
        (torch.tensor([0, 1]), (2, 2)), ({0: 1}, (1, 2)), ((torch.tensor(0), 1), (2, 2)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("data", [ROWS, Subset(ROWS, [0, 1, 2])])
def test_batches_of_any_collection(data, batch, want):
    ((found,),) = DataLoader(data, batch_sampler=[batch])
    assert tuple(found.shape) == want
    ((found,),) = DataLoader(data, batch_sampler=[iter(batch)])
    assert tuple(found.shape) == want


def test_indices_that_are_no_integers():
    shapes = [tuple(x.shape) for (x,) in DataLoader(ROWS, sampler=[True, False])]
    assert shapes == [(1, 1, 3, 2), (1, 0, 3, 2)]
    assert [tuple(x.shape) for (x,) in DataLoader(ROWS, sampler=[slice(0, 2)], batch_size=None)] == [(2, 2)]
    for batch in (slice(0, 2), 5):
        with pytest.raises(TypeError, match="object is not iterable"):
            list(DataLoader(ROWS, batch_sampler=[batch]))


def test_the_order_of_epochs_with_workers_that_stay():
    for persistent, want in (
        (False, [[0, 4, 3, 5, 2, 1], [2, 3, 1, 5, 4, 0], [5, 2, 0, 3, 1, 4]]),
        (True, [[0, 4, 3, 5, 2, 1], [5, 0, 3, 2, 1, 4], [2, 3, 1, 5, 4, 0]]),
    ):
        torch.manual_seed(0)
        data = TensorDataset(torch.arange(6))
        loader = DataLoader(data, shuffle=True, num_workers=1, persistent_workers=persistent)
        assert [[x.item() for (x,) in loader] for _ in range(3)] == want


class Counts(IterableDataset):
    """Says two, gives four."""

    def __len__(self):
        return 2

    def __iter__(self):
        return iter(range(4))


def test_a_stream_longer_than_its_len_warns():
    loader = DataLoader(Counts())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader)) == 4  # its length has not been read
    assert len(loader) == 2
    batches = iter(loader)
    assert [next(batches).item(), next(batches).item()] == [0, 1]
    for number in (3, 4):
        with pytest.warns(UserWarning, match=rf"was reported to be 2\(when .*\), but {number} samples have been"):
            next(batches)


class Short(IterableDataset):
    """The first worker has nothing."""

    def __iter__(self):
        return iter(range(3 * torch.utils.data.get_worker_info().id))


def test_iterators_have_names_and_workers():
    loader = DataLoader(ROWS)
    assert type(iter(loader)) is dataloader._SingleProcessDataLoaderIter and len(iter(loader)) == 3
    batches = iter(DataLoader(Short(), batch_size=None, num_workers=2))
    assert isinstance(batches, dataloader._BaseDataLoaderIter)
    assert type(batches) is dataloader._MultiProcessingDataLoaderIter and len(batches._workers) == 2
    assert list(batches) == [0, 1, 2]
    for worker in batches._workers:
        worker.join(5)
    assert not any(worker.is_alive() for worker in batches._workers)
    with pytest.raises(NotImplementedError):
        pickle.dumps(batches)


def test_a_loader_may_override_get_iterator():
    class Own(DataLoader):
        def _get_iterator(self):
            return iter(["own"])

    assert list(Own(ROWS)) == ["own"]


def test_more_workers_than_processors():
    with pytest.warns(UserWarning, match="This DataLoader will create 1000 worker processes in total"):
        DataLoader(ROWS, num_workers=1000)
    for context in (3, multiprocessing):
        with pytest.raises(TypeError, match="should be a valid context object or a string"):
            DataLoader(ROWS, num_workers=1, multiprocessing_context=context)


class Item:
    def __init__(self, value):
        self.value = value


def test_collating_by_a_table():
    def items(batch, *, collate_fn_map=None):
        return torch.tensor([item.value for item in batch])

    table = {Item: items, **_utils.collate.default_collate_fn_map}
    found = _utils.collate.collate([{"a": Item(1), "b": 2.0}, {"a": Item(3), "b": 4.0}], collate_fn_map=table)
    assert found["a"].tolist() == [1, 3] and found["b"].dtype is torch.float64
    for batch, words in (
        ([Item(1)], "found <class 'tests.utils.test_dataloader_subclasses.Item'>"),
        ([np.array(["a"])], "found <U1"),
        ([np.array([object()])], "found object"),
        ([{1, 2}], "found <class 'set'>"),
    ):
        with pytest.raises(TypeError, match=words):
            _utils.collate.default_collate(batch)
    assert _utils.collate.default_collate([np.array(2.0)]).tolist() == [2]
    assert _utils.collate.default_collate([range(2)] * 2)[1].tolist() == [1, 1]


def test_worker_constants_and_seeds():
    assert _utils.MP_STATUS_CHECK_INTERVAL == _utils.worker.MP_STATUS_CHECK_INTERVAL == 5.0
    assert _utils.worker._worker_info is None
    assert _utils.worker._generate_state(3, 1) == np.random.SeedSequence([1, 3, 0, 0]).generate_state(4).tolist()


class Fails(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        raise UnicodeDecodeError("utf-8", b"a", 0, 1, "odd")


def test_exceptions_of_elsewhere():
    try:
        raise KeyError("a")
    except KeyError:
        held = pickle.loads(pickle.dumps(torch._utils.ExceptionWrapper(where="in a test")))
    assert held.exc_type is KeyError and "KeyError: 'a'" in held.exc_msg
    with pytest.raises(KeyError, match="Caught KeyError in a test.\nOriginal Traceback"):
        held.reraise()
    with pytest.raises(RuntimeError, match="Caught UnicodeDecodeError in DataLoader worker process 0"):
        list(DataLoader(Fails(), num_workers=1))


def test_dataset_kind_and_timeout_without_workers():
    from torchlite.utils.data.dataloader import _DatasetKind

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

        def __len__(self):
            return 3

    assert torch.utils.data.DataLoader(range(3))._dataset_kind == _DatasetKind.Map
    loader = torch.utils.data.DataLoader(Stream(), 1)
    assert loader._dataset_kind == _DatasetKind.Iterable
    fetcher = _DatasetKind.create_fetcher(_DatasetKind.Iterable, Stream(), True, list, False)
    assert fetcher.fetch(range(2)) == [0, 1]
    assert len(loader) == 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(loader)
    assert "was reported to be 3(when accessing len(dataloader)), but 4 samples" in str(caught[0].message)
    with pytest.raises(AssertionError, match="_SingleProcessDataLoaderIter requires timeout == 0"):
        iter(torch.utils.data.DataLoader(range(3), timeout=5))


@pytest.mark.parametrize("data", [torch.ones(2, 2), iter([torch.ones(2)]), {torch.ones(2)}, {1: torch.ones(2)}, "ab"])
def test_lists_of_tensors_are_lists(data):
    for function in (torch.stack, torch.cat, torch.hstack):
        with pytest.raises(
            TypeError, match=rf"{function.__name__}\(\): argument 'tensors' \(position 1\) must be tuple"
        ):
            function(data)
