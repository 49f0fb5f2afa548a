"""Compilers of a program's own that want ops below autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["aot_autograd"]


def aot_autograd(**options: Any) -> Callable[..., Any]:
    """A backend of `torch.compile` by a compiler of graphs without gradients: `fw_compiler`, and where they are others
    `bw_compiler`, `inference_compiler` and what else `aot_module_simplified` takes.

    >>> import torchlite as torch
    >>> from torchlite._dynamo.backends.common import aot_autograd
    >>> def compiler(graph, inputs):
    ...     print([node.target.__name__ for node in graph.graph.nodes if node.op == "call_function"])
    ...     return graph
    >>> f = torch.compile(lambda x: x.sin().sum(), backend=aot_autograd(fw_compiler=compiler))
    >>> f(torch.zeros(2, requires_grad=True)).backward()
    ['sin.default', 'sum.default']
    ['expand.default', 'cos.default', 'mul.Tensor']
    """

    def backend(gm: Any, example_inputs: Any, **others: Any) -> Any:
        from ..._functorch.aot_autograd import aot_module_simplified

        return aot_module_simplified(gm, example_inputs, **options)

    return backend
