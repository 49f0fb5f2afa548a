"""Names that came to PyTorch late: `hash_tensor`, `func.rearrange`, optimizers with other parameters, layout of
gradients, the compiler's settings.
"""

import copy

import numpy as np
import pytest

import torchlite as torch
from torchlite.func import rearrange, replace_all_batch_norm_modules_
from torchlite.func._rearrange import DimensionBindError


def bits(array):
    """The exclusive or of an array's elements, as float64 or int64."""
    wide = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    return int(np.bitwise_xor.reduce(wide.view(np.uint64).ravel(), initial=0))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "bool"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 101])
def test_hash_tensor(device, dtype, n):
    array = (np.arange(3 * n).reshape(3, n) * 7 - 11).astype(dtype)
    x = torch.from_numpy(array).to(device)
    assert torch.hash_tensor(x).dtype is torch.uint64
    assert torch.hash_tensor(x).item() == bits(array)
    assert torch.hash_tensor(x, 1).tolist() == [bits(row) for row in array]
    assert x.hash_tensor((0, -1), keepdim=True).tolist() == [[bits(array)]]


def test_hash_tensor_of_bfloat16_empty_and_batched():
    assert torch.hash_tensor(torch.tensor(0.1, dtype=torch.bfloat16)).item() == 4591877216941375488
    assert torch.hash_tensor(torch.empty(0, 3), -1).shape == (0,)
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert torch.vmap(torch.hash_tensor)(x).tolist() == torch.hash_tensor(x, 1).tolist()
    assert not torch.hash_tensor(x).requires_grad
    assert torch.hash_tensor(x, out=torch.empty(0, dtype=torch.uint64)).shape == ()


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: torch.hash_tensor(torch.ones(2), mode=1), RuntimeError, "Unknown hash_tensor mode: 1"),
        (lambda: torch.hash_tensor(torch.empty(0)), RuntimeError, "Expected reduction dim to be specified"),
        (lambda: torch.hash_tensor(torch.empty(0, 3), 0), RuntimeError, "reduction dim 0 to have non-zero size"),
        (lambda: torch.hash_tensor(torch.ones(2) * 1j), NotImplementedError, "xor_sum_cpu"),
        (lambda: torch.hash_tensor(torch.ones(2), 1), IndexError, "Dimension out of range"),
        (
            lambda: torch.hash_tensor(torch.ones(2), out=torch.empty(0)),
            RuntimeError,
            "Expected result to be of dtype uint64, but got Float",
        ),
    ],
)
def test_hash_tensor_refuses(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    "pattern, lengths, wanted",
    [
        ("a b c -> c a b", {}, lambda x: x.permute(2, 0, 1)),
        ("a b c -> (a b) c", {}, lambda x: x.reshape(6, 4)),
        ("a b c->c (b a)", {}, lambda x: x.permute(2, 1, 0).reshape(4, 6)),
        ("a ... -> ... a", {}, lambda x: x.permute(1, 2, 0)),
        ("a ... -> a (...)", {}, lambda x: x.reshape(2, 12)),
        ("... -> (...)", {}, lambda x: x.reshape(24)),
        ("a b (c d) -> d a b c 1", {"d": 2}, lambda x: x.reshape(2, 3, 2, 2).permute(3, 0, 1, 2)[..., None]),
        ("(a1 a2) b c -> a1 b a2 c", {"a1": 2}, lambda x: x.reshape(2, 1, 3, 4).permute(0, 2, 1, 3)),
        ("a b c -> (a b c) ()", {}, lambda x: x.reshape(24, 1)),
    ],
)
def test_rearrange(pattern, lengths, wanted):
    x = torch.arange(24).reshape(2, 3, 4)
    torch.testing.assert_close(rearrange(x, pattern, **lengths), wanted(x))


def test_rearrange_lists_scalars_and_transforms():
    x = torch.arange(6.0).reshape(2, 3)
    assert rearrange([x, x], "n a b -> a n b").shape == (2, 2, 3)
    assert rearrange(torch.tensor(3.0), "->").shape == ()
    assert rearrange(x[:1], "1 a -> a").shape == (3,)
    assert torch.vmap(lambda row: rearrange(row, "(a b) -> b a", a=3))(x).shape == (2, 1, 3)
    assert torch.func.grad(lambda x: (rearrange(x, "a b -> b a") ** 2).sum())(x).tolist() == (2 * x).tolist()


