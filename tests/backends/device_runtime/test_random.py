"""Random numbers on OpenCL devices: Philox, the distributions computed from it, and generators."""

import math

import numpy as np
import pytest

import torchlite as torch

COUNT = 60_000


def kolmogorov(sample, distribution) -> float:
    """The probability of a distance from the distribution function as large as the sample's, or larger (the first terms
    of Kolmogorov's series).
    """
    ordered = np.sort(np.asarray(sample, np.float64).ravel())
    n = ordered.size
    below = distribution(ordered)
    ranks = np.arange(n)
    distance = max((below - ranks / n).max(), ((ranks + 1) / n - below).max())
    scaled = distance * (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n))
    return float(np.clip(2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 100)), 0, 1))


def normal_distribution(x):
    return 0.5 * torch.erfc(torch.from_numpy(-np.asarray(x, np.float64) / math.sqrt(2))).numpy()


def filled(device, name, *parameters, dtype=torch.float32, seed=5):
    generator = torch.Generator(device).manual_seed(seed)
    return getattr(torch.empty(COUNT, device=device, dtype=dtype), name)(*parameters, generator=generator).cpu().numpy()


def test_philox_matches_random123s_known_answers(opencl):
    """Random123's known answers for philox4x32-10 with counter and key zero, and with both all ones."""
    generator = torch.Generator(opencl).manual_seed(0)
    words = torch.empty(64, device=opencl, dtype=torch.int32).random_(0, 1 << 27, generator=generator).cpu().numpy()
    assert [int(w) for w in words[::16]] == [w >> 5 for w in (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)]


