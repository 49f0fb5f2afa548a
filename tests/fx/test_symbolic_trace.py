"""Tracing: what becomes of programs, and where they cannot be traced."""

import math
import os
import typing

import pytest

import torchlite as torch
from torchlite.fx import PH, GraphModule, Tracer, symbolic_trace
from torchlite.fx.experimental.proxy_tensor import make_fx
from torchlite.fx.proxy import TraceError

from .assert_module import Asserting

F = torch.nn.functional
torch.fx.wrap("len")


@torch.fx.wrap
def leaf(a, b=1):
    return a + b if a.sum() > 0 else a - b


def targets(module):
    return [node.target for node in module.graph.nodes if node.op.startswith("call")]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.weight = torch.nn.Parameter(torch.arange(3.0))
        self.register_buffer("shift", torch.ones(3))
        self.inner = torch.nn.ModuleDict({"a.b".replace(".", "_"): torch.nn.Sequential(torch.nn.Linear(3, 3))})

    def forward(self, x, scale: float = 2.0, *rest, **more):
        y = self.inner["a_b"](F.relu(self.lin(x) + self.weight))
        return (self.shift - y) * scale + rest[0] + more["bias"]


def same(module, *args, **kwargs):
    traced = symbolic_trace(module)
    traced.graph.lint()
    want, found = module(*args, **kwargs), traced(*args, **kwargs)
    assert torch.allclose(want, found)
    return traced


def test_a_module_with_all_kinds_of_parameters():
    torch.manual_seed(0)
    traced = same(Net(), torch.randn(2, 3), 3.0, torch.ones(3), bias=1.0)
    assert "def forward(self, x, scale : float = 2.0, *rest, **more):" in traced.code
    assert "lin" in targets(traced) and "inner.a_b.0" in targets(traced)
    assert {name for name, _ in traced.named_parameters()} == {name for name, _ in Net().named_parameters()}
    assert dict(traced.named_buffers()).keys() == {"shift"}


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.zeros(x.shape[0], x.size(1)) + x,
        lambda x: torch.arange(x.size(1), device=x.device) + x,
        lambda x: torch.full((2, 2), x.size(0)),
        lambda x: torch.ones(4, 3)[x.long().clamp(0, 2)],
        lambda x: torch.ones(1, 3).expand(x.size(0), -1),
        lambda x: torch.ones(6).view(x.size(0), -1),
        lambda x: torch.ones(2, 3).copy_(x),
        lambda x: torch.ones(2, 3).index_select(0, x.long()[0].clamp(0, 1)),
        lambda x: 1 - x / 2 // 1 % 3**x,
        lambda x: -(x > 0).float() + (~(x < 1) | (x == x) ^ (x >= 0) & (x <= 1)),
        lambda x: torch.cat([x, torch.ones(2, 3)], dim=1) @ torch.ones(6, 2),
        lambda x: x.transpose(0, 1).contiguous().view(-1)[1:4].unsqueeze(0).T,
        lambda x: torch.max(x, dim=1)[0] + x.min(1).values,
        lambda x: F.layer_norm(x, (3,)) + F.softmax(x, -1) + F.normalize(x) + F.gelu(x, approximate="tanh"),
        lambda x: F.embedding(x.long().clamp(0, 3), torch.ones(4, 2)),
        lambda x: F.group_norm(x.reshape(1, 2, 3), 2) + F.silu(x.clone(), inplace=True),
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
        lambda x: F.interpolate(x.reshape(1, 1, 2, 3), scale_factor=2.0),
        lambda x: torch.einsum("ij,kj->ik", x, x) + torch.linalg.norm(x),
        lambda x: F.dropout(x, 0.5, False) + torch.ops.aten.add.Tensor(x, x) + torch.ops.aten.mul(x, 2),
        lambda x: torch.stack(torch.split(x, 1)).sum() + torch.tensor([1.0, 2.0, 3.0]) + x,
        lambda x: x.to(torch.float64).to(x.device) + x.new_zeros(x.shape),
        lambda x: math.sqrt(x.size(0)) + x,
        lambda x: len(x) + leaf(x, b=3),
        lambda x: x.detach().data + x.shape[-1] + x.dim() + abs(x),
    ],
)
def test_programs(program, device):
    x = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.0, -0.5]], device=device)
    if device != "cpu":
        with torch.device(device):
            module = symbolic_trace(program)
            want, found, stepped = program(x), module(x), torch.fx.Interpreter(module).run(x)
    else:
        module = symbolic_trace(program)
        want, found, stepped = program(x), module(x), torch.fx.Interpreter(module).run(x)
    module.graph.lint()
    assert any(module.graph.find_nodes(op="placeholder")[0] in node.all_input_nodes for node in module.graph.nodes)
    for out in (found, stepped):
        assert torch.allclose(torch.as_tensor(want).double(), torch.as_tensor(out).double(), equal_nan=True)


