"""nn.utils: clipping, vectors of parameters, parametrizations, norms, fusion, functional calls."""

import copy

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._ops import multi_tensor_clip
from torchlite.nn.utils import parametrizations, parametrize

from .cases import data


def with_grads(*norms):
    params = [nn.Parameter(torch.zeros(2)) for _ in norms]
    for param, norm in zip(params, norms, strict=True):
        param.grad = torch.tensor([norm, 0.0])
    return params


@pytest.mark.parametrize("foreach", [None, True, False])
def test_clipping_by_foreach(monkeypatch, foreach):
    """False handles one tensor at a time; the results are the same."""
    calls = []
    for name in ("norm_of_all", "scale_all", "clamp_all"):
        function = getattr(multi_tensor_clip, name)
        monkeypatch.setattr(multi_tensor_clip, name, lambda *a, name=name, f=function: (calls.append(name), f(*a))[1])
    params = with_grads(3.0, 4.0)
    assert nn.utils.clip_grad_norm_(params, 1.0, foreach=foreach).item() == pytest.approx(5)
    assert [p.grad.max().item() for p in params] == pytest.approx([0.6, 0.8])
    nn.utils.clip_grad_value_(params, 0.5, foreach=foreach)
    assert [p.grad.max().item() for p in params] == [0.5, 0.5]
    assert calls == ([] if foreach is False else ["norm_of_all", "scale_all", "clamp_all"])


def test_clipping():
    params = with_grads(3.0, 4.0)
    assert nn.utils.get_total_norm([p.grad for p in params]).item() == 5
    assert nn.utils.clip_grad_norm_(params, 1.0).item() == 5
    torch.testing.assert_close(params[1].grad, torch.tensor([0.8, 0.0]), rtol=1e-5, atol=1e-6)
    assert nn.utils.clip_grad_norm_(params, 10.0, norm_type=float("inf")).item() == pytest.approx(0.8)
    nn.utils.clip_grad_value_(params, 0.5)
    assert params[1].grad.max().item() == 0.5
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0
    with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients from `parameters` is non-finite"):
        nn.utils.clip_grad_norm_(with_grads(float("nan")), 1.0, error_if_nonfinite=True)


def test_vectors_of_parameters():
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,) and vector.grad_fn is not None
    nn.utils.vector_to_parameters(torch.arange(9.0), layer.parameters())
    assert layer.bias.tolist() == [6, 7, 8]


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, a):
        return a.triu()


def test_parametrize():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert torch.equal(layer.weight, layer.weight.T) and parametrize.is_parametrized(layer, "weight")
    assert type(layer).__name__ == "ParametrizedLinear" and list(layer.state_dict()) == [
        "bias",
        "parametrizations.weight.original",
    ]
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    layer.weight = torch.eye(3)
    assert torch.equal(layer.weight.detach(), torch.eye(3))
    with parametrize.cached():
        assert layer.weight is layer.weight
    twin = copy.deepcopy(layer)
    assert torch.equal(twin.weight, layer.weight) and twin.parametrizations is not layer.parametrizations
    parametrize.remove_parametrizations(layer, "weight")
    assert (
        type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter) and torch.equal(layer.weight, torch.eye(3))
    )


@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("sizes", [(3, 3), (4, 2), (2, 4)])
def test_orthogonal(how, sizes):
    layer = parametrizations.orthogonal(nn.Linear(*sizes), orthogonal_map=how)
    q = layer.weight if sizes[0] < sizes[1] else layer.weight.T
    torch.testing.assert_close(q.T @ q, torch.eye(min(sizes)), rtol=1e-4, atol=1e-4)
    layer(torch.ones(1, sizes[0])).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None


def test_weight_and_spectral_norm():
    layer = nn.Linear(3, 4)
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    torch.testing.assert_close(layer.weight.detach(), before)
    assert layer.parametrizations.weight.original0.shape == (4, 1)
    old = nn.Linear(3, 4)
    with pytest.warns(FutureWarning, match="deprecated in favor of"):
        nn.utils.weight_norm(old)
    assert {"weight_g", "weight_v", "bias"} == set(old.state_dict())
    old(torch.ones(1, 3)).sum().backward()
    nn.utils.remove_weight_norm(old)
    assert isinstance(old.weight, nn.Parameter)
    for make in (parametrizations.spectral_norm, nn.utils.spectral_norm):
        layer = make(nn.Conv2d(2, 3, 2))
        for _ in range(30):
            layer(torch.ones(1, 2, 3, 3))
        layer.eval()
        layer(torch.ones(1, 2, 3, 3))
        assert torch.linalg.svdvals(layer.weight.detach().flatten(1))[0].item() == pytest.approx(1, abs=1e-3)


def test_fusion_and_skip_init():
    conv, norm = nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)
    norm(data(torch, 4, 3, 2, 2) * 2 + 1)
    conv.eval()
    norm.eval()
    x = data(torch, 1, 2, 4, 4)
    torch.testing.assert_close(nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)), rtol=1e-4, atol=1e-5)
    layer = nn.utils.skip_init(nn.Linear, 2, 3)
    assert layer.weight.shape == (3, 2) and layer.weight.device.type == "cpu"


def test_functional_call():
    layer = nn.Linear(2, 2)
    before = layer.weight
    weight = torch.zeros(2, 2, requires_grad=True)
    out = nn.utils.stateless._functional_call(layer, {"weight": weight}, (torch.ones(1, 2),))
    assert torch.equal(out[0], layer.bias) and layer.weight is before
    out.sum().backward()
    assert weight.grad is not None and layer.weight.grad is None
    with pytest.raises(RuntimeError, match="Missing key"):
        nn.utils.stateless._functional_call(layer, {"weight": weight}, (torch.ones(1, 2),), strict=True)


