"""Mixed precision on CUDA by its old names: `torch.amp` with "cuda" as the device type."""
