"""Which part of a tensor a process has: of none yet."""

from .._absent import absent

compute_local_shape_and_global_offset = absent(
    "compute_local_shape_and_global_offset", "torch.distributed.tensor._utils"
)
