"""Values, dtypes and errors at the edges: expressions and PyTorch's answers to them (tests/ops/edge_values.json)."""

import json
import pathlib

import pytest

import torchlite as torch
import torchlite.nn.functional as F

FILE = pathlib.Path(__file__).with_name("edge_values.json")
pytestmark = pytest.mark.usefixtures("on_device")
INFINITIES = "[complex(a, b) for a in (0., -0., 1., -2.5, inf, -inf, nan) for b in (0., -0., 1., -2.5, inf, -inf, nan)]"

# Expressions with equal answers on every device.
EXPRESSIONS = [
    # dimensions of 0-d tensors
    *(f"torch.tensor(1.).{name}({dim})" for name in ("sum", "mean", "softmax", "log_softmax", "any", "logsumexp",
      "amax",
      "prod", "cumsum", "argmax", "sort", "squeeze") for dim in (0, -1, 3)),
    "torch.flip(torch.tensor(1.), (0,))", "torch.flip(torch.tensor(1.), (1,))",
    # shifts
    "torch.tensor([254, 1], dtype=torch.uint8) >> 8", "torch.tensor([-4, 4], dtype=torch.int8) >> 8",
    "torch.tensor([1], dtype=torch.int8) << 8", "torch.tensor([1], dtype=torch.int8) >> -1",
    "torch.tensor([1]) << 64", "torch.tensor([-1]) >> 70", "torch.tensor([200], dtype=torch.uint8) >> 3",
    "torch.tensor([1, 2], dtype=torch.int16) << torch.tensor([15, 16], dtype=torch.int16)",
    # results' dtypes
    "torch.ldexp(torch.tensor([1.], dtype=torch.half), torch.tensor([2]))",
    "torch.ldexp(torch.tensor([0., 3.]), torch.tensor([255, -1], dtype=torch.uint8))",
    "torch.full((3,), 100, dtype=torch.int8).sum(dtype=torch.int8)",
    "torch.full((3,), 100, dtype=torch.int8).nansum(dtype=torch.int8)",
    "torch.ones(3, dtype=torch.bool).nansum(dtype=torch.int32)",
    "torch.ones(3, dtype=torch.bool).sum(dtype=torch.int32)",
    "torch.ones(3, dtype=torch.bool).sum(dtype=torch.bool)",
    # values
    "torch.log1p(torch.tensor([1e-19 + 0j, -2.5 - 0j, 1e-8 + 1e-9j]))",
    "torch.lerp(torch.tensor([60000.], dtype=torch.half), torch.tensor([-60000.], dtype=torch.half), .5)",
    "torch.unique(torch.tensor([[1., nan], [1., nan]]), dim=0)",
    "torch.unique(torch.tensor([0., inf, -inf, nan, -1e30, 1.], dtype=torch.bfloat16))",
    "torch.relu(torch.tensor([-0., 0., -1.]))", "torch.clamp(torch.tensor([-0., 0.]), max=0)",
    "torch.clamp(torch.tensor([-0., 0.]), min=0)", "F.elu(torch.tensor([-0., 0., -1.]))",
    "torch.remainder(torch.tensor([-0., -0., 0., 0., -6., 6.]), torch.tensor([2., -2., 2., -2., 3., -3.]))",
    "torch.tensor([-0., 6., -6.]) % 2", "torch.tensor([5.5, -5.5]) % -2",
    # what is empty
    "torch.cat([torch.empty(0), torch.empty(0)], 1)", "torch.cat([torch.empty(0), torch.ones(2, 3)], 1)",
    "torch.block_diag()", "torch.cumulative_trapezoid(torch.empty(0))", "torch.trapezoid(torch.empty(0))",
    "torch.roll(torch.arange(4).view(2, 2), 1, None)",
    "F.fractional_max_pool2d(torch.empty(0, 16, 50, 32), 3, output_size=4)",
    "F.fractional_max_pool2d(torch.empty(2, 0, 50, 32), 3, output_size=4)",
    "F.scaled_dot_product_attention(torch.empty(2, 0, 4), torch.empty(2, 3, 4), torch.empty(2, 3, 4))",
    "F.scaled_dot_product_attention(torch.ones(2, 3, 4), torch.empty(2, 0, 4), torch.empty(2, 0, 4))",
    # masks without dimensions
    "written(torch.tensor(nan), torch.tensor(True), 0)", "written(torch.tensor(3.), torch.tensor(False), 0)",
    "written(torch.arange(3), torch.tensor(True), 7)", "torch.tensor(3.)[torch.tensor(True)]",
    "torch.tensor(3.)[torch.tensor(False)]", "torch.arange(3)[torch.tensor(True)]",
    # gradients
    "gradient(torch.max, [nan, nan, nan])", "gradient(torch.min, [nan, 1., nan])",
    "gradient(lambda x: torch.segment_reduce(x, 'prod', lengths=torch.tensor([3, 3])), [2., 0., 3., 0., 0., 1.])",
    "gradient(lambda x: torch.segment_reduce(x, 'max', lengths=torch.tensor([3]), initial=2.), [2., 2., 1.])",
    "gradient(lambda x: F.embedding_bag(torch.tensor([2, 2]), x, torch.tensor([0]), mode='max', padding_idx=2), "
    "[[1.], [2.], [3.]])",
    # infinities
    *(f"torch.{name}(torch.tensor({INFINITIES}))" for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos",
      "cosh", "sin", "sinh", "tan", "tanh", "exp", "log", "sqrt")),
]  # fmt: skip
ON_CPU = [
    "torch.linalg.cond(torch.zeros(2, 2))", "torch.linalg.cond(torch.zeros(2, 2), 'nuc')",
    "torch.linalg.cond(torch.zeros(2, 2), 1)", "torch.histc(torch.tensor([1e38] * 5), 4)",
    "F.hardshrink(torch.tensor([.1], dtype=torch.bfloat16), .1)",
]  # fmt: skip


