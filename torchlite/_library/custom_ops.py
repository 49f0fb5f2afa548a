"""`torch.library.custom_op`: makes an op from a Python function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._types.devices import device
from . import library_op
from .function_schema import FunctionSchema, infer_schema
from .library_op import LibraryOp, dispatch_key_of
from .tags import Tag, as_tags

OPS: dict[str, CustomOpDef] = {}


def reject_keyword_only_tensors(schema: FunctionSchema) -> None:
    """Raise NotImplementedError for keyword-only tensors, for which autograd has no position."""
    if any(a.kwarg_only and a.type.base == "Tensor" for a in schema.arguments):
        raise NotImplementedError(
            f"register_autograd with kwarg-only Tensor args. In the original definition of the op, please make your "
            f"tensors not kwarg-only. Got: {schema}"
        )


class CustomOpDef:
    """Op made from a Python function by `torch.library.custom_op`; callable."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable, tags: Any = None) -> None:
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self.__name__ = name
        reject_keyword_only_tensors(FunctionSchema(f"{self._qualname}{schema}"))
        before = OPS.get(self._qualname)
        if before is not None:
            library_op.undefine_op(before._op)
        self._op: LibraryOp = library_op.define_op(
            namespace, name + schema, list(dict.fromkeys([Tag["pt2_compliant_tag"], *as_tags(tags)]))
        )
        self._op.is_custom, self._op.shown = True, repr(self)
        OPS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> Any:
        return self._op.overload

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def register_kernel(self, device_types: str | Iterable[str] | None, fn: Callable | None = None, /) -> Any:
        """Register the kernel for device types ("cpu", "cuda", "opencl"), None for all. Without `fn`, return a
        decorator.

        >>> import torchlite as torch
        >>> @torch.library.custom_op("docs::double", mutates_args=(), device_types="cpu")
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> @double.register_kernel("opencl")
        ... def _(x):
        ...     return x + x
        """

        def register(function: Callable) -> Callable:
            types = [device_types] if isinstance(device_types, str) or device_types is None else list(device_types)
            for each in types:
                key = "CompositeExplicitAutograd" if each is None else dispatch_key_of(device(each).type)
                self._op.kernels[key] = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Register the shape function: computes result shapes, dtypes and devices on the meta device."""
        self._op.fake = fn
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Register the derivative: `backward(ctx, *grads)` returns a gradient for each argument; `setup_context(ctx,
        inputs, output)` saves values. Raise RuntimeError for an op that mutates its arguments.
        """
        if not self._op.schema.is_functional:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._op.schema}. Please create a functional operator and register an autograd formula for that."
            )
        self._op.backward, self._op.setup_context = backward, setup_context

    def register_vmap(self, func: Callable | None = None) -> Any:
        """Register the `vmap` rule: `func(info, in_dims, *args)` returns (results, out_dims)."""
        if func is None:
            return self.register_vmap
        self._op.vmap_rule = func
        return func

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Cast floating-point inputs to `cast_inputs` under autocast for the device type."""
        self._op.cast[device_type] = cast_inputs

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable | None = None, /) -> Any:
        """Register the op's behaviour for a subclass with `__torch_dispatch__`, or under a TorchDispatchMode of that
        class.
        """

        def register(function: Callable) -> Callable:
            self._op.by_class[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Enable or disable a device type's kernel in a context; if disabled, the original function runs."""
        key, op = dispatch_key_of(device_type), self._op
        off, kernels = set(op.off), dict(op.kernels)
        (op.off.discard if enabled else op.off.add)(key)
        if not enabled:
            op.kernels.setdefault("CompositeExplicitAutograd", self._init_fn)
        try:
            yield
        finally:
            op.off, op.kernels = off, kernels


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Iterable[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an op from a Python function. `torch.ops` has it, modes see it as one op, and `register_autograd` sets its
    derivative. Without `fn`, return a decorator.

    name: "library::op". mutates_args: names of mutated arguments. device_types: devices of the function's kernel, by
    default all. schema: inferred from annotations by default.

    >>> import torchlite as torch
    >>> @torch.library.custom_op("docs::cube", mutates_args=())
    ... def cube(x: torch.Tensor) -> torch.Tensor:
    ...     return x**3
    >>> cube.register_autograd(
    ...     lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2,
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    ... )
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> torch.ops.docs.cube(x).backward()
    >>> x.grad
    tensor(12.)
    """

    def define(function: Callable) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema.strip()
        namespace, op_name = name.split("::")
        custom = CustomOpDef(namespace, op_name, text, function, tags)
        if schema is not None:
            written = {a.name for a in custom._op.schema.arguments if a.is_write}
            if mutates_args != "unknown" and written != set(mutates_args):
                library_op.undefine_op(custom._op)
                del OPS[custom._qualname]
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The "
                    f"schema suggests that the op mutates {written} which is different from what was provided to us in "
                    "`mutates_args`. Please make these consistent."
                )
        custom.register_kernel(device_types)(function)
        return custom

    return define if fn is None else define(fn)
