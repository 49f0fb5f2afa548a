"""AOTAutograd: traces a function into forward and backward ATen graphs for custom compilers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._device.generators import use_copied_generators
from .._tensor import Tensor
from ..autograd.function import Function, once_differentiable
from ..autograd.grad_mode import enable_grad, is_grad_enabled, no_grad
from ..fx import GraphModule
from ..fx.experimental.proxy_tensor import make_fx
from ..nn import Module
from ..utils import _pytree as pytree
from .partitioners import default_partition

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func", "nop",
    "print_compile",
]  # fmt: skip


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list], Any]:
    """Return a function that takes one list of arguments and passes them on."""

    def boxed(args: list) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiler whose functions take one list."""

    @functools.wraps(compiler)
    def boxed(fx_g: GraphModule, inps: Any) -> Any:
        return make_boxed_func(compiler(fx_g, inps))

    return boxed


def nop(fx_g: GraphModule, _: Any) -> GraphModule:
    """Return the graph unchanged."""
    return fx_g


def print_compile(fx_g: GraphModule, _: Any) -> GraphModule:
    """Print the graph and return it unchanged."""
    print(fx_g.code)
    return fx_g


def _run_boxed(compiled: Any, values: list) -> list:
    found = compiled(values) if getattr(compiled, "_boxed_call", False) else compiled(*values)
    return list(found) if isinstance(found, (list, tuple)) else [found]


class _GraphCompilers:
    """Compilers of forward and backward graphs, partitioner and decompositions."""

    def __init__(
        self, forward: Callable, backward: Callable | None, inference: Callable | None, part: Callable, table: Any
    ) -> None:
        self.forward, self.backward, self.inference = forward, backward or forward, inference or forward
        self.part, self.table = part, table

    def compile_function(self, function: Callable, tensors: list[Tensor]) -> Callable[[list[Tensor]], list]:
        """Return a compiled form of a function of tensors that returns a list."""
        with enable_grad() if is_grad_enabled() else no_grad():
            with use_copied_generators():
                results = function(*_copy_tensors(tensors))
            with use_copied_generators():
                if not any(r.requires_grad for r in results):
                    with no_grad():
                        return self._compile_inference(function, tensors)
                return self._compile_forward_and_backward(function, tensors, results)

    def _compile_inference(self, function: Callable, tensors: list[Tensor]) -> Callable[[list[Tensor]], list]:
        graph = make_fx(lambda *given: tuple(function(*given)), self.table)(*_copy_tensors(tensors))
        compiled = self.inference(_rename_placeholders(graph, len(tensors)), [t.detach() for t in tensors])
        return lambda given: _run_boxed(compiled, given)

    def _compile_forward_and_backward(
        self, function: Callable, tensors: list[Tensor], results: list[Tensor]
    ) -> Callable[[list[Tensor]], list]:
        count, requires_grad = len(tensors), [t.requires_grad for t in tensors]
        kept = [i for i, r in enumerate(results) if r.requires_grad]
        tangents = [r.detach().new_ones(r.shape) for r in (results[i] for i in kept)]

        def joint(*given: Tensor) -> tuple:
            from ..autograd import grad

            results = function(*given[:count])
            sources = [t for t, is_wanted in zip(given, requires_grad, strict=False) if is_wanted]
            found = iter(grad([results[i] for i in kept], sources, given[count:], allow_unused=True))  # type: ignore
            return (*results, *(next(found) if is_wanted else None for is_wanted in requires_grad))

        graph = _rename_placeholders(make_fx(joint, self.table)(*_copy_tensors(tensors), *tangents), count)
        first, second = self.part(graph, [*tensors, *tangents], num_fwd_outputs=len(results))
        forward = self.forward(first, [t.detach() for t in tensors])
        return _make_autograd_function(forward, second, self.backward, results, kept)


def _make_autograd_function(
    forward: Any, second: GraphModule, compiler: Callable, results: list[Tensor], kept: list[int]
) -> Callable[[list[Tensor]], list]:
    """Return a function that runs the forward graph, and compiles and runs the backward graph on demand."""
    backward: list[Any] = []
    others = [i for i in range(len(results)) if i not in kept]

    class Compiled(Function):
        @staticmethod
        def forward(ctx: Any, *given: Tensor) -> tuple:
            found = _run_boxed(forward, list(given))
            ctx.save_for_backward(*found[len(results) :])
            ctx.mark_non_differentiable(*(found[i] for i in others))
            return tuple(found[: len(results)])

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, *grads: Tensor) -> tuple:
            given = [*ctx.saved_tensors, *(grads[i] for i in kept)]
            if not backward:
                backward.append(compiler(second, [t.detach() for t in given]))
            return tuple(_run_boxed(backward[0], given))

    return lambda given: list(Compiled.apply(*given))


