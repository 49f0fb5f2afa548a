"""Schedulers, which change the sparsity of sparsifiers from step to step."""
