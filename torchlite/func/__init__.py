"""`torch.func`: composable function transforms, `vmap` and derivatives (`grad`, `vjp`, `jvp`, `jacrev`, `jacfwd` …).

>>> import torchlite as torch
>>> from torchlite.func import grad, vmap
>>> vmap(grad(lambda x: (x ** 3).sum()))(torch.tensor([1.0, 2.0]))
tensor([ 3., 12.])
"""

from ._forward_mode import hessian, jacfwd, jvp, linearize
from ._functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ._functionalize import debug_unwrap, functionalize
from ._rearrange import rearrange
from ._reverse_mode import grad, grad_and_value, jacrev, vjp
from ._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
