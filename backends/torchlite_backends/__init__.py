"""The array runtimes behind torchlite: one package each, and the packages that several of them share."""
