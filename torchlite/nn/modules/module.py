"""Module, the base class of all layers."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import torchlite as torch
from torchlite import __future__ as future
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._dispatch.tracing import THREAD, TRACES
from torchlite.nn.parameter import Buffer, Parameter

from . import _module_hooks
from ._module_hooks import (
    HooksMixin,
    _WrappedHook,  # noqa: F401
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._module_state_dict import _EXTRA_STATE_KEY_SUFFIX, StateDictMixin, _IncompatibleKeys  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType


__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


# Hooks of every module of the process.
_global_parameter_registration_hooks: OrderedDict = OrderedDict()
_global_buffer_registration_hooks: OrderedDict = OrderedDict()
_global_module_registration_hooks: OrderedDict = OrderedDict()
_global_backward_pre_hooks: OrderedDict = OrderedDict()
_global_backward_hooks: OrderedDict = OrderedDict()
_global_is_full_backward_hook: bool | None = None
_global_forward_pre_hooks: OrderedDict = OrderedDict()
_global_forward_hooks: OrderedDict = OrderedDict()
_global_forward_hooks_always_called: OrderedDict = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict = OrderedDict()
_module_hooks.GLOBAL_HOOKS = globals()

T_destination = TypeVar("T_destination", bound=dict[str, Any])

if TYPE_CHECKING:
    _P = ParamSpec("_P")
    _Result = TypeVar("_Result", covariant=True)

    class _HasForward(Protocol[_P, _Result]):
        """A module of any class, with the parameters and the result of its `forward`."""

        @property
        def forward(self) -> Callable[_P, _Result]: ...


_REGISTRIES = ("_parameters", "_buffers", "_modules")
_HOOK_TABLES = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)  # fmt: skip


def _addindent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _check_name(module, kind, name, registry):
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {torch.typename(name)}")
    if "." in name:
        raise KeyError(
            f'{kind} name can\'t contain ".", got: {name}' if kind == "module" else f'{kind} name can\'t contain "."'
        )
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if name not in registry and hasattr(module, name):
        raise KeyError(f"attribute '{name}' already exists")


def _run_registration_hooks(hooks, module, name, value):
    for hook in hooks.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


_TO_SIGNATURES = (
    "torch.device device = None, torch.dtype dtype = None, ", "torch.dtype dtype, ", "Tensor tensor, "
)  # fmt: skip


def _to_signature_error(args, kwargs=()):
    """Return the TypeError for arguments of `to` that match no signature."""
    kinds = ["torch.device" if isinstance(arg, torch.device) else type(arg).__name__ for arg in args]
    named = dict(kwargs)
    kinds += [f"{name}={type(named[name]).__name__}" for name in sorted(named)]
    kinds += [] if args or not named else [""]  # PyTorch's list of names alone ends in a comma
    rest = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None"
    forms = "".join(f" * ({form}{rest})\n" for form in _TO_SIGNATURES)
    return (
        f"to() received an invalid combination of arguments - got ({', '.join(kinds)}), but expected one of:\n{forms}"
    )


def _parse_to(args, kwargs):
    """`to(device, dtype, non_blocking)`, `to(dtype, non_blocking)`, `to(tensor, non_blocking)` -> (device, dtype,
    non_blocking, memory_format).
    """
    named, given = dict(kwargs), list(args)
    device, dtype = named.pop("device", None), named.pop("dtype", None)
    other, non_blocking = named.pop("tensor", None), named.pop("non_blocking", False)
    memory_format = named.pop("memory_format", None)
    if named:
        raise TypeError(_to_signature_error(args, kwargs))
    if given and isinstance(given[0], torch.Tensor):
        other = given.pop(0)
    elif given and isinstance(given[0], torch.dtype):
        dtype = given.pop(0)
    elif given and isinstance(given[0], type) and given[0] in (float, int, bool, complex):
        dtype = torch.empty(0, dtype=given.pop(0)).dtype
    elif given and (given[0] is None or isinstance(given[0], (str, int, torch.device))):
        device = given.pop(0)
        if given and (given[0] is None or isinstance(given[0], torch.dtype)):
            dtype = given.pop(0)
        elif given:
            raise TypeError(_to_signature_error(args, kwargs))
    if given and isinstance(given[0], bool):
        non_blocking = given.pop(0)
    if given:
        raise TypeError(_to_signature_error(args, kwargs))
    if other is not None:
        device, dtype = other.device, other.dtype
    return (None if device is None else torch.device(device)), dtype, non_blocking, memory_format


def _forward_unimplemented(self: Any, *input: Any) -> None:
    """Computes the module's output; subclasses define it.

    Call the module itself, which also runs the hooks.

    Args:
        *input: The inputs, as the subclass declares them.
    """
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _has_any_global_hook() -> bool:
    """True if a global hook is registered."""
    return bool(
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


if TYPE_CHECKING:

    class _Parts(HooksMixin, StateDictMixin):
        """For type checkers: the base of Module with the methods defined in other files."""
else:
    _Parts = object


def _untraced_call(module: Module, *args: Any, **kwargs: Any) -> Any:
    """Call a module without the thread's trace: its compiled form if there is one, else with its hooks."""
    if module._compiled_call_impl is not None:
        return module._compiled_call_impl(*args, **kwargs)
    return module._call_impl(*args, **kwargs)


