"""Random numbers: PyTorch's CPU stream bit for bit, draws that share a generator, and the composites that
other backends start from.

The answers of PyTorch lie in `random_numbers.npz`, written by tools/record_random.py.
"""

import pathlib

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of

GOLDEN = pathlib.Path(__file__).with_name("random_numbers.npz")


def _init(torch):
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(7, 5),
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.Embedding(11, 6),
        torch.nn.LSTM(4, 5),
        torch.nn.MultiheadAttention(8, 2),
    ]
    return [p.detach() for layer in layers for p in layer.parameters()]


def _mixed(torch):
    """Calls of all kinds on one generator: each begins where the one before left the stream, in the middle of a block
    or of a pair of normals.
    """
    g = torch.Generator().manual_seed(11)
    for size in (3, 17, 16, 320, 1):
        yield torch.randn(size, generator=g)
        yield torch.rand(size, generator=g)
        yield torch.randn(size, generator=g, dtype=torch.float64)
        yield torch.randint(0, 1 << 40, (size,), generator=g)
        yield torch.empty(size).log_normal_(generator=g)
        yield torch.randperm(size, generator=g)
        yield torch.empty(2, size).t().normal_(0.3, 0.7, generator=g)
        yield torch.empty(size).bernoulli_(0.3, generator=g)
    yield g.get_state()


def _many(make):
    """The same call for a row of sizes."""
    return lambda torch: [make(torch, n) for n in (1, 15, 16, 17, 40, 300)]


def _drawn_in_bulk(torch, *draws):
    """Every twentieth of many samples, and what the stream gives after them."""
    return [x for draw in draws for x in (draw().reshape(-1)[::20], torch.rand(1), torch.randn(1, dtype=torch.float64))]


