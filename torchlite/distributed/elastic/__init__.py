"""Elastic launching: only `multiprocessing.errors`."""
