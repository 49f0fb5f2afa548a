"""Patterns that packages register for frozen graphs, whose weights are constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
from torchlite._device.generators import use_copied_generators
from torchlite._subclasses.fake_constructors import fake_tensor_like
from torchlite._tensor import Tensor
from torchlite.fx import Interpreter, Node
from torchlite.fx.passes.shape_prop import _extract_tensor_metadata
from torchlite.fx.passes.tools_common import stable_topological_sort

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


class _SampleRun(Interpreter):
    """Runs a graph once, and stores in its nodes the sizes that the functions of patterns read."""

    def run_node(self, n: Node) -> Any:
        value: Any = super().run_node(n)
        if isinstance(value, Tensor):
            n.meta["val"], n.meta["tensor_meta"] = fake_tensor_like(value), _extract_tensor_metadata(value)
        return value


def freezing_passes(gm: Any, aot_example_inputs: Sequence[Any]) -> None:
    """Compute what a graph derives from constants alone, and replace what the registered patterns match."""
    constant_fold(gm)
    with torch.no_grad(), use_copied_generators():
        _SampleRun(gm).run(*aot_example_inputs)
    for patterns in pass_patterns:
        patterns.apply(gm.graph)
    stable_topological_sort(gm)
    gm.recompile()
    gm.graph.lint()
