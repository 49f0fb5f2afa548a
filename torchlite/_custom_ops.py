"""The custom-op interface that preceded `torch.library`: a prototype, kernels by device type, and a derivative in two
parts, what to save and how to derive. They are ops of `torch.library` like any other.
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ._custom_op.impl import RESERVED_NS, SUPPORTED_DEVICE_TYPE_TO_KEY, global_registry, infer_schema
from ._dispatch import call
from ._dispatch.dispatch_state import MODE, recording
from ._library import library_op
from ._library.function_schema import Argument, FunctionSchema
from .library import FakeImplCtx

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

_RESULTS = frozenset(("Tensor", "Tensor[]", "int", "SymInt", "bool", "Scalar", "float"))


def parse_qualname(qualname: str) -> tuple[str, str]:
    """The library and the name of an op. ValueError where the library is absent, or an overload is named."""
    namespace, colons, name = qualname.partition("::")
    if not colons or not namespace:
        raise ValueError(
            f"Expected there to be a namespace in {qualname}, i.e. The operator name should look something like ns::foo"
        )
    if "." in name:
        raise ValueError(
            "The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. Please name your "
            f"operator something like ns::foo. Got: {qualname}"
        )
    return namespace, name


def validate_namespace(ns: str) -> None:
    """ValueError for what is no name of a library, or PyTorch's own."""
    if "." in ns:
        raise ValueError(f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)')
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else. ")


def custom_op(qualname: str, func_or_schema: Callable | str | None = None) -> Any:
    """Declare an op, "library::op", by a function's annotations or by a schema's text; a decorator without either.
    ValueError for a name, an annotation or a schema that no custom op has.

    >>> import torchlite as torch
    >>> @torch._custom_ops.custom_op("docs_older::triple")
    ... def triple(x: torch.Tensor) -> torch.Tensor: ...
    >>> @torch._custom_ops.impl("docs_older::triple", device_types="cpu")
    ... def triple_cpu(x):
    ...     return 3 * x
    >>> torch.ops.docs_older.triple(torch.ones(2))
    tensor([3., 3.])
    """
    namespace, name = parse_qualname(qualname)
    validate_namespace(namespace)

    def declare(function: Callable) -> Callable:
        if not inspect.isfunction(function):
            raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}")
        if function.__name__ != name:
            raise ValueError(
                f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
                f"'{function.__name__}'. Please either change the name of `func` or the qualname that is passed to "
                "`custom_op`"
            )
        _declare_op(namespace, name, infer_schema(function, mutates_args=()))
        return function

    if isinstance(func_or_schema, str):
        return _declare_op(namespace, name, func_or_schema)
    return declare if func_or_schema is None else declare(func_or_schema)


def _declare_op(namespace: str, name: str, text: str) -> None:
    try:
        schema = FunctionSchema(f"{namespace}::{name}{text.strip()}")
    except RuntimeError as error:
        raise AssertionError(f"Invalid function schema: {name}{text}") from error
    if not schema.is_functional or not schema.returns:
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do not return views of "
            f"the inputs, and has at least one return). Got the following non-functional schema: {schema}"
        )
    if any(argument.name == "self" for argument in schema.arguments):
        raise ValueError(
            f"custom_op does not support arguments named 'self'. Please rename your argument. Got: {schema}"
        )
    op = library_op.define_op(namespace, name + text.strip())
    op.is_custom, op.shown = True, f"<CustomOp({namespace}::{name})>"
    op.kernels["Autograd"] = global_registry[f"{namespace}::{name}"] = _Derivative(op)


def _find_custom_op(qualname: str, also_check_torch_library: bool = False) -> library_op.LibraryOp:
    """Return the op with a name, optionally also one of `torch.library`. Raise RuntimeError if there is none."""
    if qualname in global_registry or also_check_torch_library:
        parse_qualname(qualname)
        return library_op.find_op(qualname)
    raise RuntimeError(f'Could not find custom op "{qualname}". Did you register it via torch._custom_ops.custom_op?')


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Callable | None = None) -> Any:
    """Give an op its kernel for device types; a decorator without `func`. RuntimeError where it has one."""
    types = [device_types] if isinstance(device_types, str) else [*device_types]
    for each in types:
        if each not in SUPPORTED_DEVICE_TYPE_TO_KEY:
            raise ValueError(
                f"CustomOp.impl(device_types=[{each}, ...]): we only support device_type in "
                f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}."
            )

    def register(function: Callable) -> Callable:
        op = _find_custom_op(qualname, also_check_torch_library=True)
        taken = {"CompositeExplicitAutograd", "CompositeImplicitAutograd"} & set(op.kernels)
        for each in dict.fromkeys(types):
            if taken or library_op.dispatch_key_of(each) in op.kernels:
                raise RuntimeError(
                    f"impl(..., device_types={each}): the operator {qualname} already has an implementation for this "
                    "device type via a pre-existing torch.library or TORCH_LIBRARY registration."
                )
        for each in types:
            op.kernels[library_op.dispatch_key_of(each)] = function
        return function

    return register if func is None else register(func)


