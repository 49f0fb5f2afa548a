"""Passes over graphs that packages register for PyTorch's own compiler."""
