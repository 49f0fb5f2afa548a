"""Models that torchlite writes as ONNX, checked by onnx and run by onnxruntime; and PyTorch's exporter's files."""

import io
import warnings

import numpy as np
import pytest

import torchlite
from tests.ao.nn.quantized import scripted
from tests.graph_models import MODELS
from tests.onnx.test_quantization import OTHER_LAYERS, other_layers

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.oracle


def outputs(found):
    return found if isinstance(found, (tuple, list)) else (found,)


@pytest.mark.parametrize("name", ["static", "trained"])
def test_files_of_eager_quantized_networks(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net, x = scripted.NETWORKS[name](torchlite)
        data = torchlite.onnx.export(net, (x,), dynamo=True).to_bytes()
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_array_equal(found, net(x).numpy())


@pytest.mark.parametrize("name", OTHER_LAYERS)
def test_files_of_recurrent_layers_dynamic_convolutions_and_bags(name):
    net, inputs = other_layers(name)
    data = torchlite.onnx.export(net, inputs, dynamo=True).to_bytes()
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)})
    np.testing.assert_allclose(found, net(*inputs).detach().numpy(), rtol=1e-5, atol=1e-6)


# The versions from which on ONNX has words for a model's ops.
SINCE = {"recsys": 16, "gnn": 18}


@pytest.mark.parametrize("version", [11, 13, 16, 18, 25])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_our_files(name, dynamic, version):
    made = MODELS[name]
    if dynamic and made.batch is None:
        pytest.skip("the model has no batch")
    net = made.make(torchlite)
    shapes = made.dynamic(torchlite) if dynamic else None
    if version < SINCE.get(name, 0):
        with pytest.raises(torchlite.onnx.errors.UnsupportedOperatorError):
            torchlite.onnx.export(net, made.inputs(torchlite), dynamic_shapes=shapes, opset_version=version)
        return
    program = torchlite.onnx.export(net, made.inputs(torchlite), dynamic_shapes=shapes, opset_version=version)
    data = program.to_bytes()
    onnx.checker.check_model(data, full_check=True)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for batch in (2, 5) if dynamic else (2,):
        inputs = made.inputs(torchlite, batch)
        with torchlite.no_grad():
            wanted = outputs(net(*inputs))
        found = session.run(None, {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)})
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "t5"])  # which PyTorch's own exporter refuses
def test_files_of_pytorch(name, train):
    pytest.importorskip("onnxscript")
    made, file = MODELS[name], io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(made.make(torch, train), made.inputs(torch), verbose=False)
    file.write(program.model_proto.SerializeToString())
    module = torchlite.onnx.load(file.getvalue())
    inputs = made.inputs(torchlite)
    if any(node.op_type == "Dropout" for node in program.model_proto.graph.node):
        assert all(bool(torchlite.isfinite(x.float()).all()) for x in outputs(module(*inputs)))
        return
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)})
    for got, want in zip(outputs(module(*inputs)), wanted, strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-5, atol=1e-5)
