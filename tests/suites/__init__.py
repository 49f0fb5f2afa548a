"""The test suites of projects that use PyTorch, with torchlite in its place."""
