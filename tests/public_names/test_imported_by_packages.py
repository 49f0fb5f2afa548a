"""Names that packages import and torchlite answers as a PyTorch without a compiler, TorchScript or process groups."""

import math
import os
import threading
from typing import Dict, List, Optional, Tuple  # noqa: UP035

import pytest

import torchlite as torch
import torchlite._dynamo.utils
import torchlite.distributed.nn
import torchlite.distributed.rpc
import torchlite.distributed.tensor
import torchlite.fx.experimental.proxy_tensor
import torchlite.onnx
import torchlite.utils.checkpoint
from torchlite.nn.attention import flex_attention as flex


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.kept = 3

    def forward(self, x):
        return self.layer(x)


def test_jit_makes_programs():
    net = Net()
    assert isinstance(torch.jit.script(net), torch.jit.ScriptModule)
    assert isinstance(torch.jit.trace(net, torch.ones(1, 2)), torch.jit.ScriptModule)
    assert torch.jit.script_method(lambda x: x + 1)(3) == 4
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing()
    assert not isinstance(net, torch.jit.ScriptModule) and isinstance(torch.jit.ScriptModule(), torch.nn.Module)
    assert torch.jit.annotate(int, 3) == 3 and torch.jit.Attribute(4, int) == (4, int)
    assert torch.jit.annotations.BroadcastingList2[int] is None and torch.jit.annotations.List is List  # noqa: UP006
    assert torch.jit._script_if_tracing(lambda x: x + 1)(1) == 2
    assert torch.jit.set_fusion_strategy([("DYNAMIC", 3)]) == [("STATIC", 2), ("DYNAMIC", 10)]
    torch.jit.set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)])


def test_jit_marks_functions():
    from torchlite.jit._function_modifiers import (
        FunctionModifiers,
        get_torchscript_modifier,
        is_ignored_fn,
        should_drop,
    )

    @torch.jit.unused
    def unused():
        return 1

    @torch.jit.ignore
    def ignored():
        return 2

    @torch.jit.ignore(drop=False)
    def ignored_as_well():
        return 3

    @torch.jit.export
    def exported():
        return 4

    assert (unused(), ignored(), ignored_as_well(), exported()) == (1, 2, 3, 4)
    assert should_drop(unused) and is_ignored_fn(ignored) and is_ignored_fn(ignored_as_well)
    assert get_torchscript_modifier(exported) == FunctionModifiers.EXPORT and not is_ignored_fn(exported)
    with pytest.warns(FutureWarning, match="Use torch.jit.unused now"):
        assert should_drop(torch.jit.ignore(drop=True)(lambda: 0))
    with pytest.raises(RuntimeError, match="must be a bool or a function but got 3"):
        torch.jit.ignore(3)
    with pytest.warns(UserWarning, match="Only works in script mode"), torch.jit.strict_fusion():
        pass


def test_jit_functions_reject_modules_and_missing_files(tmp_path):
    with pytest.raises(AttributeError, match="no attribute 'save'"):
        torch.jit.save(Net(), "x")
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.load(str(tmp_path / "no"))
    (tmp_path / "some").write_text("")
    with pytest.raises(RuntimeError, match="failed finding central directory"):
        torch.jit.load(str(tmp_path / "some"))
    for name in ("freeze", "optimize_for_inference", "run_frozen_optimizations"):
        with pytest.raises(RuntimeError, match="expects a ScriptModule as input"):
            getattr(torch.jit, name)(Net())


@pytest.mark.parametrize(
    ("value", "kind", "answer"),
    [
        ([1, 2], List[int], True),  # noqa: UP006
        ([1, "a"], list[int], False),
        ({"a": [1.0]}, Dict[str, List[float]], True),  # noqa: UP006
        ((1, "a"), Tuple[int, str], True),  # noqa: UP006
        ((1,), Tuple[int, str], False),  # noqa: UP006
        (None, Optional[int], True),  # noqa: UP045
        ("a", int | None, False),
        (3, (str, int), True),
    ],
)
def test_jit_isinstance(value, kind, answer):
    assert torch.jit.isinstance(value, kind) is answer


