"""Kernels with constant arguments, for arrays of one shape: what a call decides by shapes is decided once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchlite._settings.equal_arrays import share_equal

from . import conv_cpu_engine, conv_depthwise, conv_kernel_rows, conv_row_bands, lstm, recurrent
from .blas import single_threaded
from .cache_blocking import LONG_ROW as _LONG_ROW
from .cache_blocking import parallel_for
from .conv import _conv_forward_numpy, _make_columns_function, _normalize_geometry
from .conv_geometry import get_conv_geometry
from .conv_windows import WindowSum
from .deterministic_gemm import deterministic_dot, deterministic_matmul, multiply_in_blocks
from .fused_inference import ConvEpilogue
from .quantized import bind_quantized_convolution, bind_quantized_matmul

# Elements of an image's columns up to which one call gathers them.
_MAX_GATHERED = 1 << 13
# Multiplications from which two threads share a convolution with a kernel of one: 64 by 64 channels of 56x56 (2^23.6)
# take 236 us on one thread of a Xeon and 276 on two, 240 by 240 of 12x80 (2^25.7) 580 and 400.
_SHARED = 1 << 25
# Channels from which windows with a stride are summed: they are the runs.
_WINDOW_CHANNELS = 128
# Places of an image with so many channels up to which sums of windows are faster than bands (5x5 at 14x14: 0.75), if so
# many weights, repeated along a row, stay in a cache.
_WINDOW_PLACES, _WINDOW_WEIGHTS = 256, 1 << 17
# Weights of an LSTM's state from which each of two directions has a thread.
_MIN_STATE_WEIGHTS = 1 << 16
# Multiplications of a GRU's step up to which all gates and directions are computed by the same calls.
_MAX_STEP_WORK = 1 << 17
# Weights from which a product with constant weights that are packed in advance is faster than BLAS, which packs them in
# each call.
_MIN_WEIGHTS = 1 << 10


class Varying(NamedTuple):
    """In place of an array that each call gets anew."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


def bind_kernel(name: str, args: tuple) -> Callable | None:
    """Return a function of the `Varying` arguments; None if the op's kernel is to serve."""
    make = _BINDERS.get(name)
    return None if make is None else make(*args)


class _Bound(NamedTuple):
    """A convolution with constant weights: its geometry, weights that include a batch norm, and what follows."""

    plan: Any
    weight: np.ndarray
    bias: np.ndarray | None
    finish: ConvEpilogue | None


def _plan_convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *norm: Any,
) -> _Bound | None:  # fmt: skip
    """Return what is known before a call, None if a constant varies or is of another dtype."""
    constants = (weight, bias, *norm[:4])
    if transposed or input.__class__ is not Varying or any(value.__class__ is Varying for value in constants):
        return None
    if input.dtype.char not in "fd" or any(value is not None and value.dtype != input.dtype for value in constants):
        return None
    stride, padding, dilation = _normalize_geometry(input, weight, stride, padding, dilation)
    plan = get_conv_geometry(
        input.shape[0], input.shape[1], weight.shape[0], input.shape[2:], weight.shape[2:], stride, padding, dilation,
        groups,
    )  # fmt: skip
    finish: Any = None
    if norm:
        scale, shift, mean, var, eps, least, most = norm
        finish = ConvEpilogue(scale, shift, mean, var, eps, least, most, bias)
    if finish is not None and finish.scale is not None:
        weight, bias = finish.fold_into_weight(weight)
        weight = share_equal(weight)
    return _Bound(plan, np.ascontiguousarray(weight), bias, finish)


def _bind_convolution(*args: Any) -> Callable | None:
    bound = _plan_convolution(*args)
    return None if bound is None else _bind_planned(bound)


