"""Modules, classes and values that programs name, and what stands behind them."""

import pickle
import subprocess
import sys

import pytest

import torchlite as torch


@pytest.mark.parametrize("name", ["mps", "xpu:0", "xla:1", "hpu", "mtia", "vulkan", "ipu", "privateuseone"])
def test_devices_of_other_makers_are_values(name):
    where = torch.device(name)
    kind, _, index = name.partition(":")
    assert str(where) == name and where.type == kind and where.index == (int(index) if index else None)
    assert where == torch.device(name) and where != torch.device("cpu") and len({where, torch.device(name)}) == 1
    for make in (lambda: torch.empty(2, device=where), lambda: torch.ones(2).to(name)):
        with pytest.raises(RuntimeError, match=f"PyTorch is not linked with support for {kind} devices"):
            make()
    with pytest.raises(RuntimeError, match="Expected one of cpu, .* device type at start of device string: unheard"):
        torch.device("unheard")


def test_a_tensor_is_on_none_of_them():
    x = torch.ones(1)
    for kind in ("ipu", "maia", "mps", "mtia", "vulkan", "xla", "xpu"):
        assert getattr(x, f"is_{kind}") is False


def test_functional_is_a_module():
    assert torch.functional.einsum is torch.einsum and "unique" in dir(torch.functional)
    assert all(getattr(torch.functional, name) is getattr(torch, name) for name in torch.functional.__all__)
    with pytest.raises(AttributeError):
        _ = torch.functional.relu


def test_without_a_compiler_functions_are_unchanged():
    def double(x):
        return 2 * x

    assert torch._dynamo.disable(double) is double and torch._dynamo.disable(recursive=False)(double) is double
    assert not torch._dynamo.is_compiling() and torch._dynamo.reset() is None and torch._dynamo.graph_break() is None


def test_names_of_one_thing():
    assert torch.GradScaler is torch.amp.GradScaler and torch.nn.functional.grad is torch.nn.grad
    assert hasattr(torch.utils, "_pytree") and not hasattr(torch.utils, "_cxx_pytree")
    norm = torch.nn.InstanceNorm2d(2)
    assert norm._get_no_batch_dim() == 3


def test_every_module_of_a_lazy_table_exists():
    import torchlite

    for package in (torchlite, torchlite.utils, torchlite.nn):
        for name in getattr(package, "_MODULES", package.__dict__.get("_LATER", ())):
            assert hasattr(package, name), name


def test_tools_that_programs_borrow():
    tools = torch._utils
    assert tools._element_size(torch.float64) == 8
    assert tools._get_device_index("cuda:1") == 1 and tools._get_device_index("cpu", allow_cpu=True) == -1
    assert tools._get_device_index("cuda", optional=True) is None and tools._get_device_index(3) == 3
    for where, words in (("cpu", "Expected a non cpu device"), ("cuda", "with a specified index or an integer")):
        with pytest.raises(ValueError, match=words):
            tools._get_device_index(where)
    tensors = [torch.ones(2, 2), torch.zeros(3)]
    flat = tools._flatten_dense_tensors(tensors)
    parts = tools._unflatten_dense_tensors(flat, tensors)
    assert flat.shape == (7,) and all(map(torch.equal, parts, tensors))
    mixed = [torch.ones(1), torch.ones(1, dtype=torch.int64), torch.zeros(1)]
    chunks = list(tools._take_tensors(mixed, 100))
    assert [len(chunk) for chunk in chunks] == [2, 1]
    ordered = tools._reorder_tensors_as([t for chunk in chunks for t in chunk], mixed)
    assert all(a is b for a, b in zip(ordered, mixed, strict=True))
    call = tools.render_call(torch.sum, [torch.ones(100)], {"dim": 0})
    assert call == "torch.sum(tensor([...], size=(100,)), dim=0)"


def test_functions_can_be_pickled():
    functions = [
        torch.sum, torch.nn.functional.gelu, torch.nn.functional.softsign, torch.nn.functional.linear,
        torch.nn.functional.cross_entropy, torch.nn.functional.unfold, torch.nn.functional.silu, torch.linalg.norm,
        torch.fft.fft, torch.special.erf,
    ]  # fmt: skip
    for function in functions:
        assert pickle.loads(pickle.dumps(function)) is function
    layer = torch.nn.TransformerEncoderLayer(4, 2, 4, activation=torch.nn.functional.gelu)
    assert pickle.loads(pickle.dumps(layer)).activation is torch.nn.functional.gelu


def test_assertions_as_calls():
    torch._assert(True, "kept")
    torch._assert(torch.tensor([True]), "kept")
    for condition in (False, torch.tensor(0)):
        with pytest.raises(AssertionError, match="^broken$"):
            torch._assert(condition, "broken")


def test_accelerator_is_available_as_first_call():
    """Before anything else has loaded what devices there are."""
    program = "import torchlite; print(torchlite.accelerator.is_available() in (True, False))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "True\n"