def test_futures():
    future = torch.jit.fork(lambda a, b=0: a + b, 1, b=2)
    assert isinstance(future, torch.futures.Future) and torch.jit.wait(future) == 3 and future.done()
    failed = torch.jit.fork(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed.wait()
    later = torch.futures.Future()
    seen = []
    both = torch.futures.collect_all([later, future])
    chained = later.then(lambda done: done.value() * 2)
    later.add_done_callback(lambda done: seen.append(done.value()))
    with pytest.raises(RuntimeError, match="not completed"):
        later.value()
    threading.Thread(target=later.set_result, args=(5,)).start()
    assert (later.wait(), chained.wait(), seen) == (5, 10, [5])
    assert torch.futures.wait_all([later, future]) == [5, 3] and both.wait() == [later, future]
    with pytest.raises(RuntimeError, match="already been marked completed"):
        later.set_result(1)
    with pytest.raises(AssertionError, match="not an Exception"):
        torch.futures.Future().set_exception(3)


def test_compile_runs_the_function():
    net = Net()
    compiled = torch.compile(net, mode="default")
    x = torch.ones(1, 2)
    assert (
        torch.equal(compiled(x), net(x)) and compiled.kept == 3 and isinstance(compiled, torch._dynamo.OptimizedModule)
    )
    assert list(compiled.state_dict()) == ["_orig_mod.layer.weight", "_orig_mod.layer.bias"]
    assert torch.compile(net, disable=True) is net

    @torch.compile(dynamic=True)
    def double(x):
        return 2 * x

    assert double(4) == 8 and double.__name__ == "double"
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(net, mode="default", options={})
    assert not torch.compiler.is_compiling() and not torch.compiler.is_exporting()
    assert torch.compiler.allow_in_graph(double) is double and torch.compiler.disable(double) is double
    assert torch.compiler.list_backends() == ["inductor"] and torch._dynamo.utils.is_compile_supported("cpu")
    with torch.compiler.set_stance("force_eager"):
        assert double(1) == 2
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'no'"):
        torch.compiler.set_stance("no")


def test_leaves_and_wrapped_functions():
    class Leaves(torch.fx.Tracer):
        pass

    assert Leaves().is_leaf_module(torch.nn.ReLU(), "a") and not Leaves().is_leaf_module(torch.nn.Sequential(), "a")
    with pytest.raises(NotImplementedError, match="at the top level of a module"):
        torch.fx.wrap("len")
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        torch.fx.wrap(3)


def test_copy_attr_takes_buffers_and_parameters_along():
    from torchlite.fx.graph_module import _copy_attr

    source, target = torch.nn.Sequential(Net(), torch.nn.BatchNorm1d(2)), torch.nn.Module()
    for name in ("0.layer.weight", "1.running_mean", "0.kept"):
        _copy_attr(source, target, name)
    assert target.get_parameter("0.layer.weight") is source[0].layer.weight
    assert target.get_buffer("1.running_mean") is source[1].running_mean


@pytest.mark.parametrize("name", ["xpu", "mps", "mtia"])
def test_devices_that_are_not_there(name):
    module = getattr(torch, name)
    assert not module.is_available() and module.device_count() == 0 and module.manual_seed(3) is None
    with pytest.raises((AssertionError, RuntimeError), match=f"(?i){name}"):
        module.synchronize()
    assert set(module.__all__) <= set(dir(module)) and torch.device(name, 0).index == 0


def test_before_there_is_a_process_group():
    assert torch.distributed.is_available() and not torch.distributed.is_initialized()
    assert torch.distributed.rpc.is_available()
    assert not torch.distributed.is_nccl_available() and torch.distributed.Backend("GLOO") == "gloo"
    from torchlite.distributed import all_reduce, fsdp
    from torchlite.distributed.optim import ZeroRedundancyOptimizer

    for refused in (
        all_reduce,
        torch.distributed.get_rank,
        lambda x: torchlite.distributed.nn.broadcast(x, 0),
        lambda x: ZeroRedundancyOptimizer([x], torch.optim.SGD, lr=0.1),
    ):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            refused(torch.ones(1))
    with pytest.raises(ValueError, match="env:// rendezvous: environment variable RANK expected, but not set"):
        torch.distributed.init_process_group("gloo")
    for sharding in (fsdp.FullyShardedDataParallel, fsdp.fully_shard):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            sharding(Net())
    with pytest.raises(RuntimeError, match="No device mesh is currently active!"):
        torch.distributed.tensor.distribute_tensor(torch.ones(1))
    assert not isinstance(torch.ones(2), torch.distributed.tensor.DTensor) and torch.distributed.group.WORLD is None
    with torch.distributed.tensor.experimental.implicit_replication():
        assert (torch.ones(2) + 1).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        torch.distributed.rpc.api._require_initialized(len)([])
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(Net())


def test_onnx_and_quantisation_by_name():
    assert not torch.onnx.is_in_onnx_export() and torch.onnx.register_custom_op_symbolic("a::b", len, 9) is None
    torch.onnx.unregister_custom_op_symbolic("a::b", 9)
    with pytest.raises(ValueError, match="Unsupported ONNX opset version: 99"):
        torch.onnx.export(Net(), (), opset_version=99)
    with pytest.raises(ValueError, match="domain::name"):
        torch.onnx.register_custom_op_symbolic("b", len, 9)
    quantisation = torch.ao.quantization
    x = torch.ones(1, 2)
    wrapped = quantisation.QuantWrapper(net := Net())
    assert torch.equal(wrapped(x), net(x)) and torch.quantization.QuantStub is quantisation.QuantStub
    assert torch.allclose(quantisation.quantize_dynamic(net)(x), net(x), atol=0.05)


def test_small_names():
    assert torch.sym_max(2, 3.0) == 3.0 and isinstance(torch.sym_max(2.0, 3), float) and torch.sym_int(-2.5) == -2
    assert (
        torch.sym_not(0) and torch.sym_ite(True, 1, 2) == 1 and torch.sym_min(1, 2) == 1 and torch.sym_sum([1, 2]) == 3
    )
    assert not isinstance(3, torch.SymInt) and torch.torch is torch
    assert torch.float8_e8m0fnu.itemsize == 1 and repr(torch.float4_e2m1fn_x2) == "torch.float4_e2m1fn_x2"
    assert not torch.quint8.is_floating_point
    assert torch.zeros(1, dtype=torch.bits8).dtype is torch.bits8
    assert torch._assert_async(torch.tensor(1)) is None
    for value, words in ((0, "got zero"), ([0, 1], "more than one value"), ([], "no values")):
        with pytest.raises(RuntimeError, match=words):
            torch._assert_async(torch.tensor(value))
    with pytest.raises(RuntimeError, match="mine"):
        torch._assert_async(torch.tensor(0), "mine")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU).add(torch._C.DispatchKey.Autograd)
    assert keys.has(torch._C.DispatchKey.CPU) and not keys.has(torch._C.DispatchKey.CUDA)
    assert repr(keys) == "DispatchKeySet(CPU, Autograd)" and type(torch.Tensor) is torch._C._TensorMeta
    assert not torch._subclasses.is_fake(torch.ones(1)) and torch._tensor_str.PRINT_OPTS.precision == 4
    assert torch._tensor_str._tensor_str(torch.arange(2.0), 0) == "[0., 1.]"
    assert torch.types.Device and torch.nn.modules.activation.constant_ is torch.nn.init.constant_
    with pytest.raises(OSError, match="Could not load this library: lib.so"):
        torch.ops.load_library("lib.so")


