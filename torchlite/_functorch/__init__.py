"""`torch._functorch`: PyTorch's private names of `torch.func` and AOTAutograd."""
