"""Weights and biases of quantized layers, as `torch.ops.quantized.linear_prepack` and its like hand them out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._dispatch import REGISTRY, function_for
from .._dispatch.call import wrap_array
from .._dispatch.dispatch_state import GLOBALS
from .._dispatch.error_translation import no_backend_kernel_error
from .._dispatch.kernel_recorder import RECORDERS
from .._dispatch.tracing import TRACES
from .._settings.backend_flags import FLAGS
from .._types.quantized_levels import LevelsMatrix
from .packed_levels import is_packed
from .quantized_tensor import is_quantized, wrap_quantized
from .quantizers import BITS, PerChannel, PerTensor, check_numbers

_constant_matmul, _dynamic_linear = (function_for(REGISTRY[name]) for name in ("_constant_matmul", "_dynamic_linear"))
CLASSES = "__torch__.torch.classes.quantized."


def _check(tensor: Any, dtype: Any, op: str) -> None:
    if not is_quantized(tensor):
        raise no_backend_kernel_error(f"quantized::{op}", "", tensor)
    if tensor.dtype is not dtype:
        raise RuntimeError(f"quantized::{op}: expected a tensor of {dtype}, but got {tensor.dtype}")


class LibraryObject:
    """Base of objects of the classes that PyTorch's library defines for TorchScript programs."""

    _schema_type: str  # the class's name in programs
    _script_methods: frozenset[str] = frozenset()  # the methods that programs may call
    _tl_is_immutable = True  # graphs read them as constants

    def __repr__(self) -> str:
        return f"ScriptObject <{self._schema_type}>"

    def _saved_state(self) -> Any:
        """Return the state that files have."""
        raise NotImplementedError

    def __getstate__(self) -> tuple[Any, str]:
        return self._saved_state(), self._schema_type

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return rebuild_object, (self._schema_type, self._saved_state())

    def _type(self) -> str:
        """Return the class's name."""
        return self._schema_type

    def _method_names(self) -> list[str]:
        """Return the names of the methods."""
        return ["__getstate__", "__setstate__", *sorted(self._script_methods)]


# Functions that make objects of their states, by the class's name.
_REBUILD: dict[str, Callable[[Any], Any]] = {}


def register_class(name: str, rebuild: Callable[[Any], Any]) -> None:
    """Register how objects of a class are made of their states."""
    _REBUILD[name] = rebuild


def is_object_class(name: str) -> bool:
    """True if the library defines a class for TorchScript programs."""
    return name in _REBUILD


def rebuild_object(name: str, state: Any) -> Any:
    """Make an object of a state out of a file, which may contain anything. RuntimeError for a wrong state."""
    try:
        return _REBUILD[name](state)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, NotImplementedError) as error:
        raise RuntimeError(f"the state of an object of {name} is invalid ({str(error)[:200]})") from None


