"""PyTorch's name of the backend registry; re-exports it."""

from . import list_backends, lookup_backend, register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]
