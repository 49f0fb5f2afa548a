"""Embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn import init
from torchlite.nn.parameter import Parameter

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = ["Embedding", "EmbeddingBag"]


def _check_padding_idx(padding_idx, num_embeddings, name):
    if padding_idx is None:
        return None
    if not -num_embeddings <= padding_idx < num_embeddings:
        raise AssertionError(f"{name} must be within num_embeddings")
    return padding_idx % num_embeddings


class Embedding(Module):
    r"""Looks up rows of a learnable table by integer index.

    .. math::

        y_{i} = W_{x_i}

    Args:
        num_embeddings: Number of rows of the table.
        embedding_dim: Size of a row.
        padding_idx: Index of a row that is initialized to zero and gets no gradient; counted from the end if negative.
            Default: ``None``.
        max_norm: Rows whose norm exceeds it are scaled down to it when they are looked up, in place. Default:
            ``None``.
        norm_type: Exponent of the norm for ``max_norm``. Default: 2.
        scale_grad_by_freq: Whether to divide the gradient of a row by its number of occurrences in the input. Default:
            ``False``.
        sparse: Whether the gradient of ``weight`` is a sparse tensor. Default: ``False``.
        device: Device of the table. Default: the default device.
        dtype: Dtype of the table. Default: the default dtype.

    Shape:
        - Input: ``(*)``, int32 or int64 indices in [0, num_embeddings).
        - Output: ``(*, embedding_dim)``.

    Attributes:
        weight (Parameter): The table, shape ``(num_embeddings, embedding_dim)``, drawn from :math:`\mathcal{N}(0, 1)`.

    Raises:
        AssertionError: ``padding_idx`` is out of range.
        IndexError: An index of the input is out of range.

    Example:
        >>> layer = torch.nn.Embedding(10, 3, padding_idx=0)
        >>> layer(torch.tensor([[1, 2, 4], [4, 5, 0]])).shape
        torch.Size([2, 3, 3])
        >>> layer(torch.tensor([0])).detach()
        tensor([[0., 0., 0.]])

    See also:
        `torch.nn.functional.embedding`, `EmbeddingBag`, `Embedding.from_pretrained`.
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _check_padding_idx(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            self.weight = Parameter(
                torch.empty((num_embeddings, embedding_dim), device=device, dtype=dtype), requires_grad=not _freeze
            )
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, requires_grad=not _freeze)
        self.sparse = sparse

    def reset_parameters(self) -> None:
        """Initialise the table."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self):
        if self.padding_idx is not None:
            with torch.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        if self.sparse is not False:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:
        """Returns an `Embedding` with a given table.

        Args:
            embeddings: Table of 2 dimensions, used without a copy.
            freeze: Whether the table stays fixed: ``requires_grad=False``. Default: ``True``.
            padding_idx: As in `Embedding`; the row keeps its values. Default: ``None``.
            max_norm: As in `Embedding`. Default: ``None``.
            norm_type: As in `Embedding`. Default: 2.
            scale_grad_by_freq: As in `Embedding`. Default: ``False``.
            sparse: As in `Embedding`. Default: ``False``.

        Returns:
            An `Embedding` of the sizes of the table.

        Raises:
            AssertionError: ``embeddings`` has not 2 dimensions.

        Example:
            >>> layer = torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.3, 3.0], [4.0, 5.1, 6.3]]))
            >>> layer(torch.tensor([1]))
            tensor([[4.0000, 5.1000, 6.3000]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(Module):
    r"""Reduces each bag of rows of a learnable table to its sum, mean or maximum.

    .. math::

        y_{b} = \operatorname{reduce}_{i \in \text{bag}(b)} \, s_i W_{x_i}

    It computes what `Embedding` and a reduction compute, without storing the rows. The factors :math:`s` are
    ``per_sample_weights``, an argument of ``forward`` for ``mode="sum"``; without them they are 1. An empty bag gives
    zeros.

    Args:
        num_embeddings: Number of rows of the table.
        embedding_dim: Size of a row.
        max_norm: Rows whose norm exceeds it are scaled down to it when they are looked up, in place. Default:
            ``None``.
        norm_type: Exponent of the norm for ``max_norm``. Default: 2.
        scale_grad_by_freq: Whether to divide the gradient of a row by its number of occurrences in the input; not for
            ``mode="max"``. Default: ``False``.
        mode: Reduction of a bag: ``"sum"``, ``"mean"`` or ``"max"``. Default: ``"mean"``.
        sparse: Whether the gradient of ``weight`` is a sparse tensor; not for ``mode="max"``. Default: ``False``.
        include_last_offset: Whether ``offsets`` has one more element, the end of the last bag. Default: ``False``.
        padding_idx: Index of a row that bags leave out, as if it were not in the input. Default: ``None``.
        device: Device of the table. Default: the default device.
        dtype: Dtype of the table. Default: the default dtype.

    Shape:
        - Input: ``(B, N)``, bags of equal length, or ``(N)``, bags that begin at ``offsets``; int32 or int64.
        - Offsets: ``(B)``, or ``(B + 1)`` with ``include_last_offset``; only for an input of 1 dimension.
        - Per-sample weights: the shape of the input.
        - Output: ``(B, embedding_dim)``.

    Attributes:
        weight (Parameter): The table, shape ``(num_embeddings, embedding_dim)``, drawn from :math:`\mathcal{N}(0, 1)`.

    Raises:
        AssertionError: ``padding_idx`` is out of range.
        ValueError: ``mode`` is unknown, or does not support an option; or the shapes of the arguments do not match.
        NotImplementedError: ``per_sample_weights`` with another mode than ``"sum"``.

    Example:
        >>> layer = torch.nn.EmbeddingBag(10, 3, mode="sum")
        >>> layer(torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])).shape
        torch.Size([2, 3])

    See also:
        `torch.nn.functional.embedding_bag`, `Embedding`.
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _check_padding_idx(padding_idx, num_embeddings, "padding_idx")
        if _weight is None:
            self.weight = Parameter(torch.empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    reset_parameters = Embedding.reset_parameters
    _fill_padding_idx_with_zero = Embedding._fill_padding_idx_with_zero

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Reduces each bag.

        Args:
            input: Indices; see the class for the shapes.
            offsets: Start of each bag in an input of 1 dimension. Default: ``None``.
            per_sample_weights: Factor of each row, for ``mode="sum"``. ``None`` is 1. Default: ``None``.

        Returns:
            A tensor of shape ``(B, embedding_dim)``.
        """
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:
        """Returns an `EmbeddingBag` with a given table.

        Args:
            embeddings: Table of 2 dimensions, used without a copy.
            freeze: Whether the table stays fixed: ``requires_grad=False``. Default: ``True``.
            max_norm: As in `EmbeddingBag`. Default: ``None``.
            norm_type: As in `EmbeddingBag`. Default: 2.
            scale_grad_by_freq: As in `EmbeddingBag`. Default: ``False``.
            mode: As in `EmbeddingBag`. Default: ``"mean"``.
            sparse: As in `EmbeddingBag`. Default: ``False``.
            include_last_offset: As in `EmbeddingBag`. Default: ``False``.
            padding_idx: As in `EmbeddingBag`. Default: ``None``.

        Returns:
            An `EmbeddingBag` of the sizes of the table.

        Raises:
            AssertionError: ``embeddings`` has not 2 dimensions.

        Example:
            >>> layer = torch.nn.EmbeddingBag.from_pretrained(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
            >>> layer(torch.tensor([[0, 1]]))
            tensor([[2., 4.]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        bag = cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