# name -> what is called, after manual_seed(5); the results are compared with PyTorch's.
CALLS = {
    "rand": _many(lambda torch, n: torch.rand(n)),
    "rand_double": _many(lambda torch, n: torch.rand(n, dtype=torch.float64)),
    "rand_half": _many(lambda torch, n: torch.rand(n, dtype=torch.float16)),
    "rand_complex": _many(lambda torch, n: torch.rand(n, dtype=torch.complex64)),
    "uniform": _many(lambda torch, n: torch.empty(n).uniform_(-0.3, 1.9)),
    "uniform_narrow": _many(lambda torch, n: torch.empty(n).uniform_(1, 1.00001)),
    "uniform_double": _many(lambda torch, n: torch.empty(n, dtype=torch.float64).uniform_(-0.3, 1.9)),
    "uniform_half": _many(lambda torch, n: torch.empty(n, dtype=torch.float16).uniform_(-0.3, 1.9)),
    "randn": _many(lambda torch, n: torch.randn(n)),
    "randn_double": _many(lambda torch, n: torch.randn(n, dtype=torch.float64)),
    "randn_half": _many(lambda torch, n: torch.randn(n, dtype=torch.float16)),
    "randn_complex": _many(lambda torch, n: torch.randn(n, dtype=torch.complex64)),
    "normal": _many(lambda torch, n: torch.empty(n).normal_(0.3, 0.7)),
    "normal_double": _many(lambda torch, n: torch.empty(n, dtype=torch.float64).normal_(0.3, 0.7)),
    "normal_of_tensors": lambda torch: [
        torch.normal(torch.arange(20.0), torch.arange(1.0, 21.0)),
        torch.normal(2.0, 3.0, (4, 5)),
    ],
    "randint": _many(lambda torch, n: torch.randint(-3, 9, (n,))),
    "randint_limit": lambda torch: (
        [torch.randint(0, (1 << 28) + d, (20,)) for d in (-1, 0, 1)] + [torch.randint(1 << 32, (20,))]
    ),
    "randint_half": lambda torch: torch.randint(0, 5000, (20,), dtype=torch.float16),
    "random": lambda torch: [
        torch.empty(9, dtype=getattr(torch, d)).random_()
        for d in ("float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool")
    ],
    "random_wide": lambda torch: [
        torch.empty(9, dtype=torch.int64).random_(-(1 << 62), 1 << 62),
        torch.empty(9, dtype=torch.int64).random_(-(1 << 63), None),
    ],
    "randperm": _many(lambda torch, n: torch.randperm(n)),
    "randperm_large": lambda torch: torch.randperm(17000)[::100],
    "bernoulli": _many(lambda torch, n: torch.empty(n).bernoulli_(0.3)),
    "bernoulli_each": lambda torch: [
        torch.bernoulli(torch.arange(20.0) / 20),
        torch.bernoulli(torch.arange(20.0, dtype=torch.float64) / 20),
    ],
    "exponential": _many(lambda torch, n: torch.empty(n).exponential_(1.7)),
    "cauchy": _many(lambda torch, n: torch.empty(n).cauchy_(0.3, 2)),
    "geometric": _many(lambda torch, n: torch.empty(n).geometric_(0.3)),
    "log_normal": _many(lambda torch, n: torch.empty(n).log_normal_(0.3, 0.7)),
    "poisson": lambda torch: [torch.poisson(torch.arange(400.0) / 8), torch.rand(1)],
    "binomial": lambda torch: [torch.binomial(torch.arange(400.0), torch.arange(400.0) / 400), torch.rand(1)],
    # The products of the arguments are float32: 1000 * 0.01 is 10, from which on the method is another.
    "binomial_large": lambda torch: _drawn_in_bulk(
        torch,
        lambda: torch.binomial(torch.full((2000,), 1000.0), torch.full((2000,), 0.01)),
        lambda: torch.binomial(torch.full((2000,), 12.0), torch.full((2000,), 0.7)),
        lambda: torch.binomial(torch.arange(2000.0), torch.arange(2000.0) / 2000),
        lambda: torch.binomial(torch.full((900,), 1e6), torch.arange(900.0) / 900),
        lambda: torch.binomial(torch.arange(900.0).double(), torch.arange(900.0).double() / 900),
    ),
    "gamma_large": lambda torch: _drawn_in_bulk(
        torch,
        *[
            lambda shape=shape: torch._standard_gamma(torch.full((3000,), shape))
            for shape in (0.01, 0.7, 1.0, 2.5, 40.0)
        ],
        lambda: torch._standard_gamma(torch.arange(3000.0) / 1000 + 0.01),
        lambda: torch._standard_gamma(torch.arange(3000.0) / 3001),
        lambda: torch._standard_gamma(torch.arange(3000.0) / 100 + 1),
        lambda: torch._sample_dirichlet(torch.tensor([0.3, 1.0, 2.0, 5.0]).expand(700, 4)),
    ),
    "normal_large": lambda torch: _drawn_in_bulk(
        torch,
        lambda: torch.randn(5003),
        lambda: torch.empty(5000).normal_(0.3, 0.7),
        lambda: torch.randn(5000, dtype=torch.float16),
        lambda: torch.randperm(5000),
    ),
    "multinomial_rows": lambda torch: _drawn_in_bulk(
        torch,
        lambda: torch.multinomial((torch.arange(700.0) % 13).reshape(100, 7), 9, True),
        lambda: torch.multinomial((torch.arange(640.0) % 11).reshape(10, 64).double(), 9, True),
    ),
    "multinomial": lambda torch: [
        torch.multinomial(torch.arange(1.0, 9), 5),
        torch.multinomial(torch.arange(1.0, 9), 1),
        torch.multinomial(torch.arange(1.0, 9).reshape(2, 4), 30, True),
    ],
    "memory_order": lambda torch: [
        torch.empty(4, 6, 5).permute(2, 0, 1).uniform_(),
        torch.empty(8, 9)[:, ::2].normal_(),
        torch.randn_like(torch.empty(4, 5).t()),
    ],
    "dropout": lambda torch: [
        torch.nn.functional.dropout(torch.ones(50), 0.3),
        torch.nn.functional.dropout(torch.ones(6, 7).t(), 0.3),
        torch.nn.functional.dropout2d(torch.ones(4, 6, 2, 2), 0.3),
        torch.nn.functional.alpha_dropout(torch.ones(50), 0.3, True),
    ],
    "init": lambda torch: [
        torch.nn.init.xavier_normal_(torch.empty(9, 7)),
        torch.nn.init.trunc_normal_(torch.empty(9, 7)),
        torch.nn.init.sparse_(torch.empty(9, 7), 0.3),
    ],
    "rrelu": lambda torch: [torch.nn.functional.rrelu(torch.arange(-9.0, 9), training=True), torch.rand(1)],
    "layers": _init,
    "mixed": lambda torch: list(_mixed(torch)),
    "negative_seed": lambda torch: torch.rand(5, generator=torch.Generator().manual_seed(-3)),
}


