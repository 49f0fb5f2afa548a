"""Quantized tensors."""
