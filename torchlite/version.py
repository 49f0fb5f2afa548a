"""Versions, as torch.version has them."""

from . import __version__

cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "Unknown"
debug = False
__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
