"""The compilers by name, where PyTorch has them."""

from . import list_backends, lookup_backend, register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]
