"""`python -m torchlite.distributed.launch`: the older name of `torchlite.distributed.run`."""

import sys

from .run import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
