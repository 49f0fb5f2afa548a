"""The commands of `python -m torchlite`."""
