"""Strided device array and its kernels, shared by the runtimes that build programs from source: OpenCL and CUDA.

A runtime provides a `Device` (`core.device`) and nothing else; no module here imports PyOpenCL or CuPy. The subpackages
`core`, `array_ops`, `linalg` and `nn` each import only earlier ones. Kernel sources are in
`torchlite_backends.kernel_sources`.
"""
