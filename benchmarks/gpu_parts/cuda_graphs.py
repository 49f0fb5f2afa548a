"""`mlp.train` through captured graphs under torchlite and under torch: gpu_parts/mlp_step.py, a program for each."""

from __future__ import annotations

import re

from . import Options, Result, output_of, python, say
from .workload_ratios import reference_of

_ROW = re.compile(r"^(\w+) ([\d.e+-]+) us$")


def times_of(module: str, device: str, options: Options, limit: float) -> tuple[dict[str, float], list[str]]:
    """{form: microseconds}, and what went wrong."""
    command = [python(), "-m", "gpu_parts.mlp_step", module, "--device", device, *["--quick"] * options.quick]
    status, text = output_of(command, limit)
    found = {m[1]: float(m[2]) for m in map(_ROW.match, text.splitlines()) if m}
    problems = [f"{module}: {line}" for line in text.splitlines() if " FAILED " in line]
    if status != 0:
        ending = "the time limit" if status is None else f"status {status}"
        problems.append(f"{module}: {ending}: {' / '.join(text.strip().splitlines()[-3:])}")
    return found, problems


def run(options: Options, result: Result) -> None:
    reference = reference_of(options)
    result.put(times={}, failed=[], notes=[], reference=reference)
    if options.kind != "cuda":
        result.put(notes=[f"there are no graphs on {options.kind}: the eager step alone"])
        say(result.found["notes"][0])
    turns = [("torchlite", options.device), *[("torch", reference)] * bool(reference)]
    for number, (module, device) in enumerate(turns):
        found, problems = times_of(module, device, options, (result.left(options) - 2) / (len(turns) - number))
        for form, time in found.items():
            say(f"{module}, {form}: {time:.1f} us")
        for line in problems:
            say(f"FAILED {line}")
        result.put(times={**result.found["times"], module: found})
        name = "failed" if module == "torchlite" else "notes"
        result.put(**{name: result.found[name] + problems})
