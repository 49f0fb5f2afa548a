"""A TorchDispatchMode sees the same overloads and arguments as PyTorch's for each sample of the op table."""

from __future__ import annotations

import functools
import gzip
import pathlib

import pytest

import torchlite as torch
from tests.aten.call_encoding import shown
from tests.ops.op_db import ROWS, load_rows, to_tensors
from torchlite.utils._python_dispatch import TorchDispatchMode

FOLDER = pathlib.Path(__file__).parent
pytestmark = pytest.mark.filterwarnings("ignore")  # of deprecated functions
load_rows()


class Seeing(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen, self.strange = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.seen.append(f"{str(func).removeprefix('aten.')} {shown(args, torch)} {shown(kwargs, torch)}")
        if not hasattr(func, "entry"):
            self.strange.append(str(func))
        return func(*args, **kwargs)


@functools.cache
def wanted() -> dict[str, dict[int, list[str]]]:
    found: dict[str, dict[int, list[str]]] = {}
    for line in gzip.decompress((FOLDER / "dispatch_mode_calls.txt.gz").read_bytes()).decode().splitlines():
        name, index, *seen = line.split("\t")
        found.setdefault(name, {})[int(index)] = seen
    return found


@functools.cache
def different() -> dict[str, list[int]]:
    """Samples of which torchlite's mode sees other calls: its composites are written otherwise."""
    lines = (FOLDER / "dispatch_mode_differences.txt").read_text().splitlines()
    return {name: [int(i) for i in rest] for name, *rest in map(str.split, lines)}


def seen(name: str, index: int) -> Seeing:
    row = ROWS[name]
    args, kwargs = to_tensors(row.values(index))
    with Seeing() as mode:
        row.function()(*args, **kwargs)
    return mode


FAMILIES = sorted({ROWS[name].family for name in wanted()})


@pytest.mark.parametrize("family", FAMILIES)
def test_dispatch_mode_sees_recorded_calls(family):
    for name in wanted():
        if ROWS[name].family != family:
            continue
        for index, calls in wanted()[name].items():
            mode = seen(name, index)
            assert (mode.seen == calls) == (index not in different().get(name, ())), (name, index, mode.seen, calls)


def test_most_samples_are_seen_alike():
    count = sum(map(len, wanted().values()))
    assert sum(map(len, different().values())) / count < 0.25
