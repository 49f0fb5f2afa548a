"""Models of many architectures, each small, that tests read and write as files.

Each is built from `torch`, an argument, so that PyTorch and torchlite run it with the same weights, which depend on
nothing but their names: `MODELS["gpt"].make(torch)`, then `MODELS["gpt"].inputs(torch)`.
"""

from __future__ import annotations

from . import convolutional, miscellaneous, sequences
from .model_case import MODELS, Model, filled

__all__ = ["MODELS", "Model", "convolutional", "filled", "miscellaneous", "sequences"]
