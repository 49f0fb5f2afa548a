"""Implementation of the `python -m torchlite` commands."""
