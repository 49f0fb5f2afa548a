"""Passes for any op dialect."""
