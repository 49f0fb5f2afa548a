"""No argument of an op is lost: each sample with one argument off its default answers as PyTorch does."""

from __future__ import annotations

import ast
import gzip
import pathlib
from collections import defaultdict

import pytest

import torchlite as torch

from .changed_arguments import alike, as_argument, in_short, with_change
from .op_db import ROWS, load_rows, public, to_tensors

load_rows()
PATH = pathlib.Path(__file__).with_name("changed_arguments.txt.gz")


def _read() -> dict[str, list[tuple[int, str, object, str]]]:
    found = defaultdict(list)
    with gzip.open(PATH, "rt") as file:
        for line in file:
            name, index, argument, value, answer = line.rstrip("\n").split("\t")
            found[name].append((int(index), argument, ast.literal_eval(value), answer))
    return found


RECORDED = _read()


def answer(row, index: int, device: str, change=None) -> str:
    """The answer of a sample in short, or the error's class; with an argument changed."""
    args, kwargs = to_tensors(row.values(index), device)
    if change is not None:
        args, kwargs = with_change(row, args, kwargs, change[0], as_argument(torch, change[1]))
    torch.manual_seed(0)
    try:
        return in_short(public(row.name)(*args, **kwargs))
    except Exception as error:
        return f"!{type(error).__name__}: {error}"


def verdict(row, index: int, argument: str, value, theirs: str, device: str) -> str:
    """Empty if an argument has the effect that it has in PyTorch; else what is wrong."""
    ours = answer(row, index, device, (argument, value))
    if theirs.startswith("!"):
        return "" if ours.startswith("!") else f"{theirs[1:]} in PyTorch, here {ours}"
    if ours.startswith("!"):
        return f"{theirs} in PyTorch, here {ours[1:]}"
    before = answer(row, index, device)
    if theirs == "=":
        return "" if alike(ours, before) else f"no effect in PyTorch, here {ours} for {before}"
    if ours == before:
        return f"no effect; in PyTorch {theirs}"
    if row.random or row.free:
        return ""
    return "" if alike(ours, theirs) else f"{theirs} in PyTorch, here {ours}"


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.filterwarnings("ignore")
def test_each_argument_has_its_effect(name, device):
    row, wrong = ROWS[name], []
    for index, argument, value, theirs in RECORDED[name]:
        if found := verdict(row, index, argument, value, theirs, device):
            wrong.append(f"{row.labels[index]}, {argument}={value}: {found}")
    assert not wrong, "\n".join(wrong)
