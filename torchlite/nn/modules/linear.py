"""Linear layers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn import init
from torchlite.nn.parameter import Parameter, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear", "NonDynamicallyQuantizableLinear"]


class Identity(Module):
    """Returns its input unchanged; a placeholder where a model expects a layer.

    Args:
        args: Ignored.
        kwargs: Ignored.

    Shape:
        - Input and output: ``(*)``, any number of dimensions.

    Example:
        >>> layer = torch.nn.Identity(54, unused=True)
        >>> layer(torch.ones(2, 3)).shape
        torch.Size([2, 3])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    r"""Applies an affine map to the last dimension of the input.

    .. math::

        y = x A^{\mathsf{T}} + b

    The matrix :math:`A` is ``weight`` and the vector :math:`b` is ``bias``.

    Args:
        in_features: Size of the last dimension of the input.
        out_features: Size of the last dimension of the output.
        bias: Whether to add a learnable bias. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(*, in_features)``, with any number of leading dimensions, none included.
        - Output: ``(*, out_features)``.

    Attributes:
        weight (Parameter): Shape ``(out_features, in_features)``. Drawn from :math:`U(-k, k)` with
            :math:`k = 1 / \sqrt{\text{in\_features}}`.
        bias (Parameter): Shape ``(out_features,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        RuntimeError: The last dimension of the input is not ``in_features``, or its dtype is not the weight's.

    Example:
        >>> layer = torch.nn.Linear(20, 30)
        >>> layer(torch.zeros(128, 20)).shape
        torch.Size([128, 30])
        >>> layer.weight.shape, layer.bias.shape
        (torch.Size([30, 20]), torch.Size([30]))

    See also:
        `torch.nn.functional.linear`, `LazyLinear`, `Bilinear`.
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        # Inlines `weight_and_bias(self, Linear)`: the call is measurable in small networks.
        own = self.__dict__
        if type(self) is Linear and "weight" not in own and "bias" not in own:
            params = own["_parameters"]
            try:
                weight, bias = params["weight"], params["bias"]
            except KeyError:  # one of them is the class's
                weight, bias = self.weight, self.bias
            return F.linear(input, weight, bias)
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` under another name: the output projection of `MultiheadAttention`.

    It computes what `Linear` computes. PyTorch uses the name to leave the layer out of dynamic quantization.

    Args:
        in_features: Size of the last dimension of the input.
        out_features: Size of the last dimension of the output.
        bias: Whether to add a learnable bias. Default: ``True``.
        device: Device of the parameters.
        dtype: Dtype of the parameters.

    Shape:
        - Input: ``(*, in_features)``.
        - Output: ``(*, out_features)``.

    Example:
        >>> torch.nn.MultiheadAttention(8, 2).out_proj
        NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)
    """


class Bilinear(Module):
    r"""Applies a bilinear map to the last dimensions of two inputs.

    .. math::

        y_k = x_1^{\mathsf{T}} A_k x_2 + b_k

    The matrix :math:`A_k` is ``weight[k]``.

    Args:
        in1_features: Size of the last dimension of the first input; greater than 0.
        in2_features: Size of the last dimension of the second input.
        out_features: Size of the last dimension of the output.
        bias: Whether to add a learnable bias. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input 1: ``(*, in1_features)``.
        - Input 2: ``(*, in2_features)``, with the leading dimensions of the first input.
        - Output: ``(*, out_features)``.

    Attributes:
        weight (Parameter): Shape ``(out_features, in1_features, in2_features)``. Drawn from :math:`U(-k, k)` with
            :math:`k = 1 / \sqrt{\text{in1\_features}}`.
        bias (Parameter): Shape ``(out_features,)``, drawn from the same distribution. ``None`` if ``bias=False``.

    Raises:
        ValueError: ``in1_features`` is not greater than 0.

    Example:
        >>> layer = torch.nn.Bilinear(20, 30, 40)
        >>> layer(torch.zeros(128, 20), torch.zeros(128, 30)).shape
        torch.Size([128, 40])

    See also:
        `torch.nn.functional.bilinear`, `Linear`.
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(torch.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes ``in_features`` from its first input.

    The first call creates the parameters and changes the class of the module to `Linear`. Make that call before you
    create an optimizer. Loading a ``state_dict`` also gives the parameters their shapes.

    Args:
        out_features: Size of the last dimension of the output.
        bias: Whether to add a learnable bias. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(*, in_features)``; the first input sets ``in_features``.
        - Output: ``(*, out_features)``.

    Attributes:
        weight (UninitializedParameter): After the first call a `Parameter` of shape ``(out_features, in_features)``,
            initialized as in `Linear`.
        bias (UninitializedParameter): After the first call a `Parameter` of shape ``(out_features,)``. ``None`` if
            ``bias=False``.

    Example:
        >>> layer = torch.nn.LazyLinear(30)
        >>> layer(torch.zeros(128, 20)).shape
        torch.Size([128, 30])
        >>> layer
        Linear(in_features=20, out_features=30, bias=True)

    See also:
        `Linear`.
    """

    cls_to_become = Linear

    weight: Any
    bias: Any

    def __init__(
        self, out_features: int, bias: bool = True, device: DeviceLike = None, dtype: DType | None = None
    ) -> None:
        # The bias is created below: the size of the weight is not known yet.
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Allocates the parameters from the shape of the first input.

        Args:
            input: The input of `forward`; its last dimension becomes `in_features`.
        """
        if self.has_uninitialized_params():
            with torch.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to in_features from "
                    f"self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]
