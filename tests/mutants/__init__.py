"""Mutants: the source with one fault, which the tests must notice."""
