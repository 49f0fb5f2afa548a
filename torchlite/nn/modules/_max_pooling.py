"""Pooling layers that take maxima, and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite.nn import functional as F

from .module import Module
from .utils import _pair, _single, _triple

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor
    from torchlite._stubs.aliases import Ints, OutputSize


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


def _pool_forward(module, function, input):
    return function(
        input,
        module.kernel_size,
        module.stride,
        module.padding,
        module.dilation,
        ceil_mode=module.ceil_mode,
        return_indices=module.return_indices,
    )


class MaxPool1d(_MaxPoolNd):
    r"""Takes the largest element of each window that slides over one spatial dimension.

    .. math::

        y_{n, c, i} = \max_{0 \le k < \text{kernel\_size}} x_{n, c, \; \text{stride} \cdot i + \text{dilation} \cdot k
        - \text{padding}}

    Padding counts as minus infinity. NaN is larger than any number.

    Args:
        kernel_size: Size of the window. An int or a tuple of one int.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Number of elements added at each end of each spatial dimension; at most half of the window. Default:
            0.
        dilation: Distance between two elements of a window. Default: 1.
        return_indices: Whether to return the indices of the maxima as well. Default: ``False``.
        ceil_mode: Whether to round the sizes of the output up. Windows that would begin in the padding after the input
            are left out. Default: ``False``.

    Shape:
        - Input: ``(N, C, L)``, or ``(C, L)`` without a batch.
        - Output: ``(N, C, L_out)``, or ``(C, L_out)``.
          ``L_out = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1``. With ``ceil_mode`` the
          quotient is rounded up.

    Returns:
        The output, or with ``return_indices`` a tuple of it and the int64 indices of the maxima. An index is a
        position in the flattened spatial dimensions of the input.

    Raises:
        RuntimeError: ``padding`` is more than half of the window, or the output would be empty.

    Example:
        >>> x = torch.tensor([[[1.0, 3.0, 2.0, 4.0, 0.0]]])
        >>> torch.nn.MaxPool1d(2)(x)
        tensor([[[3., 4.]]])
        >>> torch.nn.MaxPool1d(2, return_indices=True)(x)[1]
        tensor([[[1, 3]]])

    See also:
        `torch.nn.functional.max_pool1d`, `MaxUnpool1d`, `AdaptiveMaxPool1d`.
    """

    def forward(self, input: Tensor) -> Any:
        return _pool_forward(self, F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    r"""Takes the largest element of each window that slides over two spatial dimensions.

    .. math::

        y_{n, c, i} = \max_{0 \le k < \text{kernel\_size}} x_{n, c, \; \text{stride} \cdot i + \text{dilation} \cdot k
        - \text{padding}}

    Here :math:`i` and :math:`k` have 2 components, one a dimension. Padding counts as minus infinity. NaN is larger
    than any number.

    Args:
        kernel_size: Size of the window. An int, or a tuple ``(height, width)``.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Number of elements added at each end of each spatial dimension; at most half of the window. Default:
            0.
        dilation: Distance between two elements of a window. Default: 1.
        return_indices: Whether to return the indices of the maxima as well. Default: ``False``.
        ceil_mode: Whether to round the sizes of the output up. Windows that would begin in the padding after the input
            are left out. Default: ``False``.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, H_out, W_out)``, or ``(C, H_out, W_out)``.
          ``H_out = floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1``, and likewise for each
          other dimension, with its own values of the arguments. With ``ceil_mode`` the quotient is rounded up.

    Returns:
        The output, or with ``return_indices`` a tuple of it and the int64 indices of the maxima. An index is a
        position in the flattened spatial dimensions of the input.

    Raises:
        RuntimeError: ``padding`` is more than half of the window, or the output would be empty.

    Example:
        >>> torch.nn.MaxPool2d(2)(torch.zeros(1, 3, 8, 8)).shape
        torch.Size([1, 3, 4, 4])
        >>> torch.nn.MaxPool2d((3, 2), stride=(2, 1))(torch.zeros(20, 16, 50, 32)).shape
        torch.Size([20, 16, 24, 31])

    See also:
        `torch.nn.functional.max_pool2d`, `MaxUnpool2d`, `AdaptiveMaxPool2d`.
    """

    def forward(self, input: Tensor) -> Any:
        return _pool_forward(self, F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    r"""Takes the largest element of each window that slides over three spatial dimensions.

    .. math::

        y_{n, c, i} = \max_{0 \le k < \text{kernel\_size}} x_{n, c, \; \text{stride} \cdot i + \text{dilation} \cdot k
        - \text{padding}}

    Here :math:`i` and :math:`k` have 3 components, one a dimension. Padding counts as minus infinity. NaN is larger
    than any number.

    Args:
        kernel_size: Size of the window. An int, or a tuple ``(depth, height, width)``.
        stride: Step between two windows. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Number of elements added at each end of each spatial dimension; at most half of the window. Default:
            0.
        dilation: Distance between two elements of a window. Default: 1.
        return_indices: Whether to return the indices of the maxima as well. Default: ``False``.
        ceil_mode: Whether to round the sizes of the output up. Windows that would begin in the padding after the input
            are left out. Default: ``False``.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, D_out, H_out, W_out)``, or ``(C, D_out, H_out, W_out)``.
          ``D_out = floor((D + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1``, and likewise for each
          other dimension, with its own values of the arguments. With ``ceil_mode`` the quotient is rounded up.

    Returns:
        The output, or with ``return_indices`` a tuple of it and the int64 indices of the maxima. An index is a
        position in the flattened spatial dimensions of the input.

    Raises:
        RuntimeError: ``padding`` is more than half of the window, or the output would be empty.

    Example:
        >>> torch.nn.MaxPool3d(3, stride=2)(torch.zeros(2, 16, 11, 9, 7)).shape
        torch.Size([2, 16, 5, 4, 3])

    See also:
        `torch.nn.functional.max_pool3d`, `MaxUnpool3d`, `AdaptiveMaxPool3d`.
    """

    def forward(self, input: Tensor) -> Any:
        return _pool_forward(self, F.max_pool3d, input)


class _MaxUnpoolNd(Module):
    _tl_expand: Callable[[Any], tuple[Any, ...]]

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        self.kernel_size = self._tl_expand(kernel_size)
        self.stride = self._tl_expand(stride if stride is not None else kernel_size)
        self.padding = self._tl_expand(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts the maxima of `MaxPool1d` back to their positions, with zeros elsewhere.

    It is a partial inverse of `MaxPool1d`: the elements that are not maxima are lost. ``forward`` takes the output of
    the pooling, its indices, and optionally ``output_size``. Inputs of several sizes have one pooled size, so
    ``output_size`` names the one that is wanted.

    Args:
        kernel_size: Size of the window of the pooling. An int or a tuple of one int.
        stride: Step of the pooling. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Padding of the pooling. Default: 0.

    Shape:
        - Input: ``(N, C, L)``, or ``(C, L)`` without a batch.
        - Indices: the shape of the input, int64.
        - Output: ``(N, C, L_out)``, or ``(C, L_out)``. ``L_out = (L - 1) * stride - 2 * padding + kernel_size``.
          ``output_size`` may differ from it by less than ``stride``.

    Raises:
        ValueError: ``output_size`` is out of range.
        RuntimeError: The indices are not int64, have another shape than the input, or point out of the output.

    Example:
        >>> pool = torch.nn.MaxPool1d(2, return_indices=True)
        >>> output, indices = pool(torch.tensor([[[1.0, 2.0, 4.0, 3.0]]]))
        >>> torch.nn.MaxUnpool1d(2)(output, indices)
        tensor([[[0., 2., 4., 0.]]])

    References:
        - M. D. Zeiler, R. Fergus. Visualizing and understanding convolutional networks. 2014.

    See also:
        `torch.nn.functional.max_unpool1d`, `MaxPool1d`.
    """

    _tl_expand = staticmethod(_single)

    def forward(self, input: Tensor, indices: Tensor, output_size: Ints | None = None) -> Tensor:
        """Puts the maxima back to their positions.

        Args:
            input: Output of `MaxPool1d`.
            indices: Indices of the maxima, from ``return_indices=True``.
            output_size: Size of the output: the spatial sizes, or the shape of the pooled tensor. Default: ``None``.

        Returns:
            The output; see the class for its shape.
        """
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts the maxima of `MaxPool2d` back to their positions, with zeros elsewhere.

    It is a partial inverse of `MaxPool2d`: the elements that are not maxima are lost. ``forward`` takes the output of
    the pooling, its indices, and optionally ``output_size``. Inputs of several sizes have one pooled size, so
    ``output_size`` names the one that is wanted.

    Args:
        kernel_size: Size of the window of the pooling. An int, or a tuple ``(height, width)``.
        stride: Step of the pooling. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Padding of the pooling. Default: 0.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Indices: the shape of the input, int64.
        - Output: ``(N, C, H_out, W_out)``, or ``(C, H_out, W_out)``.
          ``H_out = (H - 1) * stride - 2 * padding + kernel_size``, and likewise for each other dimension, with its own
          values of the arguments. ``output_size`` may differ from it by less than ``stride``.

    Raises:
        ValueError: ``output_size`` is out of range.
        RuntimeError: The indices are not int64, have another shape than the input, or point out of the output.

    Example:
        >>> pool = torch.nn.MaxPool2d(2, return_indices=True)
        >>> image = torch.zeros(1, 1, 5, 5)
        >>> output, indices = pool(image)
        >>> torch.nn.MaxUnpool2d(2)(output, indices).shape
        torch.Size([1, 1, 4, 4])
        >>> torch.nn.MaxUnpool2d(2)(output, indices, output_size=image.shape).shape
        torch.Size([1, 1, 5, 5])

    References:
        - M. D. Zeiler, R. Fergus. Visualizing and understanding convolutional networks. 2014.

    See also:
        `torch.nn.functional.max_unpool2d`, `MaxPool2d`.
    """

    _tl_expand = staticmethod(_pair)

    def forward(self, input: Tensor, indices: Tensor, output_size: Ints | None = None) -> Tensor:
        """Puts the maxima back to their positions.

        Args:
            input: Output of `MaxPool2d`.
            indices: Indices of the maxima, from ``return_indices=True``.
            output_size: Size of the output: the spatial sizes, or the shape of the pooled tensor. Default: ``None``.

        Returns:
            The output; see the class for its shape.
        """
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts the maxima of `MaxPool3d` back to their positions, with zeros elsewhere.

    It is a partial inverse of `MaxPool3d`: the elements that are not maxima are lost. ``forward`` takes the output of
    the pooling, its indices, and optionally ``output_size``. Inputs of several sizes have one pooled size, so
    ``output_size`` names the one that is wanted.

    Args:
        kernel_size: Size of the window of the pooling. An int, or a tuple ``(depth, height, width)``.
        stride: Step of the pooling. ``None`` is ``kernel_size``. Default: ``None``.
        padding: Padding of the pooling. Default: 0.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Indices: the shape of the input, int64.
        - Output: ``(N, C, D_out, H_out, W_out)``, or ``(C, D_out, H_out, W_out)``.
          ``D_out = (D - 1) * stride - 2 * padding + kernel_size``, and likewise for each other dimension, with its own
          values of the arguments. ``output_size`` may differ from it by less than ``stride``.

    Raises:
        ValueError: ``output_size`` is out of range.
        RuntimeError: The indices are not int64, have another shape than the input, or point out of the output.

    Example:
        >>> pool = torch.nn.MaxPool3d(2, return_indices=True)
        >>> output, indices = pool(torch.zeros(1, 3, 4, 6, 8))
        >>> torch.nn.MaxUnpool3d(2)(output, indices).shape
        torch.Size([1, 3, 4, 6, 8])

    References:
        - M. D. Zeiler, R. Fergus. Visualizing and understanding convolutional networks. 2014.

    See also:
        `torch.nn.functional.max_unpool3d`, `MaxPool3d`.
    """

    _tl_expand = staticmethod(_triple)

    def forward(self, input: Tensor, indices: Tensor, output_size: Ints | None = None) -> Tensor:
        """Puts the maxima back to their positions.

        Args:
            input: Output of `MaxPool3d`.
            indices: Indices of the maxima, from ``return_indices=True``.
            output_size: Size of the output: the spatial sizes, or the shape of the pooled tensor. Default: ``None``.

        Returns:
            The output; see the class for its shape.
        """
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _tl_expand: Callable[[Any], tuple[Any, ...]]

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        self.kernel_size = self._tl_expand(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = self._tl_expand(output_size) if output_size is not None else None
        self.output_ratio = self._tl_expand(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Takes the largest element of each of the windows placed at random so as to give an output size.

    The ratio of the sizes of input and output need not be an integer. The steps between windows are two neighbouring
    integers in a pseudo-random order, drawn anew at each call for each channel of each sample. Exactly one of
    ``output_size`` and ``output_ratio`` is given.

    Args:
        kernel_size: Size of the window. An int, or a tuple ``(height, width)``.
        output_size: Sizes of the output. An int, or a tuple ``(height, width)``. Default: ``None``.
        output_ratio: Sizes of the output as fractions of the input's; in (0, 1). A number, or a tuple of 2. Default:
            ``None``.
        return_indices: Whether to return the indices of the maxima as well. Default: ``False``.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, H_out, W_out)``, or ``(C, H_out, W_out)``, with ``output_size`` or
          ``floor(output_ratio * size)``.

    Returns:
        The output, or with ``return_indices`` a tuple of it and the int64 indices of the maxima in the flattened
        spatial dimensions.

    Raises:
        ValueError: Neither or both of ``output_size`` and ``output_ratio`` are given, or a ratio is not in (0, 1).
        RuntimeError: The window is too large for the input and the output size.

    Example:
        >>> torch.nn.FractionalMaxPool2d(3, output_size=(13, 12))(torch.zeros(20, 16, 50, 32)).shape
        torch.Size([20, 16, 13, 12])
        >>> torch.nn.FractionalMaxPool2d(3, output_ratio=(0.5, 0.5))(torch.zeros(20, 16, 50, 32)).shape
        torch.Size([20, 16, 25, 16])

    References:
        - B. Graham. Fractional max-pooling. 2014.

    See also:
        `torch.nn.functional.fractional_max_pool2d`, `MaxPool2d`, `AdaptiveMaxPool2d`.
    """

    _tl_expand = staticmethod(_pair)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            return_indices=self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Takes the largest element of each of the windows placed at random so as to give an output size.

    The ratio of the sizes of input and output need not be an integer. The steps between windows are two neighbouring
    integers in a pseudo-random order, drawn anew at each call for each channel of each sample. Exactly one of
    ``output_size`` and ``output_ratio`` is given.

    Args:
        kernel_size: Size of the window. An int, or a tuple ``(depth, height, width)``.
        output_size: Sizes of the output. An int, or a tuple ``(depth, height, width)``. Default: ``None``.
        output_ratio: Sizes of the output as fractions of the input's; in (0, 1). A number, or a tuple of 3. Default:
            ``None``.
        return_indices: Whether to return the indices of the maxima as well. Default: ``False``.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, D_out, H_out, W_out)``, or ``(C, D_out, H_out, W_out)``, with ``output_size`` or
          ``floor(output_ratio * size)``.

    Returns:
        The output, or with ``return_indices`` a tuple of it and the int64 indices of the maxima in the flattened
        spatial dimensions.

    Raises:
        ValueError: Neither or both of ``output_size`` and ``output_ratio`` are given, or a ratio is not in (0, 1).
        RuntimeError: The window is too large for the input and the output size.

    Example:
        >>> torch.nn.FractionalMaxPool3d(2, output_ratio=0.5)(torch.zeros(1, 3, 6, 8, 10)).shape
        torch.Size([1, 3, 3, 4, 5])

    References:
        - B. Graham. Fractional max-pooling. 2014.

    See also:
        `torch.nn.functional.fractional_max_pool3d`, `MaxPool3d`, `AdaptiveMaxPool3d`.
    """

    _tl_expand = staticmethod(_triple)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            return_indices=self.return_indices,
            _random_samples=self._random_samples,
        )


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: OutputSize, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    r"""Takes the largest element of each window, with windows that give a required output size.

    Window :math:`i` of a dimension begins at :math:`\lfloor i L / L_{out} \rfloor` and ends before
    :math:`\lceil (i + 1) L / L_{out} \rceil`, with the sizes :math:`L` of the input and :math:`L_{out}` of the output.
    Windows may overlap.

    Args:
        output_size: Size of the output. An int or a tuple of one int.
        return_indices: Whether to return the indices of the maxima as well. Default: ``False``.

    Shape:
        - Input: ``(N, C, L)``, or ``(C, L)`` without a batch.
        - Output: ``(N, C, output_size)``, or ``(C, output_size)``.

    Returns:
        The output, or with ``return_indices`` a tuple of it and the int64 indices of the maxima in the flattened
        spatial dimensions.

    Example:
        >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[[1.0, 5.0, 2.0, 4.0, 3.0]]]))
        tensor([[[5., 4.]]])

    See also:
        `torch.nn.functional.adaptive_max_pool1d`, `MaxPool1d`, `AdaptiveAvgPool1d`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    r"""Takes the largest element of each window, with windows that give a required output size.

    Window :math:`i` of a dimension begins at :math:`\lfloor i L / L_{out} \rfloor` and ends before
    :math:`\lceil (i + 1) L / L_{out} \rceil`, with the sizes :math:`L` of the input and :math:`L_{out}` of the output.
    Windows may overlap.

    Args:
        output_size: Sizes of the output. An int, or a tuple ``(height, width)``. ``None`` in the tuple keeps the size
            of the input.
        return_indices: Whether to return the indices of the maxima as well. Default: ``False``.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, *output_size)``, or ``(C, *output_size)``.

    Returns:
        The output, or with ``return_indices`` a tuple of it and the int64 indices of the maxima in the flattened
        spatial dimensions.

    Example:
        >>> torch.nn.AdaptiveMaxPool2d((5, None))(torch.zeros(1, 64, 10, 9)).shape
        torch.Size([1, 64, 5, 9])

    See also:
        `torch.nn.functional.adaptive_max_pool2d`, `MaxPool2d`, `AdaptiveAvgPool2d`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    r"""Takes the largest element of each window, with windows that give a required output size.

    Window :math:`i` of a dimension begins at :math:`\lfloor i L / L_{out} \rfloor` and ends before
    :math:`\lceil (i + 1) L / L_{out} \rceil`, with the sizes :math:`L` of the input and :math:`L_{out}` of the output.
    Windows may overlap.

    Args:
        output_size: Sizes of the output. An int, or a tuple ``(depth, height, width)``. ``None`` in the tuple keeps
            the size of the input.
        return_indices: Whether to return the indices of the maxima as well. Default: ``False``.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, *output_size)``, or ``(C, *output_size)``.

    Returns:
        The output, or with ``return_indices`` a tuple of it and the int64 indices of the maxima in the flattened
        spatial dimensions.

    Example:
        >>> torch.nn.AdaptiveMaxPool3d((7, None, 5))(torch.zeros(1, 4, 8, 9, 10)).shape
        torch.Size([1, 4, 7, 9, 5])

    See also:
        `torch.nn.functional.adaptive_max_pool3d`, `MaxPool3d`, `AdaptiveAvgPool3d`.
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
