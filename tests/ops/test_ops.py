"""Every op of the registry: values against PyTorch's recorded answers, derivatives to second order, layouts, devices,
shapes without data.
"""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import NONDIFF, POINTWISE, REGISTRY
from torchlite.autograd import grad, gradcheck, gradgradcheck

from .op_db import COVERED, GOLDEN, ORDERS, ROWS, leaves, load_rows, reordered, spread_out, to_tensors

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of deprecated names
load_rows()
SAMPLES = [(name, i) for name, row in sorted(ROWS.items()) for i in range(len(row.samples))]
DIFFERENTIABLE = [
    (name, i) for name, i in SAMPLES if not REGISTRY[name].tags & NONDIFF and ROWS[name].has_derivative(i)
]
# Central differences need double precision.
DOUBLE = [
    (name, i)
    for name, i in DIFFERENTIABLE
    if all(array.dtype in (np.float64, np.complex128) for array in ROWS[name].float_inputs(i))
]
_HAVE_DERIVATIVES = set(DIFFERENTIABLE)


def for_samples(samples):
    """Parametrizes a test by samples, each named for its arguments; `-k first_sample` chooses one sample of each op."""
    return pytest.mark.parametrize(
        "name,i",
        [
            pytest.param(name, i, id=f"{name}-{ROWS[name].labels[i]}", marks=[pytest.mark.first_sample] * (i == 0))
            for name, i in samples
        ],
    )


@pytest.fixture(scope="module")
def golden():
    found = {}
    for path in sorted(GOLDEN.glob("*.npz")):
        with np.load(path) as answers:
            found.update({key: answers[key] for key in answers.files})
    return found


def run(name, i, device, **how):
    row = ROWS[name]
    args, kwargs = to_tensors(row.values(i), device, **how)
    torch.manual_seed(0)
    with np.errstate(all="raise"):  # the program's state, which is no business of ops
        return args, kwargs, row.function()(*args, **kwargs)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if any(s.constant for s in row.samples)])
def test_constant_samples_have_no_derivative(name):
    for i, sample in enumerate(ROWS[name].samples):
        args, kwargs, inputs = _inputs(name, i, "cpu")
        results = leaves(ROWS[name].function()(*args, **kwargs))
        assert any(t.requires_grad for t in results) == (not sample.constant and bool(inputs))


def test_every_op_has_a_row():
    missing = sorted(name for name in REGISTRY if name not in ROWS and name not in COVERED)
    assert not missing, f"{len(missing)} ops without a row in tests/ops/definitions (or a `covers=`): {missing}"


@for_samples(SAMPLES)
def test_value(name, i, device, golden):
    row = ROWS[name]
    _, _, result = run(name, i, device)
    keys = sorted((k for k in golden if k.startswith(f"{name}/{i}/")), key=lambda k: int(k.rsplit("/", 1)[1]))
    assert keys, f"no recorded answer for {name}: run tools/record_golden.py {row.family}"
    if callable(row.free):
        result = row.free(result)
    found = leaves(result)
    assert len(found) == len(keys)
    for mine, key in zip(found, keys, strict=True):
        want = golden[key]
        have = mine.detach().cpu().resolve_conj().numpy()
        assert have.shape == want.shape and have.dtype == want.dtype, (have.shape, want.shape, have.dtype, want.dtype)
        if not row.random and row.free is not True:
            single = want.dtype in (np.float32, np.complex64, np.float16)
            np.testing.assert_allclose(have, want, rtol=1e-4 if single else row.tol, atol=1e-5 if single else row.tol)


def _inputs(name, i, device, **how):
    args, kwargs = to_tensors(ROWS[name].values(i), device, requires_grad=True, **how)
    return args, kwargs, [t for t in leaves((args, kwargs)) if t.requires_grad]


@for_samples(DOUBLE)
def test_derivatives(name, i, device):
    """First and second order against central differences (in a random direction)."""
    args, kwargs, inputs = _inputs(name, i, device)
    function = ROWS[name].function()
    slots = {id(t): k for k, t in enumerate(inputs)}

    def of_inputs(*values):
        def put(tree):
            if id(tree) in slots:
                return values[slots[id(tree)]]
            if isinstance(tree, (list, tuple)):
                return type(tree)(put(item) for item in tree)
            return {k: put(v) for k, v in tree.items()} if isinstance(tree, dict) else tree

        torch.manual_seed(0)
        result = function(*put(args), **put(kwargs))
        result = ROWS[name].free(result) if callable(ROWS[name].free) else result
        return tuple(t for t in leaves(result) if t.requires_grad)

    assert of_inputs(*inputs), "no result has a derivative: write constant(S(...)) in the row"
    gradcheck(of_inputs, inputs, fast_mode=True, atol=1e-4)
    if ROWS[name].gradgrad:
        gradgradcheck(of_inputs, inputs, fast_mode=True, atol=1e-3, rtol=2e-3)