def test_traced_nodes():
    module = symbolic_trace(lambda x: torch.ops.aten.add.Tensor(F.relu(torch.relu(x)).add_(1).T, 2))
    assert targets(module) == [torch.relu, F.relu, "add_", getattr, torch.ops.aten.add.Tensor]
    module = symbolic_trace(lambda x: F.dropout(x, 0.3))
    (node,) = module.graph.find_nodes(op="call_function")
    assert node.args == (module.graph.find_nodes(op="placeholder")[0],)
    assert node.kwargs == {"p": 0.3, "training": True, "inplace": False}
    y = torch.ones(2)
    module = symbolic_trace(lambda x: y.add_(x))
    (node,) = module.graph.find_nodes(op="call_method")
    assert node.target == "add_" and module._tensor_constant0 is y


@pytest.mark.parametrize(
    "program, error, words",
    [
        (lambda x: 1 if x.sum() > 0 else 2, TraceError, "inputs to control flow"),
        (lambda x: [y + 1 for y in x], TraceError, "cannot be iterated"),
        (lambda x: torch.relu(*x), TraceError, "cannot be iterated"),
        (lambda x: x.add(object()), NotImplementedError, "argument of type"),
    ],
)
def test_untraceable_programs_raise_and_state_is_restored(program, error, words):
    with pytest.raises(error, match=words):
        symbolic_trace(program)
    # Nothing of it stays: modules are called, and functions are found, as before.
    assert torch.nn.Linear(1, 1)(torch.ones(1)).shape == (1,) and F.relu.__code__.co_filename.endswith(
        "_functional_activation.py"
    )
    assert not torch.fx._symbolic_trace.is_fx_tracing() and torch.ones(2, 2)[0].shape == (2,)


def test_len_is_refused_where_it_is_not_wrapped():
    scope = {}
    exec("def program(x):\n    return [].__class__(range(x.__len__()))", scope)
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing"):
        symbolic_trace(scope["program"])


def test_unpacking_and_dictionaries():
    def program(x):
        a, (b, c) = x.split(1), (x + 1, x + 2)
        d, e = a
        return {"sum": d + e + b[0], "pair": (c, [d])}

    x = torch.arange(6.0).reshape(2, 3)
    found = symbolic_trace(program)(x)
    assert torch.equal(found["sum"], program(x)["sum"]) and torch.equal(found["pair"][1][0], x[:1])


def test_two_tracers_do_not_mix():
    kept = []
    symbolic_trace(lambda x: kept.append(x) or x)
    with pytest.raises(RuntimeError, match="multiple different tracers"):
        symbolic_trace(lambda x: torch.add(x, kept[0]))


def test_concrete_arguments():
    def program(x, flag, tree):
        return tree["a"] + x if flag else tree["b"][0] * x

    module = symbolic_trace(program, concrete_args={"flag": True, "tree": {"a": PH, "b": [PH]}})
    x, tree = torch.ones(2), {"a": torch.ones(2), "b": [torch.zeros(2)]}
    assert torch.equal(module(x, True, tree), program(x, True, tree))
    with pytest.raises(AssertionError, match="flag has been specialized to have value True"):
        module(x, False, tree)
    with pytest.raises((RuntimeError, KeyError)):
        module(x, True, {"a": x})
    module = symbolic_trace(program, concrete_args=(PH, False, PH))
    assert torch.equal(module(x, False, tree), tree["b"][0] * x)
    module = symbolic_trace(lambda x, y=None: x if y is None else x + y, concrete_args={"y": None})
    assert torch.equal(module(x, None), x)
    with pytest.raises(AssertionError, match="y has been specialized to have value None"):
        module(x, x)
    with pytest.raises(RuntimeError, match="expected 3 arguments but got 1"):
        symbolic_trace(program, concrete_args=(PH,))


