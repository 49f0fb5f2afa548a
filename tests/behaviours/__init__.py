"""Lines of programs whose answers PyTorch gave: values, dtypes, strides, errors and warnings, on every device."""
