"""Tensors in NumPy's functions and in the Array API's namespace, written with public functions."""
