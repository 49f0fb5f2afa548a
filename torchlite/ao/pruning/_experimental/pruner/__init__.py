"""Pruners, which remove whole channels of layers and what reads them."""

from .base_structured_sparsifier import BaseStructuredSparsifier
from .FPGM_pruner import FPGMPruner
from .lstm_saliency_pruner import LSTMSaliencyPruner
from .parametrization import BiasHook, FakeStructuredSparsity
from .saliency_pruner import SaliencyPruner

__all__ = [
    "BaseStructuredSparsifier", "BiasHook", "FPGMPruner", "FakeStructuredSparsity", "LSTMSaliencyPruner",
    "SaliencyPruner",
]  # fmt: skip
