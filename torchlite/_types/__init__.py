"""Basic types: dtypes, devices, sizes, layouts. This package does not import higher layers."""