def arrays(torch, name):
    """The results of a call as NumPy arrays."""
    torch.manual_seed(5)
    found = CALLS[name](torch)
    return [x.numpy() for x in (found if isinstance(found, list) else [found])]


@pytest.mark.filterwarnings("ignore:to - 1 is out of bounds")
@pytest.mark.parametrize("name", CALLS)
def test_stream_is_pytorchs(name):
    with np.load(GOLDEN) as golden:
        wanted = [golden[f"{name}/{i}"] for i in range(sum(key.startswith(f"{name}/") for key in golden.files))]
    found = arrays(torch, name)
    assert len(found) == len(wanted)
    for mine, want in zip(found, wanted, strict=True):
        assert mine.dtype == want.dtype
        assert mine.shape == want.shape
        if mine.dtype == np.float64:  # the C library's functions, which may differ between systems
            np.testing.assert_array_max_ulp(mine, want, 8)
        else:
            np.testing.assert_array_equal(mine, want)


def test_small_normals_do_not_depend_on_the_calls_before():
    """Normals are computed ahead; other draws in between must not be answered from what lies ahead."""
    g, plain = torch.Generator().manual_seed(8), torch.Generator().manual_seed(8)
    for count in (16, 5, 32, 1, 16, 600, 48, 2, 640, 16):
        a = torch.randn(16, generator=g)
        state = plain.get_state()
        plain.set_state(state)  # forgets what was computed ahead
        assert torch.equal(a, torch.randn(16, generator=plain))
        assert torch.equal(torch.rand(count, generator=g), torch.rand(count, generator=plain))


def test_in_place_respects_autograd():
    x = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.uniform_()
    with torch.no_grad():
        x.uniform_()
    y = (x * 2).normal_()
    assert x._version == 1
    y.sum().backward()
    assert y.grad_fn.name() == "NormalBackward0" and x.grad.tolist() == [0, 0, 0]
    base = torch.zeros(4, 5)
    base[1:3, ::2].uniform_(1, 2)
    assert (base != 0).sum() == 6
    assert base._version == 1


def test_dropout_gradient_is_its_mask():
    x = torch.rand(4, 5, dtype=torch.float64, requires_grad=True)
    out = torch.nn.functional.dropout(x, 0.4)
    out.backward(torch.ones_like(out))
    assert torch.equal(x.grad, (out != 0).double() / 0.6)
    assert torch.nn.functional.dropout(x, 0.4, training=False) is x


@pytest.mark.parametrize(
    ("name", "parameters", "mean"),
    [
        ("_random_bits", (10,), 4.5),
        ("_random_bernoulli", (0.3,), 0.3),
        ("_random_exponential", (2.0,), 0.5),
        ("_random_geometric", (0.25,), 4.0),
        ("_random_log_normal", (0.0, 0.5), float(np.exp(0.125))),
    ],
)
def test_composites_for_other_backends(name, parameters, mean):
    """A backend without these kernels gets them from uniforms and normals."""
    table = table_of(torch.device("cpu"))
    engine = torch.Generator().manual_seed(0)._engine
    drawn = REGISTRY[name].composite(table, (200, 200), torch.float32, *parameters, engine)
    assert drawn.dtype == np.float32
    assert drawn.shape == (200, 200)
    np.testing.assert_allclose(drawn.mean(), mean, rtol=0.05)
    kernel = getattr(table, name)((200, 200), torch.float32, *parameters, engine)
    np.testing.assert_allclose(np.quantile(drawn, [0.1, 0.5, 0.9]), np.quantile(kernel, [0.1, 0.5, 0.9]), rtol=0.15)


