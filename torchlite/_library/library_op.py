"""Custom ops and their dispatch order: interceptors, subclasses, autocast, autograd, then the device's kernel."""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .._dispatch import call
from .._dispatch.autograd_graph import bump_version, version_of
from .._dispatch.backend import owner_of
from .._dispatch.dispatch_state import GLOBALS, MODE, recording
from .._dispatch.interceptors import (
    call_library_interceptor,
    call_torch_function,
    find_torch_function_override,
    stack,
    torch_dispatch_classes,
)
from .._dispatch.kernel_recorder import RECORDERS, call_recorded, current_recorder
from .._dispatch.tracing import TRACES, trace_function
from .._types.devices import device as as_device
from .._types.devices import get_default_device, private_use_type
from ..autograd.function import Function
from .function_schema import FunctionSchema
from .op_overload import OpOverload, OpOverloadPacket
from .tags import as_tags

# Custom ops by (library, name): the packet with its overloads.
DEFINED: dict[tuple[str, str], OpOverloadPacket] = {}
# Kernels of ops not defined yet, by op name.
PENDING: dict[str, dict[str, Callable]] = {}
BACKENDS = {"CPU", "CUDA", "Meta", "OpenCL", "XPU", "MPS", "HPU", "MTIA", "PrivateUse1"}
KEYS = {
    *BACKENDS, *(f"Autograd{name}" for name in BACKENDS), *(f"Autocast{name}" for name in BACKENDS), "Autograd",
    "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd",
    "ADInplaceOrView", "BackendSelect", "Conjugate", "FuncTorchBatched", "Functionalize", "Negative", "Python",
    "Undefined", "ZeroTensor",
}  # fmt: skip
_BY_DEVICE = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "opencl": "OpenCL"}


_EXACT: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


def dispatch_key_of(device_type: str) -> str:
    """Return the dispatch key of a device type."""
    if device_type == private_use_type():
        return "PrivateUse1"
    return _BY_DEVICE.get(device_type, device_type.upper())


def is_traced(key: str) -> bool:
    """True for the dispatch key of kernels that call other ops, and not of a device's kernels."""
    return key == "CompositeImplicitAutograd" or key.startswith(("Autograd", "Autocast"))


