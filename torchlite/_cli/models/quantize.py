"""`convert --quantize`: layers whose weights have eight or four bits, in the ops of each format.

Of linear layers and products with constant matrices, the inputs are rounded to 256 levels too: between the least and
greatest number of each call, or of the samples. Weights of convolutions and tables of embeddings are rounded alone,
unless there are samples.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor, nn

from ..command_line import CommandError, UsageError
from .model_loader import Model

BITS = ("int8", "int4")
_GROUP = 32  # weights of four bits that share a scale
_LEAST = 1e-7  # scale
_PRODUCTS = ("linear", "addmm", "mm", "matmul", "bmm")
_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
_FLOAT_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
                 "convolution", "embedding_bag", "bilinear")  # fmt: skip


def check_options(bits: str | None, samples: str | None, json: bool, kind: str) -> None:
    """Raise UsageError for options that do not go together."""
    if bits is None:
        if samples or json:
            raise UsageError(f"{'--calibrate' if samples else '--json'}: it needs --quantize int8")
        return
    if kind == "numpy":
        raise UsageError("--quantize: a program of NumPy has floats; name a target that ends in .onnx, .pt2 or .pt")
    if bits == "int4" and kind != "onnx":
        raise UsageError("--quantize int4: only .onnx holds four bits; use int8, or a target that ends in .onnx")
    if bits == "int4" and samples:
        raise UsageError("--calibrate: with int4 only weights are rounded; use --quantize int8")


# -- layers ----------------------------------------------------------------------------------------


class _Layer(nn.Module):
    """A layer with levels for weights. `levels` has a scale for each row (`scales`), or group of a row."""

    def __init__(self, weight: Tensor, form: str, bits: str, compute: Callable[..., Tensor]) -> None:
        super().__init__()
        self.form, self.bits, self.compute = form, bits, compute
        self.range: tuple[float, float] | None = None  # of the inputs, while samples are run
        self.observes = False
        self.step: tuple[float, int] | None = None  # scale and zero point of the inputs
        rows = weight.detach().float()
        self.group = bits == "int4" and rows.ndim == 2 and rows.shape[1] % _GROUP == 0
        most = 7 if self.group else 127
        flat = rows.reshape(len(rows), -1, _GROUP) if self.group else rows.reshape(len(rows), -1)
        scales = flat.abs().amax(-1).clamp(min=_LEAST) / most
        self.register_buffer("levels", torch.round(flat / scales[..., None]).to(torch.int8).reshape(rows.shape))
        self.register_buffer("scales", scales)
        self.register_buffer("zeros", torch.zeros_like(scales, dtype=torch.int64))

    def weight(self) -> Tensor:
        """The numbers of the levels, in the ops of the format."""
        ops = torch.ops.quantized_decomposed
        if self.group:
            return ops.dequantize_per_channel_group.default(
                self.levels, self.scales, self.zeros, -8, 7, torch.int8, _GROUP, torch.float32
            )
        if self.form != "onnx":
            return self.levels.to(torch.float32) * self.scales.reshape(-1, *[1] * (self.levels.ndim - 1))
        return ops.dequantize_per_channel.default(self.levels, self.scales, self.zeros, 0, -127, 127, torch.int8)

    def rounded(self, x: Tensor, by_range: bool) -> Tensor:
        """The inputs rounded to levels: by a known step, or `by_range` of each call."""
        if self.step is not None:
            if self.form != "onnx":
                return torch.fake_quantize_per_tensor_affine(x, *self.step, 0, 255)
            ops, rest = torch.ops.quantized_decomposed, (*self.step, 0, 255, torch.uint8)
            return ops.dequantize_per_tensor.default(ops.quantize_per_tensor.default(x, *rest), *rest)
        if not by_range or self.bits == "int4":
            return x
        seen = x.detach()  # steps have no derivative
        least, greatest = seen.amin().clamp(max=0), seen.amax().clamp(min=0)
        scale = ((greatest - least) / 255).clamp(min=_LEAST)
        zero = torch.round(-least / scale).clamp(0, 255).to(torch.int32)
        return torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255)

    def observe(self, x: Tensor) -> None:
        if self.observes and x.numel():
            least, greatest = self.range or (0.0, 0.0)
            self.range = min(least, x.amin().item()), max(greatest, x.amax().item())

    def settle(self) -> None:
        """Make the observed range the step of the inputs."""
        self.observes = False
        if self.range is not None:
            scale = max((self.range[1] - self.range[0]) / 255, _LEAST)
            self.step = scale, min(max(round(-self.range[0] / scale), 0), 255)


class _Product(_Layer):
    """`x @ weight.t() + bias`."""

    def __init__(self, weight: Tensor, form: str, bits: str) -> None:
        super().__init__(weight, form, bits, torch.nn.functional.linear)
        if form == "onnx" and bits == "int8":
            self.register_buffer("columns", self.levels.t().contiguous())

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        self.observe(x)
        if self.form == "onnx" and self.bits == "int8" and self.step is None and x.ndim > 1:
            levels, scale, zero = torch.ops.torchlite._dynamic_quantize(x)
            total = torch.ops.torchlite._quantized_matmul(levels, self.columns, zero)
            out = total.to(torch.float32) * (scale * self.scales)
        else:
            out = torch.nn.functional.linear(self.rounded(x, by_range=True), self.weight())
        return out if bias is None else out + bias


class _Convolution(_Layer):
    def forward(self, x: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
        self.observe(x)
        return self.compute(self.rounded(x, by_range=False), self.weight(), bias, *rest)


class _Embedding(_Layer):
    def forward(self, indices: Tensor) -> Tensor:
        rows = self.levels[indices].to(torch.float32)
        scales = self.scales[indices]
        if self.group:
            return (rows.unflatten(-1, (-1, _GROUP)) * scales[..., None]).flatten(-2)
        return rows * scales[..., None]


# -- graphs ----------------------------------------------------------------------------------------


def _op_name(node: Any) -> str:
    return str(node.target).removeprefix("torch.ops.").removeprefix("aten.").partition(".")[0]


def _constant_of(module: Any, node: Any) -> Tensor | None:
    """A float32 weight of the graph, or its transposition; None for other values."""
    if getattr(node, "op", "") == "get_attr":
        value = module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        return value if isinstance(value, Tensor) and value.dtype is torch.float32 else None
    if getattr(node, "op", "") != "call_function":
        return None
    name, rest = _op_name(node), [list(a) if isinstance(a, (list, tuple)) else a for a in node.args[1:]]
    if (name, rest) in [("t", []), ("permute", [[1, 0]]), ("transpose", [0, 1]), ("transpose", [1, 0]),
                        ("numpy_T", [])]:  # fmt: skip
        found = _constant_of(module, node.args[0])
        return None if found is None or found.ndim != 2 else found.t()
    return None


def _replacement(module: Any, node: Any, form: str, bits: str) -> tuple[_Layer, tuple] | None:
    """A layer for a node, with its arguments; None for a node that stays."""
    name, args = _op_name(node), node.args
    if node.kwargs or len(args) < 2:
        return None
    if name == "embedding" and len(args) >= 2:
        weight = _constant_of(module, args[0])
        if weight is None or any(args[3:]):
            return None
        return _Embedding(weight, form, bits, torch.nn.functional.embedding), (args[1],)
    if name == "index_select" and args[1] == 0:
        weight = _constant_of(module, args[0])
        if weight is None or weight.ndim != 2:
            return None
        return _Embedding(weight, form, bits, torch.nn.functional.embedding), (args[2],)
    if name in _CONVOLUTIONS:
        weight = _constant_of(module, args[1])
        if weight is None:
            return None
        layer = _Convolution(weight, form, "int8", getattr(torch.nn.functional, name))
        return layer, (args[0], args[2] if len(args) > 2 else None, *args[3:])
    if name not in _PRODUCTS:
        return None
    bias, x, matrix = (args[0], args[1], args[2]) if name == "addmm" else (None, args[0], args[1])
    if name == "linear" and len(args) > 2:
        bias = args[2]
    weight = _constant_of(module, matrix)
    if weight is None or weight.ndim != 2:
        return None
    return _Product(weight if name == "linear" else weight.t(), form, bits), (x, bias)


def replace_layers(module: Any, form: str, bits: str) -> tuple[list[_Layer], Counter]:
    """Replace the layers of a graph module in place. Return them, and the count of layers that stay in floats."""
    import torchlite.ao.quantization.fx._decomposed  # noqa: F401 (registers the ops)

    made: list[_Layer] = []
    kept: Counter = Counter()
    with torch.no_grad():
        for node in list(module.graph.nodes):
            if node.op != "call_function":
                continue
            found = _replacement(module, node, form, bits)
            if found is None:
                if _op_name(node) in (*_FLOAT_LAYERS, *_CONVOLUTIONS):
                    kept[_op_name(node)] += 1
                continue
            layer, args = found
            name = f"quantized_{len(made)}"
            module.add_submodule(name, layer)
            with module.graph.inserting_before(node):
                new = module.graph.call_module(name, args)
            new.meta = dict(node.meta)
            node.replace_all_uses_with(new)
            module.graph.erase_node(node)
            made.append(layer)
    module.graph.eliminate_dead_code()
    _delete_unused_tensors(module)
    module.delete_all_unused_submodules()
    module.recompile()
    return made, kept


def _delete_unused_tensors(module: Any) -> None:
    """Delete the parameters and buffers that no node reads, such as the weights before."""
    used = {str(node.target) for node in module.graph.nodes if node.op == "get_attr"}
    called = tuple(f"{node.target}." for node in module.graph.nodes if node.op == "call_module")
    for name in [name for found in (module.named_parameters(), module.named_buffers()) for name, _ in found]:
        if name not in used and not name.startswith(called or ("\0",)):
            owner, _, last = name.rpartition(".")
            delattr(module.get_submodule(owner), last)


# -- samples ---------------------------------------------------------------------------------------


def read_samples(path: str, model: Model, given: list[Tensor]) -> Iterator[list[Tensor]]:
    """The arguments of each sample in an .npz file, whose arrays have the inputs' names, and samples along the first
    dimension. CommandError for a file that does not fit.
    """
    try:
        with np.load(path, allow_pickle=False) as found:
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError
            arrays = dict(found)
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError):
        raise CommandError(f"--calibrate {path}: it is no .npz file of NumPy's arrays") from None
    names = [value.name for value in model.inputs]
    names = names if len(names) == len(given) else [f"input_{place}" for place in range(len(given))]
    absent = [name for name in names if name not in arrays]
    if absent:
        raise CommandError(f"--calibrate {path}: it has no array '{absent[0]}'; the inputs are {', '.join(names)}")
    parts: list[list[Tensor]] = []
    for name, like in zip(names, given, strict=True):
        array = torch.from_numpy(arrays[name])
        size = tuple(like.shape)
        if array.dtype is not like.dtype or tuple(array.shape[-like.ndim + 1 :] if like.ndim > 1 else ()) != size[1:]:
            kind = str(like.dtype).rpartition(".")[2]
            raise CommandError(
                f"--calibrate {path}: '{name}' is {str(array.dtype).rpartition('.')[2]} {list(array.shape)}, but "
                f"samples of the input are {kind} {list(size)}"
            )
        if array.ndim == like.ndim + 1:
            parts.append(list(array))
        else:
            step = size[0] if size else 1
            parts.append([array[at : at + step] for at in range(0, len(array) - step + 1, step)])
    count = min(map(len, parts), default=0)
    if not count:
        raise CommandError(f"--calibrate {path}: it has no complete sample")
    return ([part[place] for part in parts] for place in range(count))


def calibrate(module: Any, layers: list[_Layer], samples: Iterator[list[Tensor]]) -> int:
    """Run the samples and make the ranges of inputs known. Return the number of samples."""
    for layer in layers:
        layer.observes = True
    count = 0
    with torch.no_grad():
        for arguments in samples:
            module(*arguments)
            count += 1
    for layer in layers:
        layer.settle()
    return count
