"""Arguments that used to be ignored: each works now, or is an error."""

from __future__ import annotations

import gc
import io
import json

import pytest

import torchlite as torch

PINNING = "pin_memory=True requires a CUDA or other accelerator backend"
WITHOUT_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device pins memory")

CREATE = {
    "zeros": lambda **o: torch.zeros(2, **o),
    "ones": lambda **o: torch.ones(2, **o),
    "empty": lambda **o: torch.empty(2, **o),
    "full": lambda **o: torch.full((2,), 1.0, **o),
    "scalar_tensor": lambda **o: torch.scalar_tensor(1, **o),
    "empty_strided": lambda **o: torch.empty_strided((2,), (1,), **o),
    "empty_permuted": lambda **o: torch.empty_permuted((2,), (0,), **o),
    "ones_like": lambda **o: torch.ones_like(torch.ones(2), **o),
    "new_zeros": lambda **o: torch.ones(2).new_zeros(2, **o),
    "new_full": lambda **o: torch.ones(2).new_full((2,), 1, **o),
    "new_empty_strided": lambda **o: torch.ones(2).new_empty_strided((2,), (1,), **o),
    "arange": lambda **o: torch.arange(2, **o),
    "linspace": lambda **o: torch.linspace(0, 1, 2, **o),
    "logspace": lambda **o: torch.logspace(0, 1, 2, **o),
    "eye": lambda **o: torch.eye(2, **o),
    "tril_indices": lambda **o: torch.tril_indices(2, 2, **o),
    "triu_indices": lambda **o: torch.triu_indices(2, 2, **o),
    "rand": lambda **o: torch.rand(2, **o),
    "randn": lambda **o: torch.randn(2, **o),
    "randint": lambda **o: torch.randint(3, (2,), **o),
    "randperm": lambda **o: torch.randperm(2, **o),
    "normal": lambda **o: torch.normal(0.0, 1.0, (2,), **o),
    "hann_window": lambda **o: torch.hann_window(3, **o),
    "kaiser_window": lambda **o: torch.kaiser_window(3, **o),
}
SPARSE_RESULT = {"zeros", "empty", "new_zeros"}


@WITHOUT_CUDA
@pytest.mark.parametrize("name", [*CREATE, "tensor", "sparse_coo_tensor"])
def test_pinned_memory_needs_a_device(name):
    make = CREATE.get(name) or {
        "tensor": lambda **o: torch.tensor([1.0], **o),
        "sparse_coo_tensor": lambda **o: torch.sparse_coo_tensor([[0]], [1.0], (2,), **o),
    }[name]  # fmt: skip
    state = torch.get_rng_state()
    with pytest.raises(RuntimeError, match=PINNING):
        make(pin_memory=True)
    assert torch.equal(state, torch.get_rng_state())  # an error draws no numbers
    make(pin_memory=False)


@pytest.mark.parametrize("name", ["zeros", "rand", "arange"])
def test_meta_tensors_have_no_memory_to_pin(name):
    assert CREATE[name](device="meta", pin_memory=True).is_meta


@pytest.mark.parametrize("name", CREATE)
def test_sparse_layouts(name):
    assert CREATE[name](layout=torch.strided).layout is torch.strided
    if name in SPARSE_RESULT:
        assert CREATE[name](layout=torch.sparse_coo).layout is torch.sparse_coo
    else:
        with pytest.raises(RuntimeError, match=r"Could not run 'aten::|full\(\.\.\.\) is not implemented for sparse"):
            CREATE[name](layout=torch.sparse_coo)


def test_a_layout_of_another_type():
    with pytest.raises(TypeError, match="layout=str"):
        torch.arange(2, layout="strided")


@WITHOUT_CUDA
def test_pinned_memory_by_a_device(monkeypatch):
    """As on a CUDA machine: the values are created, then copied; the result is a leaf."""
    from torchlite._dispatch.callbacks import CALLBACKS

    pinned = []
    monkeypatch.setattr(CALLBACKS, "check_pinning", lambda device=None: None)
    monkeypatch.setattr(CALLBACKS, "pin_memory", lambda made: pinned.append(made) or made.clone())
    made = torch.ones(2, pin_memory=True, requires_grad=True)
    assert made.requires_grad and made.is_leaf and not pinned[0].requires_grad and made.tolist() == [1, 1]
    out = torch.zeros(2)
    assert torch.ones(2, out=out, pin_memory=True) is out and len(pinned) == 1
    assert torch.tensor([1.0], pin_memory=True, requires_grad=True).is_leaf and len(pinned) == 2


def test_integers_have_no_gradient():
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        torch.tril_indices(2, 2, requires_grad=True)


def test_driver_of_svdvals():
    with pytest.raises(RuntimeError, match="`driver=` is only supported on CUDA"):
        torch.linalg.svdvals(torch.eye(2), driver="gesvd")


def test_eps_of_gumbel_softmax():
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated and has no effect"):
        torch.nn.functional.gumbel_softmax(torch.ones(2), eps=1e-5)


def test_grad_variables():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="Use `grad_tensors` instead"):
        torch.autograd.backward(x * 2, grad_variables=torch.tensor([1.0, 3.0]))
    assert x.grad.tolist() == [2, 6]
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="both passed to `backward"):
        torch.autograd.backward(x * 2, torch.ones(2), grad_variables=torch.ones(2))


def test_only_inputs():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        torch.autograd.grad((x * 2).sum(), x, only_inputs=False)


