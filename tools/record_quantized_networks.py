"""Record small networks that onnxruntime's own tools quantized, with its results: by default (o0), and without its
optimizations (o1), which add quantized tensors in one step.

usage: python tools/record_quantized_networks.py

It needs onnx and onnxruntime, and rewrites tests/onnx/files/quantized_networks.zip. torchlite writes the networks.
"""

from __future__ import annotations

import io
import pathlib
import sys
import tempfile
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime import quantization as q
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "backends")]
import torchlite as torch  # noqa: E402
from torchlite import nn  # noqa: E402

ARCHIVE = ROOT / "tests" / "onnx" / "files" / "quantized_networks.zip"


class Depthwise(nn.Module):
    """Convolutions, depthwise and grouped, with a residual sum, a concatenation and pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point = nn.Conv2d(8, 8, 1)
        self.grouped = nn.Conv2d(8, 4, 3, padding=1, groups=2)
        self.last = nn.Linear(12, 5)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.stem(x))
        x = x + self.point(nn.functional.relu6(self.depthwise(x)))
        x = torch.cat([x, torch.sigmoid(self.grouped(x))], 1)
        x = nn.functional.avg_pool2d(nn.functional.leaky_relu(x, 0.1), 2)
        return torch.softmax(self.last(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)), 1)


class Pooled(nn.Module):
    """Convolutions of sequences and volumes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(4, 8, 5, padding=2), nn.Conv1d(8, 6, 3, dilation=2)

    def forward(self, x: Any) -> Any:
        return self.second(nn.functional.max_pool1d(torch.relu(self.first(x)), 2))


class Skipping(nn.Module):
    """Convolutions at two sizes: the smaller one is resized and joined with the larger one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.below, self.last = (nn.Conv2d(i, o, 3, padding=1) for i, o in ((2, 8), (8, 8), (16, 3)))

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.first(x))
        small = torch.relu(self.below(nn.functional.max_pool2d(x, 2)))
        return self.last(torch.cat([x, nn.functional.interpolate(small, scale_factor=2)], 1))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(i, 8, 3, padding=1) for i in (3, 8, 8))
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.convs[0](x))
        x = torch.relu(x + self.convs[2](torch.relu(self.convs[1](x))))
        return self.last(nn.functional.max_pool2d(x, 2))


class Transposed(nn.Module):
    """A transposed convolution, whose channels a product maps."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.up = nn.Conv2d(4, 8, 3, padding=1), nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.last = Product(4, 6)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.up(torch.relu(self.first(x))))
        return self.last(x.permute(0, 2, 3, 1).flatten(1, 2))


