"""Backends of torchlite: a package per array or message runtime, and the packages they share."""

from torchlite._types.devices import BACKEND_MODULES

BACKEND_MODULES.add(__name__)
# The engines of the CPU's kernels by name: modules with an object `engine`, each loaded at its first use.
CPU_ENGINES = {"cc": "torchlite_backends.cc.cpu_engine", "opencl": "torchlite_backends.opencl.cpu_engine"}
# Packages of kernels that were compiled ahead, by the name of the engine that loads them.
KERNEL_PACKAGES = {"cc": "torchlite_kernels"}
