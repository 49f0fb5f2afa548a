"""`python -m tests.array_api CHECKOUT`: the Array API standard's own suite (suite.py)."""

import sys

from .suite import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
