"""Experimental functions of functorch."""

import sys
import types

from torchlite._higher_order_ops import cond, map
from torchlite.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_
from torchlite.func._vmap import chunk_vmap

__all__ = ["chunk_vmap", "control_flow", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]

control_flow = sys.modules[f"{__name__}.control_flow"] = types.ModuleType(f"{__name__}.control_flow")
control_flow.__dict__.update(cond=cond, map=map, __all__=["cond", "map"])