def reference_words(seed: int, block: int) -> list[int]:
    c, k = [block & 0xFFFFFFFF, block >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


@pytest.mark.parametrize("offset", [0, 5, (1 << 32) - 3])
def test_stream_depends_on_seed_and_offset_alone(opencl, offset):
    seed, count = 0x123456789ABCDEF, 150
    generator = torch.Generator(opencl).manual_seed(seed)
    generator.set_offset(offset)
    drawn = torch.rand(count, device=opencl, generator=generator).cpu().numpy()
    blocks = [reference_words(seed, offset + i) for i in range(48)]
    places = [(i // 64 * 16 + i % 16, i % 64 // 16) for i in range(count)]
    assert np.array_equal(drawn, np.array([(blocks[b][w] >> 8) * 2.0**-24 for b, w in places], np.float32))
    assert generator.get_offset() == offset + 48


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_distributions(opencl, dtype):
    def fits(name, parameters, distribution):
        assert kolmogorov(filled(opencl, name, *parameters, dtype=dtype), distribution) > 0.001, name

    fits("uniform_", (-1.0, 3.0), lambda x: (x + 1) / 4)
    fits("normal_", (1.0, 2.0), lambda x: normal_distribution((x - 1) / 2))
    fits("exponential_", (2.0,), lambda x: -np.expm1(-2 * x))
    fits("cauchy_", (1.0, 2.0), lambda x: 0.5 + np.arctan((x - 1) / 2) / np.pi)
    fits("log_normal_", (0.5, 0.3), lambda x: normal_distribution((np.log(x) - 0.5) / 0.3))
    trials = filled(opencl, "geometric_", 0.3, dtype=dtype)
    assert trials.min() == 1 and abs(trials.mean() - 1 / 0.3) < 0.05
    coins = filled(opencl, "bernoulli_", 0.3, dtype=dtype)
    assert set(coins) == {0, 1} and abs(coins.mean() - 0.3) < 0.01


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_uniforms_are_below_the_upper_bound(opencl, dtype):
    generator = torch.Generator(opencl).manual_seed(1)
    x = torch.empty(COUNT, device=opencl, dtype=dtype).uniform_(-1, 3, generator=generator).float()
    assert -1 <= x.min().item() and x.max().item() < 3 and abs(x.mean().item() - 1) < 0.02


def test_moments_of_neighbours(opencl):
    """Neighbouring normals, and those of one pair, are not correlated; the third and fourth moments are the normal
    ones.
    """
    x = filled(opencl, "normal_").astype(np.float64)
    assert abs((x**3).mean()) < 0.05 and abs((x**4).mean() - 3) < 0.15
    for lag in (1, 2, 16, 32, 64):
        assert abs((x[lag:] * x[:-lag]).mean()) < 0.02, lag


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (-3, 5, torch.int64),
        (0, 1000, torch.int16),
        (-(1 << 40), 1 << 40, torch.int64),
        (0, 7, torch.float32),
        (0, 2, torch.bool),
    ],
    ids=str,
)
def test_integers(opencl, low, high, dtype):
    x = filled(opencl, "random_", low, high, dtype=dtype).astype(np.float64)
    assert x.min() >= low and x.max() < high and np.array_equal(x, np.floor(x))
    assert abs((x.mean() - low) / (high - 1 - low) - 0.5) < 0.01
    if high - low <= 8:
        counts = np.unique(x, return_counts=True)[1]
        assert counts.size == high - low and np.allclose(counts / COUNT, 1 / (high - low), atol=0.01)


@pytest.mark.parametrize("rate", [0.0, 0.5, 5.0, 12.0, 300.0])
def test_poisson(opencl, rate):
    generator = torch.Generator(opencl).manual_seed(2)
    x = torch.poisson(torch.full((COUNT,), rate, device=opencl), generator=generator).cpu().numpy().astype(np.float64)
    slack = 5 * math.sqrt(rate / COUNT)
    assert abs(x.mean() - rate) <= slack and abs(x.var() - rate) <= slack * math.sqrt(1 + 2 * rate)


@pytest.mark.parametrize(("count", "p"), [(5, 0.3), (40, 0.5), (100, 0.83), (1000, 0.4), (7, 0.0), (7, 1.0)])
def test_binomial(opencl, count, p):
    generator = torch.Generator(opencl).manual_seed(2)
    shape = (COUNT,)
    counts, chances = torch.full(shape, float(count), device=opencl), torch.full(shape, p, device=opencl)
    x = torch.binomial(counts, chances, generator=generator).cpu().numpy().astype(np.float64)
    variance = count * p * (1 - p)
    assert x.min() >= 0 and x.max() <= count
    assert abs(x.mean() - count * p) <= 5 * math.sqrt(variance / COUNT) and abs(x.var() - variance) <= 0.05 * variance


def test_multinomial(opencl):
    generator = torch.Generator(opencl).manual_seed(3)
    weights = torch.tensor([[0.0, 1.0, 3.0, 0.0], [2.0, 2.0, 0.0, 1.0]], device=opencl)
    shares = weights.cpu().numpy() / weights.cpu().numpy().sum(1, keepdims=True)
    drawn = torch.multinomial(weights, 20_000, replacement=True, generator=generator).cpu().numpy()
    for row, share in zip(drawn, shares, strict=True):
        assert np.allclose(np.bincount(row, minlength=4) / 20_000, share, atol=0.015)
    single = torch.multinomial(weights.repeat(2000, 1), 2, generator=generator).cpu().numpy().reshape(2000, 2, 2)
    assert (np.sort(single[:, 0]) == [1, 2]).all() and (single[:, 0, 0] == 2).mean() == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_permutation(opencl, n):
    generator = torch.Generator(opencl).manual_seed(4)
    first, second = (torch.randperm(n, device=opencl, generator=generator).cpu().numpy() for _ in range(2))
    assert np.array_equal(np.sort(first), np.arange(n)) and np.array_equal(np.sort(second), np.arange(n))
    if n == 1000:
        assert not np.array_equal(first, second) and (first == np.arange(n)).sum() < 10


def test_generators(opencl):
    generator = torch.Generator(opencl).manual_seed(7)
    assert generator.initial_seed() == 7 and generator.device.type == "opencl"
    torch.rand(100, device=opencl, generator=generator)
    state = generator.get_state()
    assert state.device.type == "cpu" and state.dtype is torch.uint8 and state.numel() == 16
    first = torch.randn(70, device=opencl, generator=generator)
    copy = generator.clone_state()
    generator.set_state(state)
    assert (
        torch.equal(first, torch.randn(70, device=opencl, generator=generator))
        and copy.get_offset() == generator.get_offset()
    )
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        generator.set_state(torch.zeros(5, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="does not use offset"):
        torch.Generator().get_offset()


def test_manual_seed_seeds_devices(opencl):
    torch.manual_seed(11)
    first = torch.randn(10, device=opencl)
    torch.manual_seed(11)
    assert torch.equal(first, torch.randn(10, device=opencl))
    with torch.random.fork_rng():
        torch.rand(5, device=opencl)
        inside = torch.rand(5, device=opencl)
    torch.rand(5, device=opencl)
    assert torch.equal(inside, torch.rand(5, device=opencl))
