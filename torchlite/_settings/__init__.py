"""Process-wide settings that backends read: threads, and the flags of `torch.backends`."""
