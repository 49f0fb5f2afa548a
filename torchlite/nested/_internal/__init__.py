"""Nested tensors: the classes of both layouts, and the rules of their ops."""
