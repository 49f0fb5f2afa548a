"""Settings of the whole process that backends read: threads, and the switches of `torch.backends`."""
