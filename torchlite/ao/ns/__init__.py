"""Numeric comparison of networks before and after quantization."""
