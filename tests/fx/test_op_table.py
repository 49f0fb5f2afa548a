"""`make_fx` and `Interpreter` over the op table: each op's first sample, captured, gives what the op gives."""

import pytest

import torchlite as torch
from tests.ops.op_db import ROWS, load_rows, to_tensors
from torchlite.fx import Interpreter
from torchlite.fx.experimental.proxy_tensor import make_fx
from torchlite.utils import _pytree

load_rows()
# Ops that are not captured: what they give is uninitialised memory; they read elements, or write to parameters; Python
# functions or packed weights are among their arguments; they write to tensors that the capture itself makes.
LEFT = frozenset(
    (
        "empty empty_like new_empty new_empty_strided _amp_update_scale_ _fused_adagrad _fused_adam _fused_rmsprop "
        "_fused_sgd map_ map2_ fused_moving_avg_obs_fake_quant _constant_matmul _dynamic_linear"
    ).split()
)


def called(name):
    """The op of a row, its arguments as leaves, and the places of the tensors among them."""
    args, kwargs = to_tensors(ROWS[name].values(0))
    leaves, spec = _pytree.tree_flatten((args, kwargs))
    places = [place for place, value in enumerate(leaves) if isinstance(value, torch.Tensor)]

    def run(*tensors):
        given = [*leaves]
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        args, kwargs = _pytree.tree_unflatten(given, spec)
        return ROWS[name].function()(*args, **kwargs)

    return run, lambda: [value for value in _pytree.tree_leaves(to_tensors(ROWS[name].values(0))) if _is_tensor(value)]


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def seeded(run, tensors):
    torch.manual_seed(0)
    return [value.detach() if _is_tensor(value) else value for value in _pytree.tree_leaves(run(*tensors))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(ROWS) - LEFT))
def test_captured_graphs_match_the_op(name):
    run, tensors = called(name)
    expected = seeded(run, tensors())
    assert any(map(_is_tensor, expected)), "numbers and sizes, which no graph computes: add the op to LEFT"
    torch.manual_seed(0)
    module = make_fx(run)(*tensors())
    for captured in (module, Interpreter(module).run):
        found = seeded(captured, tensors())
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs, equal_nan=True)


# Ops of torchlite's alone that get arrays or functions, which no graph holds.
UNHELD = frozenset(("_copy_slices", "_index", "_random_slopes"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(ROWS) - LEFT - UNHELD))
def test_gradients_that_were_captured_hold_for_other_inputs(name):
    run, tensors = called(name)

    def inputs(factor):
        given = [t * factor if t.dtype.is_floating_point or t.dtype.is_complex else t for t in tensors()]
        return [t.detach().clone().requires_grad_(t.dtype.is_floating_point or t.dtype.is_complex) for t in given]

    def outputs(given):
        return [v for v in _pytree.tree_leaves(run(*given)) if _is_tensor(v) and v.requires_grad]

    def joint(given, tangents):
        results = outputs(given)
        wanted = [t for t in given if t.requires_grad]
        return results, torch.autograd.grad(results, wanted, tangents, allow_unused=True)

    try:
        tangents = [torch.full_like(v, 0.7) for v in outputs(inputs(1.0))]
        joint(inputs(1.0), tangents)
    except (RuntimeError, NotImplementedError):
        return  # writes to leaves, derivatives that there are not
    module = make_fx(joint)(inputs(1.0), tangents)
    for factor in (1.0, 1.01):
        found = []
        for function in (joint, module):
            torch.manual_seed(1)
            found.append(_pytree.tree_leaves(function(inputs(factor), tangents)))
        for expected, mine in zip(*found, strict=True):
            torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_overloads_named_by_python_keywords():
    module = make_fx(lambda x: x.clone().random_(-4, 9))(torch.ones(5))
    assert 'getattr(torch.ops.aten.random_, "from")' in module.code
    torch.manual_seed(0)
    found = module(torch.ones(5))
    torch.manual_seed(0)
    assert torch.equal(found, torch.ones(5).random_(-4, 9))


def test_transforms_of_another_factor():
    x = torch.randn(2, 3, 4, dtype=torch.complex128)
    run = lambda x: torch.fft.hfft2(x, (2, 5), (0, 1), "ortho")
    torch.testing.assert_close(make_fx(run)(x)(x), run(x))


class Sizes(list):
    """A list as programs derive them."""


@pytest.mark.parametrize(
    "call",
    [
        lambda x, two, one: x.reshape(two), lambda x, two, one: x.permute(Sizes([1, 0])),
        lambda x, two, one: x.sum(one),
        lambda x, two, one: x.expand(Sizes([3, 2, 6])), lambda x, two, one: torch.zeros(two),
        lambda x, two, one: x.new_ones(two), lambda x, two, one: x.flip(one),
        lambda x, two, one: torch.cat(Sizes([x, x])),
    ],
)  # fmt: skip
def test_lists_of_a_derived_class_are_lists(call):
    x = torch.arange(12.0).reshape(2, 6)
    assert call(x, Sizes([3, 4]), Sizes([1])).numel()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: torch.unique_consecutive(i, return_counts=True), lambda x, i: torch.tensor_split(x, i[:1]),
        lambda x, i: torch.nn.functional.cross_entropy(x, i), lambda x, i: torch.max(x[0, 0], x[1, 1]),
        lambda x, i: torch.nn.functional.one_hot(i),
        lambda x, i: torch.matmul(x[:, :0], x[:0].expand(2, 0, 6)),
        lambda x, i: torch.scatter(x, 1, i.unsqueeze(1), 3.0),
        lambda x, i: torch.unique_consecutive(i, return_inverse=True)[1] + torch.add(2, x[:, 0], alpha=3).long(),
    ],
)  # fmt: skip
def test_calls_whose_elements_only_checks_and_kernels_read(call):
    given = lambda: (torch.arange(12.0).reshape(2, 6), torch.tensor([1, 5]))
    module = make_fx(call)(*given())
    for captured in (module, Interpreter(module).run):
        torch.testing.assert_close(captured(*given()), call(*given()))