def test_tracers_are_overridden():
    class Own(Tracer):
        proxy_buffer_attributes = True
        seen: typing.ClassVar[list] = []

        def is_leaf_module(self, m, module_qualified_name):
            return module_qualified_name == "inner.a_b" or super().is_leaf_module(m, module_qualified_name)

        def call_module(self, m, forward, args, kwargs):
            self.seen.append(self.path_of_module(m))
            return super().call_module(m, forward, args, kwargs)

        def create_arg(self, a):
            return repr(a) if isinstance(a, range) else super().create_arg(a)

        def getattr(self, attr, attr_val, parameter_proxy_cache):
            self.seen.append(attr)
            return super().getattr(attr, attr_val, parameter_proxy_cache)

    net = Net()
    graph = Own().trace(net)
    module = GraphModule(net, graph)
    assert "inner.a_b" in Own.seen and "weight" in Own.seen and "inner.a_b" in targets(module)
    args = torch.ones(2, 3), 1.0, torch.ones(3)
    assert torch.allclose(module(*args, bias=1), net(*args, bias=1))
    assert graph.find_nodes(op="get_attr", target="shift") and module._tracer_cls is None
    assert graph.find_nodes(op="call_module")[0].meta["nn_module_stack"] == {"lin": ("lin", torch.nn.Linear)}
    with pytest.raises(NameError, match="not installed as a submodule"):
        symbolic_trace(lambda x: torch.nn.Linear(3, 3)(x))


def test_shapes_of_parameters_may_be_numbers():
    class Decides(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3, 2))

        def forward(self, x):
            return x @ self.weight if self.weight.shape[0] == 3 and self.weight.ndim == 2 else x

    with pytest.raises(TraceError):
        Tracer().trace(Decides())
    module = Decides()
    assert targets(GraphModule(module, Tracer(param_shapes_constant=True).trace(module)))


def test_stack_traces_show_layers_without_their_base_class():
    layer = torch.nn.ReLU()
    layer.register_forward_hook(lambda module, args, out: out + 1)
    relu, add = (n for n in make_fx(layer)(torch.ones(2)).graph.nodes if n.op == "call_function")
    assert "F.relu(input)" in relu.meta["stack_trace"]
    assert "out + 1" in add.meta["stack_trace"] and "nn/modules" not in add.meta["stack_trace"].replace(os.sep, "/")


def test_stack_traces_and_asserts():
    class Own(Tracer):
        record_stack_traces = True
        trace_asserts = True

    module = GraphModule(torch.nn.Module(), Own().trace(Asserting()))
    (node,) = module.graph.find_nodes(op="call_function", target=torch.fx.proxy.assert_fn)
    assert "assert x.sum() > 0" in node.stack_trace and "assert_module.py" in node.stack_trace
    assert "File: " in module.print_readable(print_output=False)
    with pytest.raises(AssertionError):
        module(torch.zeros(1))


def test_classes_whose_objects_are_nodes():
    class Box(metaclass=torch.fx.ProxyableClassMeta):
        def __init__(self, value):
            self.value = value

        def add(self, other):
            return Box(self.value + other)

    module = symbolic_trace(lambda x: Box(x).add(x))
    assert Box in targets(module) and module(torch.ones(1)).value.item() == 2.0


def test_functions_of_records_have_the_parameters_that_programs_see():
    module = symbolic_trace(F.cross_entropy)
    x, y = torch.randn(3, 4), torch.tensor([0, 1, 2])
    assert torch.equal(module(x, y), F.cross_entropy(x, y))
    assert [node.name for node in module.graph.find_nodes(op="placeholder")][:3] == ["input_1", "target", "weight"]
    assert torch.equal(symbolic_trace(F.max_pool1d)(x, 2), F.max_pool1d(x, 2))
    with pytest.raises(AssertionError, match="built-in function torch.relu"):
        symbolic_trace(torch.relu)
    assert F.linear.__annotations__["input"] is torch.Tensor and F.relu.__annotations__["input"] is torch.Tensor


