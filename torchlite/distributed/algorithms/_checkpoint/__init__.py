"""Modules whose activations are made again, or kept on the host, in backward."""