class _Packed(LibraryObject):
    """Common part of packed parameters: `weight` is quantized, `bias` has float32 numbers, or is None."""

    _prepack: str  # the op that makes them
    _script_methods = frozenset(("unpack", "bias"))
    _last: tuple[tuple, dict[str, Any]] | None = None

    def __init__(self, weight: Any, bias: Any) -> None:
        _check(weight, torch.qint8, self._prepack)
        self._weight, self._bias = weight, None if bias is None else bias.detach().to(torch.float32)
        quantizer = weight._quantizer
        # Scales of float32, a number or one for each output, and zero points of int8.
        if isinstance(quantizer, PerTensor):
            self._scale: Any = quantizer.scale
            zero_points = None if quantizer.zero_point == 0 else [quantizer.zero_point]
        else:
            self._check_axis(quantizer)
            self._scale = quantizer.scales.to(torch.float32)
            zero_points = quantizer.zero_points.tolist()
        self._zero = None
        if zero_points and any(zero_points):
            self._zero = torch.tensor(zero_points, dtype=torch.int8, device=weight.device)

    def _check_axis(self, quantizer: PerChannel) -> None:
        if quantizer.axis != 0:
            raise RuntimeError("expected the channels of a weight along its first dimension")

    def _tl_parts(self) -> list[Any]:
        """The tensors that a graph reads, and the values of quantized ones."""
        return [_plain(value) for value in vars(self).values() if isinstance(value, torch.Tensor)]

    def unpack(self) -> tuple[Any, Any]:
        """Return the weight and the bias."""
        return self._weight, self._bias

    def bias(self) -> Any:
        """Return the bias."""
        return self._bias

    def _arguments(self, x: Any, scale: float, zero_point: int) -> dict[str, Any]:
        """The arguments of a product with a result of `scale` and `zero_point`. Those of the last call are kept."""
        if GLOBALS["INTERCEPTORS"] or TRACES or RECORDERS:  # they are values of a graph
            return self._make_arguments(x, scale, zero_point)
        version = None if self._bias is None else self._bias._version
        key = x.q_scale(), x.q_zero_point(), x._values.dtype, x.device, scale, zero_point, version
        last = self._last
        if last is None or last[0] != key:
            last = self._last = key, self._make_arguments(x, scale, zero_point)
        return last[1]

    def _make_arguments(self, x: Any, scale: float, zero_point: int) -> dict[str, Any]:
        both = self._scale * x.q_scale()
        bias = None if self._bias is None else torch.round(self._bias / both).to(torch.int32)
        device = x.device
        multiplier = both / scale
        if not isinstance(multiplier, torch.Tensor):
            multiplier = torch.tensor(multiplier, dtype=torch.float32, device=device)
        return {
            "input_zero": torch.tensor(x.q_zero_point(), dtype=x._values.dtype, device=device),
            "bias": bias, "scale": multiplier,
            "out_zero": torch.tensor(zero_point, dtype=x._values.dtype, device=device),
        }  # fmt: skip


def _plain(value: Any) -> Any:
    return value._values if is_quantized(value) else value


def _wrap(values: Any, scale: float, zero_point: int) -> Any:
    return wrap_quantized(values, PerTensor(scale, zero_point))


def quantize_dynamically(x: Any, reduce_range: bool) -> Any:
    """Numbers as quint8 by their least and greatest one."""
    return torch.quantize_per_tensor_dynamic(x.detach(), torch.quint8, reduce_range)


class LinearPackedParams(_Packed):
    """The weight, of shape ``(out_features, in_features)``, and the bias of a linear layer."""

    _schema_type = f"{CLASSES}LinearPackedParamsBase"
    _prepack = "linear_prepack"

    def __init__(self, weight: Any, bias: Any = None) -> None:
        super().__init__(weight, bias)
        if weight.ndim != 2:
            raise RuntimeError("The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional.")
        zero: Any = self._zero
        zero = None if zero is None else zero._tl_array
        # The levels as columns. A kernel's form replaces them, so that they are in memory once.
        self._matrix, self._quantizer = LevelsMatrix(weight._values.t()._tl_array, zero), weight._quantizer
        self._table = weight._values._tl_kernels
        del self._weight
        self._steps = torch.as_tensor(self._scale, dtype=torch.float32, device=weight.device)

    def _saved_state(self) -> Any:
        return self.unpack()

    def unpack(self) -> tuple[Any, Any]:
        """Return the weight and the bias."""
        columns = wrap_array(self._table, self._matrix.levels())
        return wrap_quantized(columns.t().contiguous(), self._quantizer), self._bias

    def __call__(self, x: Any, scale: float, zero_point: int) -> Any:
        """The quantized result of the layer."""
        _check(x, torch.quint8, "linear")
        given = self._arguments(x, scale, zero_point)
        return _wrap(_constant_matmul(x._values, self._matrix, **given), scale, zero_point)

    def on_levels(self, x: Any, scale: float, zero_point: int) -> Any:
        """The float32 result for float32 numbers, which are quantized with a scale and a zero point."""
        weight, bias = self.unpack()
        numbers = torch.quantize_per_tensor(x, scale, zero_point, torch.quint8).dequantize()
        return torch.nn.functional.linear(numbers, weight.dequantize(), bias)

    def dynamic(self, x: Any, reduce_range: bool = False, rectify: bool = False) -> Any:
        """The result for float32 numbers, which are quantized by their range; with `rectify`, 0 for negative ones."""
        check_numbers(x)
        if x.numel() == 0:
            out = torch.zeros(*x.shape[:-1], self._matrix.shape[1], device=x.device)
            out = out if self._bias is None else out + self._bias
            return torch.relu(out) if rectify else out
        # QNNPACK's kernels have no use for a smaller range.
        greatest = 127 if reduce_range and FLAGS.quantized_engine != "qnnpack" else 255
        return _dynamic_linear(x, self._matrix, self._steps, self._bias, greatest, rectify)