def test_composite_permutation_and_cauchy():
    table = table_of(torch.device("cpu"))
    engine = torch.Generator().manual_seed(0)._engine
    order = REGISTRY["_random_permutation"].composite(table, (100,), torch.int64, engine)
    assert sorted(order.tolist()) == list(range(100))
    assert order.tolist() != list(range(100))
    drawn = REGISTRY["_random_cauchy"].composite(table, (40000,), torch.float32, 1.0, 2.0, engine)
    np.testing.assert_allclose(np.quantile(drawn, [0.25, 0.5, 0.75]), [-1, 1, 3], atol=0.15)


def test_composites_that_draw_by_entries():
    table = table_of(torch.device("cpu"))
    engine = torch.Generator().manual_seed(0)._engine
    p = np.full((20000, 2), [0.2, 0.7], np.float32)
    np.testing.assert_allclose(
        REGISTRY["_random_bernoulli_each"].composite(table, p, torch.float32, engine).mean(0), [0.2, 0.7], atol=0.02
    )
    picks = REGISTRY["_random_multinomial"].composite(
        table, np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]], np.float32), 20000, engine
    )
    assert picks.dtype == np.int64
    np.testing.assert_allclose(
        [np.bincount(row, minlength=3) / 20000 for row in picks], [[0.25, 0, 0.75], [0, 1, 0]], atol=0.02
    )
    slopes = REGISTRY["_random_slopes"].composite(table, np.array([-1.0, 2.0], np.float32), 0.1, 0.3, engine)
    assert 0.1 <= slopes[0] < 0.3
    assert slopes[1] == 1


