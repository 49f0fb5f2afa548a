"""The texts of kernels, by family: one text for OpenCL and CUDA where both can say it. Nothing here imports a runtime
or knows how a text is started.
"""
