"""Sources of device kernels by family, one text for OpenCL and CUDA where possible.

No module here imports a runtime or knows how kernels are launched.
"""
