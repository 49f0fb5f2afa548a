"""Quantized tensors: integers with a scale and a zero point. The core reaches this package through
`CALLBACKS.quantized`.
"""

from .library_ops import declare_ops
from .onednn_ops import declare_mkldnn_ops, declare_onednn_ops
from .op_dispatch import convert, getitem, move, run_in_place, run_op, setitem, write_out
from .packed_parameters import is_object_class, rebuild_object
from .printing import quantized_repr
from .public_functions import (
    dequantize,
    get_scheme,
    int_repr,
    q_per_channel_axis,
    q_per_channel_scales,
    q_per_channel_zero_points,
    q_scale,
    q_zero_point,
)
from .quantized_tensor import QuantizedData, QuantizedTensor, is_quantized, wrap_quantized
from .saved_tensors import rebuild, saved_parts
from .sparse_parameters import declare_sparse_ops
from .wrapped_ops import declare_wrapped_ops