def test_states_of_devices(device):
    x = torch.ones(1, device=device)
    devices, states = torch.utils.checkpoint.get_device_states({"x": [x]}, 3)
    if x.device.type == "cpu":
        assert (devices, states) == ([], [])
        return
    drawn = torch.rand(3, device=device)
    torch.utils.checkpoint.set_device_states(devices, states, device_type=x.device.type)
    assert torch.equal(torch.rand(3, device=device), drawn)


def test_an_optimizer_of_a_package():
    from torchlite.optim.optimizer import Optimizer, _default_to_fused_or_foreach, _use_grad_for_differentiable

    class Plain(Optimizer):
        @_use_grad_for_differentiable
        def step(self, closure=None):
            assert not torch.is_grad_enabled()
            for p in self.param_groups[0]["params"]:
                p.add_(p.grad, alpha=-1)

    p = torch.nn.Parameter(torch.ones(1))
    p.grad = torch.ones(1)
    Plain([p], {"differentiable": False}).step()
    assert p.item() == 0 and torch.is_grad_enabled()
    assert _default_to_fused_or_foreach([p], True) == _default_to_fused_or_foreach([p], False) == (False, False)


@pytest.mark.filterwarnings("ignore:(Local|Lambda) function is not supported by pickle")
def test_datapipes():
    from torchlite.utils.data import DataLoader, IterDataPipe, functional_datapipe
    from torchlite.utils.data.datapipes import iter as pipes
    from torchlite.utils.data.datapipes.map import SequenceWrapper

    numbers = pipes.IterableWrapper(range(7))
    assert list(numbers.filter(lambda x: x % 2 == 1).map(lambda x: x * x)) == [1, 9, 25]
    batched = numbers.batch(3)
    assert list(batched) == [[0, 1, 2], [3, 4, 5], [6]] and len(batched) == 3 and len(numbers.batch(3, True)) == 2
    assert list(batched.unbatch()) == list(range(7))
    assert list(numbers.zip(pipes.IterableWrapper("abcdefg")))[2] == (2, "c")
    with pytest.raises(RuntimeError, match="has been invalidated because another iterator"):
        list(numbers.zip(numbers))
    assert list(numbers.concat(numbers)) == [*range(7), *range(7)]
    assert list(pipes.IterableWrapper([(1, 2)]).map(lambda x: -x, input_col=1)) == [(1, -2)]
    assert SequenceWrapper([1, 2]).map(lambda x: x + 1)[1] == 3
    assert [x.tolist() for x in DataLoader(numbers, batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6]]

    @functional_datapipe("negated_here")
    class Negated(IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            return (-x for x in self.source)

    assert list(numbers.negated_here()) == [0, -1, -2, -3, -4, -5, -6]
    with pytest.raises(Exception, match="already taken"):
        functional_datapipe("negated_here")(Negated)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        numbers.nonsense
    with pytest.raises(TypeError, match="can only decorate"):
        functional_datapipe("other")(dict)


def test_flex_attention(device):
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape) for shape in ((2, 4, 37, 16), (2, 2, 45, 16), (2, 2, 45, 8)))
    bias, documents = torch.randn(4).to(device), (torch.arange(45) // 10).to(device)
    q, k, v = (x.to(device).requires_grad_() for x in (q, k, v))

    def scored(score, b, h, i, j):
        return score * 0.5 + bias[h] * (i - j).abs() * 0.1

    def seen(b, h, i, j):
        return (i >= j) & (documents[i] == documents[j]) & (i != 5)

    for size, blocks in ((16, 5), ((8, 32), 6), (128, 1)):
        mask = flex.create_block_mask(seen, None, None, 37, 45, device=device, BLOCK_SIZE=size)
        assert mask.shape == (1, 1, 37, 45) and mask.to_dense().sum() == blocks
        out, aux = flex.flex_attention(
            q, k, v, scored, mask, enable_gqa=True, return_aux=flex.AuxRequest(lse=True, max_scores=True)
        )
        # PyTorch's numbers
        assert math.isclose(out.sum().item(), -92.09985, rel_tol=1e-5)
        assert math.isclose(out.abs().sum().item(), 1045.5354, rel_tol=1e-5)
        assert torch.allclose(aux.lse[0, 0, :4].cpu(), torch.tensor([0.9301091, 0.695081, 1.1242006, 0.779747]))
        assert aux.lse[0, 0, 5] == -math.inf == aux.max_scores[0, 0, 5] and not out[:, :, 5].any()
    whole = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    assert torch.allclose(flex.flex_attention(q, k, v, enable_gqa=True), whole, atol=1e-6)
    causal = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 37, 37, device=device, BLOCK_SIZE=8)
    k, v = k[:, :, :37], v[:, :, :37]
    mine = torch.autograd.grad(flex.flex_attention(q, k, v, None, causal, enable_gqa=True).sin().sum(), (q, k, v))
    other = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    for a, b in zip(mine, torch.autograd.grad(other.sin().sum(), (q, k, v)), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_block_masks():
    mask = flex.create_block_mask(lambda b, h, i, j: i >= j + h * 8, 2, 4, 32, 32, BLOCK_SIZE=8)
    assert mask.sparsity() == 68.75 and mask[0, 1].shape == (1, 1, 32, 32)
    assert mask[:, 1:3].kv_num_blocks[0].tolist() == [[0, 1, 1, 1], [0, 0, 1, 1]]
    assert mask.full_kv_num_blocks[0, 0].tolist() == [0, 1, 2, 3] and mask.q_num_blocks[0, 3].tolist() == [1, 0, 0, 0]
    assert str(mask).startswith("BlockMask(shape=(2, 4, 32, 32), sparsity=68.75%")
    assert "kv_indices=torch.Size" in repr(mask)
    joined = flex.and_masks(lambda b, h, i, j: i > j, lambda b, h, i, j: i < 3)
    either = flex.or_masks(lambda b, h, i, j: i > j, flex.noop_mask)
    assert flex.create_mask(joined, 1, 1, 4, 4).sum() == 3 and flex.create_mask(either, 1, 1, 4, 4).all()
    x = torch.ones(1, 2, 4, 4)
    for call, words in (
        (lambda: flex.flex_attention(x, x[:, :1], x[:, :1]), "Try setting enable_gqa=True"),
        (lambda: flex.flex_attention(x.double(), x, x), "same dtype"),
        (lambda: flex.flex_attention(x, x, x, block_mask=flex.create_block_mask(joined, 1, 1, 2, 2)), "smaller length"),
        (lambda: flex.flex_attention(x, x.expand(3, -1, -1, -1), x), "same batch size"),
        (lambda: flex.flex_attention(x, x, x, return_lse=True, return_aux=flex.AuxRequest()), "both return_lse"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(AssertionError, match="requires a mask_mod function"):
        flex.create_block_mask(lambda s, b, h, i, j: s, 1, 1, 2, 2)


def test_jit_and_fx_are_loaded_lazily():
    import subprocess
    import sys

    program = (
        "import torchlite, sys; print([n for n in sys.modules if n.startswith(('torchlite.jit', 'torchlite.fx'))])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[]\n"


def test_a_subclass_may_have_a_property_of_the_dtype():
    class Named(torch.Tensor):
        @property
        def dtype(self):
            with torch._C.DisableTorchFunctionSubclass():
                return super().dtype

    x = torch.ones(2, dtype=torch.float64).as_subclass(Named)
    assert type(x) is Named and x.dtype is torch.float64 and type(x + 1) is Named and (x + 1).dtype is torch.float64
    assert torch.Tensor._make_subclass(Named, torch.ones(2)).dtype is torch.float32


def test_parameter_subclasses_may_take_arguments():
    class Marked(torch.nn.Parameter):
        def __new__(cls, data, *, kind):
            made = torch.Tensor._make_subclass(cls, data, True)
            made.kind = kind
            return made

    net = Net()
    net.extra = Marked(torch.ones(2), kind="sphere")
    assert net.extra.kind == "sphere" and "extra" in dict(net.named_parameters()) and net.extra.requires_grad


def test_branches_loops_and_exports():
    two = torch.tensor(2)
    assert torch.cond(two > 1, torch.neg, torch.abs, (two,)) == -2
    assert torch.cond(False, torch.neg, torch.abs, (two,)) == 2
    assert torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), two))[1] == 16
    for call in (lambda: torch.cond(torch.ones(2), torch.neg, torch.abs, (two,)), lambda: torch.cond(True, 1, 2),
                 lambda: torch.while_loop(lambda i: i < 3, lambda i: i + 1, (0,))):  # fmt: skip
        with pytest.raises(RuntimeError):
            call()
    assert repr(torch.export.Dim.AUTO) == "DimHint(AUTO)" and torch.export.Dim("n", max=4).max == 4
    from torchlite.utils import cpp_extension

    with pytest.raises(NotImplementedError, match="C\\+\\+ libraries"):
        cpp_extension.load("x", [])
    from torchlite.fx.experimental.symbolic_shapes import guard_or_false, statically_known_true

    assert guard_or_false(1) and not statically_known_true(False)
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3] and torch.legacy_contiguous_format is not None
    x = torch.randn(3, 4, requires_grad=True)
    y = x.softmax(-1)
    (expected,) = torch.autograd.grad(y.sin().sum(), x)
    assert torch.allclose(torch._softmax_backward_data(y.cos(), y, -1, torch.float32), expected, atol=1e-6)
    with torch._dynamo.config.patch(verbose=True):
        assert torch._dynamo.config.verbose
    assert not torch._dynamo.config.verbose
    with pytest.raises(AttributeError, match="nonsense does not exist"), torch._dynamo.config.patch("nonsense", 1):
        pass


