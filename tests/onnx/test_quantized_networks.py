"""Networks that onnxruntime's own tools quantized, against its recorded results."""

from __future__ import annotations

import io
import pathlib
import zipfile

import numpy as np
import pytest

import torchlite as torch

ARCHIVE = pathlib.Path(__file__).parent / "files" / "quantized_networks.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    NAMES = sorted(name[:-5] for name in _archive.namelist() if name.endswith(".onnx"))
# Their results are sums of floats, which each library adds in its own order.
FLOATS = {
    "bilstm_dynamic_per_channel", "cnn_dynamic", "gru_dynamic", "products_fp4", "products_gather", "products_int4",
    "products_int4_qdq", "products_int4_rounded", "products_int8", "products_int8_rounded", "products_nf4",
}  # fmt: skip


def read(name):
    """The model's bytes, its input, and the results with and without onnxruntime's optimizations."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        arrays = np.load(io.BytesIO(archive.read(f"{name}.npz")))
        return archive.read(f"{name}.onnx"), arrays["i0"], arrays["o0"], arrays["o1"]


@pytest.mark.parametrize("name", NAMES)
def test_network(name, device):
    """On the CPU, levels equal those of onnxruntime without its optimizations, which fuse steps between roundings."""
    model, x, _, want = read(name)
    module = torch.onnx.load(model).to(device)
    with torch.no_grad():
        got = module(torch.from_numpy(x).to(device)).cpu().numpy()
    assert got.dtype == want.dtype and got.shape == want.shape
    if name in FLOATS:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    elif device == "cpu":
        assert np.array_equal(got, want)
    else:
        # A number in the middle between two levels may go to the other one, and later layers see that.
        np.testing.assert_allclose(got, want, atol=0.03 * np.abs(want).max())


def test_there_are_the_quantizers_forms():
    ops = {node.op_type for name in NAMES for node in torch.onnx._load.read_model(read(name)[0])[0].graph.node}
    assert ops >= {
        "QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger",
        "DynamicQuantizeLinear", "DynamicQuantizeLSTM", "MatMulNBits", "GatherBlockQuantized", "MatMulBnb4", "QGemm",
        "QLinearAdd", "QLinearConcat", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearAveragePool", "QLinearSoftmax",
        "QLinearMul",
    }  # fmt: skip
