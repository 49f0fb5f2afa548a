"""Kernels of neural networks: layers, losses, optimizer steps."""