def _gradients(name, i, device, create_graph=False, **how):
    args, kwargs, inputs = _inputs(name, i, device, **how)
    torch.manual_seed(0)
    with np.errstate(all="raise"):
        outs = [t for t in leaves(ROWS[name].function()(*args, **kwargs)) if t.requires_grad]
    assert inputs and outs, "no result has a derivative: write constant(S(...)) in the row"
    cotangents = [
        torch.from_numpy(np.asarray(np.cos(np.arange(o.numel()).reshape(o.shape)), dtype=o.dtype.np)).to(device)
        for o in outs
    ]
    with np.errstate(all="raise"):
        found = grad(outs, inputs, cotangents, create_graph=create_graph, allow_unused=True)
    return [(x, g) for x, g in zip(inputs, found, strict=True)]


@for_samples(DIFFERENTIABLE)
def test_raw_and_tensor_formulas_agree(name, i, device):
    """The same formula over raw arrays (backward) and over Tensors (create_graph)."""
    # The two are other convolutions, which oneDNN and cuDNN add up in other orders.
    with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False):
        raw, tensor = _gradients(name, i, device), _gradients(name, i, device, create_graph=ROWS[name].gradgrad)
    for (x, a), (_, b) in zip(raw, tensor, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == x.shape and a.dtype is x.dtype and b.dtype is x.dtype
            np.testing.assert_allclose(
                a.cpu().resolve_conj().numpy(), b.detach().cpu().resolve_conj().numpy(), rtol=1e-6, atol=1e-8
            )


@for_samples([(name, i) for name, i in SAMPLES if ROWS[name].noncontiguous])
def test_noncontiguous_inputs(name, i, device):
    _compare_layouts(name, i, device, spread_out)


@pytest.mark.parametrize("family", sorted({row.family for row in ROWS.values()}))
def test_dimensions_in_other_orders(family):
    for name, i in (c for c in SAMPLES if ROWS[c[0]].family == family and ROWS[c[0]].noncontiguous):
        for number in range(1, ORDERS):
            _compare_layouts(name, i, "cpu", reordered(number))


def _compare_layouts(name, i, device, laid_out):
    row = ROWS[name]
    _, _, plain = run(name, i, device)
    _, _, spread = run(name, i, device, laid_out=laid_out)
    for a, b in zip(leaves(plain), leaves(spread), strict=True):
        assert a.shape == b.shape and a.dtype is b.dtype
        if row.free is False and not row.random:
            np.testing.assert_allclose(
                a.detach().cpu().resolve_conj().numpy(), b.detach().cpu().resolve_conj().numpy(), rtol=1e-6, atol=1e-9
            )
    if (name, i) in _HAVE_DERIVATIVES and row.free is False:
        first, second = _gradients(name, i, device), _gradients(name, i, device, laid_out=laid_out)
        for (_, a), (_, b) in zip(first, second, strict=True):
            if a is not None:
                np.testing.assert_allclose(
                    a.cpu().resolve_conj().numpy(), b.cpu().resolve_conj().numpy(), rtol=1e-6, atol=1e-8
                )


@for_samples([(name, i) for name, i in SAMPLES if ROWS[name].meta])
def test_shape_on_meta(name, i):
    """The shape rules say what the kernels do."""
    _, _, result = run(name, i, "cpu")
    try:
        _, _, shapes = run(name, i, "meta")
    except NotImplementedError as error:
        raise AssertionError(
            f"{name} has no shape rule (give it meta=, or meta=False in its row if its shape depends on data): {error}"
        ) from error
    for a, b in zip(leaves(result), leaves(shapes), strict=True):
        assert a.shape == b.shape and a.dtype is b.dtype, (name, a.shape, b.shape, a.dtype, b.dtype)


@pytest.mark.parametrize(
    "name", sorted(n for n in ROWS if REGISTRY[n].tags & POINTWISE and not ROWS[n].call and not ROWS[n].oracle)
)
@pytest.mark.parametrize("shape", [(), (0, 3)], ids=["0-d", "empty"])
def test_pointwise_without_dimensions_or_elements(name, shape, device):
    row = ROWS[name]
    args, kwargs = row.values(0)
    cut = [
        np.asarray(a.reshape(-1)[0]).reshape(())
        if shape == () and isinstance(a, np.ndarray)
        else np.zeros(shape, a.dtype)
        if isinstance(a, np.ndarray)
        else a
        for a in args
    ]
    kwargs = {
        k: (np.asarray(v.reshape(-1)[0]) if shape == () else np.zeros(shape, v.dtype))
        if isinstance(v, np.ndarray)
        else v
        for k, v in kwargs.items()
    }
    result = row.function()(*to_tensors(cut, device), **to_tensors(kwargs, device))
    assert all(leaf.shape == shape for leaf in leaves(result))
