"""Runs a program with torchlite's float32 convolutions in full precision: the operator table holds them against
torch's on the CPU, and cuDNN rounds operands to TF32 unless told otherwise.

usage: python -m gpu_parts.full_precision_conv PROGRAM [its arguments ...]
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from . import library

if __name__ == "__main__":
    library().backends.cudnn.allow_tf32 = False
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
