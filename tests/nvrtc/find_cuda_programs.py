"""Finds the programs of the CUDA backend: runs ops on a driver that computes nothing and notes what it is asked to
build (tests/nvrtc/recording_driver.py).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from tests.ops.op_db import ROWS, in_dtype, load_rows, run_through, to_tensors

DTYPES = (
    "", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128",
)  # fmt: skip
# One of each kind: in these everything is compiled every time.
KINDS = ("float32", "float16", "int64", "complex64")
# Those that few programs use.
UNSIGNED = ("uint16", "uint32", "uint64")
OTHER_PRODUCTS = ("attention", "layouts", "mixtures")
# Samples that read values on the host which only real kernels can give.
_UNPREDICTABLE = ("istft", "multinomial")
# Contents of new memory besides zeros: nothing, or bytes with a one, as integers of 8 or 4 bytes that a kernel would
# have counted. Of two integers of 8 bytes, a count and a mark of an error, only the first is 1 in the last.
FILLINGS = (None, slice(0, None, 8), slice(4, None, 8), slice(0, None, 4), slice(8, None, 16))
# How much longer arrays are made, where kernels are chosen by size, and in which dtypes. What does not fit an op at
# that size raises an error and is passed over.
FACTORS, SCALED, _LARGEST = (6, 40), ("", "float16"), 1 << 20


class Ops:
    """Runs ops on the recording driver; `built` is told of each new program."""

    def __init__(self, built: Callable[[str], None]) -> None:
        from torchlite._dispatch import register_backend
        from torchlite_backends.cupy.backend import CUDABackend

        from .recording_driver import Recording

        load_rows()
        self.rows = ROWS
        recording = Recording(built)
        self.backend = CUDABackend(recording)
        self.driver = recording.driver
        self.complaints: list[str] = []
        self.runs = 0
        register_backend("cuda", self.backend)

    def sample(self, row: Any, index: int, dtype: str, shaped: Any = None, factor: int = 1) -> bool:
        """One sample, forward and backward, with memory of zeros or, where that raises an error, of ones; `factor`
        times as large in each direction. Whether it ran.
        """
        try:
            args, kwargs = scaled(in_dtype(row.values(index), dtype), factor)
        except ValueError:
            return False
        done = 0
        for self.driver.filling in FILLINGS:
            if done and (
                dtype or factor > 1 or shaped
            ):  # the others are for paths that depend on values, which one dtype shows
                break
            try:
                self._run(row, args, kwargs, row.grad and dtype[:3] not in ("int", "uin", "boo"), shaped)
                done += 1
            except AssertionError:
                raise
            except Exception as error:
                failure = error
        self.runs += done
        if done:
            return True
        if not dtype and row.name not in _UNPREDICTABLE and shaped is None and factor == 1:
            self.complaints.append(f"{row.name} {index}: {type(failure).__name__}: {str(failure)[:200]}")
        return False

    def _run(self, row: Any, args: Any, kwargs: Any, grad: bool, shaped: Any) -> None:
        args, kwargs = to_tensors((args, kwargs), "cuda", requires_grad=grad and shaped is None)
        run_through(row, args if shaped is None else shaped(args, grad), kwargs)

    def record(self, names: list[str]) -> None:
        """Every sample in a dtype of each kind: those of pointwise ops in one long run, others in some sizes."""
        if not names:
            self.more()
            self.captured()
        for name in names or self.rows:
            self.samples(name, KINDS, (WAYS[0],) if self.is_pointwise(name) else (None,))

    def samples(self, name: str, dtypes: tuple[str, ...], ways: tuple) -> None:
        """All samples of an op in some dtypes and some ways through memory; where kernels are chosen by size, in more
        sizes.
        """
        row = self.rows[name]
        for dtype in dtypes:
            taken = [
                self.sample(row, index, dtype, way) for index, way in itertools.product(range(len(row.samples)), ways)
            ]
            if any(taken) and dtype in SCALED and not self.is_pointwise(name):
                for index, factor in itertools.product(range(len(row.samples)), FACTORS):
                    self.sample(row, index, dtype, None, factor)

    def is_pointwise(self, name: str) -> bool:
        from torchlite._dispatch import POINTWISE, REGISTRY

        return bool(REGISTRY[name].tags & POINTWISE)

    def product(self, name: str) -> list[str]:
        """The programs that were not seen before of an op in every dtype, of a pointwise one in every way through
        memory too; or of what `OTHER_PRODUCTS` names.
        """
        from .recording_driver import attend_in_every_way

        found: list[str] = []
        self.driver.built = found.append
        if name in OTHER_PRODUCTS:
            self.driver.filling = None
            {"attention": attend_in_every_way, "layouts": self.layouts, "mixtures": self.mixtures}[name]()
            return found
        self.samples(name, (*DTYPES, *UNSIGNED), (None, *WAYS) if self.is_pointwise(name) else (None,))
        return found

    def layouts(self) -> None:
        """Pointwise kernels of one, two and three operands for every way in which each of them can lie, in two to six
        dimensions and in place, the dtypes in turn.
        """
        import torchlite as torch

        dtypes = itertools.cycle([getattr(torch, name) for name in DTYPES if name not in ("", "bool")])
        for name, count in (("square", 1), ("mul", 2), ("addcmul", 3)):
            for outer, lies in itertools.product(range(1, 6), itertools.product(LIES, repeat=count)):
                dtype = next(dtypes)
                operands = [lying(how, outer, dtype) for how in lies]
                getattr(torch, name)(*operands)
                if lies[0] != "repeated":
                    getattr(operands[0], name + "_")(*operands[1:])

    def mixtures(self) -> None:
        """Operands of each two dtypes, and each dtype converted to each."""
        import torchlite as torch

        dtypes = [getattr(torch, name) for name in (*DTYPES[1:], "float64", *UNSIGNED)]
        for one, other in itertools.product(dtypes, repeat=2):
            for x in (torch.empty(7, dtype=one, device="cuda"), torch.empty(700, dtype=one, device="cuda")):
                y = x.to(other)
                with contextlib.suppress(RuntimeError):  # what cannot be promoted
                    torch.add(x, y)
                    torch.where(x.to(torch.bool), x, y)

    def captured(self) -> None:
        """Launch the kernels of graph capture: random kernels read their seed from memory there, as Adam's
        step its numbers with `capturable`.
        """
        import torchlite as torch
        from torchlite_backends.device_runtime.array_ops.random import CapturedDraws

        device = self.backend.device(0)
        for name in ("float32", "float64", "float16", "bfloat16"):
            dtype = getattr(torch, name)
            x = torch.full((100,), 0.5, dtype=dtype, device="cuda")
            device.draws, device.capturing = CapturedDraws(device), True
            try:
                for draw in (torch.rand, torch.randn):
                    draw(100, dtype=dtype, device="cuda")
                for draw in ("bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_"):
                    getattr(x.clone(), draw)(*((0.5,) if draw == "geometric_" else ()))
                torch.nn.functional.dropout(x, 0.5)
                torch.poisson(x)
                torch.binomial(x * 4, x)
                torch.randperm(100, device="cuda")
                for top in (9, 1 << 40):
                    torch.randint(0, top, (100,), device="cuda")
            finally:
                device.draws, device.capturing = None, False
            for kind in (torch.optim.Adam, torch.optim.AdamW):
                for amsgrad in (False, True):
                    for count in (1, 3, 12):
                        parameters = [
                            torch.ones(5, dtype=dtype, device="cuda", requires_grad=True) for _ in range(count)
                        ]
                        for p in parameters:
                            p.grad = torch.ones_like(p)
                        kind(parameters, amsgrad=amsgrad, capturable=True).step()

    def more(self) -> None:
        """Run programs that no sample starts: those of tests/oclgrind.py, attention on tensor cores, and those that
        depend on more than shapes and dtypes.
        """
        import torchlite as torch
        from tests.oclgrind import further

        for name, function in {**further(torch, "gpu", "cuda"), **unusual(torch)}.items():
            done = 0
            for self.driver.filling in FILLINGS:
                try:
                    function()
                    done += 1
                except RuntimeError as error:
                    failure = error
            if not done:
                self.complaints.append(f"{name}: {failure}")


def unusual(torch: Any) -> dict[str, Any]:
    """Return programs that depend on a GPU's size or on values: {name: function that runs it}."""
    from torchlite._device.generators import engine_for_table
    from torchlite_backends.device_runtime.array_ops import masks
    from torchlite_backends.kernel_sources.reduce import OPS

    norms = dict.fromkeys(("norm1", "norm1_wide", "norm2", "norm2_wide", "normp", "normp_negative"), "norm")
    calls = {**norms, "max_dim": "max", "min_dim": "min"}

    def large_reductions() -> None:
        device = torch.empty(1, device="cuda")._tl_array.device
        units, device.units = device.units, 132
        for op in OPS:
            for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.complex64):
                with contextlib.suppress(RuntimeError, NotImplementedError):
                    getattr(torch, calls.get(op, op.removesuffix("_wide")))(
                        torch.empty((9001, 1031), dtype=dtype, device="cuda"), dim=0
                    )
        device.units = units

    def with_replacement() -> None:
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            weights = torch.ones((2, 5), dtype=dtype, device="cuda")
            weights._tl_kernels._random_multinomial(weights._tl_array, 3, engine_for_table(weights._tl_kernels, None))

    def repeated_places() -> None:
        for dtype in (torch.int32, torch.int64):
            repeats = torch.ones(5, dtype=dtype, device="cuda")
            with mock.patch.object(masks, "to_numpy", return_value=(3, 0)):  # the sum, and no negative count
                repeats._tl_kernels._repeat_interleave_indices(repeats._tl_array)

    return {
        "large reductions": large_reductions,
        "with replacement": with_replacement,
        "repeated places": repeated_places,
    }