class Sound(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Conv1d(1, 8, 9, stride=2, padding=4), nn.Conv1d(8, 16, 5, stride=2, padding=2)
        self.grouped, self.last = nn.Conv1d(16, 8, 3, padding=1, groups=2), nn.Conv1d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        x = nn.functional.leaky_relu(self.narrow(torch.relu(self.wide(x))), 0.1)
        return self.last(torch.sigmoid(self.grouped(x)))


class Recurrent(nn.Module):
    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.steps, self.last = kind(6, 8, **options), nn.Linear(16 if options.get("bidirectional") else 8, 4)

    def forward(self, x: Any) -> Any:
        return self.last(self.steps(x)[0])


class Block(nn.Module):
    """A transformer's layer after embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(7, 16)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.last = nn.Linear(16, 20)

    def forward(self, ids: Any) -> Any:
        x = self.words(ids) + self.places(torch.arange(7))
        return self.last(self.layer(x))


def mlp() -> Any:
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4))


class Product(nn.Module):
    """A product with a matrix that the file has as it is, without a transposition."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, columns) / rows**0.5)

    def forward(self, x: Any) -> Any:
        return x @ self.weight


def products() -> Any:
    return nn.Sequential(nn.Embedding(20, 64), Product(64, 48), nn.GELU(), Product(48, 32))


def images(*shape: int) -> Callable[[Any], Any]:
    return lambda rng: rng.standard_normal(shape).astype("f4")


def ids(rng: Any) -> Any:
    return rng.integers(0, 20, (2, 7))


class Samples(q.CalibrationDataReader):
    def __init__(self, name: str, make: Callable[[Any], Any]) -> None:
        rng = np.random.default_rng(1)
        self.rest = iter([{name: make(rng)} for _ in range(6)])

    def get_next(self) -> Any:
        return next(self.rest, None)


LEVELS = onnxruntime.GraphOptimizationLevel
T, F = q.QuantType, q.QuantFormat
ENTROPY, PERCENTILE = q.CalibrationMethod.Entropy, q.CalibrationMethod.Percentile


def static(form: Any, activations: Any, weights: Any, **options: Any) -> Callable[..., None]:
    def run(source: str, target: str, name: str, make: Any) -> None:
        q.quantize_static(
            source, target, Samples(name, make), quant_format=form, activation_type=activations, weight_type=weights,
            **options,
        )  # fmt: skip

    return run


def dynamic(weights: Any, **options: Any) -> Callable[..., None]:
    return lambda source, target, name, make: q.quantize_dynamic(source, target, weight_type=weights, **options)


def blocks(bits: int, size: int, symmetric: bool, level: int | None = None, form: Any = F.QOperator, **options: Any):
    def run(source: str, target: str, name: str, make: Any) -> None:
        config = DefaultWeightOnlyQuantConfig(
            block_size=size, is_symmetric=symmetric, accuracy_level=level, bits=bits, quant_format=form, **options
        )
        made = MatMulNBitsQuantizer(onnx.load(source), algo_config=config)
        made.process()
        made.model.save_model_to_file(target)

    return run


def bnb(kind: int) -> Callable[..., None]:
    def run(source: str, target: str, name: str, make: Any) -> None:
        made = MatMulBnb4Quantizer(onnx.load(source), kind, 16)
        made.process()
        made.model.save_model_to_file(target)

    return run


NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "mlp": (mlp, images(5, 12)),
    "products": (products, ids),
    "cnn": (Depthwise, images(2, 3, 16, 16)),
    "sequence": (Pooled, images(2, 4, 20)),
    "lstm": (lambda: Recurrent(nn.LSTM), images(4, 2, 6)),
    "bilstm": (lambda: Recurrent(nn.LSTM, bidirectional=True, num_layers=2), images(4, 2, 6)),
    "gru": (lambda: Recurrent(nn.GRU), images(4, 2, 6)),
    "block": (Block, ids),
    "skipping": (Skipping, images(1, 2, 16, 16)),
    "residual": (Residual, images(2, 3, 12, 12)),
    "transposed": (Transposed, images(1, 4, 6, 6)),
    "sound": (Sound, images(2, 1, 128)),
}
SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True}
FILES: list[tuple[str, str, Callable[..., None]]] = [
    ("mlp", "qdq", static(F.QDQ, T.QUInt8, T.QInt8)),
    ("mlp", "qdq_per_channel", static(F.QDQ, T.QInt8, T.QInt8, per_channel=True)),
    ("mlp", "operators", static(F.QOperator, T.QUInt8, T.QUInt8)),
    ("mlp", "int16", static(F.QDQ, T.QInt16, T.QInt8, extra_options={"UseQDQContribOps": True})),
    ("mlp", "uint16", static(F.QDQ, T.QUInt16, T.QUInt8, extra_options={"UseQDQContribOps": True})),
    ("mlp", "int4", static(F.QDQ, T.QUInt8, T.QInt4)),
    ("mlp", "dynamic", dynamic(T.QInt8)),
    ("cnn", "qdq", static(F.QDQ, T.QUInt8, T.QInt8)),
    ("cnn", "qdq_symmetric", static(F.QDQ, T.QInt8, T.QInt8, per_channel=True, extra_options=SYMMETRIC)),
    ("cnn", "operators", static(F.QOperator, T.QUInt8, T.QInt8)),
    ("cnn", "operators_per_channel", static(F.QOperator, T.QUInt8, T.QInt8, per_channel=True)),
    ("cnn", "operators_signed", static(F.QOperator, T.QInt8, T.QInt8)),
    ("cnn", "reduced", static(F.QDQ, T.QUInt8, T.QInt8, reduce_range=True, calibrate_method=ENTROPY)),
    ("cnn", "dynamic", dynamic(T.QUInt8)),
    ("sequence", "operators", static(F.QOperator, T.QUInt8, T.QInt8)),
    ("lstm", "dynamic", dynamic(T.QUInt8)),
    ("bilstm", "dynamic_per_channel", dynamic(T.QInt8, per_channel=True)),
    ("gru", "dynamic", dynamic(T.QUInt8)),
    ("block", "qdq", static(F.QDQ, T.QUInt8, T.QInt8)),
    ("block", "operators", static(F.QOperator, T.QUInt8, T.QInt8)),
    ("block", "dynamic", dynamic(T.QInt8, per_channel=True, reduce_range=True)),
    ("products", "int4", blocks(4, 32, True)),
    ("products", "int4_qdq", blocks(4, 32, False, form=F.QDQ)),
    ("products", "int8", blocks(8, 32, False)),
    ("products", "gather", blocks(4, 16, True, op_types_to_quantize=("MatMul", "Gather"))),
    ("products", "nf4", bnb(MatMulBnb4Quantizer.NF4)),
    ("products", "fp4", bnb(MatMulBnb4Quantizer.FP4)),
    ("products", "int4_rounded", blocks(4, 32, False, 4)),
    ("products", "int8_rounded", blocks(8, 16, True, 4)),
    ("skipping", "qdq", static(F.QDQ, T.QUInt8, T.QInt8, per_channel=True, calibrate_method=PERCENTILE)),
    ("skipping", "operators", static(F.QOperator, T.QUInt8, T.QInt8)),
    ("residual", "qdq", static(F.QDQ, T.QInt8, T.QInt8, per_channel=True, calibrate_method=ENTROPY)),
    ("residual", "operators", static(F.QOperator, T.QUInt8, T.QUInt8)),
    ("transposed", "qdq", static(F.QDQ, T.QInt8, T.QInt8)),
    ("sound", "operators", static(F.QOperator, T.QUInt8, T.QInt8)),
    ("mlp", "operators_signed", static(F.QOperator, T.QInt8, T.QInt8)),
]  # fmt: skip


