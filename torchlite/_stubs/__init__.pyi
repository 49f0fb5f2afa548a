"""What type checkers see of torchlite: stubs alone, with nothing behind them when a program runs.

`torchlite/__init__.pyi` gives these names out. By hand are aliases, basic, tensor and functions; tools/make_stubs.py
writes the others from the op records. They do not depend on where the code of torchlite stands;
tests/stubs/test_stubs.py compares them with what the code has.
"""
