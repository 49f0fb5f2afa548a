"""Quantization of models."""
