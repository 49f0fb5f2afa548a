"""What functorch tried out."""

from torchlite.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_
from torchlite.func._vmap import chunk_vmap

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
