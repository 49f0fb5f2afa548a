"""Neural network kernels: layers, losses, optimizer steps."""
