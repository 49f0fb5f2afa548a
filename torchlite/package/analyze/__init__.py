"""Questions about objects of packages."""

from .is_from_package import is_from_package as is_from_package

__all__ = ["is_from_package"]
