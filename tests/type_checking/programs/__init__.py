"""Programs as users write them. Both checkers are silent about them in their default mode."""
