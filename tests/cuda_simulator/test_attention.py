"""Attention on tensor cores, from the op down to the kernels on the simulator: results and gradients against the
composite in double precision, under several schedules and the address sanitizer.
"""

import contextlib
import itertools
import re

import numpy as np
import pytest

import torchlite as torch
from tests.backends.device_runtime.test_attention import compare
from tests.cuda.fake_backend import installed
from tests.cuda_simulator import in_sanitized_child, kernel_compiler
from tests.cuda_simulator.driver import Simulated
from tests.nvrtc.recording_driver import Recording, attend_in_every_way
from torchlite_backends.cupy import flash_attention_launch as attention
from torchlite_backends.cupy.backend import CUDABackend
from torchlite_backends.kernel_sources import flash_attention_cuda

pytestmark = pytest.mark.skipif(bool(kernel_compiler.missing()), reason=kernel_compiler.missing())
F = torch.nn.functional
SEEDS = (0, 1, 2)
TOLERANCES = {torch.float16: 1.5e-3, torch.bfloat16: 1.2e-2}
ALL = ["forward", "dots", "backward_query", "backward_key"]


@contextlib.contextmanager
def noted_kernels():
    """A list of the kernels on tensor cores that are started from now on."""
    started = []
    variant, start = attention.kernel_source, attention.TensorCoreAttention.start

    def noted(*arguments):
        found = variant(*arguments)
        started.append(found)
        return found

    def planned_anew(self, *arguments):
        self.launches = {}
        start(self, *arguments)

    attention.kernel_source, attention.TensorCoreAttention.start = noted, planned_anew
    try:
        yield started
    finally:
        attention.kernel_source, attention.TensorCoreAttention.start = variant, start


@contextlib.contextmanager
def simulated(seed=0):
    """A simulated device, and the kernels on tensor cores that are started on it."""
    with noted_kernels() as started, installed(other=CUDABackend(Simulated(seed, libraries=False))):
        yield started


@pytest.fixture(params=SEEDS)
def started(request):
    with simulated(request.param) as started:
        yield started


@pytest.fixture
def once():
    with simulated() as started:
        yield started


def names(started):
    found = [kernel.name for kernel in started]
    started.clear()
    return found


def check(started, rng, *arguments, dtype=torch.float16, **options):
    """Compare on the device, and see that these kernels were the ones."""
    compare("cuda", rng, *arguments, dtype=dtype, tolerance=TOLERANCES[dtype], **options)
    assert names(started) == ALL


# Lengths around those of tiles, and features that fill a tile's rows and do not.
SHAPES = [
    ((2, 3), 70, 45, 32, 32), ((1, 2), 129, 200, 64, 64), ((), 65, 33, 96, 88), ((2,), 150, 70, 128, 128),
    ((2, 2, 2), 1, 1, 8, 8), ((1, 4), 130, 131, 40, 64),
]  # fmt: skip


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_shapes(started, rng, dtype, is_causal):
    for shape in SHAPES:
        check(started, rng, *shape, None, is_causal, dtype=dtype)


def test_random_shapes(started, rng):
    for dtype in TOLERANCES:
        lead = tuple(rng.integers(1, 4, rng.integers(0, 4)).tolist())
        rows, columns = rng.integers(1, 280, 2).tolist()
        features, values = (8 * rng.integers(1, 17, 2)).tolist()
        mask = [None, "bool", "added", "keys"][rng.integers(4)]
        check(
            started,
            rng,
            *([*lead], rows, columns, features, values),
            mask,
            mask is None,
            dtype=dtype,
            scale=float(rng.uniform(0.05, 1)),
        )


@pytest.mark.parametrize("mask", ["bool", "keys", "added"])
def test_masks(started, mask):
    rng = np.random.default_rng(0)  # of one seed: the tolerance is three times the usual error, not a bound
    check(started, rng, (2, 3), 70, 45, 64, 48, mask, False)
    check(started, rng, (3,), 40, 90, 128, 128, mask, False, dtype=torch.bfloat16)


@pytest.mark.parametrize("layout", ["heads inside rows", "transposed", "every second"])
def test_layouts(once, rng, layout):
    check(once, rng, (2, 3), 50, 50, 24, 16, None, True, layout=layout)


def test_wide_tiles_where_blocks_are_many(once, rng):
    for features in flash_attention_cuda.DIMS:
        check_tiles(once, rng, (8,), features, flash_attention_cuda.LARGE_TILES)
        check_tiles(once, rng, (2,), features, flash_attention_cuda.SMALL_TILES)


