"""How sequences of layers become one: with the batch norm folded into the weight, or as a container."""

from __future__ import annotations

import itertools
from typing import Any

from torchlite import nn
from torchlite.ao.nn import intrinsic as nni
from torchlite.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from .utils import MatchAllNode, get_combined_dict

__all__ = [
    "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method",
    "get_fuser_method_new",
]  # fmt: skip
_CONVS: tuple[Any, ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def _check_modes(first: str, *modules: Any) -> None:
    if len({module.training for module in modules}) > 1:
        raise AssertionError(f"{first} and BN both must be in the same mode (train or eval).")


def _check_norm(size: int, bn: Any, what: str, norm: str, stop: str = "") -> None:
    if bn.num_features != size:
        raise AssertionError(f"{what} must match num_features of {norm}{stop}")
    if not bn.affine:
        raise AssertionError(f"Only support fusing {norm} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(f"Only support fusing {norm} with tracking_running_stats set to True")


def _container(prefix: str, conv: Any) -> Any:
    return getattr(nni, f"{prefix}{_CONVS.index(type(conv)) + 1}d") if type(conv) in _CONVS else None


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """A convolution with a batch norm: a container for training, else one convolution.

    Args:
        is_qat: Whether it is for quantization aware training.
        conv: The convolution.
        bn: The batch norm.

    Raises:
        AssertionError: Their modes or sizes differ.

    Example:
        >>> conv, bn = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
        >>> torch.ao.quantization.fuse_conv_bn(False, conv, bn)
        Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    _check_modes("Conv", conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_norm(conv.out_channels, bn, "Output channel of Conv2d", "BatchNorm2d", ".")
    kind = _container("ConvBn", conv)
    if kind is None:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn)}")
    return kind(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """A convolution with a batch norm and ReLU, in a container; the norm is folded if it is not for training.

    Args:
        is_qat: Whether it is for quantization aware training.
        conv: The convolution.
        bn: The batch norm.
        relu: The ReLU.

    Raises:
        AssertionError: Their modes or sizes differ.

    Example:
        >>> conv, bn = torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)
        >>> len(torch.ao.quantization.fuse_conv_bn_relu(True, conv, bn, torch.nn.ReLU()))
        3
    """
    _check_modes("Conv", conv, bn, relu)
    kind = _container("ConvBnReLU" if is_qat else "ConvReLU", conv)
    if is_qat:
        _check_norm(conv.out_channels, bn, "Output channel of Conv2d", "BatchNorm2d")
    if kind is None:
        raise NotImplementedError(f"Cannot fuse {'train' if is_qat else 'eval'} modules: {(conv, bn, relu)}")
    return kind(conv, bn, relu) if is_qat else kind(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """A linear layer with a batch norm: a container for training, else one layer.

    Args:
        is_qat: Whether it is for quantization aware training.
        linear: The layer.
        bn: The batch norm.

    Raises:
        AssertionError: Their modes or sizes differ.

    Example:
        >>> linear, bn = torch.nn.Linear(1, 2).eval(), torch.nn.BatchNorm1d(2).eval()
        >>> torch.ao.quantization.fuse_linear_bn(False, linear, bn)
        Linear(in_features=1, out_features=2, bias=True)
    """
    _check_modes("Linear", linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _check_norm(linear.out_features, bn, "Output features of Linear", "BatchNorm1d")
    return nni.LinearBn1d(linear, bn)  # type: ignore[attr-defined]


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """A transposed convolution with a batch norm folded in.

    Args:
        is_qat: Must be ``False``.
        convt: The convolution.
        bn: The batch norm.

    Raises:
        Exception: It is for quantization aware training.
        AssertionError: Their modes differ.

    Example:
        >>> conv, bn = torch.nn.ConvTranspose2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
        >>> torch.ao.quantization.fuse_convtranspose_bn(False, conv, bn)
        ConvTranspose2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    _check_modes("ConvTranspose", convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequential_wrapper2(sequential: Any) -> Any:
    def fuser_method(is_qat: bool, m1: Any, m2: Any) -> Any:
        return sequential(m1, m2)

    return fuser_method


def _methods() -> dict[tuple, Any]:
    found: dict[tuple, Any] = {}
    for d in (1, 2, 3):
        conv, norm, transposed = (getattr(nn, f"{name}{d}d") for name in ("Conv", "BatchNorm", "ConvTranspose"))
        found[conv, norm] = fuse_conv_bn
        found[conv, norm, nn.ReLU] = fuse_conv_bn_relu
        found[conv, nn.ReLU] = _sequential_wrapper2(getattr(nni, f"ConvReLU{d}d"))
        found[transposed, norm] = fuse_convtranspose_bn
        if d > 1:
            found[norm, nn.ReLU] = _sequential_wrapper2(getattr(nni, f"BNReLU{d}d"))
    found[nn.Linear, nn.BatchNorm1d] = fuse_linear_bn
    found[nn.Linear, nn.ReLU] = _sequential_wrapper2(nni.LinearReLU)  # type: ignore[attr-defined]
    return found


_DEFAULT_OP_LIST_TO_FUSER_METHOD = _methods()


def get_fuser_method(op_list: tuple, additional_fuser_method_mapping: Any = None) -> Any:
    """The function that fuses layers of given classes.

    Args:
        op_list: The classes, as a tuple.
        additional_fuser_method_mapping: More functions, by tuples of classes. Default: none.

    Raises:
        AssertionError: There is none.

    Example:
        >>> torch.ao.quantization.get_fuser_method((torch.nn.Conv2d, torch.nn.BatchNorm2d)).__name__
        'fuse_conv_bn'
    """
    known = get_combined_dict(_DEFAULT_OP_LIST_TO_FUSER_METHOD, additional_fuser_method_mapping or {})
    if known.get(op_list) is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return known[op_list]


def _get_valid_patterns(op_pattern: Any) -> list[Any]:
    """The pattern with each part of it as it is, or as one that matches all."""
    if isinstance(op_pattern, (tuple, list)):
        return list(itertools.product(*(_get_valid_patterns(part) for part in op_pattern)))
    return [op_pattern, MatchAllNode]


def get_fuser_method_new(op_pattern: Any, fuser_method_mapping: dict) -> Any:
    """The function that fuses a pattern of layers.

    Args:
        op_pattern: Classes, in nested tuples.
        fuser_method_mapping: The functions by patterns, in which `MatchAllNode` matches each class.

    Raises:
        AssertionError: There is none.

    Example:
        >>> torch.ao.quantization.get_fuser_method_new((torch.nn.ReLU,), {(torch.nn.ReLU,): len}).__name__
        'len'
    """
    for pattern in _get_valid_patterns(op_pattern):
        if fuser_method_mapping.get(pattern) is not None:
            return fuser_method_mapping[pattern]
    raise AssertionError(f"did not find fuser method for: {op_pattern} ")
