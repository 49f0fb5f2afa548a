"""Modules that PyTorch wraps in place, over several processes: none."""