@pytest.mark.parametrize(
    "pattern, lengths, words",
    [
        ("a b c -> a b", {}, r"Identifiers only on one side of rearrange expression \(should be on both\): {'c'}"),
        ("a b c d -> a b c d", {}, r"Number of dimensions in pattern \(4\) must be equal"),
        ("a a c -> a c", {}, "Indexing expression contains duplicate dimension 'a'"),
        ("a b (c d) -> a b c d", {"c": 3}, "inferred dimension does not evenly fit"),
        ("a b (c d) -> a b c d", {}, "cannot infer the sizes of two dimensions at once"),
        ("a b c", {}, "Pattern must contain a single '->' separator"),
        ("a b c -> a ( b (c))", {}, "Axis composition is one-level"),
        ("a b c -> a b c)", {}, "Brackets are not balanced"),
        ("a b c -> a b c", {"z": 3}, "Identifiers not found in rearrange expression: {'z'}"),
        ("a b 4 -> a b", {}, "rearrange only supports unnamed axes of size 1"),
        ("a (...) -> ... a", {}, "Ellipsis is parenthesis in the left side is not allowed"),
        ("_ b c -> b c", {}, "Invalid axis identifier: _"),
        ("a-b -> a", {}, "Unknown character '-'"),
        ("a b.. c -> a", {}, "Expression may contain dots only inside ellipsis"),
        ("... ... a -> a", {}, "only one ellipsis for tensor"),
        ("a -> ... a", {}, "Ellipsis found in right side, but not left side"),
    ],
)
def test_rearrange_refuses(pattern, lengths, words):
    with pytest.raises((ValueError, DimensionBindError), match=words):
        rearrange(torch.zeros(2, 3, 4), pattern, **lengths)


def test_batch_norms_lose_their_statistics():
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.InstanceNorm1d(3, track_running_stats=True))
    assert replace_all_batch_norm_modules_(net) is net
    assert list(net[0].state_dict()) == ["weight", "bias"] and not net[0].track_running_stats
    assert net[1].track_running_stats
    parameters, buffers = torch.func.stack_module_state([net[0], copy.deepcopy(net[0])])
    run = lambda p, b, x: torch.func.functional_call(net[0], (p, b), (x,))
    x = torch.arange(18.0).reshape(6, 3)
    torch.testing.assert_close(torch.vmap(run, (0, 0, None))(parameters, buffers, x)[1], net[0](x))


def test_gradients_may_keep_the_layout_they_came_with():
    x = torch.zeros(3, 2).T.requires_grad_()
    for enforced, stride in ((True, (1, 2)), (False, (3, 1)), (True, (1, 2))):
        with torch.autograd.enforce_grad_layout_policy(enforced):
            (x * torch.ones(2, 3)).sum().backward()
        assert x.grad.stride() == stride
        x.grad = None


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adagrad])
def test_an_optimizer_steps_other_parameters(kind):
    net = torch.nn.Linear(2, 2)
    optimizer = kind(net.parameters(), lr=0.1)
    net(torch.ones(2)).sum().backward()
    optimizer.step()
    given = copy.deepcopy(optimizer.state_dict())
    others = {name: torch.nn.Parameter(p.detach().clone()) for name, p in net.named_parameters()}
    before, group = net.weight.clone(), optimizer.param_groups[0]
    for other, p in zip(others.values(), net.parameters(), strict=True):
        other.grad = p.grad.clone()
    with torch.optim.swap_in_optimizer_params_and_state(optimizer, others, given):
        assert optimizer.param_groups[0]["params"][0] is others["weight"]
        optimizer.param_groups[0]["lr"] = 0.1
        optimizer.step()
        optimizer.state[others["weight"]]["new"] = 1
    assert torch.equal(net.weight, before) and optimizer.param_groups[0] is group
    assert given["state"][0]["step"] == 2 and "new" not in given["state"][0]
    assert optimizer.state[net.weight]["step"] == 1
    optimizer.step()
    torch.testing.assert_close(others["weight"], net.weight)
    torch.testing.assert_close(given["state"], optimizer.state_dict()["state"])


