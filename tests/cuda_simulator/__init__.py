"""Runs CUDA programs on the CPU, as they would go to NVRTC: a shim header for g++, and a runtime that makes each CUDA
thread a fiber.
"""

from tests.cuda_simulator.kernel_compiler import (
    Kernel,
    Program,
    SimulatorError,
    allocate,
    free,
    in_sanitized_child,
    missing,
    sanitizer_environment,
    view,
)
