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
    """Op that `torch.library.custom_op` makes from a Python function; a call runs it.

    Args:
        namespace: Name of the library.
        name: Name of the op.
        schema: Its arguments and results, such as ``"(Tensor x) -> Tensor"``.
        fn: The function.
        tags: Tags of the op. Default: none.

    Example:
        >>> @torch.library.custom_op("docs::halve", mutates_args=())
        ... def halve(x: torch.Tensor) -> torch.Tensor:
        ...     return x / 2
        >>> halve, halve(torch.ones(1))
        (<CustomOpDef(docs::halve)>, tensor([0.5000]))
    """

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
        """Registers the kernel for device types.

        Args:
            device_types: ``"cpu"``, ``"cuda"``, ``"opencl"``, a list of these, or ``None`` for all.
            fn: The kernel. Default: none, which returns a decorator.

        Returns:
            The kernel, or a decorator.

        Example:
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
        """Registers the function that computes shapes, dtypes and devices of results on the meta device.

        Args:
            fn: Function of the op's arguments that returns tensors without values.

        Returns:
            The function.
        """
        self._op.fake = fn
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Registers the derivative.

        Args:
            backward: Function ``(ctx, *grads)`` that returns a gradient, or ``None``, for each argument.
            setup_context: Function ``(ctx, inputs, output)`` that saves values in the forward pass. Default: none.

        Raises:
            RuntimeError: The op mutates its arguments.
        """
        if not self._op.schema.is_functional:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._op.schema}. Please create a functional operator and register an autograd formula for that."
            )
        self._op.backward, self._op.setup_context = backward, setup_context

    def register_vmap(self, func: Callable | None = None) -> Any:
        """Registers the rule of `vmap`.

        Args:
            func: Function ``(info, in_dims, *args)`` that returns ``(results, out_dims)``. Default: none, which returns
                a decorator.
        """
        if func is None:
            return self.register_vmap
        self._op.vmap_rule = func
        return func

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Casts floating-point inputs under autocast.

        Args:
            device_type: Device type of autocast.
            cast_inputs: The dtype.
        """
        self._op.cast[device_type] = cast_inputs

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable | None = None, /) -> Any:
        """Registers what the op does for a class with `__torch_dispatch__`.

        Args:
            torch_dispatch_class: A subclass of tensors, or of TorchDispatchMode.
            fn: The function. Default: none, which returns a decorator.
        """

        def register(function: Callable) -> Callable:
            self._op.by_class[torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Context manager that switches a device type's kernel on or off. Where it is off, the original function runs.

        Args:
            device_type: The device type.
            enabled: Whether the kernel is on. Default: ``True``.
        """
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
    """Makes an op from a Python function.

    `torch.ops` has the op, modes see it as one op, and `register_autograd` sets its derivative.

    Args:
        name: ``"library::op"``.
        fn: The function. Default: none, which returns a decorator.
        mutates_args: Names of the arguments that the function changes in place, or ``"unknown"``.
        device_types: Device types of the function, or a list of them. Default: all.
        schema: Arguments and results, such as ``"(Tensor x) -> Tensor"``. Default: made from the annotations.
        tags: Tags of the op. Default: none.

    Returns:
        A `CustomOpDef`, or a decorator.

    Raises:
        ValueError: The annotations are missing or unsupported, or ``schema`` and ``mutates_args`` disagree.

    Example:
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

    See also:
        `opcheck`, `register_fake`, `register_vmap`.
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
