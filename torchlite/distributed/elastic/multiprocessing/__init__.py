"""Processes that a launcher starts: none."""
