"""How distributions, transforms and their tables behave: subclasses, expansion, validation, caches, dispatch."""

import copy
import pickle
import subprocess
import sys
import warnings

import pytest

import torchlite as torch
from torchlite import distributions as D
from torchlite.distributions import constraints
from torchlite.distributions.kl import _KL_REGISTRY


def test_import_is_lazy():
    code = "import sys, torchlite; sys.exit('torchlite.distributions' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_subclass_with_a_custom_init_needs_expand():
    class Standard(D.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="Subclass Standard of Normal that defines a custom __init__"):
        Standard().expand([2])

    class Expanding(Standard):
        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, self._get_checked_instance(Expanding, _instance))

    assert Expanding().expand([2]).loc.shape == (2,)

    class Plain(D.Gumbel):
        pass

    expanded = Plain(torch.zeros(3), 1.0).expand([2, 3])
    assert type(expanded) is Plain and expanded.sample().shape == (2, 3)


def test_expand_shares_memory_and_lazy_properties():
    d = D.Bernoulli(logits=torch.zeros(3, requires_grad=True))
    assert "probs" not in d.__dict__
    e = d.expand((2, 3))
    assert "probs" not in e.__dict__ and e._param is e.logits and e.logits.stride() == (0, 1)
    assert "probs" in d.__dict__ if d.probs is not None else False
    m = D.MultivariateNormal(torch.zeros(2), torch.eye(2)).expand((4,))
    assert "scale_tril" not in m.__dict__ and m.scale_tril.shape == (4, 2, 2) and "scale_tril" in m.__dict__


def test_default_of_validation():
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
        D.Normal(0.0, 1.0).log_prob(torch.tensor(float("nan")))
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(0.0, -1.0)
    assert D.Normal(0.0, -1.0, validate_args=False).expand((2,))._validate_args is False


def test_missing_constraints_and_support_warn():
    class Silent(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        d = Silent()
    with pytest.warns(UserWarning, match="does not define `support`"):
        d._validate_sample(torch.tensor(0.0))
    with pytest.raises(NotImplementedError):
        d.expand((2,))


def test_divergence_uses_the_most_specific_match():
    class A(D.Normal):
        pass

    class B(A):
        pass

    before = dict(_KL_REGISTRY)
    try:
        D.register_kl(A, D.Normal)(lambda p, q: "left")
        assert D.kl_divergence(B(0.0, 1.0), D.Normal(0.0, 1.0)) == "left"
        D.register_kl(D.Normal, A)(lambda p, q: "right")
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(B, A\). Please register_kl\(A, A\)"):
            assert D.kl_divergence(B(0.0, 1.0), A(0.0, 1.0)) == "left"
        D.register_kl(A, A)(lambda p, q: "both")
        assert D.kl_divergence(B(0.0, 1.0), A(0.0, 1.0)) == "both"
    finally:
        _KL_REGISTRY.clear()
        _KL_REGISTRY.update(before)
        D.kl._KL_MEMOIZE.clear()


def test_transformed_divergence_requires_equal_transforms():
    one = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.AffineTransform(1.0, 2.0)])
    same = D.TransformedDistribution(D.Normal(1.0, 1.0), [D.AffineTransform(1.0, 2.0)])
    other = D.TransformedDistribution(D.Normal(1.0, 1.0), [D.AffineTransform(1.0, 3.0)])
    assert D.kl_divergence(one, same).item() == pytest.approx(0.5)
    with pytest.raises(NotImplementedError):
        D.kl_divergence(one, other)


def test_cache_gives_back_the_same_tensor():
    t = D.TanhTransform(cache_size=1)
    x = torch.tensor([20.0])
    y = t(x)
    assert t.inv(y) is x and t.inv.inv is t
    assert not torch.equal(D.TanhTransform().inv(y), x)
    d = D.TransformedDistribution(D.Normal(torch.zeros(2), 1.0), [t])
    assert d.log_prob(d.sample()).isfinite().all()
    inverse = t.inv
    del t
    assert inverse.inv(torch.zeros(1)).item() == 0
    copied = pickle.loads(pickle.dumps(D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])))
    assert copied == D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])


def test_copies_and_pickles():
    for d in (D.Normal(torch.zeros(2), 1.0), D.Gumbel(0.0, 1.0), D.Categorical(torch.ones(3)), D.Beta(1.0, 2.0)):
        value = d.sample()
        for other in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d)):
            assert repr(other) == repr(d)
            assert torch.equal(other.log_prob(value), copy.copy(d).log_prob(value))


