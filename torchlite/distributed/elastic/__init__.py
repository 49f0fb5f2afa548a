"""What `torchrun` stands on: not yet."""
