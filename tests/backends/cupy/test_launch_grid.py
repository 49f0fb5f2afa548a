"""The CUDA runtime: how work-items become grids, how parameters are laid out, launches. On the simulator."""

from __future__ import annotations

import os
import struct
import threading
import time

import numpy as np
import pytest

import torchlite as torch
from tests.cuda.fake_backend import installed
from tests.cuda_simulator import kernel_compiler
from tests.cuda_simulator.driver import Simulated
from torchlite_backends.cupy.backend import CUDABackend
from torchlite_backends.cupy.device import _ParameterBlock
from torchlite_backends.cupy.launch_grid import (
    choose_covering_block,
    choose_dividing_block,
    compute_grid,
    with_bounds_guard,
)
from torchlite_backends.device_runtime.core.array import empty
from torchlite_backends.device_runtime.core.host_transfer import from_numpy, to_numpy

pytestmark = pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing() or "-")


@pytest.fixture(scope="module")
def simulated():
    with installed(other=CUDABackend(Simulated())) as backend:
        yield backend.device(0)


# -- grids --


@pytest.mark.parametrize(
    "items, block, sizes",
    [
        ((1024,), (256,), (4, 1, 1, 256, 1, 1)),
        ((64, 30), (32, 2), (2, 15, 1, 32, 2, 1)),
        ((1000,), None, (4, 1, 1, 250, 1, 1)),
        ((7,), None, (1, 1, 1, 7, 1, 1)),
        ((12, 1000), None, (1, 50, 1, 12, 20, 1)),
        ((3, 5, 7), None, (1, 1, 1, 3, 5, 7)),
    ],
)
def test_grids_that_fit(items, block, sizes):
    assert compute_grid(items, block) == (sizes, None)


