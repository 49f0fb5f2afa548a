"""The tests' CUDA simulator as the backend of "cuda" (`--simulate-cuda`): what gpu_check.py does on CUDA, without a
GPU.
"""

from __future__ import annotations

from tests.cuda_simulator.driver import Simulated
from torchlite_backends.cupy.backend import CUDABackend

backend = CUDABackend(Simulated())