def test_pruning():
    from torchlite.nn.utils import prune

    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.1, -2.0, 3.0], [-0.2, 0.3, -4.0]]))
    prune.l1_unstructured(layer, "weight", 2)
    assert layer.weight_mask.tolist() == [[0, 1, 1], [0, 1, 1]] and list(layer.state_dict()) == [
        "bias",
        "weight_orig",
        "weight_mask",
    ]
    prune.ln_structured(layer, "weight", 1, n=2, dim=0)
    assert layer.weight_mask.tolist() == [[0, 0, 0], [0, 1, 1]] and prune.is_pruned(layer)
    layer(torch.ones(1, 3)).sum().backward()
    assert layer.weight_orig.grad.tolist() == [[0, 0, 0], [0, 1, 1]]
    prune.remove(layer, "weight")
    torch.testing.assert_close(layer.weight.detach(), torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.3, -4.0]]))
    assert isinstance(layer.weight, nn.Parameter) and not prune.is_pruned(layer)
    pair = nn.Linear(2, 1), nn.Linear(1, 2)
    prune.global_unstructured([(pair[0], "weight"), (pair[1], "weight")], prune.RandomUnstructured, amount=3)
    assert sum(int(part.weight_mask.sum()) for part in pair) == 1
    with pytest.raises(ValueError, match="amount=9 should be smaller than the number of parameters to prune=2"):
        prune.random_unstructured(nn.Linear(2, 1), "weight", 9)


def test_local_response_across_channels_is_differentiable():
    x = data(torch, 1, 5, 2, 2).double().requires_grad_()
    assert torch.autograd.gradcheck(nn.CrossMapLRN2d(3, 0.1), (x,))


def test_inverses_of_further_parametrizations_are_checked():
    class Inverse(nn.Module):
        def __init__(self, inverse):
            super().__init__()
            self.right_inverse = inverse

        def forward(self, x):
            return x

    layer = nn.Linear(3, 4)
    nn.utils.parametrize.register_parametrization(layer, "weight", nn.Identity())
    for inverse, words in (
        (lambda x: (x, x), "parametrization.right_inverse must return a tensor. Got: tuple"),
        (lambda x: x.bool(), "must have the same dtype as module.weight, unless the `unsafe` flag is enabled"),
        (lambda x: x[:-1], "must have the same shape as module.weight, unless the `unsafe` flag is enabled"),
    ):
        with pytest.raises(ValueError, match=words):
            nn.utils.parametrize.register_parametrization(layer, "weight", Inverse(inverse))
    assert len(layer.parametrizations.weight) == 1


def test_lengths_of_packed_sequences_are_checked():
    pack = nn.utils.rnn.pack_padded_sequence
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        pack(torch.ones(0, 1, 10), torch.ones(3, 2), True)
    for shape, what in (((2, 1), "2D"), ((), "0D")):
        with pytest.raises(RuntimeError, match=f"should be a 1D CPU int64 tensor, but got {what} cpu Long tensor"):
            pack(torch.ones(3, 2), torch.ones(shape, dtype=torch.int64))
    for lengths in ([2.0, 1.0], torch.tensor([2.0, 1.0])):
        assert pack(torch.ones(3, 2), lengths).batch_sizes.tolist() == [2, 1]


def _old_state(layer):
    """The state of a spectral norm before its version 1: the divided weight is in it, and no vector v."""
    layer(torch.randn(2, layer.in_features))
    state = layer.state_dict()
    state["weight"] = layer.weight.detach().clone()
    v = state.pop("weight_v")
    state._metadata = {"": {"version": 1}}
    return state, v


def test_a_spectral_norm_of_an_old_state():
    state, v = _old_state(nn.utils.spectral_norm(nn.Linear(3, 4)))
    layer = nn.utils.spectral_norm(nn.Linear(3, 4))
    layer.load_state_dict(state)
    torch.testing.assert_close(layer.weight_v, v)
    assert set(layer.state_dict()) == {"bias", "weight_orig", "weight_u", "weight_v"}
    x = torch.randn(5, 3)
    torch.testing.assert_close(layer.eval()(x), nn.functional.linear(x, state["weight"], state["bias"]))


def test_old_states_of_a_spectral_norm_that_lack_keys():
    state, _ = _old_state(nn.utils.spectral_norm(nn.Linear(3, 4)))
    del state["weight_u"]
    layer = nn.utils.spectral_norm(nn.Linear(3, 4))
    with pytest.raises(RuntimeError, match='Missing key.*"weight_u", "weight_u", "weight_v"'):
        layer.load_state_dict(state)
    assert "weight_v" in layer.load_state_dict(state, strict=False).missing_keys


def test_an_old_spectral_norm_inside_a_model():
    inner = nn.utils.spectral_norm(nn.Linear(3, 4))
    state, v = _old_state(inner)
    whole = {f"0.{name}": value for name, value in state.items()}
    model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 4)))
    model.load_state_dict(whole)
    torch.testing.assert_close(model[0].weight_v, v)


def test_a_removed_spectral_norm_reads_no_old_states():
    layer = nn.utils.spectral_norm(nn.Linear(3, 4))
    nn.utils.remove_spectral_norm(layer)
    assert not layer._load_state_dict_pre_hooks
    layer.load_state_dict(nn.Linear(3, 4).state_dict())
