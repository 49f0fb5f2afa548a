"""Comparison with an installed PyTorch: `tox -e oracle`, or `python -m pytest -m oracle` where torch 2.13.0 is
installed.
"""
