"""Replacements of torchvision's compiled ops."""
