"""Process launcher of `torchlite-run` and `python -m torchlite.distributed.run`."""
