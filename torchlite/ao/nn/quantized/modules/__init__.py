"""Arithmetic that observers can follow."""

from .functional_modules import FloatFunctional, FXFloatFunctional

__all__ = ["FXFloatFunctional", "FloatFunctional"]
