"""Record what `__torch_function__` of a subclass sees in PyTorch.

usage: python tools/record_torch_function.py

It needs the extra `oracle` and rewrites tests/dispatch/torch_function_calls.json.
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tests.dispatch.torch_function_calls import RECORDED, Caller, program_lines


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    caller = Caller(torch)
    answers = {line: caller.calls(line) for line in program_lines()}
    RECORDED.write_text(json.dumps(answers, indent=0) + "\n")


if __name__ == "__main__":
    main()
