"""Support for tensors in NumPy's functions and in the Array API namespace, based on public functions."""