def _copy_tensors(tensors: list[Tensor]) -> list[Tensor]:
    """Return copies of tensors that a trace may mutate."""
    return [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]


def _rename_placeholders(graph: GraphModule, count: int) -> GraphModule:
    """Return a graph with PyTorch's placeholder names."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for i, node in enumerate(inputs):
        node._rename(f"primals_{i + 1}" if i < count else f"tangents_{i + 1 - count}")
        node.target = node.name
    graph.recompile()
    return graph


def _leaf_key(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return type(leaf), leaf
    return leaf.shape, leaf.stride(), leaf.dtype, leaf.device, leaf.requires_grad


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Callable[..., Any],
    bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: dict | None = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable[..., Any] | None = None,
    **others: Any,
) -> Callable[..., Any]:
    """Compile `fn` by compilers of its forward and backward graphs. A compiler takes a `torch.fx.GraphModule` of
    `torch.ops.aten` (after `decompositions`) and example inputs. It returns a function of the inputs, or of a list
    (`make_boxed_func`), that returns a tuple. Each kind of arguments gets its own graph; numbers are constants of it.

    partition_fn: splits the joint graph of `fn` and its gradients. The result has no second derivatives.

    >>> import torchlite as torch
    >>> from torchlite._functorch.aot_autograd import aot_function, print_compile
    >>> f = aot_function(lambda x: x.sin(), print_compile)
    >>> y = f(torch.zeros(2, requires_grad=True))  # doctest: +NORMALIZE_WHITESPACE
    def forward(self, primals_1):
        sin = torch.ops.aten.sin.default(primals_1)
        return (sin, primals_1)
    """
    compilers = _GraphCompilers(fw_compiler, bw_compiler, inference_compiler, partition_fn, decompositions)
    graphs: dict[Any, tuple[Callable, list]] = {}

    @functools.wraps(fn)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        key = (str(spec), is_grad_enabled(), *map(_leaf_key, leaves))
        if key not in graphs:
            graphs[key] = _compile_for(compilers, fn, leaves, spec)
        run, shape = graphs[key]
        return _unflatten_results(run([leaf for leaf in leaves if isinstance(leaf, Tensor)]), shape)

    return compiled


def _compile_for(compilers: _GraphCompilers, fn: Callable, leaves: list, spec: Any) -> tuple[Callable, list]:
    """Return the compiled `fn` for such arguments, and the spec of its result."""
    shape: list = []

    def flat(*tensors: Tensor) -> list[Tensor]:
        given = iter(tensors)
        args, kwargs = pytree.tree_unflatten([next(given) if isinstance(v, Tensor) else v for v in leaves], spec)
        shape[:] = pytree.tree_flatten(fn(*args, **kwargs))
        return [value for value in shape[0] if isinstance(value, Tensor)]

    run = compilers.compile_function(flat, [leaf for leaf in leaves if isinstance(leaf, Tensor)])
    shape[0] = [None if isinstance(value, Tensor) else (value,) for value in shape[0]]
    return run, shape


def _unflatten_results(results: list, shape: list) -> Any:
    found = iter(results)
    return pytree.tree_unflatten([next(found) if each is None else each[0] for each in shape[0]], shape[1])


def _functional_module(mod: Module) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return a module as a function of parameters, buffers and inputs, and these tensors."""
    from ..func import functional_call

    state: dict[str, Any] = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
    return lambda state, args, kwargs: functional_call(mod, state, args, kwargs), state


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> Module:
    """Return a module that computes another by `aot_function(…, *args, **kwargs)` and shares its parameters."""
    function, _ = _functional_module(mod)
    compiled = aot_function(function, *args, **kwargs)

    class AOTModule(Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return compiled(_functional_module(self.orig_module)[1], args, kwargs)

    return AOTModule()


def aot_module_simplified(
    mod: Module,
    args: Any,
    fw_compiler: Callable[..., Any],
    bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: dict | None = None,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable[..., Any] | None = None,
    **others: Any,
) -> Callable[..., Any]:
    """Return a function of a module's inputs compiled by `aot_function`, for `torch.compile` backends. The graph is
    compiled at the first call.
    """
    function, state = _functional_module(mod)
    compiled = aot_function(
        function, fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler=inference_compiler
    )

    def forward(*runtime_args: Any) -> Any:
        return compiled(state, runtime_args, {})

    return forward