def find_tensors_in(values: Any) -> Iterator[Any]:
    """Return the tensors among values and in lists of them."""
    for value in values:
        if isinstance(value, call.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from find_tensors_in(value)


def _kernels_of(values: Any) -> str:
    """Return the device type of the first tensor, "meta" of a fake one, and an empty text without tensors."""
    first = next(find_tensors_in(values), None)
    if first is None:
        return ""
    return "meta" if getattr(first, "_runs_fake_kernels", False) else first.device.type


def _call_as_step(name: str, kernel: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a program's kernel as one step of the current recorder; replays call the kernel."""
    recorder = current_recorder()
    if recorder is None:
        return kernel(*args, **kwargs)
    table = recorder.table
    raws = _tree_map(lambda tensor: tensor._tl_array, call.Tensor, [*args, *kwargs.values()])
    result = call_recorded(name, _make_array_kernel(kernel, table, len(args), tuple(kwargs)), *raws)
    return _tree_map(lambda raw: call.wrap_array(table, raw), table.array, result)


@functools.lru_cache(1024)
def _make_array_kernel(kernel: Callable, table: Any, count: int, names: tuple[str, ...]) -> Callable:
    """Return a kernel that takes arrays for tensors. It is one object per kernel, so steps can be compared."""

    def run(*raws: Any) -> Any:
        given = _tree_map(lambda raw: call.wrap_array(table, raw), table.array, list(raws))
        result = kernel(*given[:count], **dict(zip(names, given[count:], strict=True)))
        return _tree_map(lambda tensor: tensor._tl_array, call.Tensor, result)

    return run


def _tree_map(function: Callable, kind: type, value: Any) -> Any:
    """Apply a function to the values of a class in nested lists and tuples."""
    if isinstance(value, kind):
        return function(value)
    if value.__class__ in (list, tuple):
        return value.__class__([_tree_map(function, kind, item) for item in value])
    return value


class LibraryOp:
    """One overload of a custom op, as interceptors see it."""

    tags, hidden, is_implicit, several, outputs, has_out = 0, False, False, False, None, False
    vmap_rule: Callable | None = None  # set by `register_vmap`

    def __init__(self, schema: FunctionSchema):
        self.schema, self.name = schema, schema.name
        self.kernels: dict[str, Callable] = {}
        self.fake: Callable | None = None
        self.backward: Callable | None = None
        self.setup_context: Callable | None = None
        self.is_custom = False  # made by `custom_op`: recorded as one node regardless of its kernel
        self.shown = ""  # name in error messages
        self.cast: dict[str, Any] = {}  # dtypes of `register_autocast`, by device type
        self.by_class: dict[type, Callable] = {}  # functions of `register_torch_dispatch`
        self.off: set[str] = set()  # disabled kernels
        self.labels: list[Any] = []  # `torch.Tag`s
        self.overload: OpOverload
        self._function: Any = None
        # Of calls by position: the class of each number or the name of its type, and how many arguments there must be.
        self._kinds = [_EXACT.get(argument.type.text, argument.type.text) for argument in schema.positional]
        self._fewest = sum(not argument.has_default for argument in schema.arguments)
        self._returns_tensor = [part.type.text for part in schema.returns] == ["Tensor"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if GLOBALS["INTERCEPTORS"] and stack.items:
            found = call_library_interceptor(self, self.below, args, kwargs)
            if found is not NotImplemented:
                return found
        elif not kwargs and len(self.kernels) == 1 and not RECORDERS:
            kernel = self.kernels.get("CompositeExplicitAutograd")
            if kernel is not None and self._is_direct(args):
                result = kernel(*args)
                if not (self._returns_tensor and isinstance(result, call.Tensor)):
                    self._check_results(result, [*args])
                return result
        return self.below(*args, **kwargs)

    def below(self, *args: Any, **kwargs: Any) -> Any:
        """Call the op below interceptors."""
        values = self.schema.bind(args, kwargs)
        if find_torch_function_override(values) is not None:
            return call_torch_function(self.overload, values, args, kwargs)
        classes = torch_dispatch_classes(values)
        if classes:
            rule = next((self.by_class[c] for c in classes if c in self.by_class), None)
            if rule is not None:
                return rule(self.overload, classes, *self._with_keywords(args, kwargs))
            return classes[0].__torch_dispatch__(self.overload, classes, args, kwargs)
        return self.run(values)

    def _is_direct(self, args: tuple) -> bool:
        """True for a call that the op's only kernel, which serves all devices, takes as it is: of an op of the library,
        with arguments of just the types of its schema, no subclass that runs ops, and nothing to record.
        """
        if self.is_custom or self.fake or self.backward or self.cast or self.off or _KERNEL_OVERRIDES.found:
            return False
        kinds = self._kinds
        if not self._fewest <= len(args) <= len(kinds):
            return False
        for value, kind in zip(args, kinds, strict=False):
            if kind == "Tensor":
                if not isinstance(value, call.Tensor) or not value._tl_is_plain or value._tl_dispatches:
                    return False
                if value._tl_node is not None and MODE.grad:
                    return False
            elif value.__class__ is not kind and getattr(value, "_schema_type", "") != kind:
                return False
        return True

    @staticmethod
    def _with_keywords(args: tuple, kwargs: dict) -> tuple:
        return args, kwargs

    def run(self, values: list) -> Any:
        """Run the op on bound values: autocast, then autograd, then the kernel."""
        device = next((t.device for t in find_tensors_in(values)), None) or self._device_of_call(values)
        casting = self.kernels.get(f"Autocast{dispatch_key_of(device.type)}")
        if casting is not None:
            from ..amp.autocast_mode import is_autocast_enabled

            if is_autocast_enabled(device.type):
                return self._call_kernel(casting, values)
        if self.cast:
            from ..amp.autocast_mode import autocast, is_autocast_enabled

            to = self.cast.get(device.type)
            if to is not None and is_autocast_enabled(device.type):
                with autocast(device.type, enabled=False):
                    return self.run([_cast_for_autocast(value, to) for value in values])
        kernel = self.kernels.get(f"Autograd{dispatch_key_of(device.type)}") or self.kernels.get("Autograd")
        if kernel is not None:
            return self._call_kernel(kernel, values)
        wants = MODE.grad and any(t.requires_grad for t in find_tensors_in(values))
        if wants and (self.backward is not None or (self.is_custom and not self.schema.is_mutable)):
            return self._run_as_autograd_node(values)
        kernel = self.kernel_for(_kernels_of(values) or device.type)
        if self.is_custom or self.backward is not None:
            with recording(False):
                return self._call_kernel(kernel, values)
        result = self._call_kernel(kernel, values)
        if wants and kernel is not self.kernels.get("CompositeImplicitAutograd"):
            result = _attach_not_implemented(self, result)
        return result

    def _device_of_call(self, values: list) -> Any:
        """Return the device of a call without tensors: its `device` argument, else the default."""
        for argument, value in zip(self.schema.arguments, values, strict=True):
            if argument.name == "device" and argument.type.base == "Device" and value is not None:
                return as_device(value)
        return get_default_device()

    def kernel_for(self, device_type: str) -> Callable:
        """Return the kernel of a device type. Raise NotImplementedError if there is none."""
        key = dispatch_key_of(device_type)
        names = [
            key,
            "CompositeExplicitAutograd",
            "CompositeExplicitAutogradNonFunctional",
            "CompositeImplicitAutograd",
        ]
        if device_type == "meta":
            if self.fake is not None:
                return self.fake
            if self.is_custom and key not in self.kernels:
                raise RuntimeError(
                    f"There was no fake impl registered for {self.shown}. This is necessary for torch.compile/export/"
                    f"fx tracing to work. Please use `{self.schema.name.rpartition('::')[2]}.register_fake` to add an "
                    "fake impl."
                )
        for name in names:
            if name in self.kernels and name not in self.off:
                around = _KERNEL_OVERRIDES.found.get(self)
                return self.kernels[name] if around is None else functools.partial(around, self.kernels[name])
        raise NotImplementedError(
            f"Could not run '{self.name}' with arguments from the '{key}' backend. This could be because the operator "
            "doesn't exist for this backend, or was omitted during the selective/custom build process (if using "
            f"custom build). '{self.name}' is only available for these backends: [{', '.join(self.kernels)}]."
        )

    @contextlib.contextmanager
    def around(self, function: Callable) -> Iterator[None]:
        """Replace the op's kernel in this thread by `function(kernel, *args, **kwargs)`."""
        before = _KERNEL_OVERRIDES.found
        _KERNEL_OVERRIDES.found = {**before, self: function}
        try:
            yield
        finally:
            _KERNEL_OVERRIDES.found = before

    def _call_kernel(self, kernel: Callable, values: list) -> Any:
        args, kwargs = self.schema.call_form(values)
        is_step = self.is_custom or bool(RECORDERS) and self._is_a_step(kernel, values)
        if RECORDERS and is_step:
            kernel = functools.partial(_call_as_step, self.name, kernel)
        if not (is_step and self.schema.is_mutable):
            result = kernel(*args, **kwargs)
            self._check_results(result, values)
            return result
        written = [*find_tensors_in(v for v, a in zip(values, self.schema.arguments, strict=True) if a.is_write)]
        before = [version_of(tensor) for tensor in written]
        result = kernel(*args, **kwargs)
        self._check_results(result, values)
        for tensor, count in zip(written, before, strict=True):
            if version_of(tensor) == count:  # written outside an op, for example through a NumPy array
                bump_version(tensor)
        return result

    def _is_a_step(self, kernel: Callable, values: list) -> bool:
        """True for a device's kernel that a program registered: a recorder takes its call as one step. Gradients flow
        through the ops that a kernel calls, as in PyTorch; a step has none.
        """
        if MODE.grad and any(t.requires_grad for t in find_tensors_in(values)):
            return False
        if str(getattr(kernel, "__module__", "")).startswith(("torchlite.", "torch.")):
            return False
        return not any(known is kernel for key, known in self.kernels.items() if is_traced(key))

    def traced_functions(self) -> list[Any]:
        """Return the functions of the op whose ops a recorder sees: composites, derivatives and casts."""
        kernels = [kernel for key, kernel in self.kernels.items() if is_traced(key)]
        return [*kernels, self.backward, self.setup_context, self.vmap_rule]

    def _check_results(self, result: Any, values: list) -> None:
        """Raise RuntimeError for results that violate the schema or `custom_op`'s aliasing rule."""
        returns = self.schema.returns
        results = () if not returns else (result,) if len(returns) == 1 else result
        if isinstance(results, tuple) and len(results) == len(returns):
            for part, kind in zip(results, returns, strict=True):
                if not kind.type.holds(part) and not (part is None and kind.type.base == "Tensor"):
                    raise RuntimeError(f"Unable to cast {part!r} to {kind.type}")
        elif returns:
            raise RuntimeError(f"{self.name}: expected {len(returns)} results, got {result!r}")
        if self.is_custom:
            seen = {_storage_key(t) for t in find_tensors_in(values)} - {None}
            for tensor in find_tensors_in(results):
                where = _storage_key(tensor)
                if where in seen:
                    raise RuntimeError(
                        f"{self.schema.name.rpartition('::')[2]}: The output of this custom operator (1) must not also "
                        "be an input to this custom operator and (2) may not alias any inputs to this custom operator "
                        "or other returns. The most common way to trigger this error is if we have y = custom_op(x) "
                        "and y and x are the same Tensor. Please instead return a clone of the offending output tensor"
                        "(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
                    )
                seen |= {where} - {None}

    def _run_as_autograd_node(self, values: list) -> Any:
        """Run the op as one autograd node."""
        if self._function is None:
            self._function = _autograd_function_for(self)
        flat, rebuild = _flatten_lists(values)
        holder = _FunctionCall(rebuild)
        results = self._function.apply(holder, *flat)
        return holder.result(results)


class _KernelOverrides(threading.local):
    """Replacement kernels of the current thread."""

    found: dict[LibraryOp, Callable] = {}  # copied on change


_KERNEL_OVERRIDES = _KernelOverrides()


class _FunctionCall:
    """Non-tensor part of a custom op's autograd Function: how flat arguments and results map to values."""

    def __init__(self, rebuild: Callable) -> None:
        self.rebuild = rebuild
        self.result: Callable = lambda results: results


def _flatten_lists(values: Any) -> tuple[list, Callable]:
    """Return values with tensor lists flattened, and a function that restores the lists."""
    flat: list = []
    shape: list[tuple[type, int] | None] = []
    for value in values:
        if isinstance(value, (list, tuple)) and any(isinstance(v, call.Tensor) for v in value):
            shape.append((type(value), len(value)))
            flat += value
        else:
            shape.append(None)
            flat.append(value)

    def rebuild(items: Any) -> list:
        rest = iter(items)
        return [next(rest) if s is None else s[0](next(rest) for _ in range(s[1])) for s in shape]

    return flat, rebuild


def _autograd_function_for(op: LibraryOp) -> Any:
    """Return the autograd Function of an op with the derivative of `register_autograd`, or without one."""
    schema = op.schema

    def forward(ctx: Any, holder: _FunctionCall, *flat: Any) -> Any:
        values = holder.rebuild(flat)
        result = op._call_kernel(op.kernel_for(_kernels_of(values)), values)
        needs = holder.rebuild(ctx.needs_input_grad[1:])
        ctx.needs_input_grad = tuple(needs[: len(schema.positional)])
        if op.setup_context is not None:
            count = len(schema.positional)
            keywords = {a.name: v for a, v in zip(schema.arguments[count:], values[count:], strict=True)}
            extra = {"keyword_only_inputs": keywords} if keywords else {}
            op.setup_context(ctx=ctx, inputs=tuple(values[:count]), output=result, **extra)
        several = isinstance(result, (list, tuple))
        outs, again = _flatten_lists(result if several else [result])
        ctx.regroup = holder.rebuild, again
        ctx.count_given = len(schema.call_form(values)[0])
        holder.result = lambda found: (type(result)(again(found)) if several else again(found)[0]) if outs else result
        if len(outs) == 1:
            holder.result = lambda found: type(result)(again([found])) if several else again([found])[0]
            return outs[0]
        return tuple(outs)

    def backward(ctx: Any, *grads: Any) -> Any:
        if op.backward is None:
            raise RuntimeError(
                f"Trying to backward through {op.overload} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        rebuild, again = ctx.regroup
        found = op.backward(ctx, *again(grads))
        found = list(found) if isinstance(found, (tuple, list)) and not _is_single_list(found, schema) else [found]
        count = len(schema.positional)
        if ctx.count_given <= len(found) < count:  # trailing arguments at their defaults have no gradient
            found += [None] * (count - len(found))
        if len(found) != count:
            raise RuntimeError(
                f"Expected the return from backward to be of the same structure as the inputs. Got: {len(found)} "
                f"(return from backward), {count} (inputs)"
            )
        found += [None] * (len(schema.arguments) - count)
        like = rebuild(range(len(ctx._edges) - 1))
        flat: list = [None]
        for place, grad in zip(like, found, strict=True):
            if not isinstance(place, (list, tuple)):
                flat.append(grad)
            else:
                flat += [None] * len(place) if grad is None else list(grad)
        return tuple(flat)

    name = f"GeneratedBackwardFor_{schema.name.replace('::', '_')}_{schema.overload_name or 'default'}"
    return type(Function)(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def _is_single_list(found: Any, schema: FunctionSchema) -> bool:
    """True if a list is the gradient of a single argument that is a list."""
    return len(schema.positional) == 1 and bool(schema.positional[0].type.suffixes) and isinstance(found, list)


def _cast_for_autocast(value: Any, to: Any) -> Any:
    if isinstance(value, call.Tensor):
        return value.to(to) if value.is_floating_point() else value
    return type(value)(_cast_for_autocast(v, to) for v in value) if isinstance(value, (list, tuple)) else value


def _storage_key(tensor: Any) -> Any:
    """Return an identity of a tensor's storage, None for a tensor without data."""
    if not tensor.numel():
        return None
    return id(owner_of(tensor._tl_array)) if tensor.device.type != "meta" else id(tensor)


class _NotImplemented(Function):
    """Node of results without derivative: backward stops there with a warning."""

    @staticmethod
    def forward(ctx: Any, name: str, result: Any, *inputs: Any) -> Any:
        ctx.op_name, ctx.count = name, 2 + len(inputs)
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        warnings.warn(
            f"{ctx.op_name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to "
            "backprop through it. This may lead to silently incorrect behavior. This behavior is deprecated and will "
            "be removed in a future version of PyTorch. If your operator is differentiable, please ensure you have "
            "registered an autograd kernel to the correct Autograd key (e.g. DispatchKey::Autograd, "
            "DispatchKey::CompositeImplicitAutograd).",
            stacklevel=2,
        )
        return (None,) * ctx.count


_NotImplemented._backward_cls.__name__ = "WarnNotImplemented"


def _attach_not_implemented(op: LibraryOp, result: Any) -> Any:
    """Attach `_NotImplemented` to a result that its kernel did not record although an input requires a gradient."""
    if isinstance(result, call.Tensor):
        if result.requires_grad or result.dtype.category < 2 or op.schema.is_mutable:
            return result
        wanting = result.new_empty(0).requires_grad_()
        return _NotImplemented.apply(op.name, result, wanting)
    if isinstance(result, (list, tuple)):
        return type(result)(_attach_not_implemented(op, part) for part in result)
    return result


def define_op(namespace: str, text: str, tags: Any = ()) -> LibraryOp:
    """Define an op by schema and tags. Raise RuntimeError if the overload exists."""
    schema = FunctionSchema(text if "::" in text.partition("(")[0] else f"{namespace}::{text}")
    name = schema.name.partition("::")[2]
    overload = schema.overload_name or "default"
    packet = DEFINED.get((namespace, name))
    if packet is not None and overload in packet._overloads:
        raise RuntimeError(
            f"Tried to register an operator ({schema}) with the same name and overload name multiple times. Each "
            "overload's schema should only be registered with a single call to def()."
        )
    op = LibraryOp(schema)
    op.labels = as_tags(tags)
    if packet is None:
        packet = DEFINED[namespace, name] = OpOverloadPacket(name, None, namespace, None)
        packet._function = _OverloadResolver(packet)
        packet._schema_of = lambda which, packet=packet: packet._overloads[which]._op.schema
    op.overload = LibraryOverload(packet, overload, op)
    packet._overloads[overload] = op.overload
    op.shown = str(op.overload)
    op.kernels.update(PENDING.pop(schema.name + f".{schema.overload_name}" * bool(schema.overload_name), {}))
    return op


class LibraryOverload(OpOverload):
    """Overload of a custom op."""

    def __init__(self, packet: OpOverloadPacket, name: str, op: LibraryOp):
        super().__init__(packet, name)
        self._op = op

    @property
    def tags(self) -> list:
        return list(self._op.labels)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if TRACES and (found := trace_function(self, *args, **kwargs)) is not NotImplemented:
            return found
        return self._op(*args, **kwargs)


class _OverloadResolver:
    """Callable of a packet: picks the overload whose schema matches, a tensor for a number only if no other does."""

    def __init__(self, packet: OpOverloadPacket) -> None:
        self.packet = packet

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        overloads: list[Any] = list(self.packet._overloads.values())
        if len(overloads) == 1:
            return (overloads[0] if TRACES else overloads[0]._op)(*args, **kwargs)
        choices = [(overload, exact) for exact in (True, False) for overload in overloads]
        for overload, exact in choices[:-1]:
            try:
                overload._op.schema.bind(args, kwargs, exact=exact)
            except RuntimeError:
                continue
            return overload(*args, **kwargs)
        return overloads[-1](*args, **kwargs)


def undefine_op(op: LibraryOp) -> None:
    """Remove an op."""
    packet = op.overload.overloadpacket
    packet._overloads.pop(op.overload._overloadname, None)
    if not packet._overloads:
        DEFINED.pop((packet._namespace, packet._name), None)


def split_qualname(qualname: str) -> tuple[str, str]:
    """Return the library name and op name. Raise ValueError if one is missing."""
    namespace, colons, rest = qualname.partition("::")
    if not colons or not rest or not namespace:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return namespace, rest


def find_op(qualname: str) -> LibraryOp:
    """Return the op "lib::op" or "lib::op.overload". Raise RuntimeError if there is none."""
    namespace, rest = split_qualname(qualname)
    name, _, overload = rest.partition(".")
    packet = DEFINED.get((namespace, name))
    if packet is None or (overload or "default") not in packet._overloads:
        raise RuntimeError(f"operator {qualname} does not exist")
    made: Any = packet._overloads[overload or "default"]
    return made._op
