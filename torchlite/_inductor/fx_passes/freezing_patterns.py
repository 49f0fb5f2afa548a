"""Patterns that packages register for frozen graphs of PyTorch's own compiler.

Their functions write calls of oneDNN's ops, which torchlite lacks. So they are kept, and no pass here runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..constant_folding import constant_fold
from ..pattern_matcher import Match, PatternExpr, PatternMatcherPass, _always, register_graph_pattern

pass_patterns: list[PatternMatcherPass] = [PatternMatcherPass() for _ in range(3)]


def register_freezing_graph_pattern(
    pattern: PatternExpr, extra_check: Callable[[Match], bool] = _always, pass_number: int = 0
) -> Callable[[Callable], Callable]:
    """Return a decorator that keeps a pattern's function.

    >>> from torchlite._inductor.fx_passes.freezing_patterns import pass_patterns, register_freezing_graph_pattern
    >>> from torchlite._inductor.pattern_matcher import Arg
    >>> handler = register_freezing_graph_pattern(Arg(), pass_number=2)(lambda match, x: None)
    >>> pass_patterns[2].patterns.pop()[2] is handler
    True
    """
    while pass_number >= len(pass_patterns):
        pass_patterns.append(PatternMatcherPass())
    return register_graph_pattern(pattern, extra_check, pass_dict=pass_patterns[pass_number])


def freezing_passes(gm: Any, aot_example_inputs: Sequence[Any]) -> None:
    """Compute what a graph derives from constants alone. It computes the same values as before."""
    constant_fold(gm)
