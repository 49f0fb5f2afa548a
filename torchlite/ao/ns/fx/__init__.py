"""Numeric comparison of graph modules."""
