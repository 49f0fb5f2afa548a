"""Passes over graphs: shapes, splitting, pictures, and what they are written with."""
