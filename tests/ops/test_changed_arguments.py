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


# Arguments of which a value is taken here that PyTorch refuses, or that answer otherwise, by the reason.
KNOWN = {
    # Combinations that PyTorch's parser has no signature for; both arguments have their effect here.
    ("arange", "step"), ("argsort", "stable"), ("sort", "stable"), ("clamp", "min"), ("clamp", "max"),
    ("embedding_bag", "padding_idx"), ("hamming_window", "alpha"), ("hamming_window", "beta"),
    ("kaiser_window", "beta"), ("set_", "storage_offset"), ("set_", "size"), ("set_", "stride"),
    # `keepdim` without `dim`: sizes of 1, as for `dim=None`.
    ("mean", "keepdim"), ("prod", "keepdim"), ("std", "keepdim"), ("sum", "keepdim"), ("var", "keepdim"),
    # `torch.layer_norm` has it, and is the same function as `torch.nn.functional.layer_norm`.
    ("layer_norm", "cudnn_enable"),
    # Complex numbers that PyTorch's kernels lack, and dtypes that it does not check for results without values.
    ("nansum", "dtype"), ("nanmean", "dtype"), ("fft_rfftfreq", "dtype"), ("softmax", "dtype"),
    ("log_softmax", "dtype"),
    ("bartlett_window", "dtype"), ("blackman_window", "dtype"), ("hamming_window", "dtype"), ("hann_window", "dtype"),
    ("kaiser_window", "dtype"),
    # Names of a reduction, beside their numbers.
    ("ctc_loss", "reduction"),
    # Inputs outside of the op's domain: complex diagonals, a matrix that is not definite, an empty one that is not
    # square. The order of unsorted elements is free.
    ("cholesky_inverse", "upper"), ("linalg_cholesky_ex", "upper"), ("linalg_matrix_rank", "hermitian"),
    ("topk", "sorted"),
    # Random numbers of 2**32 values and more as float32.
    ("randint", "dtype"),
}  # fmt: skip
# Arguments by which a result becomes random: devices draw other numbers than the CPU.
RANDOM = {
    ("bernoulli", "p"), ("bernoulli_", "p"), ("fractional_max_pool2d", "return_indices"),
    ("fractional_max_pool3d", "return_indices"), ("rrelu", "training"), ("scaled_dot_product_attention", "dropout_p"),
}  # fmt: skip


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
    left_out = KNOWN if device == "cpu" else KNOWN | RANDOM
    for index, argument, value, theirs in RECORDED[name]:
        if (name, argument) in left_out:
            continue
        if found := verdict(row, index, argument, value, theirs, device):
            wrong.append(f"{row.labels[index]}, {argument}={value}: {found}")
    assert not wrong, "\n".join(wrong)
