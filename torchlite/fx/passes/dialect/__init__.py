"""Passes for graphs of one dialect."""
