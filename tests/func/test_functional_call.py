"""Modules inside vmap, against loops: ensembles of modules, batches of inputs, and gradients of each example."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from tests.nn import cases
from torchlite import nn
from torchlite.func import functional_call, grad, stack_module_state, vmap
from torchlite.utils._pytree import tree_leaves

SIZE = 3
# Layers that read their data, in PyTorch too.
REFUSED = {"AdaptiveLogSoftmaxWithLoss"}


def line(*shape):
    return cases.data(torch, *shape)


def target(*shape):
    return cases.data(torch, *shape, low=0.1, high=0.9, phase=2.0)


L1, L2, L3 = (2, 4, 8), (2, 4, 6, 6), (1, 2, 4, 4, 4)
_POINTWISE = (
    "CELU ELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish RReLU ReLU ReLU6 SELU SiLU "
    "Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink Identity Flatten"
)
# The classes that `cases` has no layer of: (constructor's arguments, shapes of the inputs).
MORE = {
    **{name: ((), [(2, 4)]) for name in _POINTWISE.split()},
    **{name: ((0.5,), [L1]) for name in ("AlphaDropout", "Dropout1d")},
    **{name: ((0.5,), [L3]) for name in ("Dropout2d", "Dropout3d", "FeatureAlphaDropout")},
    **{name: ((-1,), [(2, 4)]) for name in ("Softmax", "LogSoftmax", "Softmin")},
    "Threshold": ((0.1, 2.0), [(2, 4)]), "Unflatten": ((1, (2, 2)), [(3, 4)]),
    "AdaptiveAvgPool1d": ((3,), [L1]), "AdaptiveAvgPool3d": ((3,), [L3]), "AdaptiveMaxPool1d": ((3,), [L1]),
    "AdaptiveMaxPool2d": ((3,), [L2]), "AdaptiveMaxPool3d": ((3,), [L3]), "AvgPool1d": ((3, 2), [L1]),
    "AvgPool3d": ((2,), [L3]), "MaxPool1d": ((3, 2), [L1]), "MaxPool3d": ((2,), [L3]), "LPPool2d": ((2, 2), [L2]),
    "LPPool3d": ((2, 2), [L3]), "BatchNorm3d": ((2,), [L3]), "SyncBatchNorm": ((4,), [L2]),
    "InstanceNorm1d": ((4,), [L1]), "InstanceNorm3d": ((2,), [L3]), "LocalResponseNorm": ((2,), [L2]),
    "CrossMapLRN2d": ((2,), [L2]), "ConvTranspose3d": ((2, 3, 2), [L3]), "ChannelShuffle": ((2,), [L2]),
    "PixelUnshuffle": ((2,), [L2]), "Fold": (((3, 3), 2), [(1, 8, 4)]), "UpsamplingBilinear2d": ((None, 2), [L2]),
    "UpsamplingNearest2d": ((None, 2), [L2]),
    **{f"{kind}1d": ((1, *more), [L1]) for kind, more in (
        ("CircularPad", ()), ("ConstantPad", (2.0,)), ("ReflectionPad", ()), ("ReplicationPad", ()), ("ZeroPad", ()),
    )},
    **{f"{kind}2d": ((1, *more), [L2]) for kind, more in (
        ("ConstantPad", (2.0,)), ("ReflectionPad", ()), ("ReplicationPad", ()), ("ZeroPad", ()),
    )},
    **{f"{kind}3d": ((1, *more), [L3]) for kind, more in (
        ("CircularPad", ()), ("ConstantPad", (2.0,)), ("ReflectionPad", ()), ("ReplicationPad", ()), ("ZeroPad", ()),
    )},
    **{name: ((), [(3, 4), (3, 4)]) for name in (
        "BCELoss", "HingeEmbeddingLoss", "HuberLoss", "L1Loss", "MSELoss", "MultiLabelSoftMarginLoss",
        "PoissonNLLLoss", "SoftMarginLoss", "CosineSimilarity", "PairwiseDistance",
    )},
    **{name: ((), [(3, 4)] * 3) for name in ("GaussianNLLLoss", "MarginRankingLoss", "TripletMarginWithDistanceLoss")},
}  # fmt: skip


def made(name):
    torch.manual_seed(len(name))
    if name in MORE:
        arguments, shapes = MORE[name]
        models = [getattr(nn, name)(*arguments).eval() for _ in range(SIZE)]
        given = [
            target(*shape) if position or name == "BCELoss" else line(*shape) for position, shape in enumerate(shapes)
        ]
    else:
        build, inputs = cases.LAYERS[name]
        models, given = [build(nn).eval() for _ in range(SIZE)], inputs(torch)
    return models, given


def varied(given, i):
    """The inputs of example i."""
    return [t * (1 - i / 4) if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in given]


def same(found, rows, tol):
    for got, *wanted in zip(tree_leaves(found), *map(tree_leaves, rows), strict=True):
        if isinstance(got, torch.Tensor):
            want = torch.stack(wanted)
            assert got.shape == want.shape
            np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=tol, atol=tol)


def loss_of(model):
    """(parameters, buffers, inputs) -> the sum of squares of what the module gives."""

    def loss(parameters, buffers, *inputs):
        out = functional_call(model, (parameters, buffers), tuple(inputs))
        return sum((t * t).sum() for t in tree_leaves(out) if isinstance(t, torch.Tensor) and t.is_floating_point())

    return loss


@pytest.mark.parametrize("name", [name for name in (*cases.LAYERS, *MORE) if name not in REFUSED])
@pytest.mark.filterwarnings("ignore")
def test_layers(name):
    models, given = made(name)
    with torch.no_grad():
        batches = [torch.stack(column) for column in zip(*(varied(given, i) for i in range(SIZE)), strict=True)]
        rows = [models[0](*varied(given, i)) for i in range(SIZE)]
        same(vmap(lambda *inputs: models[0](*inputs))(*batches), rows, 1e-4)
        parameters, buffers = stack_module_state(models)
        rows = [model(*given) for model in models]
        if parameters:

            def ensemble(p, b):
                return functional_call(models[0], (p, b), tuple(given))

            same(vmap(ensemble)(parameters, buffers), rows, 1e-4)
    own = {k: v.detach() for k, v in models[0].named_parameters()}
    rest = dict(models[0].named_buffers())
    if not own:
        return
    gradient = grad(loss_of(models[0]))
    rows = [gradient(own, rest, *varied(given, i)) for i in range(SIZE)]
    same(vmap(gradient, (None, None, *[0] * len(batches)))(own, rest, *batches), rows, 2e-3)


def indices(high, *shape):
    return cases.ints(torch, high, *shape)


@pytest.mark.parametrize(
    "module, inputs",
    [
        (nn.Embedding(5, 3, padding_idx=1), lambda i: [(indices(5, 4) + i) % 5]),
        (nn.EmbeddingBag(5, 3), lambda i: [(indices(5, 2, 4) + i) % 5]),
        (nn.NLLLoss(), lambda i: [line(3, 5) * (i + 1), (indices(5, 3) + i) % 5]),
        (nn.NLLLoss(torch.tensor([1.0, 2, 0.5, 1, 1])), lambda i: [line(3, 5), (indices(5, 3) + i) % 5]),
        (nn.MultiMarginLoss(), lambda i: [line(3, 5), (indices(5, 3) + i) % 5]),
        (nn.MultiLabelMarginLoss(), lambda i: [line(2, 4) * (i + 1), torch.tensor([[i, 3, -1, 0], [0, -1, 1, 2]])]),
        (nn.CosineEmbeddingLoss(), lambda i: [line(3, 4), target(3, 4) * (i + 1), torch.tensor([1.0, -1.0, 1.0])]),
        (nn.CTCLoss(), lambda i: [
            line(6, 2, 4).log_softmax(-1) * (1 + i), torch.tensor([[1, 2], [3, 3]]), torch.tensor([6, 6]),
            torch.tensor([2, 1 + i % 2]),
        ]),
        (nn.MaxUnpool2d(2), lambda i: nn.functional.max_pool2d(line(*L2) * (i - 1.5), 2, return_indices=True)),
        (nn.FractionalMaxPool2d(2, 3, _random_samples=torch.full((2, 4, 2), 0.3)), lambda i: [line(*L2) * (i - 1.5)]),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, nn.Module) else "",
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_other_inputs(module, inputs):
    with torch.no_grad():
        rows = [module(*inputs(i)) for i in range(SIZE)]
        batches = [torch.stack(column) for column in zip(*map(inputs, range(SIZE)), strict=True)]
        same(vmap(lambda *given: module(*given))(*batches), rows, 1e-4)


def test_training_mode():
    """Dropout draws for each example, and batch norm cannot move statistics that all examples share."""
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))
    x = line(1, 4).expand(5, 4)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(net)(x)
    assert (vmap(net, randomness="same")(x) == vmap(net, randomness="same")(x)[0]).sum() < 5 * 8
    y = vmap(net, randomness="same")(x)
    assert torch.equal(y, y[:1].expand(5, 8))
    z = vmap(net, randomness="different")(x)
    assert not torch.equal(z, z[:1].expand(5, 8))
    norm = nn.BatchNorm1d(4)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor"):
        vmap(norm)(line(3, 5, 4))
    free = nn.BatchNorm1d(4, track_running_stats=False)
    same(vmap(free)(line(3, 5, 4)), [free(t) for t in line(3, 5, 4)], 1e-4)
