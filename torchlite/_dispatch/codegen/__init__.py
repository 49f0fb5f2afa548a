"""Code generation: from an op's record to the Python source of its functions."""
