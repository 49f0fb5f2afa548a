"""`python -m torchlite bench`: how fast torchlite is, beside what else is installed."""