ERRORS = [
    (
        lambda: torch.empty(3).uniform_(3, 1),
        RuntimeError,
        "uniform_ expects to return a [from, to) range, but found from=3 > to=1",
    ),
    (lambda: torch.empty(3).normal_(0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda: torch.empty(3).exponential_(-1), RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=-1"),
    (lambda: torch.empty(3).geometric_(2), RuntimeError, "geometric_ expects p to be in (0, 1), but got p=2"),
    (lambda: torch.empty(3).bernoulli_(2), RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=2"),
    (
        lambda: torch.empty(3, dtype=torch.int64).normal_(),
        NotImplementedError,
        "\"normal_kernel_cpu\" not implemented for 'Long'",
    ),
    (
        lambda: torch.randint(3, 3, (2,)),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=3 >= to=3",
    ),
    (lambda: torch.randint(0, 300, (2,), dtype=torch.uint8), RuntimeError, "to - 1 is out of bounds for unsigned char"),
    (lambda: torch.rand(-1), RuntimeError, "Trying to create tensor with negative dimension -1: [-1]"),
    (
        lambda: torch.multinomial(torch.tensor([0.5, 0.5]), 3),
        RuntimeError,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    ),
    (
        lambda: torch.multinomial(torch.tensor([-0.5, 0.5]), 1),
        RuntimeError,
        "probability tensor contains either `inf`, `nan` or element < 0",
    ),
    (
        lambda: torch.nn.functional.dropout(torch.ones(2), -1),
        ValueError,
        "dropout probability has to be between 0 and 1, but got -1",
    ),
    (lambda: torch.Generator().manual_seed(1.5), RuntimeError, "manual_seed expected a long, but got float"),
    (lambda: torch.manual_seed(1 << 64), ValueError, "Overflow when unpacking long long"),
    (lambda: torch.Generator().set_state(torch.zeros(3)), TypeError, "RNG state must be a torch.ByteTensor"),
    (lambda: torch.Generator().set_state(torch.zeros(5056, dtype=torch.uint8)), RuntimeError, "Invalid mt19937 state"),
    (
        lambda: torch.Generator().set_state(torch.zeros(3, dtype=torch.uint8)),
        RuntimeError,
        "found the input RNG state size to be 3",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for _, _, words in ERRORS])
def test_errors(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.oracle
def test_any_sequence_of_calls_against_pytorch(rng):
    """Many short programs, each on one generator here and one there, which must end in the same state."""
    oracle = pytest.importorskip("torch")
    kinds = [
        "rand",
        "randn",
        "uniform",
        "normal",
        "randint",
        "randperm",
        "bernoulli",
        "exponential",
        "cauchy",
        "geometric",
        "log_normal",
    ]
    for seed in range(20):
        program = [
            (
                rng.choice(kinds),
                int(rng.choice([1, 2, 15, 16, 17, 33, 64, 639])),
                rng.choice(["float32", "float64", "float16"]),
            )
            for _ in range(30)
        ]
        states, results = [], []
        for library in (torch, oracle):
            g, out = library.Generator().manual_seed(seed), []
            for kind, n, dtype in program:
                made = library.empty(n, dtype=getattr(library, dtype))
                if kind in ("rand", "randn"):
                    out.append(getattr(library, kind)(n, dtype=made.dtype, generator=g))
                elif kind == "randint":
                    out.append(library.randint(-4, 100 << (n % 40), (n,), generator=g))
                elif kind == "randperm":
                    out.append(library.randperm(n, generator=g))
                else:
                    arguments = {"geometric": (0.4,), "uniform": (-0.2, 3.1), "normal": (0.2, 1.7)}.get(kind, ())
                    out.append(getattr(made, kind + "_")(*arguments, generator=g))
            results.append([x.numpy() for x in out])
            states.append(g.get_state().numpy())
        assert np.array_equal(*states)
        for step, mine, theirs in zip(program, *results, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=str(step))


@pytest.mark.parametrize(
    "rates",
    [
        np.full(3000, 0.5),
        np.full(3000, 9.9),
        np.full(700, 300.0),
        np.linspace(0, 40, 2500),
        np.linspace(0, 5, 2500)[::-1],
        np.tile([0.0, 0.0, 0.0, 20.0], 500),
        np.zeros(200),
        np.full(100, 1e8),
    ],
)
def test_poisson_in_bulk_is_poisson_one_by_one(rates):
    bulk, single = (torch.Generator().manual_seed(11) for _ in range(2))
    for before in (0, 1, 622):
        for g in (bulk, single):
            torch.rand(before, generator=g)
        rate = torch.from_numpy(rates.copy())
        drawn = torch.poisson(rate, generator=bulk)
        assert torch.equal(drawn, torch.cat([torch.poisson(part, generator=single) for part in rate.split(40)]))
        assert torch.equal(bulk.get_state(), single.get_state())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("rates", [[float("nan")], [1.0, float("nan")], [float("nan")] * 1000, [-1.0, 1.0]])
def test_poisson_rates_that_are_no_rates(rates, dtype):
    with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
        torch.poisson(torch.tensor(rates, dtype=dtype))


def test_permutations_are_exchanges_one_after_the_other():
    for n in (2, 255, 256, 257, 300, 20000, 50000):
        g, words = (torch.Generator().manual_seed(n) for _ in range(2))
        order = list(range(n))
        for i, word in enumerate(words._engine.words(n - 1).tolist()):
            j = i + word % (n - i)
            order[i], order[j] = order[j], order[i]
        assert torch.randperm(n, generator=g).tolist() == order, n


def test_normal_of_single_tensors_and_a_size():
    torch.manual_seed(3)
    found = torch.normal(torch.tensor(2.0), torch.tensor(3.0), (4,))
    torch.manual_seed(3)
    assert found.equal(torch.normal(2.0, 3.0, (4,)))
    for mean in (torch.zeros(4), torch.tensor(0.0, requires_grad=True)):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            torch.normal(mean, torch.tensor(1.0), (4,))


def test_normal_numbers_for_integer_tensors_without_elements(device):
    empty = torch.empty(0, dtype=torch.int64, device=device)
    for out in (torch.randn(0, dtype=torch.int64, device=device), torch.randn_like(empty), empty.normal_()):
        assert out.shape == (0,) and out.dtype is torch.int64
    assert empty.log_normal_().numel() == empty.exponential_().numel() == 0
    with pytest.raises(NotImplementedError, match="check_uniform_bounds"):
        empty.uniform_()
    with pytest.raises(NotImplementedError, match="normal_kernel_cpu"):
        torch.randn(2, dtype=torch.int64, device=device)
