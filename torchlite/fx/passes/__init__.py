"""Graph passes: shape propagation, splitting, partitioning, matching, drawing."""
