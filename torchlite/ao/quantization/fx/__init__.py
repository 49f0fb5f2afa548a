"""Quantization of graphs: observers in the nodes of a traced model, and quantized layers in place of observed ones."""

from .convert import convert
from .fuse import fuse
from .prepare import prepare
