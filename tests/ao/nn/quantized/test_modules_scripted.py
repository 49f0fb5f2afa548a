"""TorchScript files of quantized modules: PyTorch's are read, and torchlite's own have the same results."""

import io
import warnings
import zipfile

import numpy as np
import pytest

import torchlite as torch
from tests.ao.nn.quantized import scripted
from tests.jit.record import leaves
from torchlite.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.filterwarnings("ignore:Converting a tensor to a Python", "ignore::UserWarning")


def read(name):
    with zipfile.ZipFile(scripted.WRITTEN) as archive:
        return io.BytesIO(archive.read(name))


def expected(name):
    found = np.load(read(f"{name}.npz"))
    return [torch.from_numpy(found[key]) for key in found.files]


def assert_near(found, answers):
    """The numbers of one quantized result are exact."""
    assert len(found) == len(answers)
    for one, other in zip(found, answers, strict=True):
        torch.testing.assert_close(one.detach(), other, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("form", scripted.FORMS)
@pytest.mark.parametrize("name", scripted.NETWORKS)
def test_programs_of_pytorch_are_loaded_and_saved_again(name, form):
    program, (_, x) = torch.jit.load(read(f"{name}.{form}.pt")), scripted.NETWORKS[name](torch)
    assert_near(leaves(program(x)), expected(name))
    stream = io.BytesIO()
    torch.jit.save(program, stream)
    stream.seek(0)
    assert_near(leaves(torch.jit.load(stream)(x)), expected(name))


@pytest.mark.parametrize("form", scripted.FORMS)
@pytest.mark.parametrize("name", scripted.NETWORKS)
def test_own_programs_answer_as_the_networks(name, form):
    net, x = scripted.NETWORKS[name](torch)
    net.load_state_dict(torch.load(read(f"{name}.state.pt"), weights_only=True))
    assert_near(leaves(net(x)), expected(name))
    program, stream = scripted.program_of(torch, form, net, x), io.BytesIO()
    assert_near(leaves(program(x)), expected(name))
    torch.jit.save(program, stream)
    assert b"torchlite" not in stream.getvalue()
    stream.seek(0)
    assert_near(leaves(torch.jit.load(stream)(x)), expected(name))


@pytest.mark.parametrize("kind", ["MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver",
                                  "MovingAveragePerChannelMinMaxObserver", "FixedQParamsObserver"])  # fmt: skip
def test_scripted_observers_compute_parameters(kind):
    arguments = (0.5, 3) if kind == "FixedQParamsObserver" else ()
    observer = getattr(torch.ao.quantization, kind)(*arguments)
    stream, x = io.BytesIO(), torch.linspace(-1, 2, 12).reshape(3, 4)
    torch.jit.save(torch.jit.script(observer), stream)
    stream.seek(0)
    loaded = torch.jit.load(stream)
    loaded(x), observer(x)
    for found, wanted in zip(loaded.calculate_qparams(), observer.calculate_qparams(), strict=True):
        assert torch.equal(found, wanted)


def test_scripted_observers_keep_tensors_and_histograms():
    for kind in (torch.ao.quantization.RecordingObserver, torch.ao.quantization.HistogramObserver):
        observer, stream, x = kind(), io.BytesIO(), torch.linspace(-1, 2, 12)
        torch.jit.save(torch.jit.script(observer), stream)
        stream.seek(0)
        loaded = torch.jit.load(stream)
        for part in (x, 2 * x, x - 1):
            loaded(part), observer(part)
        if kind is torch.ao.quantization.RecordingObserver:
            found, wanted = loaded.get_tensor_value()[1], observer.get_tensor_value()[1]
        else:
            found, wanted = loaded.histogram, observer.histogram
        assert torch.equal(found, wanted)


def test_scripted_sums_call_the_methods_of_their_modules():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.join, self.sum = torch.ao.nn.quantized.FloatFunctional(), torch.ao.nn.quantized.FloatFunctional()

        def forward(self, x):
            x = self.join.cat([x, x])
            return self.sum.mul_scalar(self.sum.add(x, x), 0.5)

    net, x = Net().eval(), torch.linspace(0, 1, 6).reshape(3, 2)
    net.qconfig = torch.ao.quantization.default_qconfig
    prepared = torch.ao.quantization.prepare(net)
    prepared(x)
    made = torch.ao.quantization.convert(prepared)
    q = torch.quantize_per_tensor(x, 0.01, 3, torch.quint8)
    for program, given in ((net, x), (made, q)):
        stream = io.BytesIO()
        torch.jit.save(torch.jit.script(program), stream)
        stream.seek(0)
        found = torch.jit.load(stream)(given)
        assert torch.equal(found, program(given))


def test_packed_weights_outside_of_the_module_are_no_part_of_a_trace():
    weight = torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    with pytest.raises(RuntimeError, match="not part of the active trace"):
        torch.jit.trace(lambda x: torch.ops.quantized.linear_dynamic(x, packed), torch.ones(1, 3))


def test_traces_have_the_ops_of_quantization():
    def run(x):
        q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
        return q[0].detach().dequantize() + q.q_scale()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(run, torch.ones(2, 3))
    assert "torch.quantize_per_tensor(x, 0.1, 3, 13)" in traced.code and "torch.select(" in traced.code
    torch.testing.assert_close(traced(torch.zeros(2, 3)), torch.full((3,), 0.1))


def test_damaged_objects_in_programs_are_refused():
    data = read("dynamic.traced.pt").getvalue()
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        names = old.namelist()
        top = names[0].partition("/")[0]
        pickled = old.read(f"{top}/data.pkl")
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as new:
            for name in names:
                broken = pickled.replace(b"quantized_dynamic", b"quantized_unknown")
                new.writestr(name, broken if name.endswith("/data.pkl") else old.read(name))
    stream.seek(0)
    with pytest.raises(RuntimeError, match="CellParamsBase is invalid"):
        torch.jit.load(stream)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("name", scripted.NETWORKS)
def test_graphs_have_packed_weights_as_attributes(name, mode):
    net, x = scripted.NETWORKS[name](torch)
    graph = make_fx(net, tracing_mode=mode)(x)
    targets = [node.target for node in graph.graph.nodes if node.op == "get_attr"]
    assert "_torchbind_obj0" in targets and len(targets) == len(set(targets))
    assert not isinstance(graph._torchbind_obj0, torch.Tensor)
    assert_near(leaves(graph(x)), leaves(net(x)))


def test_export_refuses_packed_weights():
    net, x = scripted.NETWORKS["dynamic"](torch)
    with pytest.raises(AttributeError, match="does not have a field with name '__obj_flatten__'"):
        torch.export.export(net, (x,))