def test_other_threads_run_normally_during_a_trace():
    import threading

    found = []

    def program(x):
        thread = threading.Thread(target=lambda: found.append(torch.nn.functional.relu(torch.ones(2))[0].item()))
        thread.start()
        thread.join()
        return torch.relu(x)

    assert len(symbolic_trace(program).graph.nodes) == 3 and found == [1.0]


def test_annotate():
    from torchlite.fx.annotate import annotate

    module = symbolic_trace(lambda x: annotate(x + 1, torch.Tensor))
    assert "add : torch.Tensor = x + 1" in module.code
    with pytest.raises(TypeError, match="already had a type"):
        symbolic_trace(lambda x: annotate(annotate(x, int), int))
    assert annotate(3, int) == 3


def test_make_fx_records_the_casts_of_autocast():
    linear, x = torch.nn.Linear(3, 3), torch.randn(4, 3)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = linear(x)
            loss = torch.nn.functional.cross_entropy(y @ x.T, torch.arange(4))
        return y.float() * loss

    for pre_dispatch in (False, True):
        graph = make_fx(f, pre_dispatch=pre_dispatch)(x)
        assert torch.equal(graph(x), f(x))
        assert torch.equal(graph(2 * x), f(2 * x))


def test_make_fx_records_where_gradients_are_off():
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y + x

    graph = make_fx(f, pre_dispatch=True)(torch.ones(2))
    assert graph.code.count("torch._C._set_grad_enabled") == 2
    x = torch.ones(2, requires_grad=True)
    graph(x).sum().backward()
    assert x.grad.tolist() == [1, 1] and torch.is_grad_enabled()
    assert "_set_grad_enabled" not in make_fx(f)(torch.ones(2)).code
    with torch.no_grad():
        assert "_set_grad_enabled" not in make_fx(f, pre_dispatch=True)(torch.ones(2)).code


def test_variadic_ops_take_proxies_created_by_hand():
    graph = torch.fx.Graph()
    x = torch.fx.Proxy(graph.placeholder("x"))
    y = torch.fx.Proxy(graph.placeholder("y"), x.tracer)
    t = torch.ones(3)
    torch.einsum("ij,jk->ik", x, y)
    torch.broadcast_tensors(t.sum(), y[..., :1])[0].shape[:-1]
    torch.meshgrid(x, y, indexing="ij")
    torch.block_diag(x, y)
    torch.tensordot(x, y, ((0,), (1,)))
    torch.split(x, 2, -1)
    made = [(n.target.__name__, n.args[:3], n.kwargs) for n in graph.nodes if n.op == "call_function"]
    x, y = x.node, y.node
    assert [entry for entry in made if entry[0] not in ("getitem", "getattr", "broadcast_tensors")] == [
        ("einsum", ("ij,jk->ik", x, y), {}),
        ("meshgrid", (x, y), {"indexing": "ij"}),
        ("block_diag", (x, y), {}),
        ("tensordot", (x, y), {"dims": ((0,), (1,)), "out": None}),
        ("split", (x, 2), {"dim": -1}),
    ]


def test_variadic_ops_call_torch_function():
    seen = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, len(args)))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Own)
    assert all(type(y) is Own for y in torch.broadcast_tensors(x, torch.ones(3, 1)))
    assert type(torch.einsum("i,i->", x, x)) is Own
    assert seen[0] == ("broadcast_tensors", 2)
    assert ("einsum", 3) in seen


def test_a_write_of_a_proxy_to_a_tensor_is_a_proxy():
    torch.eye(2).to_sparse()  # from the first one on, writes ask whether their arguments are sparse
    x = torch.fx.Proxy(torch.fx.Graph().placeholder("x"))
    assert isinstance(torch.ones(3).add_(x), torch.fx.Proxy)


