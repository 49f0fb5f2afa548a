"""Record what the ops of PyTorch's library answer, and what a TorchDispatchMode sees of each sample of the op table.

usage: python tools/record_aten.py

It needs the extra `oracle`. tests/aten/overload_calls.npz gets a call of each overload that the samples and their
backward passes make, with its results. tests/aten/dispatch_mode_calls.txt.gz gets a line for each sample: its row, its
number, and the overloads with their arguments, tensors as their shapes and dtypes. What makes a tensor of Python's
numbers (`lift_fresh`) and `detach` are left out, for torchlite's modes do not see them.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import sys
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tests.aten.call_encoding import shown
from tests.ops.op_db import ROWS, load_rows, public_name, to_tensors
from tools.record_golden import resolve

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "tests" / "aten"
NOT_SEEN = ("aten.lift_fresh.default", "aten.detach.default")
LARGEST = 256  # elements of a tensor in a recorded call


def more(torch, recorder) -> None:
    """Calls of ops of the library's core that no sample makes; of those that are written in others no mode hears."""
    aten, x = torch.ops.aten, torch.arange(24.0).reshape(2, 3, 4) / 4
    image, ones = x[None], torch.ones(3)
    mean, var = torch.tensor([0.5, 1.0, 2.0]), torch.tensor([1.0, 2.0, 0.5])
    aten._native_batch_norm_legit.default(x, ones, mean, mean.clone(), var.clone(), True, 0.25, 0.001)
    aten._native_batch_norm_legit.no_stats(x, ones, mean, True, 0.25, 0.001)
    aten._native_batch_norm_legit_no_training.default(x, ones, mean, mean, var, 0.25, 0.001)
    aten.alias.default(x), aten.any.dims(x > 5, [0, 2]), aten.copy.default(x[0], x[1])
    aten.atan2.out(x[0], x[1], out=torch.empty(3, 4))
    aten.div.Scalar_mode(x, 0.75, rounding_mode="floor"), aten.div.Scalar_mode(x, 0.75, rounding_mode="trunc")
    aten.reflection_pad2d.default(x, [1, 2, 1, 0]), aten.replication_pad3d.default(image, [1, 0, 1, 1, 0, 1])
    aten.index_put.default(x[0], [None, torch.tensor([1, 3])], ones[:, None], False)
    aten.index.Tensor(x, [None, torch.tensor([0, 2]), None]), aten.slice.Tensor(x, 1, 1, (1 << 63) - 1, 2)
    aten.embedding_bag.padding_idx(x[0], torch.tensor([0, 2, 1]), torch.tensor([0, 2]), False, 1, False, None, False, 1)
    for func, *args in (
        (aten.upsample_bilinear2d.vec, image, [5, 3], True, None), (aten.avg_pool1d.default, x, [2]),
        (aten.upsample_nearest2d.vec, image, None, [2.0, 1.5]), (aten.adaptive_avg_pool1d.default, x, [2]),
        (aten.sym_size.int, x, 1), (aten.sym_stride.int, x, 1), (aten.sym_numel.default, x),
        (aten.sym_storage_offset.default, x[1]), (aten.sym_is_contiguous.default, x), (aten.var.dim, x, [1], False),
    ):  # fmt: skip
        recorder.see(func, tuple(args), {})


class Recorder:
    """Keeps the smallest call of each overload."""

    def __init__(self, torch) -> None:
        self.torch, self.calls = torch, {}

    def see(self, func, args, kwargs) -> None:
        """A call before it runs: its arguments with plain numbers, if they are few."""
        leaves = self.torch.utils._pytree.tree_leaves((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, self.torch.Tensor)]
        if func.namespace != "aten" or any(t.layout is not self.torch.strided or t.is_quantized for t in tensors):
            return
        size = sum(t.numel() for t in tensors)
        if any(t.numel() > LARGEST for t in tensors) or (size and size >= self.calls.get(func, (1 << 30,))[0]):
            return
        if func not in self.calls or size:
            exact = "backward" in str(func) or "grad" in str(func)  # some arguments are results of others
            kept = self.torch.utils._pytree.tree_map(lambda v: self.kept(v, exact), (args, kwargs))
            self.calls[func] = size, kept

    def kept(self, value, exact):
        """A tensor of a call: if it may, with few digits, which a file keeps in few bytes."""
        if not isinstance(value, self.torch.Tensor):
            return value
        value = value.detach().resolve_conj().resolve_neg().clone()
        return (value * 64).round() / 64 if value.is_floating_point() and not exact else value


class Writer:
    """Calls as JSON, with tensors in an archive of arrays."""

    def __init__(self, torch) -> None:
        self.torch, self.arrays, self.places = torch, {}, {}

    def __call__(self, value):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            value = value.detach().resolve_conj().resolve_neg()
            array = np.array((value.float() if value.dtype is torch.bfloat16 else value).numpy(), order="C")
            key = (array.tobytes(), str(array.dtype), array.shape)
            place = self.places.setdefault(key, f"a{len(self.places)}")
            self.arrays[place] = array
            return {"tensor": place, "dtype": str(value.dtype)}
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return {"named": str(value)}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, tuple):
            return {"tuple": [self(v) for v in value]}
        if isinstance(value, list):
            return [self(v) for v in value]
        if isinstance(value, dict):
            return {"dict": {name: self(v) for name, v in value.items()}}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise TypeError(f"cannot write {type(value)}")


def main() -> None:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    warnings.simplefilter("ignore")
    recorder = Recorder(torch)

    class Seeing(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if str(func) not in NOT_SEEN:
                self.seen.append(f"{str(func).removeprefix('aten.')} {shown(args, torch)} {shown(kwargs, torch)}")
            recorder.see(func, args, kwargs)
            return func(*args, **kwargs)

    load_rows()
    lines = []
    for name, row in sorted(ROWS.items()):
        public = public_name(name)
        if row.oracle is None and public is None:
            continue
        for index in range(len(row.samples)):
            run = (lambda *a, **k: row.oracle(torch, *a, **k)) if row.oracle is not None else resolve(torch, public)
            try:
                args, kwargs = to_tensors(row.values(index), library=torch)
                torch.manual_seed(0)
                with Seeing() as mode:
                    run(*args, **kwargs)
                lines.append("\t".join([name, str(index), *mode.seen]))
                args, kwargs = to_tensors(row.values(index), library=torch, requires_grad=row.grad)
                with Seeing():
                    leaves = torch.utils._pytree.tree_leaves(run(*args, **kwargs))
                    outs = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
                    torch.autograd.backward(outs, [torch.ones_like(x) for x in outs])
            except Exception as error:
                print(f"{name} {index}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
    with Seeing():
        more(torch, recorder)
    (FOLDER / "dispatch_mode_calls.txt.gz").write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), 9, mtime=0))
    write_calls(torch, recorder)
    print(f"{len(lines)} samples, {len(recorder.calls)} overloads")


def write_calls(torch, recorder: Recorder) -> None:
    """Run each kept call once more, and write it with its results."""
    writer, written = Writer(torch), []
    for func, (_, (args, kwargs)) in sorted(recorder.calls.items(), key=lambda entry: str(entry[0])):
        try:
            before = writer(args), writer(kwargs)
            torch.manual_seed(0)
            result = writer(func(*args, **kwargs))
            after = writer(args) if func._schema.is_mutable else None
            written.append([str(func).removeprefix("aten."), *before, result, after])
        except Exception as error:
            print(f"{func}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
    np.savez_compressed(FOLDER / "overload_calls.npz", calls=np.array(json.dumps(written)), **writer.arrays)


if __name__ == "__main__":
    main()
