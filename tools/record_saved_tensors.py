"""Record the inputs and outputs that PyTorch's nodes save for every sample of the op table and every choice of inputs
that require a gradient.

usage: python tools/record_saved_tensors.py

It needs the extra `oracle` and rewrites tests/ops/saved_tensors.json.
"""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from choice_recording import record_choices

from tests.ops.saved_tensors import RECORDED, saved_by


def main() -> None:
    import torch

    def place_of(tensor):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()

    record_choices(RECORDED, lambda *given: saved_by(torch, *given, place_of))


if __name__ == "__main__":
    main()
