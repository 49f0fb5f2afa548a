"""A report on how the layers of a network can be quantized."""
