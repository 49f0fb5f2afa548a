"""Workloads that run identically under any module with PyTorch's API.

The folder is also a standalone package: `python PATH/workloads torch --only gpt` runs it under an interpreter without
torchlite. It therefore imports nothing of torchlite and takes the module under test as an argument.
"""
