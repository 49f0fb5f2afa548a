"""Sparsifiers, which choose the masks of weights."""
