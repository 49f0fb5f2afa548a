"""Fused kernels as source strings: one text for OpenCL and CUDA where both can say it. Nothing here
imports a runtime.
"""