def _bind_planned(bound: _Bound) -> Callable:
    plan, weight, bias, finish = bound
    if plan.flat is not None:
        flat, shape, given = plan.flat, (plan.batch, plan.filters, *plan.out), (plan.batch, plan.channels)
        weight = weight.reshape(*weight.shape[:2], *flat.kernel)
        inner, size = _bind_planned(_Bound(flat, weight, bias, finish)), (*given, *flat.size)
        return lambda x: inner(x.reshape(size)).reshape(shape)
    if plan.pointwise and plan.places == plan.batch == plan.groups == 1:
        return _bind_channel_product(weight, bias, finish)
    served = conv_cpu_engine.bind_forward(plan, weight, bias, finish)
    if served is not None:
        return served
    if plan.pointwise and plan.batch == plan.groups == 1:
        return _bind_pointwise_convolution(weight, bias, finish, plan)
    if plan.batch == plan.groups == 1 and plan.channels * plan.taps * plan.places <= _MAX_GATHERED:
        return _bind_gathered_convolution(weight, bias, finish, plan)
    if conv_kernel_rows.is_faster(plan, weight.dtype):
        return conv_kernel_rows.KernelRows(weight, bias, plan, _clamp_of(finish)).run
    quick = None
    if plan.batch and plan.channels and plan.places and conv_depthwise.is_faster(plan, weight.dtype):
        quick = _bind_depthwise_convolution(weight, bias, finish, plan)

    def run(x: np.ndarray) -> np.ndarray:
        if quick is not None and (found := quick(x)) is not None:
            return found
        epilogue = None if finish is None else finish.copy()
        with single_threaded:
            out = _conv_forward_numpy(x, weight, bias, plan, epilogue)
        if epilogue is not None and not epilogue.done:
            epilogue.apply_to_images(out)
        return out

    return run


def _bind_gathered_convolution(weight: np.ndarray, bias: np.ndarray | None, finish: Any, plan: Any) -> Callable:
    """Return the convolution of one small image: its columns are gathered by one call, at places computed before."""
    size = plan.channels * math.prod(plan.size)
    numbered = np.arange(1, size + 1, dtype=np.float64).reshape(1, plan.channels, *plan.size)
    columns = _make_columns_function(numbered, plan)((0, 1, 0, plan.out[0]))
    places = columns.reshape(-1, plan.places).astype(np.intp)  # 0 for the padding
    matrix = weight.reshape(len(weight), -1)
    column = None if bias is None else bias[:, None]
    shape = (1, plan.filters, *plan.out)

    def run(x: np.ndarray) -> np.ndarray:
        image = np.empty(size + 1, x.dtype)
        image[0] = 0
        image[1:] = x.reshape(-1)
        with single_threaded:
            out = matrix @ image[places]
        if column is not None:
            out += column
        out = out.reshape(shape)
        return out if finish is None else finish.apply_to_images(out)

    return run


def _bind_pointwise_convolution(weight: np.ndarray, bias: np.ndarray | None, finish: Any, plan: Any) -> Callable:
    """Return the convolution of one image with a kernel of one: a product of the weight and the image."""
    matrix = weight.reshape(plan.filters, plan.channels)
    column = None if bias is None else bias[:, None]
    clamp = _clamp_of(finish)
    shape = (1, plan.filters, *plan.out)
    work = plan.filters * plan.channels * plan.places
    parts = _split_filters(plan.filters, 2 if work >= _SHARED else 1)

    def run(x: np.ndarray) -> np.ndarray:
        image, out = x.reshape(plan.channels, plan.places), np.empty((plan.filters, plan.places), x.dtype)

        def compute(part: slice) -> None:
            rows = multiply_in_blocks(matrix[part], image, out[part])
            if column is not None:
                usual = np.setbufsize(_LONG_ROW) if plan.places >= _LONG_ROW else 0
                np.add(rows, column[part], out=rows)
                if usual:
                    np.setbufsize(usual)
            if clamp is not None:
                clamp(rows)

        with single_threaded:
            parallel_for(compute, parts)
        return out.reshape(shape)

    return run