def test_tables_of_constraints_take_more():
    class Doubled(constraints.Constraint):
        def check(self, value):
            return value == value

    with pytest.raises(NotImplementedError, match="Cannot transform Doubled constraints"):
        D.biject_to(Doubled())

    @D.biject_to.register(Doubled)
    def factory(constraint):
        return D.AffineTransform(0.0, 2.0)

    try:
        assert D.biject_to(Doubled())(torch.ones(1)).item() == 2
    finally:
        del D.biject_to._registry[Doubled]


def test_support_is_a_property_of_the_class_too():
    assert constraints.is_dependent(D.Binomial.support) and not constraints.is_dependent(D.Normal.support)
    assert D.Binomial.support.is_discrete and D.Binomial.support.event_dim == 0
    with pytest.raises(NotImplementedError, match="event_dim cannot be determined statically"):
        _ = D.Independent.support.event_dim
    assert isinstance(D.Categorical.logits, property)


def test_entropy_of_exponential_families_by_bregman():
    for d in (D.Normal(torch.tensor([1.0]), 2.0), D.Gamma(torch.tensor([2.0]), 3.0), D.Bernoulli(torch.tensor([0.3]))):
        torch.testing.assert_close(D.ExponentialFamily.entropy(d), d.entropy(), rtol=1e-4, atol=1e-5)
        same = D.kl._kl_expfamily_expfamily(d, d)
        torch.testing.assert_close(same, torch.zeros_like(same), rtol=0, atol=1e-6)


def test_wishart_samples_can_be_differentiated():
    factor = torch.tensor([[1.0, 0.0], [0.5, 2.0]], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        D.Wishart(torch.tensor(4.0), scale_tril=factor).rsample((5,)).sum().backward()
    assert factor.grad.isfinite().all() and factor.grad[1, 0] != 0


def test_empty_inputs_of_grad_are_refused():
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty."):
        torch.autograd.grad(torch.ones(1, requires_grad=True).sum(), [])
    assert torch.zeros(2).new(torch.Size()).shape == ()


def test_cholesky_of_a_batch_with_indefinite_matrices():
    a = torch.eye(3).repeat(4, 1, 1)
    a[1, 2, 2] = -1
    a[3, 0, 0] = 0
    factor, info = torch.linalg.cholesky_ex(a)
    assert info.tolist() == [0, 3, 0, 1] and torch.equal(factor[2], torch.eye(3))


@pytest.mark.parametrize(
    ("a", "b", "mode"), [(2.0, 1.5, 0.5**0.5), (2.0, 3.0, 0.2**0.5), (1.0, 2.0, 0.0), (2.0, 1.0, 1.0), (5.0, 1.2, None)]
)
def test_the_mode_of_kumaraswamy(a, b, mode):
    found = D.Kumaraswamy(torch.tensor(a), torch.tensor(b))
    if mode is None:
        x = torch.linspace(0.001, 0.999, 999)
        mode = x[found.log_prob(x).argmax()].item()
    assert found.mode.item() == pytest.approx(mode, abs=1e-3)


def test_kumaraswamy_without_a_mode():
    one = torch.tensor([0.5, 2.0, 0.5, 1.0])
    assert D.Kumaraswamy(one, torch.tensor([2.0, 0.5, 0.5, 1.0])).mode.isnan().all()


def test_the_domain_of_affine_transforms():
    transforms = torch.distributions.transforms
    for event_dim in (0, 1, 2):
        affine = transforms.AffineTransform(1.0, 2.0, event_dim=event_dim)
        for where in (affine.domain, affine.codomain, affine.inv.domain):
            assert not where.is_discrete and where.event_dim == event_dim
    for cls in (transforms.AffineTransform, transforms.CatTransform, transforms.StackTransform):
        for name in ("domain", "codomain"):
            found = vars(cls)[name]
            assert found._is_discrete in (False, NotImplemented), (cls, name)
    assert vars(transforms.AffineTransform)["domain"]._is_discrete is False
    assert vars(transforms.AffineTransform)["codomain"]._is_discrete is False


def test_modes():
    d = torch.distributions
    assert d.Gamma(torch.tensor([0.5, 3.0]), 2.0).mode.tolist() == [0, 1]
    assert d.InverseGamma(torch.tensor([3.0]), 2.0).mode.tolist() == [0.5]
    assert d.Beta(torch.tensor(3.0), torch.tensor(2.0)).mode.item() == pytest.approx(2 / 3)
    assert d.Chi2(torch.tensor([4.0])).mode.tolist() == [2]