def test_transforms_are_seen():
    seen = []

    def noted(x):
        seen.append(torch._C._are_functorch_transforms_active())
        return x * 2

    torch.vmap(noted)(torch.ones(2))
    noted(torch.ones(2))
    assert seen == [True, False]


def test_hub_names_that_packages_use():
    import torchlite.utils.model_zoo as zoo

    assert torch.hub.get_dir().startswith(torch.hub._get_torch_home()) and torch.hub.HASH_REGEX.search("a-0b1c.pth")
    assert zoo.load_url is torch.hub.load_state_dict_from_url and torch.hub._make_progress_bar("3", False).n == 0
    with torch.hub.tqdm(total=3, disable=True) as bar:
        bar.update(2)


def test_aten_names_that_packages_register():
    aten = torch.ops.aten
    x = torch.ones(2, 2)
    assert torch.equal(aten._sparse_addmm.default(x, x.to_sparse(), x, beta=2.0), x * 4)
    assert callable(aten._pin_memory.default)


def test_names_of_other_packages():
    """ptflops, fvcore, litdata, pytorch-forecasting and tensordict take these."""
    from torchlite.ao.quantization import FakeQuantizeBase, ObserverBase
    from torchlite.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager
    from torchlite.utils.data._utils import fetch

    assert torch.ops.aten.relu.default._overloadpacket is torch.ops.aten.relu
    x, weight = torch.randn(1, 1, 4, 4), torch.randn(1, 1, 3, 3)
    numbers = (None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, False, False, True, True)
    assert torch.equal(torch.ops.aten._convolution(x, weight, *numbers), torch.conv2d(x, weight))
    assert issubclass(fetch._MapDatasetFetcher, fetch._BaseDatasetFetcher) and isinstance(torch.DeviceObjType, type)
    assert not isinstance(Net(), (FakeQuantizeBase, ObserverBase))
    assert torch._utils._get_device_module("cpu") is torch.cpu
    with pytest.raises(RuntimeError, match="does not have a corresponding module"):
        torch._utils._get_device_module("nothing")
    assert isinstance(torch.jit._get_trace_graph(Net(), torch.ones(1, 2))[0], torch._C.Graph)
    assert isinstance(torch.no_grad(), _DecoratorContextManager)
    assert torch.nn.init._no_grad_fill_(torch.empty(2), 3.0).tolist() == [3.0, 3.0]
    assert isinstance(torch.ones(1), torch._C.TensorBase)
    entered = []

    class Counting(_NoParamDecoratorContextManager):
        def __enter__(self):
            entered.append(self)

        def __exit__(self, *error):
            entered.append(None)

    @Counting
    def function():
        return len(entered)

    assert (function(), function()) == (1, 3) and entered[0] is not entered[2]


