"""`aot_autograd`: makes backends for compilers that take graphs below autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["aot_autograd"]


def aot_autograd(**options: Any) -> Callable[..., Any]:
    """Return a `torch.compile` backend from compilers of graphs without gradients: `fw_compiler` and optionally
    `bw_compiler`, `inference_compiler` and further arguments of `aot_module_simplified`.

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
