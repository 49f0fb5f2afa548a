"""Older names of `torch.func`, where packages look for them."""