class OwnTracer(Tracer):
    """A tracer of a package with a `trace` of its own, which patches `__call__` and `__getattr__` of modules."""

    def is_leaf_module(self, module, name):
        return True

    def trace(self, root, concrete_args=None):
        st = torch.fx._symbolic_trace
        self.root, self.graph, self.submodule_paths = root, torch.fx.Graph(tracer_cls=type(self)), None
        self.tensor_attrs = {value: name for name, value in vars(root).items() if isinstance(value, torch.Tensor)}
        function, args = self.create_args_for_root(type(root).forward, True)

        @st.functools.wraps(st._orig_module_getattr)
        def read(module, name):
            return self.getattr(name, st._orig_module_getattr(module, name), {})

        @st.functools.wraps(st._orig_module_call)
        def call(module, *args, **kwargs):
            return self.call_module(module, lambda *a, **k: st._orig_module_call(module, *a, **k), args, kwargs)

        with st._Patcher() as patcher:
            patcher.patch_method(torch.nn.Module, "__getattr__", read, deduplicate=False)
            patcher.patch_method(torch.nn.Module, "__call__", call, deduplicate=False)
            st._patch_wrapped_functions(patcher)
            st._autowrap_check(patcher, globals(), self._autowrap_function_ids)
            for module in self._autowrap_search:
                st._autowrap_check(patcher, vars(module), self._autowrap_function_ids)
            self.create_node("output", "output", (self.create_arg(function(*args)),), {})
        return self.graph


class Mixed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.plain = torch.nn.Linear(3, 3), torch.ones(3)

    def forward(self, x):
        return F.gelu(leaf(self.lin(x), b=self.plain)).add(torch.tanh(x)) * math.sqrt(len(x) + 2)


def test_a_tracer_with_its_own_trace():
    net, kept = Mixed(), (torch.nn.Module.__call__, torch.nn.Module.__getattr__, math.sqrt, len, leaf)
    traced = GraphModule(net, OwnTracer().trace(net))
    assert (torch.nn.Module.__call__, torch.nn.Module.__getattr__, math.sqrt, len, leaf) == kept
    assert targets(traced) == targets(symbolic_trace(net))
    assert "plain" in [node.target for node in traced.graph.nodes if node.op == "get_attr"]
    x = torch.randn(2, 3)
    assert torch.allclose(traced(x), net(x))


def test_an_own_tracer_restores_what_it_patched_after_an_error():
    before = torch.nn.Module.__call__
    with pytest.raises(KeyError, match="stop"), torch.fx._symbolic_trace._Patcher() as patcher:
        patcher.patch_method(torch.nn.Module, "__call__", lambda module: None)
        patcher.patch_method(torch.nn.Module, "__call__", lambda module: 1)
        patcher.patch(globals(), "absent_name", 2)
        assert torch.nn.Identity()() is None and globals()["absent_name"] == 2
        raise KeyError("stop")
    assert torch.nn.Module.__call__ is before and "absent_name" not in globals()


class Known(Tracer):
    """A class that a pickle finds."""


def test_a_module_names_the_tracer_that_a_pickle_finds():
    class Local(Tracer):
        pass

    for cls, wanted in ((Known, Known), (Local, None)):
        module = GraphModule(torch.nn.Module(), cls().trace(lambda x: x + 1))
        assert module._tracer_cls is wanted


@pytest.mark.parametrize(
    ("name", "args", "keywords"),
    [
        ("max_pool1d", (2,), {"stride", "padding", "dilation", "ceil_mode", "return_indices"}),
        ("max_pool2d", (2,), {"stride", "padding", "dilation", "ceil_mode", "return_indices"}),
        ("max_pool3d", (2,), {"stride", "padding", "dilation", "ceil_mode", "return_indices"}),
        ("max_pool1d_with_indices", (2,), {"stride", "padding", "dilation", "ceil_mode", "return_indices"}),
        ("layer_norm", ((3,),), {"weight", "bias", "eps"}),
        ("rms_norm", ((3,),), {"weight", "eps"}),
    ],
)
def test_functions_of_which_torch_has_another_are_targets(name, args, keywords):
    """Passes such as quantization look for the function of torch.nn.functional."""
    node = next(n for n in symbolic_trace(lambda x: getattr(F, name)(x, *args)).graph.nodes if n.op == "call_function")
    assert node.target is getattr(F, name) and node.args[1:] == args and set(node.kwargs) == keywords