def main() -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive, tempfile.TemporaryDirectory() as folder:
        for number, (network, kind, quantize) in enumerate(FILES):
            make, sample = NETWORKS[network]
            torch.manual_seed(number)
            model = make().eval()
            x = sample(np.random.default_rng(number))
            source, prepared, target = (f"{folder}/{name}.onnx" for name in ("float", "prepared", "small"))
            torch.onnx.export(
                model, (torch.from_numpy(x),), source, input_names=["x"], output_names=["y"], external_data=False
            )
            if quantize.__qualname__.startswith(("static", "dynamic")):
                q.quant_pre_process(source, prepared, skip_symbolic_shape=True)
                source = prepared
            quantize(source, target, "x", sample)
            written = onnx.load(target)
            for node in written.graph.node:
                del node.metadata_props[:]
                node.doc_string = ""
            results = {}
            for place, level in enumerate((LEVELS.ORT_ENABLE_ALL, LEVELS.ORT_DISABLE_ALL)):
                options.graph_optimization_level = level
                session = onnxruntime.InferenceSession(
                    written.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
                results[f"o{place}"] = session.run(None, {"x": x})[0]
            held = io.BytesIO()
            np.savez(held, i0=x, **results)
            for suffix, data in (("onnx", written.SerializeToString()), ("npz", held.getvalue())):
                info = zipfile.ZipInfo(f"{network}_{kind}.{suffix}")
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, data)


if __name__ == "__main__":
    main()