def test_swapped_params_must_match_the_optimizer():
    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    others = dict(net.named_parameters())

    def swap(params, state):
        with torch.optim.swap_in_optimizer_params_and_state(optimizer, params, state):
            raise AssertionError("swapped")

    with pytest.raises(RuntimeError, match="requires initialized optimizer state"):
        swap(others, optimizer.state_dict())
    net(torch.ones(2)).sum().backward()
    optimizer.step()
    good = optimizer.state_dict()
    group = good["param_groups"][0]
    for params, state, words in (
        ({"weight": net.weight}, good, "match optimizer.param_groups ordering"),
        (others, good | {"param_groups": []}, "a different number of parameter groups"),
        (others, good | {"param_groups": [group | {"params": [0]}]}, "different number of params than the live"),
        (others, good | {"param_groups": [group | {"extra": 1}]}, r"Keys only in swap-in: \['extra'\]"),
        (others, good | {"param_groups": [group | {"params": [0, 5]}]}, r"got extra keys \[1\]"),
        (others, {"param_groups": [group]}, "got NoneType"),
    ):
        with pytest.raises(RuntimeError, match=words):
            swap(params, state)


def test_settings_of_a_compiler_that_is_not_there():
    compiler = torch.compiler
    compiler.set_default_backend("eager")
    assert compiler.get_default_backend() == "eager"
    compiler.set_default_backend(None)
    assert compiler.get_default_backend() == "inductor"
    with pytest.raises(TypeError, match="backend must be a string or callable"):
        compiler.set_default_backend(3)
    with compiler.config.patch(force_disable_caches=True):
        assert compiler.config.force_disable_caches
    assert not compiler.config.force_disable_caches
    with pytest.raises(AttributeError, match="does not exist"), compiler.config.patch(nothing=1):
        pass
    with pytest.raises(NotImplementedError, match="compiled programs are not stored"):
        compiler.load_compiled_function(None)


def test_pipes_are_generic_and_may_be_undetermined():
    from torchlite.utils.data import IterDataPipe, guaranteed_datapipes_determinism, non_deterministic

    @non_deterministic
    class Any(IterDataPipe[int]):
        def __iter__(self):
            yield 1

    assert list(Any()) == [1]
    with guaranteed_datapipes_determinism(), pytest.raises(TypeError, match="Any is non-deterministic"):
        Any()
    assert list(Any()) == [1]


def test_first_class_dimensions_are_not_supported():
    with pytest.raises(NotImplementedError, match="first-class dimensions"):
        torch.zeros(2).index((0,), (1,))


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.nn.functional.normalize(torch.ones(2, 2), 2.0, 1, 1e-12, torch.empty(0)),
        lambda: torch.set_default_device(device=None),
        lambda: torch.nn.LinearCrossEntropyOptions(True, 3),
        lambda: torch.autograd.profiler.profile(activity_filters=None),
        lambda: torch.utils._python_dispatch.TorchDispatchMode(_dispatch_key=None),
        lambda: torch.compile(lambda a: a, recompile_limit=3)(1),
        lambda: torch.profiler.tensorboard_trace_handler("traces", use_python_export=False),
    ],
)
def test_arguments_that_pytorch_takes(call):
    call()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: torch.atleast_1d(x, out=x), "atleast_1d() got an unexpected keyword argument 'out'"),
        (lambda x: torch.cdist(x, x, out=x), "cdist() got an unexpected keyword argument 'out'"),
        (lambda x: torch.stft(x[0], 2, out=x), "stft() got an unexpected keyword argument 'out'"),
        (lambda x: torch.unravel_index(x.long(), (2, 2), out=x), "unravel_index() got an unexpected keyword argument"),
    ],
)
def test_functions_over_others_write_to_nothing(call, words):
    with pytest.raises(TypeError) as raised:
        call(torch.ones(2, 2))
    assert words in str(raised.value)


def test_pruning_methods_take_their_arguments_by_place():
    from torchlite.nn.utils import prune

    layer = torch.nn.Linear(2, 2)
    prune.L1Unstructured.apply(layer, "weight", 1, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert layer.weight_mask.tolist() == [[0, 1], [1, 1]]
    prune.CustomFromMask.apply(layer, "bias", torch.tensor([1.0, 0.0]))
    assert layer.bias_mask.tolist() == [1, 0]
    with pytest.raises(TypeError):
        prune.Identity.apply(torch.nn.Linear(2, 2), "weight", 3)