def _split_filters(count: int, parts: int) -> list[tuple[slice]]:
    """Return slices of filters, of multiples of 16 but for the last."""
    cuts = [-(-count * k // (16 * parts)) * 16 for k in range(parts)] + [count]
    return [(slice(a, b),) for a, b in itertools.pairwise(cuts) if a < b]


def _clamp_of(finish: Any) -> Callable | None:
    """Return a function that clamps an array in place; None if nothing is clamped."""
    if finish is None or (finish.least == -math.inf and finish.most == math.inf):
        return None
    return lambda rows: finish._apply_to_rows(rows, (), rows)


def _bind_depthwise_convolution(weight: np.ndarray, bias: np.ndarray | None, finish: Any, plan: Any) -> Callable | None:
    """Return a depthwise convolution whose result is None if it is not finite."""
    clamp = _clamp_of(finish)
    windows = plan.batch == 1 and (max(plan.stride) == 1 or plan.channels >= _WINDOW_CHANNELS)
    few = plan.places <= _WINDOW_PLACES and plan.channels >= _WINDOW_CHANNELS
    few = few and plan.channels * plan.taps * plan.out[-1] <= _WINDOW_WEIGHTS
    if conv_row_bands.is_faster(plan) and not (windows and few):
        matrices = conv_row_bands.make_matrices(weight, bias, plan)

        def compute(x: np.ndarray, out: np.ndarray) -> bool:
            return conv_row_bands.conv_with_matrices(x, matrices, plan, out, clamp)

    elif windows:
        compute = WindowSum(weight, bias, plan, clamp).run
    else:
        return None

    def run(x: np.ndarray) -> np.ndarray | None:
        x, out = np.ascontiguousarray(x), np.empty((plan.batch, plan.channels, *plan.out), x.dtype)
        with single_threaded:
            return out if compute(x, out) else None

    return run


def _bind_channel_product(weight: np.ndarray, bias: np.ndarray | None, finish: Any) -> Callable:
    """Return the convolution of one image of one position with a kernel of one: a matrix times a vector."""
    matrix = weight.reshape(weight.shape[:2])
    shape = (1, len(matrix), *(1,) * (weight.ndim - 2))

    def run(x: np.ndarray) -> np.ndarray:
        out = deterministic_dot(matrix, x.reshape(-1))
        if bias is not None:
            out += bias
        out = out.reshape(shape)
        return out if finish is None else finish.apply_to_images(out)

    return run


def _bind_lstm(
    input: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool
) -> Callable | None:  # fmt: skip
    constants = [value for value in (w_ih, w_hh, b_ih, b_hh) if value is not None]
    varying = [value.__class__ is Varying for value in (input, h0, c0)]
    if any(value.__class__ is Varying for value in constants) or not varying[0]:
        return None
    if input.dtype.char not in "fd" or any(value.dtype != input.dtype for value in (h0, c0, *constants)):
        return None
    if not (math.prod(input.shape) and w_hh.size):
        return None
    of_input, of_state = map(share_equal, lstm.order_weights(w_ih, w_hh, b_ih, b_hh))
    engine = conv_cpu_engine.selected_engine()
    steps = (None if engine is None else engine.bind_lstm_steps(*constants)) or lstm._run_forward_steps

    varying_places = [k for k, varies in enumerate(varying) if varies]
    return BoundLstm(steps, (input, h0, c0), varying_places, (of_input, of_state), reverse)


class BoundLstm:
    """A layer of one direction with constant weights, as a function of the arrays among its inputs."""

    def __init__(self, steps: Callable, inputs: tuple, places: list[int], weights: tuple, reverse: bool) -> None:
        self.steps, self.inputs, self.places, self.weights, self.reverse = steps, inputs, places, weights, reverse

    def __call__(self, *arrays: np.ndarray) -> tuple:
        given = list(self.inputs)
        for place, array in zip(self.places, arrays, strict=True):
            given[place] = array
        input, h0, c0 = given
        of_input, of_state = self.weights
        return lstm.run_with_weights(self.steps, input, h0, c0, of_input, of_state, self.reverse)

    def beside(self, other: Any) -> Callable | None:
        """Return a function of both layers' arrays that returns both layers' results: each layer has a thread. None if
        `other` is no such layer, or if the layers are so small that a thread would wake too late.
        """
        if other.__class__ is not BoundLstm or min(self.weights[1].size, other.weights[1].size) < _MIN_STATE_WEIGHTS:
            return None
        first = len(self.places)

        def run(*arrays: np.ndarray) -> tuple:
            found: list[Any] = [None, None]

            def compute(place: int, layer: BoundLstm, given: tuple) -> None:
                found[place] = layer(*given)

            with single_threaded:
                parallel_for(compute, [(0, self, arrays[:first]), (1, other, arrays[first:])])
            return (*found[0], *found[1])

        return run


def _bind_gru(
    input: Any, h0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool
) -> Callable | None:  # fmt: skip
    constants = [value for value in (w_ih, w_hh, b_ih, b_hh) if value is not None]
    if any(value.__class__ is Varying for value in constants) or input.__class__ is not Varying:
        return None
    if input.dtype.char not in "fd" or any(value.dtype != input.dtype for value in (h0, *constants)):
        return None
    if not math.prod(input.shape) or not w_hh.size or input.shape[1] * w_hh.size > _MAX_STEP_WORK:
        return None
    if conv_cpu_engine.selected_engine() is not None:
        return None
    layer = _order_gru(w_ih, w_hh, b_ih, b_hh, reverse)
    return BoundGru([layer], [h0], input.shape)


class _GruLayer(NamedTuple):
    """Constants of one direction. Gates are in the order of `recurrent`: z, r, n."""

    of_input: np.ndarray  # (features, 3 * units)
    of_state: np.ndarray  # (units, 3 * units)
    bias_input: np.ndarray
    bias_state: np.ndarray
    reverse: bool


def _order_gru(w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool) -> _GruLayer:
    hidden = w_hh.shape[1]

    def order(rows: np.ndarray | None) -> np.ndarray:
        if rows is None:
            return np.zeros(3 * hidden, w_hh.dtype)
        return np.concatenate([rows[hidden : 2 * hidden], rows[:hidden], rows[2 * hidden :]])

    of_input, of_state = [share_equal(np.ascontiguousarray(order(weight).T)) for weight in (w_ih, w_hh)]
    return _GruLayer(of_input, of_state, order(b_ih), order(b_hh), reverse)


class BoundGru:
    """Directions of a layer with constant weights, as a function of the arrays among the input and the first state of
    each. It returns what `_gru_layer` returns for each direction, without what only the backward pass reads.
    """

    def __init__(self, layers: list[_GruLayer], states: list, shape: tuple[int, ...]) -> None:
        self.layers, self.states, self.shape = layers, states, shape
        ways = len(layers)
        cell = recurrent.Cell(
            "gru",
            tuple(layer.reverse for layer in layers),
            (("sigmoid", None, None), ("tanh", None, None)) * ways,
            None,
            True,
        )
        weight, bias = (np.stack(parts) for parts in zip(*[(x.of_state, x.bias_state) for x in layers], strict=True))
        self.steps = recurrent.bind_in_numpy(cell, recurrent.Constants(weight, bias, None, None, None))
        self.of_input = np.concatenate([layer.of_input for layer in layers], 1)
        self.bias = np.concatenate([layer.bias_input for layer in layers])

    def __call__(self, *arrays: np.ndarray) -> tuple:
        given = iter(arrays)
        inputs, first = [], []
        for state in self.states:
            inputs.append(next(given))
            first.append(next(given) if state.__class__ is Varying else state)
        if all(x is inputs[0] for x in inputs):
            sums = deterministic_matmul(inputs[0], self.of_input)
        else:
            parts = [deterministic_matmul(x, layer.of_input) for x, layer in zip(inputs, self.layers, strict=True)]
            sums = np.concatenate(parts, 2)
        sums += self.bias
        output, last = self.steps(sums, np.stack(first), None, None)
        nothing = np.empty(0, output.dtype)
        found: list[np.ndarray] = []
        for d in range(len(self.layers)):
            found += [np.ascontiguousarray(output[:, d]), last[0, d], nothing]
        return tuple(found)

    def beside(self, other: Any) -> Callable | None:
        """Return a function of both layers' arrays that returns both layers' results: their steps run together."""
        if other.__class__ is not BoundGru or other.shape != self.shape:
            return None
        first, second = self.layers[0], other.layers[0]
        if first.of_state.shape != second.of_state.shape or first.of_state.dtype != second.of_state.dtype:
            return None
        return BoundGru([*self.layers, *other.layers], [*self.states, *other.states], self.shape)


def _bind_recurrent_steps(
    sums: Any, weight: Any, h: Any, c: Any, bias: Any, peepholes: Any, lengths: Any, scale: Any, zero: Any, cell: str,
    reverse: Any, activations: Any, clip: Any, option: Any,
) -> Callable | None:  # fmt: skip
    constants = recurrent.Constants(weight, bias, peepholes, scale, zero)
    if any(value.__class__ is Varying for value in constants) or sums.__class__ is not Varying:
        return None
    of = recurrent.Cell(cell, tuple(reverse), tuple(activations), clip, option)
    return _leave_varying(recurrent.bind_steps(of, constants), (sums, h, c, lengths))


def _bind_linear(input: Any, weight: Any, bias: Any = None) -> Callable | None:
    constants = [value for value in (weight, bias) if value is not None]
    if input.__class__ is not Varying or any(
        value.__class__ is Varying or value.dtype.char != "f" for value in constants
    ):
        return None
    if input.dtype.char != "f" or weight.ndim != 2 or math.prod(input.shape[:-1]) < 2:
        return None
    if (
        input.shape[-1] != weight.shape[1]
        or weight.size < _MIN_WEIGHTS
        or bias is not None
        and bias.shape != weight.shape[:1]
    ):
        return None
    engine = conv_cpu_engine.selected_engine()
    kernels = None if engine is None else engine.channels_last()
    return None if kernels is None else kernels.product(input.shape, np.ascontiguousarray(weight), bias)


def _bind_matmul(a: Any, b: Any) -> Callable | None:
    return None if b.__class__ is Varying or b.ndim != 2 else _bind_linear(a, b.T)


def _bind_quantized_matmul(
    input: Any, other: Any, input_zero: Any = None, other_zero: Any = None, bias: Any = None, scale: Any = None,
    out_zero: Any = None,
) -> Callable | None:  # fmt: skip
    if other.__class__ is Varying or other_zero.__class__ is Varying:
        return None
    return _leave_varying(bind_quantized_matmul(other, other_zero), (input, input_zero, bias, scale, out_zero))


def _bind_quantized_convolution(
    input: Any, weight: Any, input_zero: Any, weight_zero: Any, bias: Any, scale: Any, out_zero: Any, *geometry: Any
) -> Callable | None:
    if weight.__class__ is Varying or weight_zero.__class__ is Varying or input.__class__ is not Varying:
        return None
    bound = bind_quantized_convolution(input, weight, weight_zero, geometry)
    return _leave_varying(bound, (input, input_zero, bias, scale, out_zero))


def _leave_varying(function: Callable, args: tuple) -> Callable:
    """Return the function of the `Varying` arguments among `args`."""
    if args[0].__class__ is Varying and not any(value.__class__ is Varying for value in args[1:]):
        constants = args[1:]
        return lambda x: function(x, *constants)

    def run(*arrays: np.ndarray) -> Any:
        given = iter(arrays)
        return function(*[next(given) if value.__class__ is Varying else value for value in args])

    return run


_BINDERS: dict[str, Callable[..., Callable | None]] = {
    "convolution": _bind_convolution,
    "_fused_conv_bn": _bind_convolution,
    "_gru_layer": _bind_gru,
    "_lstm_layer": _bind_lstm,
    "_recurrent_steps": _bind_recurrent_steps,
    "linear": _bind_linear,
    "matmul": _bind_matmul,
    "_quantized_convolution": _bind_quantized_convolution,
    "_quantized_matmul": _bind_quantized_matmul,
}


def bind_channels_last(name: str, args: tuple, out: tuple) -> Callable | None:
    """Return a kernel for float32 images in the order (images, rows, columns, channels), of constant shape. None if
    there is none. The images' shape in `args`, and that of the result, are in PyTorch's order.

    "to_last" and "from_last" are the copies from and to PyTorch's order.
    """
    engine = conv_cpu_engine.selected_engine()
    kernels = None if engine is None else engine.channels_last()
    x = args[0]
    if kernels is None or x.__class__ is not Varying or x.ndim != 4 or x.dtype.char != "f" or not math.prod(x.shape):
        return None
    batch, channels, high, wide = x.shape
    if name in ("convolution", "_fused_conv_bn"):
        bound = _plan_convolution(*args)
        if bound is None or not math.prod(bound.plan.out):
            return None
        limits = None if bound.finish is None else bound.finish.limits
        return kernels.convolution(bound.plan, bound.weight, bound.bias, limits)
    if name == "_max_pool":
        kernel, stride, padding, dilation, _ = args[1:]
        return kernels.max_pool(PoolGeometry(batch, channels, (high, wide), kernel, stride, padding, dilation, out[2:]))
    if name == "mean":
        return kernels.means((batch, high, wide, channels))
    if name == "to_last":
        return kernels.turn(x.shape, True)
    if name == "from_last":
        return kernels.turn((batch, high, wide, channels), False)
    return None


class PoolGeometry(NamedTuple):
    """Sizes of a pooling, with the names of `ConvGeometry`."""

    batch: int
    channels: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    out: tuple[int, int]

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)