def check_tiles(started, rng, lead, features, expected):
    compare("cuda", rng, lead, 40, 40, features, features, None, True, dtype=torch.float16, tolerance=1.5e-3)
    for kernel in started:
        if kernel.name != "dots":
            key = kernel.name, features
            assert kernel.tiles == expected.get(key, flash_attention_cuda.SMALL_TILES[key])
    assert names(started) == ALL


def test_parts_of_one_product_are_read_where_they_lie(once, rng):
    """Query, key and value are views of one linear layer's result, as in transformers: one launch, and the result
    in the order in which transformers concatenate the heads.
    """
    qkv = torch.from_numpy(rng.standard_normal((2, 40, 3, 4, 16))).half().cuda()
    query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    driver = query._tl_array.device.driver
    torch.cuda.synchronize()
    before = driver.launches
    out = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    assert driver.launches == before + 1
    assert out.transpose(1, 2).is_contiguous()
    wanted = F.scaled_dot_product_attention(*(x.cpu().double() for x in (query, key, value)), is_causal=True)
    torch.testing.assert_close(out.cpu().double(), wanted, atol=1e-3, rtol=1e-3)


def test_operands_at_odd_places(once, rng):
    """Rows that do not begin at a multiple of 16 bytes are copied first."""
    wide = torch.from_numpy(rng.standard_normal((2, 3, 30, 19))).half().cuda()
    x = wide[..., 1:17]
    out = F.scaled_dot_product_attention(x, x, x)
    assert names(once) == ["forward"]
    wanted = F.scaled_dot_product_attention(*[x.cpu().double()] * 3)
    torch.testing.assert_close(out.cpu().double(), wanted, atol=1e-3, rtol=1e-3)


def test_gradient_of_a_sum(once, rng):
    """The result's gradient is one number, repeated."""
    x = torch.from_numpy(rng.standard_normal((2, 50, 32))).half().cuda().requires_grad_()
    F.scaled_dot_product_attention(x, x, x).sum().backward()
    assert names(once) == ALL
    wanted = x.detach().cpu().double().requires_grad_()
    F.scaled_dot_product_attention(wanted, wanted, wanted).sum().backward()
    torch.testing.assert_close(x.grad.cpu().double(), wanted.grad, atol=5e-3, rtol=5e-3)


@pytest.mark.parametrize("needs", [n for n in itertools.product((False, True), repeat=3) if any(n)], ids=str)
def test_only_wanted_gradients(once, rng, needs):
    tensors = [torch.from_numpy(rng.standard_normal((2, 9, 8))).half().cuda().requires_grad_(need) for need in needs]
    F.scaled_dot_product_attention(*tensors).sum().backward()
    assert tuple(x.grad is not None for x in tensors) == needs
    assert names(once) == [
        "forward",
        "dots",
        *["backward_query"] * needs[0],
        *["backward_key"] * (needs[1] or needs[2]),
    ]


def test_large_scores(once, rng):
    """Weights that are nearly all 0 or 1, and sums far beyond what half precision holds before their maximum is taken
    away.
    """
    query, key, value = (
        torch.from_numpy(rng.standard_normal((2, 70, 64)) * scale).half().cuda() for scale in (40, 40, 1)
    )
    out = F.scaled_dot_product_attention(query, key, value)
    wanted = F.scaled_dot_product_attention(*(x.cpu().double() for x in (query, key, value)))
    assert names(once) == ["forward"]
    torch.testing.assert_close(out.cpu().double(), wanted, atol=2e-3, rtol=2e-3)


def test_bits_do_not_depend_on_the_schedule(rng):
    values = rng.standard_normal((3, 2, 150, 64))
    results = []
    for seed in SEEDS:
        with simulated(seed) as started:
            tensors = [torch.from_numpy(x).bfloat16().cuda().requires_grad_() for x in values]
            out = F.scaled_dot_product_attention(*tensors, is_causal=True)
            out.backward(out.detach())
            assert names(started) == ALL
            results.append([x.cpu().float().numpy() for x in (out.detach(), *(x.grad for x in tensors))])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dim", flash_attention_cuda.DIMS)
