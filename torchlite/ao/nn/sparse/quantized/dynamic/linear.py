"""Linear layers with sparse quantized weights, for float inputs."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite.ao.nn import intrinsic as nni
from torchlite.ao.nn.sparse.quantized.linear import SparseLinear, check_blocks, quantized_weight
from torchlite.ao.nn.sparse.quantized.utils import LinearBlockSparsePattern

__all__ = ["Linear"]


class Linear(SparseLinear):
    """A linear layer with a sparse weight, whose inputs are quantized by their least and greatest number in each call.

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
        >>> torch.ao.nn.sparse.quantized.dynamic.Linear(4, 2, 1, 4)(torch.ones(3, 4)).shape
        torch.Size([3, 2])
    """

    _op_type = "sparse_dynamic"

    def __init__(
        self, in_features: int, out_features: int, row_block_size: int, col_block_size: int, bias: bool = True,
        dtype: Any = torch.qint8,
    ) -> None:  # fmt: skip
        if dtype is not torch.qint8:
            raise NotImplementedError("Only QINT8 is supported for Sparse Quantized Linear Dynamic")
        super().__init__(in_features, out_features, row_block_size, col_block_size, bias, dtype)

    def _get_name(self) -> str:
        return "SparseQuantizedDynamicLinear"

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, qscheme={self.weight().qscheme()}"

    def forward(self, x: Any) -> Any:
        return torch.ops.sparse.qlinear_dynamic(x, self._packed_params._packed_params)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}op_type"] = self._op_type

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        found = state_dict.pop(f"{prefix}op_type")
        if found != self._op_type:
            raise AssertionError(f"Cannot load from op_type [{found}], expecting [{self._op_type}]")
        local_metadata, _, *lists = rest
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
        check_blocks(row_block_size, col_block_size)
        self.out_features, self.in_features = w.shape
        self._packed_params.set_weight_bias(w, b, row_block_size, col_block_size)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Makes the layer of a float one, with blocks of `LinearBlockSparsePattern`'s size.

        Args:
            mod: The float layer, with a `qconfig`.
            use_precomputed_fake_quant: No effect.

        Raises:
            AssertionError: The layer has another class or no `qconfig`, or the weight's observer has another dtype or
                zero points.
        """
        if type(mod) not in (cls._FLOAT_MODULE, nni.LinearReLU):
            raise AssertionError(f" nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        qconfig = mod.qconfig
        layer = mod[0] if type(mod) is nni.LinearReLU else mod
        if qconfig is None or qconfig.weight is None:
            from torchlite.ao.quantization.qconfig import default_dynamic_qconfig as qconfig
        mask = getattr(qconfig, "mask", None)
        weight = quantized_weight(layer, qconfig.weight(), None if mask is None else mask * layer.weight)
        rows, columns = LinearBlockSparsePattern.block_size()
        made = cls(layer.in_features, layer.out_features, rows, columns)
        made.set_weight_bias(weight, layer.bias, rows, columns)
        return made
