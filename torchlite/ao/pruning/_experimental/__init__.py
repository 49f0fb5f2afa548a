"""Pruning of whole channels, of activations and of data that is in no model."""
