"""Programs that run in PyTorch and in torchlite unchanged but for the import."""
