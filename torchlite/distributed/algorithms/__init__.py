"""Algorithms of distributed training: joining uneven inputs, communication hooks, model averaging."""

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