class ConvPackedParams(_Packed):
    """The weight, of shape ``(out_channels, in_channels / groups, *kernel)``, the bias and the geometry of a
    convolution over two dimensions. One over a single dimension has a kernel of height 1.
    """

    _schema_type = f"{CLASSES}Conv2dPackedParamsBase"
    _prepack = "conv_prepack"
    _script_methods = frozenset(
        ("weight", "bias", "unpack", "stride", "padding", "output_padding", "dilation", "groups", "transpose")
    )

    def __init__(
        self, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
        output_padding: Any = None,
    ) -> None:  # fmt: skip
        self._transposed = output_padding is not None
        super().__init__(weight, bias)
        self._geometry = tuple(stride), tuple(padding), tuple(dilation), groups
        self._output_padding = tuple(output_padding or ())

    def _check_axis(self, quantizer: PerChannel) -> None:
        if self._transposed and quantizer.axis != 1 or not self._transposed and quantizer.axis != 0:
            raise RuntimeError("expected the channels of a weight along the dimension of its outputs")

    def _saved_state(self) -> Any:
        """The version of the state, the geometry as numbers and the weight, and the bias."""
        stride, padding, dilation, groups = self._geometry
        numbers = [len(stride), *stride, *padding, *dilation, *self.output_padding(), groups, int(self._transposed)]
        return "2", [torch.tensor(numbers, dtype=torch.int16), self._weight], [self._bias]

    def weight(self) -> Any:
        """Return the weight."""
        return self._weight

    def stride(self) -> list[int]:
        """Return the strides."""
        return list(self._geometry[0])

    def padding(self) -> list[int]:
        """Return the padding."""
        return list(self._geometry[1])

    def dilation(self) -> list[int]:
        """Return the dilations."""
        return list(self._geometry[2])

    def output_padding(self) -> list[int]:
        """Return the output padding."""
        return list(self._output_padding) or [0] * len(self._geometry[0])

    def groups(self) -> int:
        """Return the number of groups."""
        return self._geometry[3]

    def transpose(self) -> bool:
        """Return whether the convolution is transposed."""
        return self._transposed

    def __call__(self, x: Any, scale: float, zero_point: int) -> Any:
        """The quantized result of the convolution."""
        _check(x, torch.quint8, "conv_transpose" if self._transposed else "conv")
        if self._transposed:
            return torch.quantize_per_tensor(self._on_numbers(x.dequantize()), scale, zero_point, torch.quint8)
        stride, padding, dilation, groups = self._geometry
        given = self._arguments(x, scale, zero_point)
        out = torch.ops.torchlite._quantized_convolution(
            x._values, self._weight._values, given["input_zero"], self._zero, given["bias"], given["scale"],
            given["out_zero"], stride, padding * 2, dilation, groups,
        )  # fmt: skip
        return _wrap(out, scale, zero_point)

    def dynamic(self, x: Any, reduce_range: bool = False) -> Any:
        """The result for float32 numbers, which are quantized by their range."""
        return self._on_numbers(quantize_dynamically(x, reduce_range).dequantize())

    def _on_numbers(self, x: Any) -> Any:
        stride, padding, dilation, groups = self._geometry
        weight = self._weight.dequantize()
        if not self._transposed:
            return torch.convolution(
                x, weight, self._bias, stride, padding, dilation, False, (0,) * len(stride), groups
            )
        return torch.convolution(x, weight, self._bias, stride, padding, dilation, True, self._output_padding, groups)


