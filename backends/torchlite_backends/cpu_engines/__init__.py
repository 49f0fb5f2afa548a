"""CPU engines: they run ops on large arrays in place of NumPy's kernels.

An engine is a Device (`torchlite_backends.device_runtime.core.device`) over NumPy's memory; the kernels of
`torchlite_backends.device_runtime` run on it unchanged. `engine_selection` chooses the engine, `kernel_overrides` lists
its kernels, `ndarray_bridge` passes ndarrays to them.
"""
