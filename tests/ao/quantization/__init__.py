"""Observers, fake quantization, configurations and preparation of models."""