class Module(_Parts):
    """The base class of all layers and models: it stores parameters, buffers and submodules, and is callable.

    Assigning a `Parameter`, a `Buffer` or a `Module` to an attribute registers it. Methods such as `parameters`, `to`,
    `train` and `state_dict` then reach it. Subclasses call ``super().__init__()`` before they assign, and define
    ``forward``. Calling the module runs ``forward`` and the hooks.

    Args:
        args: None, unless a subclass sets ``call_super_init``; then those of the next class in the method resolution
            order.
        kwargs: Likewise.

    Shape:
        - Input and output: as ``forward`` of the subclass defines them.

    Attributes:
        training (bool): Whether the module is in training mode. Initially ``True``; `train` and `eval` set it.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = torch.nn.Linear(3, 2)
        ...     def forward(self, x):
        ...         return self.layer(x).relu()
        >>> net = Net()
        >>> net(torch.zeros(4, 3)).shape
        torch.Size([4, 2])
        >>> [name for name, _ in net.named_parameters()]
        ['layer.weight', 'layer.bias']

    See also:
        `Sequential`, `ModuleList`, `torch.nn.Parameter`, `torch.nn.Buffer`.
    """

    dump_patches = False
    _version = 1
    call_super_init = False
    _compiled_call_impl = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        attributes = self.__dict__
        attributes["training"] = True
        attributes["_parameters"] = {}
        attributes["_buffers"] = {}
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_backward_pre_hooks"] = OrderedDict()
        attributes["_backward_hooks"] = OrderedDict()
        attributes["_is_full_backward_hook"] = None
        for name in _HOOK_TABLES:
            attributes[name] = OrderedDict()
        attributes["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    if TYPE_CHECKING:
        training: bool
        forward: Callable[..., Any]  # subclasses choose their parameters
    else:
        forward = _forward_unimplemented
        T_destination = T_destination

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and the hooks."""
        if (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            return _module_hooks.call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Run `module(...)`: the compiled call if there is one, else `_call_impl`."""
        # The same as `_call_impl` without hooks, in one Python call less.
        own = self.__dict__
        try:
            hooked = (
                own["_forward_hooks"]
                or own["_forward_pre_hooks"]
                or own["_backward_hooks"]
                or own["_backward_pre_hooks"]
                or _global_forward_hooks
                or _global_forward_pre_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
                or TRACES
                or "_compiled_call_impl" in own
            )
        except KeyError:
            # The class defines the tables, or `Module.__init__` was not called: attribute access finds them or raises.
            hooked = True
        if not hooked and type(self)._call_impl is _PLAIN_CALL:
            if kwargs:
                return self.forward(*args, **kwargs)
            # One argument, the common case, uses the interpreter's fast path into a function.
            return self.forward(args[0]) if len(args) == 1 else self.forward(*args)
        if TRACES and (trace := THREAD.trace) is not None and trace.calls_modules:
            return trace.call_module(self, _untraced_call, args, kwargs)
        return _untraced_call(self, *args, **kwargs)

    if TYPE_CHECKING:

        def __call__(self: _HasForward[_P, _Result], *args: _P.args, **kwargs: _P.kwargs) -> _Result:
            """Calls `forward`; checkers take the parameters and the result from the subclass."""
            return self.forward(*args, **kwargs)

    else:
        __call__ = _wrapped_call_impl

    def _slow_forward(self, *input: Any, **kwargs: Any) -> Any:
        """`forward`, by the name under which PyTorch's tracer calls it. `torch.jit.trace` records `forward` itself."""
        return self.forward(*input, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles the calls of the module by `torch.compile`, in place.

        Args:
            args: Positional arguments of `torch.compile` after the model.
            kwargs: Keyword arguments of `torch.compile`.

        See also:
            `torch.compile`.
        """
        part = getattr(type(self), "_compiled_part", None)
        if part is not None:  # it talks to other processes around that part's call
            getattr(self, part).compile(*args, **kwargs)
            return
        compiled = CALLBACKS.compile(self._call_impl, *args, **kwargs)
        self.__dict__["_compiled_call_impl"] = compiled

    # Attributes

    def __getattr__(self, name: str) -> Any:
        # Reached for parameters, buffers and submodules, which are in no instance dictionary. A subclass may override
        # it.
        attributes = self.__dict__
        for kind in _REGISTRIES:
            if kind in attributes:
                registry = attributes[kind]
                if name in registry:
                    if TRACES and (trace := THREAD.trace) is not None and trace.calls_modules:
                        return trace.read(name, registry[name])
                    return registry[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        params = attributes.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            _remove_from_registries(self, name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch.typename(value)}' as parameter '{name}' (torch.nn.Parameter or None "
                    "expected)"
                )
            self.register_parameter(name, None)
        else:
            _set_attribute(self, name, value, attributes)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: Any) -> None:
        attributes = self.__dict__
        attributes.update(state)
        # Modules that were saved before a table existed.
        for name in ("_backward_pre_hooks", *_HOOK_TABLES):
            if name not in attributes:
                attributes[name] = OrderedDict()
        attributes.setdefault("_non_persistent_buffers_set", set())
        attributes.setdefault("_is_full_backward_hook", None)

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter.

        Assigning a `Parameter` to an attribute does the same. ``None`` reserves the name: the attribute is ``None``,
        and ``state_dict`` leaves it out.

        Args:
            name: Name of the attribute.
            param: The parameter, a leaf tensor, or ``None``.

        Raises:
            TypeError: ``param`` is neither a `Parameter` nor ``None``, or ``name`` is not a string.
            KeyError: ``name`` is empty, has a dot, or is the name of another attribute.
            ValueError: ``param`` is not a leaf tensor.
            AttributeError: ``Module.__init__`` was not called.

        Example:
            >>> module = torch.nn.Module()
            >>> module.register_parameter("scale", torch.nn.Parameter(torch.ones(2)))
            >>> module.scale.shape
            torch.Size([2])
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, "parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{torch.typename(param)}' object to parameter '{name}' (torch.nn.Parameter or "
                    "None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            param = _run_registration_hooks(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the state but not a parameter, such as a running mean.

        Optimizers do not see buffers. `to` converts them, and ``state_dict`` has the persistent ones.

        Args:
            name: Name of the attribute.
            tensor: The tensor, or ``None`` to reserve the name.
            persistent: Whether ``state_dict`` has the buffer. Default: ``True``.

        Raises:
            TypeError: ``tensor`` is neither a tensor nor ``None``, or ``name`` is not a string.
            KeyError: ``name`` is empty, has a dot, or is the name of another attribute.
            AttributeError: ``Module.__init__`` was not called.

        Example:
            >>> module = torch.nn.Module()
            >>> module.register_buffer("mean", torch.zeros(2))
            >>> module.register_buffer("cache", torch.zeros(2), persistent=False)
            >>> list(module.state_dict())
            ['mean']
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"cannot assign '{torch.typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _run_registration_hooks(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule.

        Assigning a `Module` to an attribute does the same.

        Args:
            name: Name of the attribute.
            module: The submodule, or ``None`` to reserve the name.

        Raises:
            TypeError: ``module`` is neither a `Module` nor ``None``, or ``name`` is not a string.
            KeyError: ``name`` is empty, has a dot, or is the name of another attribute.

        Example:
            >>> module = torch.nn.Module()
            >>> module.add_module("act", torch.nn.ReLU())
            >>> module.act
            ReLU()
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{torch.typename(module)} is not a Module subclass")
        _check_name(self, "module", name, self._modules)
        self._modules[name] = _run_registration_hooks(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule; the same as `add_module`.

        Args:
            name: Name of the attribute.
            module: The submodule, or ``None`` to reserve the name.
        """
        self.add_module(name, module)

    # Looking up by dotted name

    def get_submodule(self, target: str) -> Module:
        """Returns the submodule of a dotted name.

        Args:
            target: Names joined by dots, such as ``"encoder.layers.0"``; ``""`` is the module itself.

        Returns:
            The submodule.

        Raises:
            AttributeError: There is no such attribute, or it is not a module.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> net.get_submodule("0.0")
            ReLU()
        """
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Sets the submodule of a dotted name.

        Args:
            target: Names joined by dots. The parent must exist.
            module: The new submodule.
            strict: Whether the submodule must exist already. Default: ``False``.

        Raises:
            ValueError: ``target`` is empty, or ``module`` is not a module.
            AttributeError: The parent is missing, the attribute is not a module, or ``strict`` and the attribute is
                missing.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> net.set_submodule("0.0", torch.nn.Tanh())
            >>> net[0][0]
            Tanh()
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent_name, _, name = target.rpartition(".")
        parent = self.get_submodule(parent_name)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter of a dotted name.

        Args:
            target: Names joined by dots, such as ``"encoder.weight"``.

        Returns:
            The parameter.

        Raises:
            AttributeError: There is no such attribute, or it is not a parameter.

        Example:
            >>> torch.nn.Sequential(torch.nn.Linear(2, 3)).get_parameter("0.weight").shape
            torch.Size([3, 2])
        """
        return _get_leaf(self, target, lambda module, name, value: isinstance(value, Parameter), "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer of a dotted name.

        Args:
            target: Names joined by dots, such as ``"norm.running_mean"``.

        Returns:
            The buffer.

        Raises:
            AttributeError: There is no such attribute, or it is not a buffer.

        Example:
            >>> torch.nn.Sequential(torch.nn.BatchNorm1d(2)).get_buffer("0.running_mean")
            tensor([0., 0.])
        """
        return _get_leaf(self, target, lambda module, name, value: name in module._buffers, "a buffer")

    # Walking

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield module_prefix + ("." if module_prefix else "") + name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterates over the parameters, each once.

        Args:
            recurse: Whether to include those of submodules. Default: ``True``.

        Returns:
            An iterator of parameters, for example for an optimizer.

        Example:
            >>> [tuple(param.shape) for param in torch.nn.Linear(2, 3).parameters()]
            [(3, 2), (3,)]

        See also:
            `named_parameters`, `buffers`.
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterates over the parameters with their dotted names.

        Args:
            prefix: Precedes each name, with a dot. Default: ``""``.
            recurse: Whether to include those of submodules. Default: ``True``.
            remove_duplicate: Whether shared parameters come once. Default: ``True``.

        Returns:
            An iterator of pairs of name and parameter.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1, bias=False))
            >>> [name for name, _ in net.named_parameters()]
            ['0.weight', '0.bias', '1.weight']

        See also:
            `parameters`, `state_dict`.
        """
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterates over the buffers, each once.

        Args:
            recurse: Whether to include those of submodules. Default: ``True``.

        Returns:
            An iterator of tensors.

        See also:
            `named_buffers`, `parameters`.
        """
        for _, buf in self.named_buffers(recurse=recurse):
            yield buf

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterates over the buffers with their dotted names.

        Args:
            prefix: Precedes each name, with a dot. Default: ``""``.
            recurse: Whether to include those of submodules. Default: ``True``.
            remove_duplicate: Whether shared buffers come once. Default: ``True``.

        Returns:
            An iterator of pairs of name and tensor.

        Example:
            >>> [name for name, _ in torch.nn.BatchNorm1d(2).named_buffers()]
            ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Iterates over the direct submodules, each once.

        Returns:
            An iterator of modules.

        See also:
            `named_children`, `modules`.
        """
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterates over the direct submodules with their names; a shared one has its first name.

        Returns:
            An iterator of pairs of name and module.

        Example:
            >>> [name for name, _ in torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).named_children()]
            ['0', '1']
        """
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterates over the module and all its submodules, parents first.

        Args:
            remove_duplicate: Whether shared modules come once. Default: ``True``.

        Returns:
            An iterator of modules.

        Example:
            >>> [type(module).__name__ for module in torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).modules()]
            ['Sequential', 'ReLU', 'Tanh']

        See also:
            `named_modules`, `children`.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterates over the module and all its submodules with their dotted names, parents first.

        Args:
            memo: Set of modules to leave out; it grows. Default: ``None``, an empty set.
            prefix: Name of this module; precedes the others with a dot. Default: ``""``.
            remove_duplicate: Whether shared modules come once. Default: ``True``.

        Returns:
            An iterator of pairs of name and module.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> [name for name, _ in net.named_modules()]
            ['', '0', '0.0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    # State of all submodules

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls a function with each submodule, children before parents, and then with the module.

        Args:
            fn: Function of a module; its result is ignored.

        Returns:
            The module.

        Example:
            >>> def init(module):
            ...     if isinstance(module, torch.nn.Linear):
            ...         torch.nn.init.zeros_(module.bias)
            >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).apply(init)
            >>> net[0].bias.detach()
            tensor([0., 0.])

        See also:
            `torch.nn.init`.
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets training mode for the module and all its submodules.

        The mode matters to layers such as `Dropout` and `BatchNorm2d` only. It does not switch the recording of
        gradients; see `torch.no_grad`.

        Args:
            mode: ``True`` for training mode, ``False`` for evaluation mode. Default: ``True``.

        Returns:
            The module.

        Raises:
            ValueError: ``mode`` is not a bool.

        Example:
            >>> torch.nn.Dropout().train(False).training
            False

        See also:
            `eval`.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode for the module and all its submodules: ``train(False)``.

        Returns:
            The module.

        See also:
            `train`.
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets ``requires_grad`` of each parameter, for example to freeze a part of a model.

        Args:
            requires_grad: Whether gradients are computed for the parameters. Default: ``True``.

        Returns:
            The module.

        Example:
            >>> layer = torch.nn.Linear(2, 3).requires_grad_(False)
            >>> layer.weight.requires_grad
            False
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of the parameters.

        Args:
            set_to_none: Whether to set them to ``None``; ``False`` fills them with zeros. Default: ``True``.

        See also:
            `torch.optim.Optimizer.zero_grad`.
        """
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    def share_memory(self) -> Self:
        """Moves each parameter and buffer to memory that processes share.

        Returns:
            The module.

        See also:
            `torch.Tensor.share_memory_`.
        """
        return self._apply(lambda tensor: tensor.share_memory_())

    # Conversion

    def _apply(self, fn, recurse=True):
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._parameters[name] = _convert_parameter(self, name, param, fn)
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = fn(buf)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts the parameters and buffers to another device, dtype or memory format, in place.

        The forms are ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)`` and
        ``to(memory_format=...)``. A dtype converts floating point and complex tensors only. A memory format changes
        tensors of 4 or 5 dimensions only.

        Args:
            args: Device, dtype or a tensor that has both; then ``non_blocking``.
            kwargs: ``device``, ``dtype``, ``tensor``, ``non_blocking`` or ``memory_format``.

        Returns:
            The module.

        Raises:
            TypeError: The dtype is neither floating point nor complex, or the arguments match no form.
            NotImplementedError: A tensor is on the device ``meta`` and would move to another one; see `to_empty`.

        Example:
            >>> torch.nn.Linear(2, 3).to(torch.float64).weight.dtype
            torch.float64

        See also:
            `torch.Tensor.to`, `double`, `cuda`, `cpu`.
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers. Please file an issue "
                "at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does "
                "not work as expected.",
                stacklevel=2,
            )

        def convert(tensor):
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
            return tensor.to(device, wanted, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Moves the parameters and buffers to a device without their values, which are then undefined.

        Args:
            device: Device of the new tensors. Keyword only.
            recurse: Whether to move those of submodules too. Default: ``True``.

        Returns:
            The module.

        Example:
            >>> layer = torch.nn.Linear(2, 3, device="meta").to_empty(device="cpu")
            >>> layer.weight.device
            device(type='cpu')
        """
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device), recurse=recurse)

    def type(self, dst_type: DType | str) -> Self:
        """Casts each parameter and buffer to a type, integer buffers included.

        Args:
            dst_type: A dtype, or the name of a tensor type such as ``"torch.DoubleTensor"``.

        Returns:
            The module.
        """
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Casts the floating point parameters and buffers to float32, in place.

        Returns:
            The module.

        See also:
            `to`.
        """
        return _cast_tensors(self, torch.float32)

    def double(self) -> Self:
        """Casts the floating point parameters and buffers to float64, in place.

        Returns:
            The module.

        Example:
            >>> torch.nn.Linear(2, 3).double().weight.dtype
            torch.float64

        See also:
            `to`.
        """
        return _cast_tensors(self, torch.float64)

    def half(self) -> Self:
        """Casts the floating point parameters and buffers to float16, in place.

        Returns:
            The module.

        See also:
            `to`.
        """
        return _cast_tensors(self, torch.float16)

    def bfloat16(self) -> Self:
        """Casts the floating point parameters and buffers to bfloat16, in place.

        Returns:
            The module.

        See also:
            `to`.
        """
        return _cast_tensors(self, torch.bfloat16)

    def cpu(self) -> Self:
        """Moves the parameters and buffers to the CPU, in place.

        Returns:
            The module.

        See also:
            `to`.
        """
        return self._apply(lambda tensor: tensor.cpu())

    def xpu(self, device: DeviceLike = None) -> Self:
        """Moves the parameters and buffers to an XPU, which no backend has.

        Args:
            device: Index or device. Default: ``None``.

        Raises:
            RuntimeError: Always, if the module has a parameter or buffer.
        """
        return self._apply(lambda tensor: tensor.to(torch.device("xpu") if device is None else device))

    def ipu(self, device: DeviceLike = None) -> Self:
        """Moves the parameters and buffers to an IPU, which no backend has.

        Args:
            device: Index or device. Default: ``None``.

        Raises:
            RuntimeError: Always, if the module has a parameter or buffer.
        """
        return self._apply(lambda tensor: tensor.to(torch.device("ipu") if device is None else device))

    def mtia(self, device: DeviceLike = None) -> Self:
        """Moves the parameters and buffers to an MTIA device, which no backend has.

        Args:
            device: Index or device. Default: ``None``.

        Raises:
            RuntimeError: Always, if the module has a parameter or buffer.
        """
        return self._apply(lambda tensor: tensor.to(torch.device("mtia") if device is None else device))

    def cuda(self, device: DeviceLike = None) -> Self:
        """Moves the parameters and buffers to a CUDA device, in place.

        Args:
            device: Index or device. ``None`` is the current CUDA device. Default: ``None``.

        Returns:
            The module.

        See also:
            `to`.
        """
        return self._apply(lambda tensor: tensor.cuda(device))

    def _replicate_for_data_parallel(self):
        """Return a copy for another device, with separate tables. Its parameters are to be set as plain attributes."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica

    # Printing

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self) -> str:
        """Returns the text between the parentheses of the repr; subclasses override it.

        Returns:
            A string, of several lines if it has line breaks.

        Example:
            >>> torch.nn.Linear(2, 3).extra_repr()
            'in_features=2, out_features=3, bias=True'
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        lines = extra_lines + child_lines
        if not lines:
            body = ""
        elif len(extra_lines) == 1 and not child_lines:
            body = extra_lines[0]
        else:
            body = "\n  " + "\n  ".join(lines) + "\n"
        return f"{self._get_name()}({body})"


CALLBACKS.module_class = Module


def _remove_from_registries(module, name, *kinds):
    attributes = module.__dict__
    attributes.pop(name, None)
    for kind in kinds:
        getattr(module, kind).pop(name, None)
    module._non_persistent_buffers_set.discard(name)


def _set_attribute(module, name, value, attributes):
    """Assign a submodule, a buffer or anything that is neither."""
    modules, buffers = attributes.get("_modules"), attributes.get("_buffers")
    if isinstance(value, Module):
        if modules is None:
            raise AttributeError("cannot assign module before Module.__init__() call")
        _remove_from_registries(module, name, "_parameters", "_buffers")
        modules[name] = _run_registration_hooks(_global_module_registration_hooks, module, name, value)
    elif modules is not None and name in modules:
        if value is not None:
            raise TypeError(
                f"cannot assign '{torch.typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
            )
        modules[name] = _run_registration_hooks(_global_module_registration_hooks, module, name, None)
    elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
        _set_buffer(module, name, value, buffers)
    else:
        super(Module, module).__setattr__(name, value)


def _set_buffer(module, name, value, buffers):
    if value is not None and not isinstance(value, torch.Tensor):
        raise TypeError(
            f"cannot assign '{torch.typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None "
            "expected)"
        )
    if buffers is None:
        raise AttributeError("cannot assign buffer before Module.__init__() call")
    if not isinstance(value, Buffer):
        buffers[name] = _run_registration_hooks(_global_buffer_registration_hooks, module, name, value)
        return
    if "persistent" in inspect.signature(module.register_buffer).parameters:
        module.register_buffer(name, value, value.persistent)
    elif value.persistent:
        module.register_buffer(name, value)  # a subclass's override, from before buffers could be non-persistent
    else:
        raise RuntimeError(
            "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
            "the persistent argument is not allowed."
        )


def _get_leaf(module, target, accept, message):
    parent_name, _, name = target.rpartition(".")
    module = module.get_submodule(parent_name)
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    value = getattr(module, name)
    if not accept(module, name, value):
        raise AttributeError(f"`{name}` is not {message}")
    return value


def _convert_parameter(module, name, param, fn):
    """Convert a parameter and its gradient by `fn`: the same object with new data, unless `torch.__future__` or the
    devices require a new one.
    """
    grad = param.grad
    with torch.no_grad():
        data = fn(param)
        new_grad = None if grad is None else fn(grad).requires_grad_(grad.requires_grad)
    if future.get_swap_module_params_on_conversion():
        param.grad = None
        try:
            torch.utils.swap_tensors(param, Parameter(data, requires_grad=param.requires_grad))
        except Exception as error:  # the gradient is restored
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {module._get_name()}.{name}") from error
        if grad is not None and new_grad is not None:
            torch.utils.swap_tensors(grad, new_grad)
            param.grad = grad
        return param
    if data is param:
        return param
    if future.get_overwrite_module_params_on_conversion() or data.is_meta != param.is_meta:
        param = Parameter(data, requires_grad=param.requires_grad)
    else:
        param.grad = None
        param.data = data
    if new_grad is not None:
        param.grad = new_grad
    return param


def _cast_tensors(module, dtype):
    return module._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


_PLAIN_CALL = Module._call_impl

# Defined in other files, they are methods of Module itself: no internal class is in the method resolution order of
# subclasses, and messages name Module.
for _part in (HooksMixin, StateDictMixin):
    for _name, _method in vars(_part).items():
        if callable(_method) and not _name.startswith("__"):
            _method.__qualname__ = f"Module.{_name}"
            setattr(Module, _name, _method)
del _part, _name, _method


def buffer_of(module: Any, kind: type, name: str) -> Any:
    """`getattr(module, name)` of a buffer, faster if the module is exactly a `kind`: see `weight_and_bias`."""
    own = module.__dict__
    if type(module) is kind and name not in own:
        try:
            return own["_buffers"][name]
        except KeyError:  # it is the class's
            pass
    return getattr(module, name)


def weight_and_bias(module: Any, kind: type) -> Any:
    """Return `module.weight, module.bias`, faster if the module is exactly a `kind`.

    Python calls `__getattr__` only after its normal lookup fails, which takes half a microsecond a name: a third of a
    small linear layer's time.
    """
    own = module.__dict__
    if type(module) is kind and "weight" not in own and "bias" not in own:
        params = own["_parameters"]
        try:
            return params["weight"], params["bias"]
        except KeyError:  # one of them is the class's
            pass
    return module.weight, module.bias
