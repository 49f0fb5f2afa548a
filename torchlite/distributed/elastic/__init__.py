"""Processes that are started together, watched, and restarted: the Python side of `torchlite-run`."""
