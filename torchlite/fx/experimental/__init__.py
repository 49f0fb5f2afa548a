"""What PyTorch tries out beside torch.fx."""
