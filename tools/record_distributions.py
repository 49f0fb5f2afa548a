"""Record what PyTorch answers to the lines of tests/distributions.

usage: python tools/record_distributions.py

It needs the extra `oracle` and rewrites tests/distributions/answers.json.
"""

from __future__ import annotations

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.distributions import queries  # noqa: E402


def main() -> None:
    import torch
    import torch.distributions

    found: dict = {"distributions": {}, "divergences": {}, "transforms": {}, "constraints": {}}
    for line in queries.lines("distributions"):
        drawn = queries.drawn(torch, queries.Asked(torch, line))
        # Values are kept as they were drawn, so that densities are asked for on every device.
        told = queries.told(torch, queries.Asked(torch, line), drawn["sample 3"])
        found["distributions"][line] = {
            "drawn": drawn,
            "moved": queries.moved(torch, queries.Asked(torch, line)),
            "told": told,
        }
    pairs = queries.lines("divergences")
    for one in pairs:
        for other in pairs:
            value = queries.divergence(torch, one, other)
            if not str(value[0]).startswith("NotImplementedError: No KL"):
                found["divergences"][f"{pairs.index(one)} {pairs.index(other)}"] = value
    for kind, of in (("transforms", queries.of_transform), ("constraints", queries.of_constraint)):
        for line in queries.lines(kind):
            found[kind][line] = of(torch, queries.Asked(torch, line))
    for kind in ("refused", "utilities"):
        found[kind] = {
            line: queries.tried(lambda line=line: queries.Asked(torch, line).value) for line in queries.lines(kind)
        }
    rows = []
    for kind, answers in found.items():
        inner = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in answers.items())
        rows.append(f"{json.dumps(kind)}: {{\n{inner}\n}}")
    queries.ANSWERS.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
