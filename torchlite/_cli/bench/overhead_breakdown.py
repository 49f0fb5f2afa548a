"""Breakdown of a small op's overhead in nanoseconds.

Comments divide the source of an op's function (`python -m torchlite show op add`). The function is compiled once per
comment, truncated there; the cost of a comment's lines is the difference to the previous truncation.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import platform
import re
import time
from collections.abc import Callable
from typing import Any

from ..._types.python_source import compile_source
from . import markdown_sections, report_tables
from .host_info import cpu_name

_COMMENT = re.compile(r"^( +)# (.+)$")
# Raised where the function is truncated.
_CUT_MARKER = "bench_cut_here"
SAMPLES = 200


def run(options: argparse.Namespace) -> int:
    """Print the breakdown of some functions."""
    import torchlite as torch

    torch.set_num_threads(options.threads)
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    g, h = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    _ = x + y, x @ y, x.sum(0)  # functions are written when they are first called
    samples = max(5, round(SAMPLES * options.seconds / 0.25))
    found = [
        ("`x + y`, 4x4, no gradient", torch.Tensor.__add__, (x, y)),
        ("`g + h`, 4x4, recorded for backward", torch.Tensor.__add__, (g, h)),
        ("`x @ y`, 4x4, no gradient", torch.Tensor.__matmul__, (x, y)),
        ("`x.sum(0)`, 4x4, no gradient", torch.Tensor.sum, (x, 0)),
    ]
    print(f"{cpu_name()}, Python {platform.python_version()}, {datetime.date.today()}")
    sections = []
    for title, function, arguments in found:
        table = [["what the function does", "ns"]]
        table += [[what, f"{ns:.0f}"] for what, ns in measure_parts(function, arguments, samples)]
        print(f"\n{title.replace('`', '')}\n{report_tables.to_text(table)}")
        sections += [f"**{title}**", "", report_tables.to_markdown(table), ""]
    for page in options.write_docs:
        markdown_sections.fill_page(page, {"parts": "\n".join(sections)})
    return 0


def measure_parts(function: Any, arguments: tuple, samples: int) -> list[tuple[str, float]]:
    """Return the steps of a generated function for these arguments, with the nanoseconds of each."""
    cuts = truncate_at_comments(function, arguments)
    times = _measure_calls_interleaved([*(call for _, call in cuts), function], arguments, samples)
    # A truncation ends at its comment: the code below it belongs to the next one.
    differences = [after - before for before, after in itertools.pairwise(times)]
    found = [(what, max(0.0, ns)) for (what, _), ns in zip(cuts, differences, strict=True)]
    return [("the call, and what comes before the first comment", times[0]), *found, ("together", times[-1])]


def truncate_at_comments(function: Any, arguments: tuple) -> list[tuple[str, Callable]]:
    """Return the function truncated at each comment that the arguments reach."""
    from ..._dispatch.codegen.source_builder import generated_text

    lines = generated_text(function).splitlines()
    found = []
    for number, line in enumerate(lines):
        match = _COMMENT.match(line)
        if match is None:
            continue
        shorter = "\n".join([*lines[:number], f"{match[1]}return {_CUT_MARKER}", *lines[number:]])
        try:
            call = _compile_function(shorter, function)
        except SyntaxError:  # before an `elif`, or inside of an expression
            continue
        if call(*arguments) is call.__globals__[_CUT_MARKER]:
            found.append((match[2], call))
    return found


def _compile_function(text: str, function: Any) -> Any:
    names = {**function.__globals__, _CUT_MARKER: object()}
    made = compile_source(text, f"<bench {function.__name__}>", names, {})
    (call,) = (made[name] for name in made if callable(made[name]))
    call.__defaults__, call.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return call


def _measure_calls_interleaved(calls: list[Callable], arguments: tuple, samples: int) -> list[float]:
    """Return the smallest mean over a few thousand calls, of each, interleaved; minus the loop's cost."""
    loops = [_compile_timed_loop(len(arguments)) for _ in calls]
    best = [float("inf")] * len(calls)
    nothing = float("inf")
    for _ in range(samples):
        nothing = min(nothing, _compile_empty_loop(500))
        for i, call in enumerate(calls):
            best[i] = min(best[i], loops[i](call, 500, *arguments))
    return [(b - nothing) / 500 * 1e9 for b in best]


def _compile_timed_loop(count: int) -> Callable:
    """Return a timed loop with separate inline caches, like a program's loop."""
    names = "".join(f", a{i}" for i in range(count))
    text = (
        f"def loop(call, count{names}):\n"
        "    start = clock()\n"
        f"    for _ in range(count): call({names[2:]})\n"
        "    return clock() - start"
    )
    return compile_source(text, f"<bench loop of {count} arguments>", {"clock": time.perf_counter})["loop"]


def _compile_empty_loop(count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        pass
    return time.perf_counter() - start
