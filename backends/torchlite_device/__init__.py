"""The strided device array and the kernels on it, written once for every runtime that builds programs from text: OpenCL
and CUDA share them.

A runtime offers a `Device` (device.py) and nothing else; no module here imports PyOpenCL or CuPy.
"""
