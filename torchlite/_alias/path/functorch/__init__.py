"""functorch, which PyTorch also installs: `torch.func` by its older names."""

from torchlite._functorch.make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from torchlite.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

HANDS_OVER = True
__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp",
    "vmap",
]  # fmt: skip
