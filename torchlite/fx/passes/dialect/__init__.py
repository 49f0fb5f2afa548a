"""Passes for graphs of a given op dialect."""
