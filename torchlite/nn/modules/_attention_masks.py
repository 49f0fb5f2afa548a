"""Conversion of attention masks to the additive form, in the dtype of the queries."""

import warnings

import torchlite as torch


def dtype_or_none(mask):
    """The dtype of a mask that may be None."""
    if mask is None:
        return None
    if not isinstance(mask, torch.Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return mask.dtype


def additive_mask(mask, name, dtype, other_dtype=None, other_name="", check_other=True):
    """Return an additive mask unchanged; a boolean one becomes -inf where True and 0 elsewhere. Warns if the types of
    the two masks differ.
    """
    if mask is None:
        return None
    if mask.dtype is not torch.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if check_other and other_dtype is not None and mask.dtype is not other_dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))
