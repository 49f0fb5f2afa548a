"""Quantization of graphs: the ops that their quantized forms are made of (`_decomposed`)."""
