"""ATen's backward ops (`X_backward`): computed by autograd of the op X."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.op_functions import function_for
from .._dispatch.op_record import REGISTRY
from .._dispatch.public_functions import nn_functional as F


def gradients_of(run: Callable, inputs: list, grads: Any, needs: list | None = None) -> list:
    """Return the gradients of `run(*inputs)` for floating-point inputs, None where not needed."""
    needs = [True] * len(inputs) if needs is None else needs
    wanted = [
        n and isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())
        for n, x in zip(needs, inputs, strict=True)
    ]
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        own = [
            x.detach().requires_grad_() if w and not x.requires_grad else x for w, x in zip(wanted, inputs, strict=True)
        ]
        out = run(*own)
        leaves = [x for w, x in zip(wanted, own, strict=True) if w]
        found = iter(torch.autograd.grad(out, leaves, grads, create_graph=again, allow_unused=True))
    answers = [next(found) if w else None for w in wanted]
    if again and not any(isinstance(x, torch.Tensor) and x.requires_grad for x in (*inputs, grads)):
        answers = [None if a is None else a.detach() for a in answers]
    return answers


_SIZES = ("input_size", "input_sizes", "self_sizes", "sizes", "size")


def backward_via_autograd(overload: Any) -> Callable | None:
    """Return a function that computes `X_backward` by autograd of `X`. It takes the gradient and X's arguments by name,
    of some only the size. Return None if the arguments differ.
    """
    schema = overload._schema
    packet = getattr(CALLBACKS.overloads("ops").aten, overload._opname.removesuffix("_backward"), None)
    if packet is None:
        return None
    names = [argument.name for argument in schema.arguments]
    for which in packet.overloads():
        forward = getattr(packet, which)
        arguments = [a for a in forward._schema.arguments if not a.is_write]
        if forward.entry.is_script or len(arguments) != len(forward._schema.arguments):
            continue
        size = next((s for s in _SIZES if s in names), None)
        lacking = [a.name for a in arguments if a.name not in names and not a.has_default]
        if lacking and not (lacking == [arguments[0].name] and size is not None):
            continue
        return _make_backward(schema, forward, arguments, size if lacking else None)
    return None


def _make_backward(schema: Any, forward: Any, arguments: list, size: str | None) -> Callable:
    tensors = [a.name for a in arguments if a.type.base == "Tensor" and a.type.suffixes[:1] != ["[]"]]
    several = len(forward._schema.returns) > 1

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        names = [argument.name for argument in schema.arguments]
        values = dict(zip(names, schema.bind(args, kwargs), strict=True))
        grad = args[0]
        if size is not None:
            values[arguments[0].name] = grad.new_zeros(values[size])
        mask = values.get("output_mask") or [True] * len(tensors)
        needs = [*mask, *[False] * len(tensors)][: len(tensors)]

        def call_forward(*inputs: Any) -> Any:
            given = {a.name: values[a.name] for a in arguments if a.name in values}
            result = forward(**(given | dict(zip(tensors, inputs, strict=True))))
            return result[0] if several else result

        found = gradients_of(call_forward, [values.get(name) for name in tensors], grad, needs)
        count = len(schema.returns)
        if count == 1:
            return found[0]
        return tuple([*found, *[None] * count][:count])

    return run_backward


def _max_pool_backward(
    grad_output: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Any,
) -> Any:  # fmt: skip
    """Scatter each gradient to the position of its window's maximum."""
    return _scatter_to_indices(
        grad_output, self, indices, 1 + (len(kernel_size) if isinstance(kernel_size, (tuple, list)) else 2)
    )


def _scatter_to_indices(grad_output: Any, self: Any, indices: Any, dims: int) -> Any:
    lead = self.ndim - dims + 1
    spread = torch.zeros_like(self).flatten(lead)
    return spread.scatter_add(-1, indices.flatten(lead), grad_output.flatten(lead)).view(self.shape)


def _convolution_backward(
    grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any,
) -> Any:  # fmt: skip
    arguments = (
        grad_output, input, weight, tuple(stride), tuple(padding), tuple(dilation), transposed, tuple(output_padding),
        groups, tuple(output_mask),
    )  # fmt: skip
    record = REGISTRY["_convolution_backward"]
    record.check(*arguments)  # type: ignore[misc]
    return function_for(record)(*arguments)


