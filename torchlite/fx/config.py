"""Settings of torch.fx."""

# Whether passes over graphs show how far they are.
disable_progress = True
verbose_progress = False
