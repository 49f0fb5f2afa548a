"""Kernels that compute, move, choose, count and draw elements: what array libraries have under these names."""
