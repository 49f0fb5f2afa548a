"""Starting the processes of a world: what `torchlite-run` and `python -m torchlite.distributed.run` do."""