def test_types_of_torchscript_are_values():
    ints = torch.ListType(torch.IntType.get())
    assert str(ints) == repr(ints) == ints.annotation_str == "List[int]" and ints.kind() == "ListType"
    assert ints == torch.ListType.ofInts() and ints.getElementType() == torch.IntType.get() != torch.BoolType.get()
    found = torch.DictType(torch.StringType.get(), torch.TupleType([torch.FloatType.get(), torch.BoolType.get()]))
    assert str(found) == "Dict[str, Tuple[float, bool]]" and str(found.getKeyType()) == "str"
    assert str(found.getValueType().elements()) == "[float, bool]"
    assert str(torch.OptionalType.ofTensor()) == "Optional[Tensor]" and torch._C.TensorType is torch.TensorType
    assert torch.IntType.get().isSubtypeOf(torch.NumberType.get()) and isinstance(ints, torch.Type)
    assert torch.IntType.get().isSubtypeOf(torch.OptionalType(torch.IntType.get()))
    assert not torch.IntType.get().isSubtypeOf(torch.StringType.get()) and len({ints, torch.ListType.ofInts()}) == 1
    assert str(torch.UnionType([torch.IntType.get(), torch.StringType.get()])) == "Union[int, str]"


def test_switches_of_fusers():
    names = torch._C
    assert names._jit_set_profiling_executor(False) is True and names._jit_set_profiling_executor(True) is False
    assert names._jit_set_profiling_mode(True) is True and names._jit_set_nvfuser_enabled(False) is False
    before = names._jit_texpr_fuser_enabled()
    assert names._jit_set_texpr_fuser_enabled(not before) is None and names._jit_texpr_fuser_enabled() is not before
    names._jit_set_texpr_fuser_enabled(before)
    assert not names._is_tracing()