def test_file_of_elements(tmp_path):
    path = tmp_path / "elements"
    path.write_bytes(bytes(16))
    assert torch.from_file(str(path), size=4).tolist() == [0, 0, 0, 0]
    with pytest.raises(RuntimeError, match="cannot be pinned"):
        torch.from_file(str(path), size=4, pin_memory=True)
    with pytest.raises(NotImplementedError, match="is strided"):
        torch.from_file(str(path), size=4, layout=torch.sparse_coo)


def test_packed_sequence_to_the_cpu():
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])
    assert packed.cpu(dtype=torch.float64).data.dtype is torch.float64


# -- profiler --------------------------------------------------------------------------------


def test_events_of_several_traces_add_up():
    def names(acc_events):
        plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
        with torch.profiler.profile(schedule=plan, acc_events=acc_events) as prof:
            for _ in range(4):
                torch.ones(2).add(1)
                prof.step()
        return [event.name for event in prof.events() if event.name == "aten::add"]

    assert len(names(False)) == 1 and len(names(True)) == 2


def test_identifiers_of_traces():
    with torch.profiler.profile(custom_trace_id_callback=lambda: "mine") as prof:
        torch.ones(2)
    assert prof.get_trace_id() == "mine"
    with torch.profiler.profile() as prof:
        torch.ones(2)
    assert len(prof.get_trace_id()) == 32


def test_profilers_refuse():
    with pytest.raises(NotImplementedError, match="observers"):
        torch.profiler.profile(execution_trace_observer=object())
    with pytest.raises(AssertionError, match="Device-only events"):
        torch.autograd.profiler.profile(use_cpu=False)
    with torch.profiler.profile() as prof, pytest.raises(NotImplementedError, match="recorded with the ops"):
        prof.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CUDA])


# -- libraries -------------------------------------------------------------------------------


def test_registrations_go_with_their_library():
    torch.library.define("arguments_lib::twice", "(Tensor x) -> Tensor")
    torch.library.impl("arguments_lib::twice", "default", lambda x: x * 2)
    x = torch.ones(2, requires_grad=True)
    lib = torch.library.Library("arguments_lib", "FRAGMENT")
    torch.library.register_autograd("arguments_lib::twice", lambda ctx, g: g * 7, lib=lib)
    torch.library.register_kernel("arguments_lib::twice", "cpu", lambda x: x * 3, lib=lib)
    torch.library.register_vmap("arguments_lib::twice", lambda info, dims, x: (x * 5, dims[0]), lib=lib)
    out = torch.ops.arguments_lib.twice(x)
    out.sum().backward()
    assert out.tolist() == [3, 3] and x.grad.tolist() == [7, 7]
    assert torch.vmap(torch.ops.arguments_lib.twice)(torch.ones(2)).tolist() == [5, 5]
    del lib
    gc.collect()
    assert torch.ops.arguments_lib.twice(torch.ones(2)).tolist() == [2, 2]
    assert torch.vmap(torch.ops.arguments_lib.twice)(torch.ones(2)).tolist() == [2, 2]


def test_a_second_fake_implementation():
    torch.library.define("arguments_lib2::rows", "(Tensor x) -> Tensor")
    torch.library.register_fake("arguments_lib2::rows", lambda x: x.new_empty(1))
    with pytest.raises(RuntimeError, match="already has a fake implementation"):
        torch.library.register_fake("arguments_lib2::rows", lambda x: x, allow_override=False)
    torch.library.register_fake("arguments_lib2::rows", lambda x: x.new_empty(2))


def test_alias_analysis():
    with pytest.raises(RuntimeError, match="Invalid alias_analysis type SOME"):
        torch.library.define("arguments_lib3::op", "(Tensor x) -> Tensor", "SOME")


# -- other modules ---------------------------------------------------------------------------


class _Answer(io.BytesIO):
    headers: dict = {}


def test_refs_of_a_repository(monkeypatch):
    asked = []

    def urlopen(request):
        asked.append(request.full_url)
        page = request.full_url.endswith("page=1")
        found = [{"name": "main", "commit": {"sha": "abcdef"}}] if page and "/branches" in request.full_url else []
        return _Answer(json.dumps(found).encode())

    monkeypatch.setattr(torch.hub.urllib.request, "urlopen", urlopen)
    torch.hub._check_ref("pytorch", "example", "main")
    torch.hub._check_ref("pytorch", "example", "abc")
    assert len(asked) == 2
    with pytest.raises(ValueError, match="Cannot find fork in https://github.com/pytorch/example"):
        torch.hub._check_ref("pytorch", "example", "fork")


def test_names_of_a_compilation_unit():
    unit = torch.jit.CompilationUnit()
    unit.define("def f(x):\n    return helper(x) + 1\n", rcb={"helper": torch.neg}.get)
    assert unit.f(torch.ones(2)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), report=True), "report"),
        (lambda: torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), profile=True), "profile"),
        (lambda: torch.library.infer_schema(lambda x: x, mutates_args=(), tags=("inplace",)), "inplace"),
        (lambda: torch.fx.symbolic_trace(lambda x: x + 1).graph.python_code("self", record_func=True), "record_func"),
        (lambda: torch.utils.benchmark.FuzzedTensor("x", (2,), roll_parameter="k"), "roll_parameter"),
    ],
)
def test_refused(call, word):
    with pytest.raises(NotImplementedError, match=word):
        call()


def test_warned():
    with pytest.warns(UserWarning, match="mods argument is not needed anymore"):
        torch.utils.flop_counter.FlopCounterMode(torch.nn.ReLU(), display=False)
    with pytest.warns(FutureWarning, match="`optimize` is deprecated"):
        torch.jit.trace(torch.neg, torch.ones(2), optimize=True)


def test_saved_tensors_on_the_cpu():
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2, 2]
