"""Ops that programs add: their schemas, kernels by device, derivatives, and how `torch.ops` calls them."""