def impl_abstract(qualname: str, *, func: Callable | None = None) -> Any:
    """`torch.library.register_fake`."""
    from .library import register_fake

    return register_fake(qualname, func)


def get_ctx() -> FakeImplCtx:
    """`torch.library.get_ctx`."""
    from .library import get_ctx

    return get_ctx()


def impl_save_for_backward(qualname: str, *, func: Callable | None = None) -> Any:
    """Say what an op keeps for its derivative: `func(inputs, output)` returns tensors and other values in any nesting;
    `inputs` has the op's arguments by their names. A decorator without `func`.
    """

    def register(function: Callable) -> Callable:
        _find_derivative(qualname).set_part("save_for_backward", function)
        return function

    return register if func is None else register(func)


def impl_backward(
    qualname: str, output_differentiability: list[bool] | None = None, *, func: Callable | None = None
) -> Any:
    """Give an op its derivative: `func(ctx, saved, *grads)` returns a dictionary with a gradient, or None, for each
    argument that is a tensor or a list of them. output_differentiability: which results have gradients, all by default.
    A decorator without `func`. RuntimeError for an op that writes, returns views, or results that are no tensors.
    """

    def register(function: Callable) -> Callable:
        made = _find_derivative(qualname)
        count = len(made.op.schema.returns)
        flags = output_differentiability
        if flags is not None and (
            not isinstance(flags, list) or len(flags) != count or any(not isinstance(f, bool) for f in flags)
        ):
            raise RuntimeError(
                "impl_backward(output_differentiability): expected output_differentiability to be a list of bools with "
                f"length equal to the number of outputs of this CustomOp got: {flags}"
            )
        made.set_part("backward", function)
        made.differentiable = flags
        return function

    return register if func is None else register(func)


def _find_derivative(qualname: str) -> _Derivative:
    """Return an op's derivative. Raise RuntimeError if the op can have none, or has one registered by other means."""
    op = _find_custom_op(qualname, also_check_torch_library=True)
    schema = op.schema

    def conflict_error(what: str) -> RuntimeError:
        return RuntimeError(
            f"Cannot use torch._custom_ops APIs to register backward formula for {what}. Got operator {qualname} with "
            f"schema: {schema}"
        )

    if schema.is_mutable:
        raise conflict_error("non-functional operator")
    if not schema.returns:
        raise conflict_error("operator with no returns")
    if not schema.is_functional:
        raise conflict_error("operator that returns views")
    for result in schema.returns:
        if result.type.text not in _RESULTS:
            raise conflict_error(f"operator with return not in {sorted(_RESULTS)} ")
    if "CompositeImplicitAutograd" in op.kernels:
        raise RuntimeError(
            f"impl_backward/impl_save_for_backward: the operator {qualname} already has an implementation for this "
            "device type via a pre-existing registration to DispatchKey::CompositeImplicitAutograd.CompositeImplicit"
            "Autograd operators do not need an autograd formula; instead, the operator will decompose into its "
            "constituents and those can have autograd formulas defined on them."
        )
    kernels = {key: kernel for key, kernel in op.kernels.items() if key.startswith("Autograd")}
    derivative = next((kernel for kernel in kernels.values() if isinstance(kernel, _Derivative)), None)
    if kernels and derivative is None:
        raise RuntimeError(
            f"impl_backward/impl_save_for_backward: the operator {qualname} already has an Autograd kernel registered "
            f"to DispatchKey::{next(iter(kernels))} vi a pre-existing torch.library or TORCH_LIBRARY registration. "
            "Please either remove those registrations or don't use the torch._custom_ops APIs"
        )
    if derivative is None:
        derivative = op.kernels["Autograd"] = _Derivative(op)
    return derivative


