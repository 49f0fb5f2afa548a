"""Orders and seeds of samplers and loaders, and what collating gives."""

import numpy as np
import pytest
import torch
import torch.utils.data

import torchlite

pytestmark = pytest.mark.oracle
BOTH = (torch, torchlite)


def orders(t, seed, make):
    t.manual_seed(seed)
    data = t.utils.data
    return make(t, data)


@pytest.mark.parametrize(
    "make",
    [
        lambda t, d: [[int(i) for b in d.DataLoader(range(23), 4, shuffle=True) for i in b] for _ in range(3)],
        lambda t, d: [
            int(i) for b in d.DataLoader(range(23), 4, shuffle=True, generator=t.Generator().manual_seed(3)) for i in b
        ],
        lambda t, d: list(d.RandomSampler(range(10), num_samples=25)),
        lambda t, d: list(d.RandomSampler(range(10), replacement=True, num_samples=70)),
        lambda t, d: list(d.SubsetRandomSampler([3, 5, 9, 11])),
        lambda t, d: list(d.WeightedRandomSampler([0.1, 0.9, 2.0], 20)),
        lambda t, d: list(d.WeightedRandomSampler([0.1, 0.9, 2.0, 1.0], 4, replacement=False)),
        lambda t, d: list(d.DistributedSampler(range(11), 3, 1, seed=5)),
        lambda t, d: [list(p.indices) for p in d.random_split(range(20), [0.5, 0.25, 0.25])],
        lambda t, d: list(d.BatchSampler(d.RandomSampler(range(9)), 2, True)),
    ],
    ids=[
        "epochs",
        "generator",
        "more",
        "replacement",
        "subset",
        "weighted",
        "weighted once",
        "distributed",
        "split",
        "batches",
    ],
)
def test_same_order(make):
    for seed in (0, 1, 12345):
        theirs, ours = (orders(t, seed, make) for t in BOTH)
        assert theirs == ours


def test_same_random_numbers_after_an_epoch():
    found = []
    for t in BOTH:
        t.manual_seed(0)
        list(t.utils.data.DataLoader(range(5)))
        list(t.utils.data.DataLoader(range(5), shuffle=True))
        found.append(t.rand(3).numpy())
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    "batch",
    [
        [1, 2],
        [1.5, 2.5],
        [True, False],
        [np.float32(1), np.float32(2)],
        [np.ones(2), np.zeros(2)],
        [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
        [(1, 2.0), (3, 4.0)],
        [[1, "a"], [2, "b"]],
        [np.array(3), np.array(4)],
        [b"a", b"b"],
    ],
    ids=str,
)
def test_same_batch(batch):
    theirs, ours = (t.utils.data.default_collate(batch) for t in BOTH)
    assert repr(theirs) == repr(ours)
