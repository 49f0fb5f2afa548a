"""Errors of launched processes; there is no launcher here."""
