"""Record PyTorch's random numbers for tests/ops/test_random.py, so that the test needs no PyTorch.

usage: python tools/record_random.py     (needs the extra `oracle`; rewrites tests/ops/random_numbers.npz)
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tests.ops.test_random import CALLS, GOLDEN, arrays


def main() -> None:
    import torch

    answers = {f"{name}/{i}": array for name in CALLS for i, array in enumerate(arrays(torch, name))}
    generator = torch.Generator().manual_seed(1234567890123)
    answers["state_fresh"] = generator.get_state().numpy()
    torch.randn(5, generator=generator)
    answers["state_used"] = generator.get_state().numpy()
    temporary = GOLDEN.with_suffix(".tmp.npz")
    np.savez_compressed(temporary, **answers)
    temporary.replace(GOLDEN)
    print(f"{len(answers)} arrays, {GOLDEN.stat().st_size} bytes")


if __name__ == "__main__":
    main()
