"""Devices, streams and generators: the shared parts of `torch.cuda`, `torch.opencl`, `torch.accelerator` and
`torch.random`.
"""
