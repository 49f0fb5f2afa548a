"""What the commands of `python -m torchlite` do."""