def test_rows_in_shared_memory_lie_in_different_banks(once, dim):
    """The same chunk of 8 rows, which tensor cores load together, and 8 chunks that are copied together, fall in all 8
    places of 16 bytes across the banks.
    """
    kernel = flash_attention_cuda.kernel_source("forward", "f16", dim)
    chunks, out = dim // 8, torch.empty(64, dim // 8, dtype=torch.int32, device="cuda")
    source = kernel.text + "KERNEL void places(OUT(int, x)) { AT(x)[ITEM] = place(ITEM / CHUNKS, ITEM % CHUNKS); }"
    out._tl_array.device.function(source, "places", "p", **kernel.kinds)((out.numel(),), (chunks,), out._tl_array)
    places = out.cpu().numpy()
    assert sorted(places.ravel().tolist()) == list(range(64 * chunks))
    together = places.reshape(8, 8, chunks).transpose(0, 2, 1).reshape(-1, 8)
    beside = 8 if chunks % 8 == 0 else 4
    copied = (
        places.reshape(64 * beside // 8, 8 // beside, chunks // beside, beside).transpose(0, 2, 1, 3).reshape(-1, 8)
    )
    for eight in (together, copied):
        assert (np.sort(eight % 8, 1) == np.arange(8)).all()


WAITS = re.compile(r"\bBARRIER;|cp_async_wait<0>\(\);|__syncwarp\(\);")
# Of what orders a kernel's threads: the wait of a warp between its rows' way into shared memory and out of it, and all
# waits of the loops over tiles.
ORDERED = [
    *[("forward", k) for k in (1, 2, 3, 4, 5)],
    *itertools.product(("backward_query", "backward_key"), (1, 2, 3)),
]


@pytest.mark.parametrize("name, which", ORDERED)
def test_missing_barriers_are_detected(rng, monkeypatch, name, which):
    def without(*arguments):
        kernel = flash_attention_cuda.kernel_source(*arguments)
        if kernel.name != name:
            return kernel
        place = [*WAITS.finditer(kernel.text)][which]
        return kernel._replace(text=f"{kernel.text[: place.start()]};{kernel.text[place.end() :]}")

    monkeypatch.setattr(attention, "kernel_source", without)
    wrong = 0
    for seed in (0, 1, 2, 3):
        with installed(other=CUDABackend(Simulated(seed, libraries=False))):
            try:
                compare("cuda", rng, (2,), 70, 230, 64, 64, None, True, dtype=torch.float16, tolerance=1.5e-3)
            except AssertionError:
                wrong += 1
    assert wrong


def test_unsupported_attention_avoids_the_fused_kernel(once, rng):
    def kernels(dtype=torch.float16, features=16, **options):
        x = torch.from_numpy(rng.standard_normal((2, 9, features))).to(dtype).cuda()
        F.scaled_dot_product_attention(x, x, x, **options)
        return names(once)

    assert kernels() == kernels(torch.bfloat16) == ["forward"]
    assert kernels(torch.float32) == kernels(features=20) == kernels(features=136) == kernels(scale=-1.0) == []
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        assert kernels() == []
    device = torch.ones(1, device="cuda")._tl_array.device
    for capability, half, bfloat16 in (((8, 9), ["forward"], ["forward"]), ((7, 5), ["forward"], []), ((7, 0), [], [])):
        device.properties["major"], device.properties["minor"] = capability
        assert kernels() == half and kernels(torch.bfloat16) == bfloat16


def test_gradients_after_another_forward_kernel(once, rng):
    """The log of each row's sum is the same for all kernels."""
    x = torch.from_numpy(rng.standard_normal((2, 70, 32))).half().cuda()
    grads = []
    for forward, backward in itertools.product(("FLASH_ATTENTION", "EFFICIENT_ATTENTION"), repeat=2):
        y = x.clone().requires_grad_()
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend[forward]):
            out = F.scaled_dot_product_attention(y, y, y, is_causal=True)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend[backward]):
            out.backward(x)
        grads.append(y.grad.cpu().double())
    assert names(once) == ["forward", *ALL[1:], "forward", *ALL[1:]]
    for other in grads[1:]:
        torch.testing.assert_close(other, grads[0], atol=4e-3, rtol=4e-3)


def test_every_kernel_is_listed():
    """`variants` names exactly the kernels that the launchers start; `python -m tests.nvrtc` compiles them."""

    def key(kernel):
        return kernel.name, *kernel.kinds.items()

    with noted_kernels() as started, installed(other=CUDABackend(Recording())):
        attend_in_every_way()
    assert {key(kernel) for kernel in started} == {
        key(kernel) for kernel, _ in flash_attention_cuda.iter_kernel_variants()
    }


def run_sanitized():
    rng = np.random.default_rng(5)
    with simulated(3) as started:
        for dtype, is_causal, shape in zip(
            itertools.cycle(TOLERANCES), itertools.cycle((False, True, True)), SHAPES, strict=False
        ):
            check(started, rng, *shape, None, is_causal, dtype=dtype)
        check(started, rng, (2, 3), 70, 45, 64, 48, "bool", False)
        check(started, rng, (8,), 129, 140, 128, 128, None, True)
    print("went through")


@pytest.mark.night
def test_under_the_address_sanitizer():
    done = in_sanitized_child(__name__, "run_sanitized")
    assert done.returncode == 0 and "went through" in done.stdout, done.stderr