class _Derivative:
    """The kernel that records an op: with the derivative that was given in two parts."""

    def __init__(self, op: library_op.LibraryOp) -> None:
        self.op = op
        self.parts: dict[str, tuple[Callable, str]] = {}  # with the places where they were given
        self.differentiable: list[bool] | None = None
        self.inputs = collections.namedtuple(f"{op.schema.name.rpartition('::')[2]}_args", self._argument_names())  # type: ignore[misc]

    def _argument_names(self) -> list[str]:
        return [argument.name for argument in self.op.schema.arguments]

    def _undefine_op(self) -> None:
        """Take the op away, with what was given to it."""
        library_op.undefine_op(self.op)
        del global_registry[self.op.schema.name]

    def set_part(self, kind: str, function: Callable) -> None:
        """Take a part. RuntimeError where there is one."""
        if kind in self.parts:
            raise RuntimeError(
                f"Attempting to register a {kind} impl for operator {self.op.schema.name} that already has a {kind} "
                f"impl registered from Python at {self.parts[kind][1]}. This is not supported."
            )
        code = getattr(function, "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)
        self.parts[kind] = function, place
        self.op.setup_context, self.op.backward = self._setup_context, self._run_backward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        op = self.op
        values = op.schema.bind(args, kwargs)
        tensors = [*library_op.find_tensors_in(values)]
        if len(self.parts) == 1:
            (there, (_, place)) = next(iter(self.parts.items()))
            absent = "backward" if there == "save_for_backward" else "save_for_backward"
            raise RuntimeError(
                f"We found a '{there}' registration for {op.shown} at {place} but were unable to find a '{absent}' "
                "registration. To use the CustomOp API to register a backward formula, please provide us both a "
                "backward function and a 'save for backward' function via `impl_backward` and "
                "`impl_save_for_backward` respectively."
            )
        if not (MODE.grad and any(t.requires_grad for t in tensors)):
            where = tensors[0].device.type if tensors else "cpu"
            with recording(False):
                return op._call_kernel(op.kernel_for(where), values)
        if not self.parts:
            raise RuntimeError("Autograd has not been implemented for operator")
        return op._run_as_autograd_node(values)

    def _setup_context(self, ctx: Any, inputs: tuple, output: Any, keyword_only_inputs: dict | None = None) -> None:
        """`setup_context` of `register_autograd`, from what the program wants to keep."""
        from .utils import _pytree as pytree

        given = self.inputs(*inputs, *(keyword_only_inputs or {}).values())
        leaves, ctx.saved_form = pytree.tree_flatten(self.parts["save_for_backward"][0](given, output))
        ctx.save_for_backward(*(leaf for leaf in leaves if isinstance(leaf, call.Tensor)))
        ctx.saved_rest = [None if isinstance(leaf, call.Tensor) else (leaf,) for leaf in leaves]
        ctx.kinds = [[type(v) for v in value] if isinstance(value, (list, tuple)) else type(value) for value in given]
        if self.differentiable is not None:
            results = output if len(self.differentiable) > 1 else (output,)
            parts: list[Any] = []
            for is_differentiable, result in zip(self.differentiable, results, strict=True):
                if is_differentiable and not isinstance(result, (call.Tensor, list)):
                    raise RuntimeError(
                        f"With output_differentiability={self.differentiable}. At idx {len(parts)}, we received an "
                        f"object of type {type(result)} that is not a Tensor, so it cannot have be marked as "
                        "differentiable in output_differentiability."
                    )
                parts += [] if is_differentiable else library_op.find_tensors_in([result])
            ctx.mark_non_differentiable(*parts)

    def _run_backward(self, ctx: Any, *grads: Any) -> Any:
        """`backward` of `register_autograd`, from the program's dictionary."""
        from .utils import _pytree as pytree

        tensors = iter(ctx.saved_tensors)
        leaves = [next(tensors) if rest is None else rest[0] for rest in ctx.saved_rest]
        found = self.parts["backward"][0](object(), pytree.tree_unflatten(leaves, ctx.saved_form), *grads)
        arguments = self.op.schema.arguments
        self._check_gradient_dict(found, arguments, ctx.kinds)
        return tuple(found.get(argument.name) for argument in arguments if not argument.kwarg_only)

    def _check_gradient_dict(self, found: Any, arguments: list[Argument], kinds: list) -> None:
        """RuntimeError for what is no dictionary of the gradients."""

        def gradient_error(what: str) -> RuntimeError:
            return RuntimeError(
                f"In the backward function defined for {self.op.shown or self.op.schema.name} at "
                f"{self.parts['backward'][1]} using the CustomOp API, {what}"
            )

        if not isinstance(found, dict):
            raise gradient_error(f"expected the output of the backward function to be a dict but got {type(found)}")
        expected = {argument.name for argument in arguments if argument.type.base == "Tensor"}
        if expected != set(found):
            raise gradient_error(
                f"expected the returned grad_input dict to have keys {expected} but got {found.keys()}. The backward "
                "function must return a gradient (can be None) for each arg to the CustomOp that may be a Tensor or "
                "Sequence[Tensor]. Args declared to be non-Tensor-like types should not appear in the grad_input dict"
            )
        for argument, kind in zip(arguments, kinds, strict=True):
            grad = found.get(argument.name)
            several = isinstance(kind, list)
            if several and argument.name in found:
                if not isinstance(grad, (tuple, list)):
                    raise gradient_error(
                        f"for input '{argument.name}' expected the grad_input dict to hold a list of gradients but got "
                        f"object of type {type(grad)}."
                    )
                if len(grad) != len(kind):
                    raise gradient_error(
                        f"for input '{argument.name}' expected the grad_input dict to hold a list of {len(kind)} "
                        f"gradients but got {len(grad)}"
                    )
            for each, its in zip(grad or [] if several else [grad], kind if several else [kind], strict=False):
                if each is not None and not isinstance(each, call.Tensor):
                    raise gradient_error(
                        f"got object of type {type(each)} as the gradient for input '{argument.name}', but expected "
                        "the gradient to be either None or a Tensor"
                    )
                if each is not None and not issubclass(its, call.Tensor):
                    raise gradient_error(
                        f"got a Tensor as the gradient for input '{argument.name}' but expected None as the gradient "
                        f"because input '{argument.name}' was not a Tensor (it was type {its})."
                    )


def _destroy(qualname: str) -> None:
    """Take an op of `custom_op` away."""
    _find_custom_op(qualname)
    global_registry[qualname]._undefine_op()
