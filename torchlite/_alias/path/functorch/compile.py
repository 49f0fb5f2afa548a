"""Forward and backward graphs of functions, for custom compilers."""

from torchlite._decomp import get_decompositions
from torchlite._functorch import config
from torchlite._functorch.aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    make_boxed_compiler,
    make_boxed_func,
    nop,
    print_compile,
)
from torchlite._functorch.partitioners import default_partition

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "config", "default_partition", "get_decompositions",
    "make_boxed_compiler", "make_boxed_func", "nop", "print_compile",
]  # fmt: skip
