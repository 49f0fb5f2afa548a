"""Engines of the CPU's kernels: what runs an op over large arrays in the place of NumPy.

An engine is a Device (`torchlite_backends.device_runtime.core.device`) whose memory is NumPy's own; the kernels of
`torchlite_backends.device_runtime` run on it unchanged. `choice` says which engine serves, `table` which kernels it has, `bridge` gives
them ndarrays.
"""
