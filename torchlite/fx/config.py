"""Settings of torch.fx."""

# If False, passes show progress.
disable_progress = True
verbose_progress = False
