"""Checkpoints that somebody damaged or made to do harm, and what loading them must not do.

`python -m tests.hostile` makes 25,000 and loads each (`--help` says more); the tests take a sample. A file is a
function of its number alone, so that `--only NUMBER` makes it again.
"""