def written(x, index, value):
    x[index] = value
    return x


def answer(lib, functional, expression):
    """Return a library's answer to an expression: dtype, shape and values, or the error's type and message."""

    def gradient(function, values):
        x = lib.tensor(values, requires_grad=True)
        function(x).sum().backward()
        return x.grad

    names = {"torch": lib, "F": functional, "inf": float("inf"), "nan": float("nan"), "written": written}
    try:
        found = eval(expression, {**names, "gradient": gradient})
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0]]
    found = found[0] if isinstance(found, tuple) else found
    flat = lib.view_as_real(found) if found.is_complex() else found
    return [str(found.dtype), list(found.shape), [repr(v) for v in flat.detach().double().reshape(-1).tolist()]]


def alike(found, recorded) -> bool:
    """Whether values are the same: zeros by their sign, numbers within a few roundings, NaNs alike; the sign of an
    infinity beside a NaN says nothing.
    """
    if found[:2] != recorded[:2] or len(found) != len(recorded):
        return False
    if len(recorded) == 2:
        return True
    pairs = list(zip(map(float, found[2]), map(float, recorded[2]), strict=True))
    unknown = any(b != b for _, b in pairs)
    return all(
        a != a
        and b != b
        or (a == b or unknown and a == -b)
        and (a != 0 or unknown or repr(a) == repr(b))
        or abs(a - b) <= 1e-6 * abs(b) < float("inf")
        for a, b in pairs
    )


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_values(expression):
    found = answer(torch, torch.nn.functional, expression)
    recorded = json.loads(FILE.read_text())[expression]
    assert alike(found, recorded), (found, recorded)


@pytest.mark.parametrize("expression", ON_CPU)
def test_values_on_the_cpu(expression, device):
    if device == "cpu":
        test_values(expression)


def test_a_householder_parametrization_gives_the_weight_that_it_was_given():
    for rows, columns in ((3, 3), (5, 3), (3, 5)):
        torch.manual_seed(0)
        layer = torch.nn.Linear(columns, rows)
        q = torch.linalg.qr(torch.randn(max(rows, columns), min(rows, columns)))[0]
        weight = q if rows >= columns else q.T
        layer.weight.data = weight.clone()
        torch.nn.utils.parametrizations.orthogonal(layer, orthogonal_map="householder")
        assert torch.allclose(layer.weight, weight, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.ones(2).float_power_(2), "the base given to float_power_ has dtype Float but the operation's"),
        (lambda: F.fractional_max_pool2d(torch.ones(1, 2, 7, 7), (2,), output_size=3), "kernel_size must either be"),
        (lambda: F.fractional_max_pool2d(torch.ones(1, 2, 7, 7), 2, output_size=(3,)), "output_size must either be"),
        (
            lambda: F.fractional_max_pool2d(torch.ones(1, 2, 7, 7), 2, 1, _random_samples=torch.rand(0, 2, 2)),
            "Expect _random_samples.size",
        ),
        (lambda: torch.linalg.vector_norm(torch.ones(2), 1 + 2j), "Expected a non-complex scalar"),
        (
            lambda: torch.addr(torch.ones(2, 2).int(), torch.ones(2).int(), torch.ones(2).int(), beta=2.0),
            "argument beta",
        ),
        (
            lambda: torch.baddbmm(torch.ones(1, 2, 2).half(), *torch.ones(2, 1, 2, 2), beta=0),
            "Input dtypes must be the",
        ),
    ],
)
def test_wrong_calls_raise(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()
