"""`python -m tests.nvrtc`: compiles CUDA programs (compile_programs.py)."""

import sys

from .compile_programs import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
