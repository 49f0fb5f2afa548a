"""Compiled CPU kernels of torchlite: a file `LEVEL.kernels` for each level of instructions.

torchlite finds this package by its name and reads the file of the processor's level. There is nothing to import.
"""

__version__ = "0.1.0"