class Conv3dPackedParams(ConvPackedParams):
    """Those of a convolution over three dimensions, which have another type in schemas."""

    _schema_type = f"{CLASSES}Conv3dPackedParamsBase"


class EmbeddingPackedParams(LibraryObject):
    """The weight of an embedding, quantized for each row with a float scale and zero point."""

    _schema_type = f"{CLASSES}EmbeddingPackedParamsBase"
    _script_methods = frozenset(("bit_rate", "unpack", "version"))

    def __init__(self, weight: Any) -> None:
        if not is_quantized(weight) or weight.dtype not in (torch.quint8, torch.quint4x2):
            raise RuntimeError("expected a weight of quint8 or quint4x2")
        if not isinstance(weight._quantizer, PerChannel) or weight._quantizer.axis != 0:
            raise RuntimeError("expected a weight that is quantized for each row")
        self._weight = weight

    def _tl_parts(self) -> list[Any]:
        quantizer = self._weight._quantizer
        data = self._weight._tl_array
        return [data.packed if is_packed(self._weight) else data.values, quantizer.scales, quantizer.zero_points]

    def _saved_state(self) -> Any:
        return 1, [self._weight], [], [self.bit_rate()]

    def unpack(self) -> Any:
        """Return the weight."""
        return self._weight

    def bit_rate(self) -> int:
        """Return the number of bits of a level."""
        return BITS[self._weight.dtype]

    def version(self) -> int:
        """Return the version of the saved state."""
        return 1

    def rows(self, places: Any) -> Any:
        """Return rows as numbers.

        With four bits, scales and the numbers of level 0 have half precision, as in PyTorch.
        """
        weight = self._weight
        quantizer = weight._quantizer
        scales, zero_points = quantizer.scales[places], quantizer.zero_points[places]
        if not is_packed(weight):
            return PerChannel(scales, zero_points, 0).dequantize(weight._values[places])
        scales, zero_points = scales.to(torch.float32), zero_points.to(torch.float32)
        low = (-zero_points * scales).to(torch.float16).to(torch.float32)
        steps = scales.to(torch.float16).to(torch.float32)
        return weight._tl_array.rows(places).to(torch.float32) * steps.unsqueeze(1) + low.unsqueeze(1)


def _rebuild_convolution(made: Any, state: Any) -> Any:
    version, tensors, (bias,) = state
    if version != "2":
        raise ValueError(f"the version {version!r}")
    numbers, weight = tensors
    rank, *rest = numbers.tolist()
    if len(rest) != 4 * rank + 2:
        raise ValueError(f"{len(rest)} numbers of a geometry over {rank} dimensions")
    stride, padding, dilation, output_padding = (rest[rank * n : rank * (n + 1)] for n in range(4))
    groups, transposed = rest[-2], bool(rest[-1])
    return made(weight, bias, stride, padding, dilation, groups, output_padding if transposed else None)


def _rebuild_embedding(state: Any) -> Any:
    version, (weight,), _, (bits,) = state
    if version != 1 or BITS[weight.dtype] != bits:
        raise ValueError(f"the version {version!r}, and {bits} bits")
    return EmbeddingPackedParams(weight)


register_class(EmbeddingPackedParams._schema_type, _rebuild_embedding)
for _made in (ConvPackedParams, Conv3dPackedParams):
    register_class(_made._schema_type, lambda state, made=_made: _rebuild_convolution(made, state))
