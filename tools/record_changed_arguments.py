"""Record PyTorch's answers to the op table's samples with one argument changed for tests/ops/test_changed_arguments.py.

usage: python tools/record_changed_arguments.py     (needs the extra `oracle`)

A line of tests/ops/changed_arguments.txt.gz is an op, a sample, an argument, its value, and the answer in short: "="
if it is that of the sample itself, "!" and the error's class, or the dtypes, shapes and two sums of the elements.
"""

from __future__ import annotations

import gzip
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tests.ops.changed_arguments import as_argument, changes, in_short, with_change
from tests.ops.op_db import ROWS, load_rows, public_name, to_tensors

PATH = pathlib.Path(__file__).resolve().parents[1] / "tests" / "ops" / "changed_arguments.txt.gz"


def answer(torch, function, args: tuple, kwargs: dict) -> str:
    """The answer of a call in short."""
    torch.manual_seed(0)
    try:
        return in_short(function(*args, **kwargs))
    except Exception as error:
        return f"!{type(error).__name__}"


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    load_rows()
    lines = []
    for name, row in sorted(ROWS.items()):
        public = public_name(name)
        function = torch
        for part in (public or "").split("."):
            function = getattr(function, part, None)
        if not public or function is None:
            continue
        before: dict[int, str] = {}
        for index, argument, value in changes(row):
            if index not in before:
                before[index] = answer(torch, function, *to_tensors(row.values(index), library=torch))
            args, kwargs = to_tensors(row.values(index), library=torch)
            args, kwargs = with_change(row, args, kwargs, argument, as_argument(torch, value))
            found = answer(torch, function, args, kwargs)
            if before[index].startswith("!"):
                continue
            found = "=" if found == before[index] else found
            lines.append(f"{name}\t{index}\t{argument}\t{value!r}\t{found}\n")
    with gzip.GzipFile(PATH, "wb", mtime=0) as file:
        file.write("".join(lines).encode())
    print(f"{len(lines)} calls, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