@pytest.mark.parametrize(
    "items, block",
    [
        ((1009,), None),
        ((2003, 3), None),
        ((16, 70_000 * 4), (16, 4)),
        ((4, 5, 65_537), (4, 5, 1)),
        ((8, 65_536, 9), (8, 1, 1)),
    ],
)
def test_grids_that_need_a_guard_cover_everything_and_are_allowed(items, block):
    (x, y, z, *threads), guard = compute_grid(items, block)
    assert y <= 65535 and z <= 65535
    *limits, rows = struct.unpack("4i", guard)
    padded = [*items, 1, 1][:3]
    assert limits == padded and x * threads[0] >= padded[0]
    blocks = [-(-n // t) for n, t in zip(padded, threads, strict=True)]
    assert rows == blocks[1] and y * z >= blocks[1] * blocks[2]


def test_blocks_for_any_number_of_items():
    assert choose_dividing_block((1009, 1, 1)) is None and choose_dividing_block((997, 1009, 1)) is None
    assert choose_dividing_block((1 << 20, 1, 1)) == (256, 1, 1)
    assert choose_covering_block((1009, 1, 1)) == (256, 1, 1) and choose_covering_block((3, 1000, 1)) == (4, 64, 1)


PLACES = r"""
KERNEL void places(OUT(int, out), const int width, const int height) {
    AT(out)[(ITEM_Z * height + ITEM_Y) * width + ITEM] += 1;
}
"""


@pytest.mark.parametrize(
    "items, block",
    [
        ((1009,), None),
        ((3, 65_537 * 2), (3, 2)),
        ((2, 5, 65_539), (1, 5, 1)),
        ((6, 10, 4), (3, 5, 2)),
        ((131, 7, 3), None),
    ],
)
def test_every_item_runs_once(simulated, items, block):
    width, height, depth = [*items, 1, 1][:3]
    out = from_numpy(np.zeros((depth, height, width), np.int32), simulated)
    simulated.function(PLACES, "places", "pii")(items, block, out, width, height)
    assert (to_numpy(out) == 1).all()


def test_a_kernel_that_is_guarded_gets_one_more_parameter():
    text = with_bounds_guard(
        "KERNEL MATRICES void one(IN(T, x), const int n) { f(); }\nKERNEL void two(OUT(T, y)) { g(); }", "two"
    )
    assert "KERNEL MATRICES void one(IN(T, x), const int n) { f(); }" in text
    assert (
        "void two(OUT(T, y), const Guard guard_) { if (ITEM >= guard_.x || ITEM_Y >= guard_.y || ITEM_Z >= guard_.z) "
        "return; g(); }" in text
    )
    with pytest.raises(ValueError, match="no kernel 'three' in the text"):
        with_bounds_guard(text, "three")


# -- parameters --


def test_parameter_block_layout():
    made = _ParameterBlock(["Q", "i", "5s", "d", "q"])
    made.pack(0x1122334455667788, -7, b"abcde", 1.5, -(1 << 60))
    pointers = np.frombuffer(kernel_compiler.view(made.address, 5 * 8), np.uint64)
    assert made.address % 16 == 0 and all(at % 16 == 0 for at in pointers)
    values = [bytes(kernel_compiler.view(int(at), size)) for at, size in zip(pointers, (8, 4, 5, 8, 8), strict=True)]
    assert values == [
        struct.pack("<Q", 0x1122334455667788),
        struct.pack("<i", -7),
        b"abcde",
        struct.pack("<d", 1.5),
        struct.pack("<q", -(1 << 60)),
    ]


EVERY = r"""
typedef struct { int a; float b[3]; } Pair;
KERNEL void every(OUT(double, out), const Pair pair, const uchar small, const long wide, const ulong unsigned_wide,
    const float single, const double twice, const float2 z) {
    GLOBAL double* o = AT(out);
    o[0] = pair.a; o[1] = pair.b[2]; o[2] = small; o[3] = (double)wide; o[4] = (double)unsigned_wide; o[5] = single;
    o[6] = twice; o[7] = z.x; o[8] = z.y;
}
"""


def test_every_kind_of_parameter_arrives(simulated):
    """A difference: CuPy's launch wants typed NumPy scalars and passes a Python float as float64. Here each parameter
    is packed as the kernel declares it.
    """
    out = empty(simulated, (9,), "f64")
    simulated.function(EVERY, "every", "pxBqQfdx")(
        (1,), (1,), out, struct.pack("i3f", 5, 0, 0, 2.5), 200, -(1 << 40), 1 << 63, 0.5, 0.1, struct.pack("2f", 3, -4)
    )
    assert to_numpy(out).tolist() == [5, 2.5, 200, -float(1 << 40), float(1 << 63), 0.5, 0.1, 3, -4]


def test_layouts_match_the_kernels(simulated, monkeypatch):
    """The simulator knows how long a kernel's parameters are: of an op of each family the layout is compared."""
    from torchlite_backends.cupy import device as module

    seen = []

    def laid_out(self, values, plain=module.CUDAFunction._layout_parameters):
        made = plain(self, values)
        codes = "Q" * len(values) if not self.signature else self.signature.replace("p", "Qi")
        sizes = [
            len(v) if v.__class__ is bytes else struct.calcsize("=" + c)
            for c, v in zip(codes + "x", values, strict=False)
        ]
        seen.append((self.name, sizes, self._kernel.kernel.sizes))
        return made

    monkeypatch.setattr(module.CUDAFunction, "_layout_parameters", laid_out)
    with installed(other=CUDABackend(Simulated(libraries=False))):
        x = torch.randn(33, 40, device="cuda", requires_grad=True)
        y = torch.nn.functional.layer_norm(x @ x.T, (33,)).softmax(-1)
        torch.nn.functional.cross_entropy(y, torch.arange(33, device="cuda")).backward()
        torch.conv2d(torch.randn(1, 2, 5, 5, device="cuda"), torch.randn(3, 2, 3, 3, device="cuda")).sort()
        torch.fft.fft(x.detach()).cumsum(0)[torch.tensor([1, 2], device="cuda")].abs().sum()
    assert len(seen) > 15 and [(name, given) for name, given, wanted in seen if given != wanted] == []


# -- launches --


def test_a_kernel_that_does_not_build_is_shown_with_its_lines(simulated):
    with pytest.raises(
        RuntimeError,
        match=r"(?s)cuda:0 \(CUDA simulator\) could not build a kernel: .*nonsense.*\d+ KERNEL void broken",
    ):
        simulated.function("KERNEL void broken(OUT(int, x)) { nonsense; }", "broken", "p")


def test_threads_share_a_kernel(simulated):
    """Its parameters lie in one place of memory; each launch has its own values nevertheless."""
    text = "KERNEL void put(OUT(int, out), const int at, const int v) { AT(out)[at] = v; }"
    out, put = empty(simulated, (4, 30), "i32"), simulated.function(text, "put", "pii")

    def slow(*arguments, plain=put._launch):
        time.sleep(0.0005)  # another thread's turn
        plain(*arguments)

    put._launch = slow

    def work(row):
        for i in range(30):
            put((1,), (1,), out, 30 * row + i, 1000 * row + i)

    threads = [threading.Thread(target=work, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (to_numpy(out) == np.arange(4)[:, None] * 1000 + np.arange(30)).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_raises(simulated):
    x = torch.ones(3, device="cuda") + 1
    reader, writer = os.pipe()
    if not (child := os.fork()):
        said = set()
        for use in (lambda: x + 1, lambda: x.add_(1), lambda: x.cpu(), lambda: torch.ones(2, device="cuda")):
            try:
                use()
                said.add("nothing")
            except RuntimeError as error:
                said.add(str(error))
        os.write(writer, "\n".join(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as file:
        assert (
            file.read()
            == "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
            "'spawn' start method"
        )
    assert x.tolist() == [2.0] * 3


def test_cuda_launch_blocking_makes_launches_blocking(simulated, monkeypatch):
    assert not simulated.blocking
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    assert simulated.blocking
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        torch.ones(3, device="cuda")[torch.tensor([5], device="cuda")]


# -- memory --


def test_peaks_are_exact(simulated, rng):
    """Memory in use is counted only if it may exceed the peak, and no peak is missed."""
    memory, blocks, peak = simulated.memory, [], 0
    for step in range(400):
        if step % 100 == 0:
            memory.reset_peak()
            peak = memory.referenced_bytes()
        if blocks and rng.random() < 0.45:
            blocks.pop(rng.integers(len(blocks)))
        else:
            blocks.append(memory.allocate(int(rng.integers(0, 5000))))
        peak = max(peak, memory.referenced_bytes())
        assert memory.statistics()["allocated_bytes.all.peak"] == memory.peak == peak