def _convolution_double_backward(
    ggI: Any, ggW: Any, ggb: Any, gO: Any, weight: Any, self: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any,
) -> Any:  # fmt: skip
    """PyTorch's op ignores the mask, and has no result where all of its terms are absent."""
    form = (tuple(stride), tuple(padding), tuple(dilation), transposed, tuple(output_padding), groups)
    backward = function_for(REGISTRY["_convolution_backward"])
    terms, of_input, of_weight = [], None, None
    if ggI is not None:
        terms.append(torch.convolution(ggI, weight, None, *form))
        of_weight = backward(gO, ggI, weight, *form, (False, True, False))[1]
    if ggW is not None:
        terms.append(torch.convolution(self, ggW, None, *form))
        of_input = backward(gO, self, ggW, *form, (True, False, False))[0]
    if ggb is not None:
        terms.append(ggb.view(-1, *[1] * (gO.ndim - 2)).expand(gO.shape))
    return functools.reduce(operator.add, terms) if terms else None, of_input, of_weight


def _embedding_dense_backward(
    grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    return function_for(REGISTRY["_embedding_backward"])(
        grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
    )


def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    return (output * (grad_output - (grad_output * output).sum(dim, True))).to(input_dtype)


def _log_softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    return (grad_output - output.exp() * grad_output.sum(dim, True)).to(input_dtype)


def _leaky_relu_backward(grad_output: Any, self: Any, negative_slope: Any, self_is_result: bool) -> Any:
    return torch.where(self > 0, grad_output, grad_output * negative_slope)


def _elu_backward(
    grad_output: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Any
) -> Any:
    x = self_or_result
    below = (x + alpha * scale) * input_scale if is_result else (x * input_scale).exp() * input_scale * alpha * scale
    return grad_output * torch.where(x <= 0, below, torch.full_like(x, scale))


def _glu_backward(grad_output: Any, self: Any, dim: int) -> Any:
    return gradients_of(lambda x: F.glu(x, dim), [self], grad_output)[0]


def _threshold_backward(grad_output: Any, self: Any, threshold: Any) -> Any:
    return torch.where(self > threshold, grad_output, torch.zeros_like(grad_output))


def _cumulative_backward(grad: Any, input: Any, indices: Any, dim: int) -> Any:
    return torch.zeros_like(input).scatter_add(dim, indices, grad)


def _value_selecting_backward(grad: Any, dim: int, indices: Any, sizes: Any, keepdim: bool) -> Any:
    if not keepdim and sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(sizes).scatter(dim, indices, grad)


def _slice_backward(grad_output: Any, input_sizes: Any, dim: int, start: int, end: int, step: int) -> Any:
    spread = grad_output.new_zeros(input_sizes)
    return spread.slice_scatter(grad_output, dim, start, end, step)


def _index_select_backward(grad: Any, self_sizes: Any, dim: int, index: Any) -> Any:
    return grad.new_zeros(self_sizes).index_add(dim, index, grad)


def _masked_scatter_backward(grad_output: Any, mask: Any, sizes: Any) -> Any:
    taken = grad_output[mask.expand(grad_output.shape)]
    rest = grad_output.new_zeros(torch.Size(sizes).numel() - taken.numel())
    return torch.cat([taken, rest]).view(sizes)


def _embedding_bag_backward(
    grad: Any, indices: Any, offsets: Any, offset2bag: Any, bag_size: Any, maximum_indices: Any, num_weights: int,
    scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Any, padding_idx: int = -1,
) -> Any:  # fmt: skip
    weight = grad.new_zeros(num_weights, grad.shape[1])
    if mode == 2:
        filled = (bag_size > 0).unsqueeze(1)
        return weight.scatter_add(0, maximum_indices.clamp_min(0).to(torch.int64), grad * filled)
    has_last = offsets.shape[0] > grad.shape[0]

    def sum_bags(weight: Any, factors: Any) -> Any:
        return torch.embedding_bag(
            weight, indices, offsets, scale_grad_by_freq, mode, sparse, factors, has_last,
            None if padding_idx < 0 else padding_idx,
        )[0]  # fmt: skip

    return gradients_of(sum_bags, [weight, per_sample_weights], grad, [True, False])[0]


def _cdist_backward(grad: Any, x1: Any, x2: Any, p: float, cdist: Any) -> Any:
    wide = x1.expand((*grad.shape[:-2], *x1.shape[-2:]))
    return gradients_of(lambda x: torch.cdist(x, x2, p), [wide], grad)[0]


ADAPTERS: dict[str, Callable] = {
    "convolution_backward": _convolution_backward, "_convolution_double_backward": _convolution_double_backward,
    "embedding_dense_backward": _embedding_dense_backward, "_embedding_bag_backward": _embedding_bag_backward,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "max_pool3d_with_indices_backward": lambda grad_output, self, kernel_size, stride, padding, dilation, ceil_mode,
    indices: _scatter_to_indices(grad_output, self, indices, 4),
    "adaptive_max_pool2d_backward": lambda grad_output, self, indices: _scatter_to_indices(
        grad_output, self, indices, 3
    ),
    "adaptive_max_pool3d_backward": lambda grad_output, self, indices: _scatter_to_indices(
        grad_output, self, indices, 4
    ),
    "_adaptive_avg_pool2d_backward": lambda grad_output, self: gradients_of(
        lambda x: F.adaptive_avg_pool2d(x, grad_output.shape[-2:]), [self], grad_output
    )[0],
    "_adaptive_avg_pool3d_backward": lambda grad_output, self: gradients_of(
        lambda x: F.adaptive_avg_pool3d(x, grad_output.shape[-3:]), [self], grad_output
    )[0],
    "_softmax_backward_data": _softmax_backward_data, "_log_softmax_backward_data": _log_softmax_backward_data,
    "sigmoid_backward": lambda grad_output, output: grad_output * (output * (1 - output)).conj(),
    "tanh_backward": lambda grad_output, output: grad_output * (1 - output * output).conj(),
    "threshold_backward": _threshold_backward, "leaky_relu_backward": _leaky_relu_backward,
    "elu_backward": _elu_backward, "glu_backward": _glu_backward,
    "hardshrink_backward": lambda grad_out, self, lambd: torch.where(self.abs() <= lambd, 0.0, grad_out),
    "log_sigmoid_backward": lambda grad_output, self, buffer: gradients_of(
        F.logsigmoid, [self], grad_output
    )[0],
    "rrelu_with_noise_backward": lambda grad_output, self, noise, lower, upper, training, self_is_result: (
        grad_output * noise if training else _leaky_relu_backward(grad_output, self, (lower + upper) / 2, False)
    ),
    "_prelu_kernel_backward": lambda grad_output, self, weight: (
        torch.where(self > 0, grad_output, weight * grad_output),
        torch.where(self > 0, torch.zeros_like(grad_output), self * grad_output),
    ),
    "cummaxmin_backward": _cumulative_backward, "value_selecting_reduction_backward": _value_selecting_backward,
    "slice_backward": _slice_backward, "index_select_backward": _index_select_backward,
    "select_backward": lambda grad_output, input_sizes, dim, index: grad_output.new_zeros(input_sizes).select_scatter(
        grad_output, dim, index
    ),
    "diagonal_backward": lambda grad_output, input_sizes, offset, dim1, dim2: grad_output.new_zeros(
        input_sizes
    ).diagonal_scatter(grad_output, offset, dim1, dim2),
    "trace_backward": lambda grad, sizes: grad * torch.eye(*sizes, dtype=grad.dtype, device=grad.device),
    "unfold_backward": lambda grad_in, input_sizes, dim, size, step: function_for(REGISTRY["_unfold_backward"])(
        grad_in, tuple(input_sizes), dim, size, step
    ),
    "masked_scatter_backward": _masked_scatter_backward,
    "linear_backward": lambda self, grad_output, weight, output_mask: tuple(
        gradients_of(F.linear, [self, weight, weight.new_zeros(weight.shape[0])], grad_output, output_mask)
    ),
    "_cdist_backward": _cdist_backward,
    "_pdist_backward": lambda grad, self, p, pdist: gradients_of(lambda x: torch.pdist(x, p), [self], grad)[0],
    "native_dropout_backward": lambda grad_output, mask, scale: grad_output * mask * scale,
}  # fmt: skip
