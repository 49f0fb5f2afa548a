"""Record what PyTorch's layers, optimizers and schedules answer, for tests/nn and tests/optim.

usage: python tools/record_layers.py

It needs the extra `oracle` and rewrites tests/nn/layers.json and tests/optim/trajectories.json.
"""

import json
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main():
    import torch

    from tests.nn import cases
    from tests.optim import cases as optim_cases

    warnings.simplefilter("ignore")
    layers = {name: cases.answers(torch, name) for name in cases.LAYERS}
    (ROOT / "tests/nn/layers.json").write_text(json.dumps(layers, separators=(",", ":")).replace('},"', '},\n"') + "\n")
    steps = {name: optim_cases.trajectory(torch, name) for name in optim_cases.OPTIMIZERS}
    rates = {name: optim_cases.rates(torch, name) for name in optim_cases.SCHEDULES}
    answers = {"optimizers": steps, "schedules": rates}
    (ROOT / "tests/optim/trajectories.json").write_text(
        json.dumps(answers, separators=(",", ":")).replace('],"', '],\n"') + "\n"
    )


if __name__ == "__main__":
    main()
