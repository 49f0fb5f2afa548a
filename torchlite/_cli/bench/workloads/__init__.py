"""Workloads that run the same way under any module with PyTorch's API.

The folder is a package of its own too: `python PATH/workloads torch --only gpt` runs it under an interpreter that knows
no torchlite, so it imports nothing of torchlite and gets the module under test as an argument.
"""
