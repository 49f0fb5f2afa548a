"""Linear layers over quantized tensors whose weights are sparse."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite._quantized.public_functions import _empty_affine_quantized
from torchlite.ao.nn.quantized.modules.utils import move_with, quantize_weight

__all__ = ["Linear", "LinearPackedParams"]


def quantized_weight(layer: Any, observer: Any, weight: Any = None) -> Any:
    """Return a float layer's weight, quantized by what an observer of it finds; zero points must be zero."""
    weight = layer.weight if weight is None else weight
    observer(weight)
    if observer.dtype is not torch.qint8:
        raise AssertionError(f"Weight observer must have dtype torch.qint8, got {observer.dtype}")
    _, zero_point = observer.calculate_qparams()
    if isinstance(zero_point, torch.Tensor):
        if torch.any(zero_point.to(torch.bool)):
            raise AssertionError("All weight zero points must map to 0")
    elif zero_point != 0:
        raise AssertionError(f"Weight zero point must map to 0, got {zero_point}")
    return quantize_weight(weight.detach().float(), observer)


def check_blocks(row_block_size: Any, col_block_size: Any) -> None:
    """Raise an error if the size of blocks is absent."""
    if row_block_size is None or col_block_size is None:
        raise AssertionError(
            "row_block_size and col_block_size must not be None, got "
            f"row_block_size={row_block_size}, col_block_size={col_block_size}"
        )


