"""Versions, as torch.version has them."""

from . import __version__

cuda: str | None = None
hip: str | None = None
debug = False
__all__ = ["__version__", "cuda", "debug", "hip"]
