"""Sparsifiers, schedulers and pruners."""