class LinearPackedParams(nn.Module):
    """The packed weight and bias of a linear layer, as a part of it with a state of its own.

    Args:
        row_block_size: The rows of a block. Default: 1.
        col_block_size: Its columns. Default: 4.
        dtype: `torch.qint8`.

    Raises:
        NotImplementedError: `dtype` is another one.

    Example:
        >>> torch.ao.nn.sparse.quantized.LinearPackedParams()._weight_bias()[2:]
        (1, 4)
    """

    _version = 1

    def __init__(self, row_block_size: int = 1, col_block_size: int = 4, dtype: Any = torch.qint8) -> None:
        super().__init__()
        if dtype is not torch.qint8:
            raise NotImplementedError("Linear prepacking only supports QINT8")
        self.dtype = dtype
        empty = _empty_affine_quantized([1, 1], scale=1.0, zero_point=0, dtype=torch.qint8)
        self.set_weight_bias(empty, None, row_block_size, col_block_size)

    def _get_name(self) -> str:
        return "SparseQuantizedLinearPackedParams"

    @torch.jit.export
    def set_weight_bias(self, weight: Any, bias: Any, row_block_size: Any, col_block_size: Any) -> None:
        """Packs a weight and a bias.

        Args:
            weight: The quantized weight.
            bias: The bias, or ``None``.
            row_block_size: The rows of a block.
            col_block_size: Its columns.

        Raises:
            AssertionError: The size of blocks is absent.
        """
        check_blocks(row_block_size, col_block_size)
        self._packed_params = torch.ops.sparse.qlinear_prepack(weight, bias, row_block_size, col_block_size)

    @torch.jit.export
    def _weight_bias(self) -> tuple[Any, Any, int, int]:
        weight, bias, block = torch.ops.sparse.qlinear_unpack(self._packed_params)
        return weight, bias, block[0], block[1]

    def forward(self, x: Any) -> Any:
        return x

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        weight, bias, rows, columns = self._weight_bias()
        self.set_weight_bias(*move_with(fn, weight, bias), rows, columns)
        return super()._apply(fn, recurse)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        local_metadata, _, *lists = rest
        _check_version(self, local_metadata)
        self.dtype = state_dict.pop(f"{prefix}dtype")
        self.set_weight_bias(*state_dict.pop(f"{prefix}_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    @torch.jit.export
    def __getstate__(self) -> Any:
        return self._packed_params, self.training, self.dtype

    @torch.jit.export
    def __setstate__(self, state: Any) -> None:
        nn.Module.__init__(self)
        self._packed_params, self.training, self.dtype = state

    def __repr__(self) -> str:
        return repr(self._weight_bias())


def _check_version(module: Any, local_metadata: dict[str, Any]) -> None:
    version = local_metadata.get("version")
    if version is not None and version > module._version:
        raise AssertionError(f"version {version} > self._version {module._version}")


class SparseLinear(nn.Module):
    """Common part of linear layers with sparse weights."""

    _version = 1
    _FLOAT_MODULE: Any = nn.Linear

    def __init__(
        self, in_features: int, out_features: int, row_block_size: int, col_block_size: int, bias: bool, dtype: Any
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weight = _empty_affine_quantized([out_features, in_features], scale=1, zero_point=0, dtype=torch.qint8)
        self._packed_params = LinearPackedParams(row_block_size, col_block_size, dtype)
        zeros = torch.zeros(out_features) if bias else None
        self._packed_params.set_weight_bias(weight, zeros, row_block_size, col_block_size)

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def _weight_bias(self) -> tuple[Any, Any, int, int]:
        return self._packed_params._weight_bias()

    def weight(self) -> Any:
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self) -> Any:
        """The bias."""
        return self._weight_bias()[1]


class Linear(SparseLinear):
    """A linear layer of quantized tensors with a sparse weight.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the result's.
        row_block_size: The rows of a block of the weight.
        col_block_size: Its columns.
        bias: Whether there is a bias. Default: ``True``.
        dtype: Dtype of the weight: `torch.qint8`.

    Raises:
        NotImplementedError: `dtype` is another one.

    Example:
        >>> layer = torch.ao.nn.sparse.quantized.Linear(4, 2, 1, 4)
        >>> layer(torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 0, torch.quint8)).shape
        torch.Size([3, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, row_block_size: int, col_block_size: int, bias: bool = True,
        dtype: Any = torch.qint8,
    ) -> None:  # fmt: skip
        if dtype is not torch.qint8:
            raise NotImplementedError("Only QINT8 is supported for Sparse Quantized Linear")
        super().__init__(in_features, out_features, row_block_size, col_block_size, bias, dtype)
        self.scale, self.zero_point = 1.0, 0

    @classmethod
    def _get_name(cls) -> str:
        return "SparseQuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def forward(self, x: Any) -> Any:
        return torch.ops.sparse.qlinear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}scale"] = torch.tensor(self.scale)
        destination[f"{prefix}zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        local_metadata, _, *lists = rest
        _check_version(self, local_metadata)
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    def set_weight_bias(self, w: Any, b: Any, row_block_size: Any, col_block_size: Any) -> None:
        """Packs a weight and a bias.

        Args:
            w: The quantized weight.
            b: The bias, or ``None``.
            row_block_size: The rows of a block.
            col_block_size: Its columns.

        Raises:
            AssertionError: The size of blocks is absent.
        """
        self._packed_params.set_weight_bias(w, b, row_block_size, col_block_size)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes the layer of a float one that was observed.

        Args:
            mod: The float layer, with a `qconfig`, an `activation_post_process`, and ``sparse_params`` with the shape
                of blocks, which `squash_mask` of a sparsifier leaves.
            use_precomputed_fake_quant: No effect.

        Raises:
            AssertionError: Something of this is absent, or the weight's observer has another dtype or zero points.
        """
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls._get_name()}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "sparse_params"):
            raise AssertionError(
                "Expecting the Linear to have `sparse_params`. Make sure you have provided arguments "
                'in the `sparsifier.squash_mask(params_to_save=("sparse_block_shape",))` method.'
            )
        shape = mod.sparse_params.get("sparse_block_shape")
        if not isinstance(shape, (tuple, list)):
            raise AssertionError(f"sparse_block_shape must be tuple or list, got {type(shape)}")
        if len(shape) != 2:
            raise AssertionError(f"sparse_block_shape must have length 2, got {len(shape)}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls(mod.in_features, mod.out_features, *shape)
        made.set_weight_bias(quantized_weight(mod, mod.qconfig.weight()), mod.bias, *shape)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
