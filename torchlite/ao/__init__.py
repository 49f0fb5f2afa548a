"""Quantisation and pruning, by name."""
