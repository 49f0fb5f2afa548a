"""The strided device array and the kernels on it, written once for every runtime that builds programs from text: OpenCL
and CUDA share them.

A runtime offers a `Device` (machinery/device.py) and nothing else; no module here imports PyOpenCL or CuPy. The rooms,
each of which knows those before it: `machinery`, `elements`, `linalg`, `nn`. The texts of kernels are in
`torchlite_backends.kernel_sources`.
"""
