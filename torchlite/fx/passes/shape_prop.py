"""ShapeProp: runs a graph and records the shape and dtype of each value."""

from __future__ import annotations

import contextlib
import copy
import traceback
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ..._types.dtypes import dtype
from ..._types.layouts import Size, channels_last, channels_last_3d, contiguous_format
from .._compatibility import compatibility
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


@compatibility(is_backward_compatible=True)
class TensorMetadata(NamedTuple):
    """Metadata of a tensor."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """Return a tensor's metadata."""
    sparse = bool(getattr(result, "is_sparse", False)) or getattr(result, "_tl_is_sparse", False)
    memory_format = None
    if include_contiguity and not sparse:
        formats = [contiguous_format]
        formats += [channels_last] * (result.ndim == 4) + [channels_last_3d] * (result.ndim == 5)
        memory_format = next((f for f in formats if result.is_contiguous(memory_format=f)), None)
    stride = () if sparse else result.stride()
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, stride, memory_format, False, {})


@compatibility(is_backward_compatible=True)
class ShapeProp(Interpreter):
    """Run a graph and store each value's TensorMetadata (or a structure of them) in `meta["tensor_meta"]` and its type
    in `meta["type"]`.

    fake_mode: run with fake tensors of this mode.

    >>> import torchlite as torch
    >>> from torchlite.fx.passes.shape_prop import ShapeProp
    >>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()))
    >>> out = ShapeProp(module).propagate(torch.ones(2, 3))
    >>> [(node.name, tuple(node.meta["tensor_meta"].shape)) for node in module.graph.nodes]
    [('input_1', (2, 3)), ('_0', (2, 4)), ('_1', (2, 4)), ('output', (2, 4))]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.real_module, self.fake_mode, self.fake_module = self.module, fake_mode, None
        if fake_mode is not None:
            with fake_mode:
                self.fake_module = _as_fake(gm, fake_mode)

    def run_node(self, n: Node) -> Any:
        """Return and record a node's value."""
        try:
            if self.fake_module is not None:
                self.module = self.fake_module
            with self.fake_mode or contextlib.nullcontext():
                result = super().run_node(n)
        except Exception as error:  # the node's function may raise anything
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        finally:
            self.module = self.real_module
        found = False

        def noted(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, noted)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the module on sample inputs; return its result."""
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(arg) if isinstance(arg, Tensor) else arg for arg in args)
        return super().run(*args)


def _as_fake(module: Any, mode: Any) -> Any:
    """Return a copy of a module with fake parameters and buffers."""
    memo = {
        id(tensor): mode.from_tensor(tensor)
        for tensors in (module.parameters(), module.buffers())
        for tensor in tensors
    }
    return copy.deepcopy(module, memo)
