"""Runs pytest under the address sanitizer, with `--device cuda --simulate-cuda`: `python -m tests.cuda_simulator
tests/ops -k softmax --cuda-schedule 1`.
"""

import os
import sys

from tests.cuda_simulator import missing, sanitizer_environment

if missing():
    sys.exit(missing())
os.execve(
    sys.executable,
    [sys.executable, "-m", "pytest", "--device", "cuda", "--simulate-cuda", *sys.argv[1:]],
    sanitizer_environment(),
)
