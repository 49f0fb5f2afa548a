"""Upsampling layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite.nn import functional as F

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resizes the spatial dimensions of the input by interpolation.

    Exactly one of ``size`` and ``scale_factor`` is given.

    With ``align_corners=True`` the centres of the corner elements of input and output coincide, and the values there
    stay. With ``False`` the outer edges of the corner elements coincide.

    Args:
        size: Sizes of the output: an int, or a tuple with one int a spatial dimension. Default: ``None``.
        scale_factor: Factor of the sizes: a number, or a tuple with one number a spatial dimension. Default: ``None``.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (3-dimensional inputs), ``"bilinear"``, ``"bicubic"``
            (4-dimensional) or ``"trilinear"`` (5-dimensional). Default: ``"nearest"``.
        align_corners: Whether to align the centres of the corner elements; for the linear and cubic modes. ``None`` is
            ``False``. Default: ``None``.
        recompute_scale_factor: Whether to interpolate with the ratio of the sizes of output and input in place of
            ``scale_factor``. Default: ``None``.

    Shape:
        - Input: ``(N, C, W)``, ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        - Output: the same with the spatial sizes ``size``, or ``floor(size of the input * scale_factor)``.

    Raises:
        ValueError: Neither or both of ``size`` and ``scale_factor`` are given, or ``align_corners`` is given for a
            nearest mode.
        NotImplementedError: The mode does not support the number of dimensions of the input.

    Example:
        >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> torch.nn.Upsample(scale_factor=2, mode="nearest")(x)
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.],
                  [3., 3., 4., 4.],
                  [3., 3., 4., 4.]]]])
        >>> torch.nn.Upsample(size=(4, 3), mode="bilinear")(x).shape
        torch.Size([1, 1, 4, 3])

    See also:
        `torch.nn.functional.interpolate`, `UpsamplingNearest2d`, `UpsamplingBilinear2d`, `PixelShuffle`,
        `ConvTranspose2d`.
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        target = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes images by the nearest element; `Upsample` with ``mode="nearest"``.

    Args:
        size: Sizes of the output: an int, or a tuple ``(height, width)``. Default: ``None``.
        scale_factor: Factor of the sizes: a number, or a tuple ``(height, width)``. Default: ``None``.

    Shape:
        - Input: ``(N, C, H, W)``.
        - Output: ``(N, C, H_out, W_out)``, with ``size`` or ``floor(size of the input * scale_factor)``.

    Raises:
        ValueError: Neither or both of ``size`` and ``scale_factor`` are given, at the call.

    Example:
        >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.]]]])

    See also:
        `torch.nn.functional.interpolate`, `Upsample`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes images by bilinear interpolation with aligned corners.

    It is `Upsample` with ``mode="bilinear"`` and ``align_corners=True``.

    Args:
        size: Sizes of the output: an int, or a tuple ``(height, width)``. Default: ``None``.
        scale_factor: Factor of the sizes: a number, or a tuple ``(height, width)``. Default: ``None``.

    Shape:
        - Input: ``(N, C, H, W)``.
        - Output: ``(N, C, H_out, W_out)``, with ``size`` or ``floor(size of the input * scale_factor)``.

    Raises:
        ValueError: Neither or both of ``size`` and ``scale_factor`` are given, at the call.

    Example:
        >>> torch.nn.UpsamplingBilinear2d(size=(1, 3))(torch.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1.0000, 1.5000, 2.0000]]]])

    See also:
        `torch.nn.functional.interpolate`, `Upsample`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
