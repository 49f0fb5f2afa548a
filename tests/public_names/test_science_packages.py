"""Names that packages of science and probability use: gpytorch, botorch, captum, opacus, tensordict, higher ..."""

import collections
import warnings

import pytest

import torchlite as torch
import torchlite.utils._contextlib as contextlib_
from torchlite._C import _functorch
from torchlite._functorch import make_functional
from torchlite._functorch import vmap as vmap_source
from torchlite.nn.parallel import scatter_gather
from torchlite.nn.utils._named_member_accessor import swap_tensor
from torchlite.optim import lbfgs
from torchlite.utils import _foreach_utils


def test_scrambled_sobol_points_without_a_seed_come_from_the_global_generator():
    torch.manual_seed(1)
    drawn = torch.quasirandom.SobolEngine(2, scramble=True).draw(2)
    torch.manual_seed(1)
    digits = torch.randint(2, (2, 30)), torch.randint(2, (2, 30, 30))
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.quasirandom.SobolEngine(2, scramble=True).draw(2), drawn)
    assert torch.equal(torch.rand(1), after) and [int(d.sum()) for d in digits] == [32, 882]  # PyTorch's


class TestSparseTypes:
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])

    @pytest.fixture(autouse=True)
    def silent(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    def test_sparse_constructors(self):
        made = torch.sparse.FloatTensor(self.indices, self.values, torch.Size([2, 3]))
        assert made.layout is torch.sparse_coo and made.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
        assert torch.sparse.FloatTensor(self.indices, self.values).shape == (2, 2)
        assert torch.sparse.LongTensor(2, 3).dtype is torch.int64 and torch.sparse.LongTensor(2, 3).shape == (2, 3)
        assert torch.sparse.FloatTensor().shape == (0,) and torch.sparse.FloatTensor(torch.Size([2])).shape == (2,)
        assert torch.sparse.FloatTensor(self.indices, self.values.double()).dtype is torch.float64

    def test_gradient(self):
        values = self.values.clone().requires_grad_()
        torch.sparse.FloatTensor(self.indices, values).to_dense()[0, 1].backward()
        assert values.grad.tolist() == [1, 0]

    def test_kinds(self):
        made = torch.sparse.FloatTensor(self.indices, self.values)
        assert made.type() == "torch.sparse.FloatTensor" and isinstance(made, torch.sparse.FloatTensor)
        assert not isinstance(made, torch.FloatTensor) and not isinstance(self.values, torch.sparse.FloatTensor)
        assert made.type(torch.sparse.DoubleTensor).dtype is torch.float64
        assert made.type("torch.sparse.DoubleTensor").is_sparse and torch.sparse.FloatTensor.is_sparse

    @pytest.mark.parametrize("arguments", [([2],), (values,), (indices, [1.0, 2.0]), (indices, values, 2, 3)])
    def test_refused(self, arguments):
        with pytest.raises(TypeError, match=r"only accepts sizes|new\(\) received an invalid combination"):
            torch.sparse.FloatTensor(*arguments)


class Noting(contextlib_._DecoratorContextManager):
    log: list = []

    def __init__(self, name="a"):
        self.name = name

    def clone(self):
        return type(self)(self.name)

    def __enter__(self):
        self.log.append(f"in {self.name}")

    def __exit__(self, *exc):
        self.log.append("out")


def test_context_managers_that_decorate():
    Noting.log = log = []

    @Noting("b")
    def function(x):
        log.append("runs")
        return x + 1

    assert function(1) == 2 and function.__name__ == "function" and log == ["in b", "runs", "out"]

    @Noting("c")
    def generator():
        log.append((yield 1))

    log.clear()
    for item in generator():
        log.append(item)
    assert log == ["in c", "out", 1, "in c", None, "out"]
    log.clear()
    assert contextlib_.context_decorator(Noting("d"), lambda: 3)() == 3 and log == ["in d", "out"]
    assert isinstance(torch.no_grad(), contextlib_._NoParamDecoratorContextManager)
    assert isinstance(torch.inference_mode(), contextlib_._DecoratorContextManager)


def test_context_managers_that_decorate_without_an_instance():
    class Quiet(contextlib_._NoParamDecoratorContextManager):
        count = 0

        def __enter__(self):
            Quiet.count += 1

        def __exit__(self, *exc):
            Quiet.count += 10

    @Quiet
    def function():
        return 5

    with Quiet():
        assert function() == Quiet()(function)() == 5
    assert Quiet.count == 44


def test_standard_basis():
    made = torch.autograd.functional._construct_standard_basis_for(
        (torch.ones(2), torch.ones(1, dtype=torch.float64)), (2, 1)
    )
    assert made[0].tolist() == [[1, 0], [0, 1], [0, 0]] and made[1].tolist() == [[0], [0], [1]]
    assert made[1].dtype is torch.float64


class TestParallelFunctions:
    Pair = collections.namedtuple("Pair", "a b")

    def test_scatter_and_gather(self):
        x = torch.arange(5.0, requires_grad=True)
        parts = torch.nn.parallel.scatter({"x": (x, 3), "pair": self.Pair(x, None)}, ["cpu", "cpu"])
        assert [part["x"][0].tolist() for part in parts] == [[0, 1, 2], [3, 4]] and parts[1]["x"][1] == 3
        assert type(parts[0]["pair"]) is self.Pair and parts[1]["pair"].a.tolist() == [3, 4]
        joined = torch.nn.parallel.gather(
            [self.Pair(part["pair"].a * 2, part["pair"].a.sum()) for part in parts], "cpu"
        )
        assert joined.a.tolist() == [0, 2, 4, 6, 8] and joined.b.tolist() == [3, 7]
        joined.a.sum().backward()
        assert x.grad.tolist() == [2] * 5

    def test_scatter_of_keywords(self):
        args, kwargs = scatter_gather.scatter_kwargs((torch.ones(2),), {"a": 1}, ["cpu", "cpu"])
        assert [len(arg[0]) for arg in args] == [1, 1] and kwargs == ({"a": 1}, {"a": 1})
        assert scatter_gather.scatter_kwargs((), None, ["cpu"]) == ((), ())

    def test_replicas(self):
        tied = torch.nn.Linear(2, 2)
        model = torch.nn.Sequential(tied, torch.nn.BatchNorm1d(2), tied)
        copies = torch.nn.parallel.replicate(model, ["cpu", "cpu"])
        outs = torch.nn.parallel.parallel_apply(copies, [torch.eye(2), (torch.ones(3, 2),)])
        sum(out.pow(2).sum() for out in outs).backward()
        grads = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        for module in model:
            if isinstance(module, torch.nn.BatchNorm1d):
                module.reset_running_stats()
        sum(model(x).pow(2).sum() for x in (torch.eye(2), torch.ones(3, 2))).backward()
        assert all(torch.allclose(a, p.grad) for a, p in zip(grads, model.parameters(), strict=True))
        assert len(list(copies[0].parameters())) == 0 and copies[0][0] is copies[0][2]


class TestMakeFunctional:
    def test_parameters_and_buffers(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        function, params, buffers = make_functional.make_functional_with_buffers(model)
        assert function.param_names == ("0.weight", "0.bias", "1.weight", "1.bias") and len(buffers) == 3
        assert all(p.requires_grad for p in params) and params[0] is not model[0].weight
        assert torch.allclose(function(params, buffers, torch.eye(2)), model(torch.eye(2)))
        with pytest.raises(RuntimeError, match="has buffers. Please use make_functional_with_buffers"):
            make_functional.make_functional(model)

    def test_tied_parameters(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        model[1].weight = model[0].weight
        function, params = make_functional.make_functional(model, disable_autograd_tracking=True)
        assert function.param_names == ("0.weight", "0.bias", "1.bias") and not any(p.requires_grad for p in params)
        given = [torch.eye(2) * 2, torch.ones(2), torch.zeros(2)]
        assert function(given, torch.ones(1, 2)).tolist() == [[6, 6]]

    def test_ensemble(self):
        models = [torch.nn.Linear(2, 3) for _ in range(4)]
        function, params, buffers = make_functional.combine_state_for_ensemble(models)
        out = torch.vmap(function, (0, 0, None))(params, buffers, torch.ones(1, 2))
        assert torch.allclose(out, torch.stack([model(torch.ones(1, 2)) for model in models]))
        for wrong in ([], [models[0], torch.nn.Linear(2, 3).eval()], [models[0], torch.nn.ReLU()]):
            with pytest.raises(RuntimeError, match="combine_state_for_ensemble: Expected"):
                make_functional.combine_state_for_ensemble(wrong)


class TestLineSearch:
    """PyTorch 2.13's numbers."""

    def test_cubic_interpolation(self):
        points = [((0, 1, -1, 1, 0.5, 0.3), 0.8550), ((0, 1, 5, 1, 0.9, 5), 0.7943), ((1, 0.5, 0.3, 0, 1, -1), 0.8550)]
        for numbers, wanted in points:
            found = lbfgs._cubic_interpolate(*(torch.tensor(float(n)) for n in numbers))
            assert float(found) == pytest.approx(wanted, abs=1e-4)
        numbers = (0, 1, -1, 1, 0.5, 0.3)
        assert lbfgs._cubic_interpolate(*(torch.tensor(float(n)) for n in numbers), bounds=(0.2, 0.4)) == 0.4

    @pytest.mark.parametrize(
        "guess, loss, gradient, length",
        [(1.0, -1.08337044, [1.5335, -3.9383], 0.4848), (0.01, -0.18313157, [1.6578, 1.3743], 0.05505)],
    )
    def test_strong_wolfe(self, guess, loss, gradient, length):
        def objective(x, t, d):
            p = (x + t * d).detach().requires_grad_()
            f = (p**4 - p**2 + p).sum()
            return float(f.detach()), torch.autograd.grad(f, p)[0]

        x = torch.tensor([1.0, -0.5])
        f, g = objective(x, 0, torch.zeros(2))
        found = lbfgs._strong_wolfe(objective, x, guess, -g, f, g, g.dot(-g))
        assert found[0] == pytest.approx(loss, abs=1e-4) and found[1].tolist() == pytest.approx(gradient, abs=1e-4)
        assert float(found[2]) == pytest.approx(length, abs=1e-4) and found[3] == 2


def test_helpers_of_autograd_functional():
    x = torch.ones(2, requires_grad=True)
    y, ours = x * 2, torch.autograd.functional
    assert ours._as_tuple(x) == (False, (x,)) and ours._as_tuple((x,), "inputs", "f") == (True, (x,))
    for wrong in ((1,), [1], 1):
        with pytest.raises(TypeError, match="The inputs given to f must be either a Tensor or a tuple of Tensors"):
            ours._as_tuple(wrong, "inputs", "f")
    assert ours._grad_postprocess((y,), True)[0] is y and not ours._grad_postprocess(((y,),), False)[0][0].requires_grad
    assert ours._tuple_postprocess((y,), False) is y and ours._tuple_postprocess((y,), True) == (y,)
    assert ours._tuple_postprocess(((y,), (x,)), (True, False)) == (y, x)


def test_tensors_sorted_by_device_and_dtype():
    one, two = torch.ones(2), torch.ones(1, dtype=torch.float64)
    found = _foreach_utils._group_tensors_by_device_and_dtype([[one, two], [two, None]], with_indices=True)
    cpu = torch.device("cpu")
    assert found == {(cpu, torch.float32): ([[one], [two]], [0]), (cpu, torch.float64): ([[two], [None]], [1])}
    assert _foreach_utils._has_foreach_support([one, None], cpu)


def test_casts_by_name():
    assert torch._cast_Long(torch.ones(2)).dtype is torch.int64 and torch._cast_Half(torch.ones(2)).dtype is torch.half


def test_normalize_into_a_tensor():
    x, out = torch.tensor([[3.0, 4.0]]), torch.empty(1, 2)
    assert torch.nn.functional.normalize(x, out=out) is out and out.tolist() == [
        [0.6000000238418579, 0.800000011920929]
    ]


def test_swap_tensor():
    layer = torch.nn.BatchNorm1d(2)
    weight = layer.weight
    assert swap_tensor(layer, "weight", torch.zeros(2)) is weight and layer.weight.tolist() == [0, 0]
    assert swap_tensor(layer, "running_mean", torch.ones(2)).tolist() == [0, 0]
    for error, arguments in [
        (AttributeError, ("nope", weight)),
        (KeyError, ("a.b", weight)),
        (TypeError, ("weight", 3)),
    ]:
        with pytest.raises(error):
            swap_tensor(layer, *arguments)


class TestPiecesOfVmap:
    """tensordict replaces these functions."""

    def test_batch_dimensions(self):
        seen = []

        def function(x):
            seen.append((_functorch.is_batchedtensor(x), _functorch.get_unwrapped(x).shape))
            return x * 2

        assert torch.vmap(function)(torch.ones(3, 2)).shape == (3, 2)
        assert seen == [(True, (3, 2))] and not _functorch.is_batchedtensor(torch.ones(2))

    def test_arguments_of_other_classes(self):
        class Pair:
            def __init__(self, a, b):
                self.a, self.b = a, b

        def process(in_dims, args, func):
            return len(args[0].a), [0], [args[0]], None

        def batched(dims, flat, level, spec):
            return [Pair(*(_functorch._add_batch_dim(x, dims[0], level) for x in (flat[0].a, flat[0].b)))]

        def unwrapped(result, out_dims, level, size, func):
            return Pair(*(_functorch._remove_batch_dim(x, level, size, out_dims) for x in (result.a, result.b)))

        theirs = {"_process_batched_inputs": process, "_create_batched_inputs": batched, "_unwrap_batched": unwrapped}
        ours = {name: getattr(vmap_source, name) for name in theirs}
        try:
            for name, step in theirs.items():
                setattr(vmap_source, name, step)
            found = torch.vmap(lambda pair: Pair(pair.a.sum(), pair.b + 1))(Pair(torch.ones(3, 2), torch.zeros(3)))
        finally:
            for name, step in ours.items():
                setattr(vmap_source, name, step)
        assert found.a.tolist() == [2, 2, 2] and found.b.tolist() == [1, 1, 1]


def test_storages_are_storages():
    assert isinstance(torch.ones(2).untyped_storage(), torch.StorageBase) and not isinstance(3, torch.StorageBase)


def test_nothing_is_traced():
    assert torch._guards.active_fake_mode() is None and torch._guards.detect_fake_mode([torch.ones(1)]) is None
    assert torch._functorch.make_functional is make_functional


def test_the_class_of_the_class_parameter():
    assert isinstance(torch.nn.Parameter, torch.nn.parameter._ParameterMeta)
    assert not isinstance(torch.Tensor, torch.nn.parameter._ParameterMeta)