def scaled(tree: Any, factor: int) -> Any:
    """Return a tree with its arrays enlarged in each dimension."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(scaled(item, factor) for item in tree)
    if isinstance(tree, dict):
        return {k: scaled(v, factor) for k, v in tree.items()}
    if not isinstance(tree, np.ndarray) or factor == 1:
        return tree
    shape = [n * factor for n in tree.shape]
    if np.prod(shape) > _LARGEST:
        raise ValueError("large enough without")
    return np.resize(tree, shape)


def _large(tensors: Any, grad: bool, change: Any) -> Any:
    """The arguments with every tensor as one of 70 x 66, changed by its number, and with gradients of it."""
    import torchlite as torch

    count = 0

    def made(x: Any) -> Any:
        nonlocal count
        if not isinstance(x, torch.Tensor):
            return x
        flat = np.resize(x.cpu().numpy().reshape(-1) if x.numel() else np.zeros(1, x.dtype.np), 70 * 66)
        count += 1
        out = change(torch.from_numpy(flat.reshape(70, 66)).to("cuda"), count)
        return out.requires_grad_() if grad and (x.is_floating_point() or x.is_complex()) else out

    return tuple(made(x) for x in tensors)


def _way(change: Any) -> Any:
    return lambda args, grad: _large(args, grad, change)


# How the memory of large operands lies: in one run, every second row, every second element, the first operand
# crosswise, the others of one row or of one column.
WAYS = [
    _way(change)
    for change in (
        lambda x, k: x,
        lambda x, k: x.repeat(2, 1)[::2],
        lambda x, k: x.repeat(1, 2)[:, ::2],
        lambda x, k: x.reshape(66, 70).t() if k == 1 else x,
        lambda x, k: x if k == 1 else x[0],
        lambda x, k: x if k == 1 else x[:, :1],
    )
]


# How an operand lies: its rows in one run each, its rows' elements apart, one value for each row, and crosswise.
LIES = ("run", "apart", "repeated", "crosswise")


def lying(how: str, outer: int, dtype: Any) -> Any:
    """A tensor of 66 or more by 70 elements with `outer` dimensions before the last, which lies in one of the ways
    `LIES` and none of whose dimensions can be walked as one.
    """
    import torchlite as torch

    shape = (66, 3, 3, 2, 2)[:outer][::-1] + (70,)
    if how == "crosswise":  # the first dimension is walked in single steps
        return lying("run", outer, dtype).new_empty((*shape[1:], shape[0] + 1)).movedim(-1, 0)[: shape[0]]
    steps = [{"run": 1, "apart": 2, "repeated": 0}[how]]
    for n in shape[:0:-1]:
        steps.append(n * max(steps[-1], 1) + 1)
    return torch.empty(
        sum((n - 1) * s for n, s in zip(shape, reversed(steps), strict=True)) + 1, dtype=dtype, device="cuda"
    ).as_strided(shape, steps[::-1])
