"""Damaged and malicious checkpoints, and checks of loading them.

`python -m tests.hostile` makes 25,000 and loads each (`--help` says more); the tests take a sample. A file is a
function of its number alone, so that `--only NUMBER` makes it again.
"""
