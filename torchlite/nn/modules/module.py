"""Module, the base class of all layers."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import torchlite as torch
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._dispatch.op_record import Op
from torchlite._dispatch.tracing import THREAD, TRACES
from torchlite.nn.parameter import Buffer, Parameter

from . import _module_hooks
from ._module_conversion import ConversionMixin
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
from ._module_traversal import TraversalMixin

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from torchlite import Tensor


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

    class _Parts(HooksMixin, StateDictMixin, ConversionMixin):
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

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep ops in the class body (`conv = torch.conv2d`) from binding: PyTorch's are builtins, which do not."""
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            if value.__class__ is FunctionType and value.__dict__.get("op").__class__ is Op:
                setattr(cls, name, staticmethod(value))

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


_PLAIN_CALL = Module._call_impl

# Defined in other files, they are methods of Module itself: no internal class is in the method resolution order of
# subclasses, and messages name Module.
for _part in (HooksMixin, StateDictMixin, TraversalMixin, ConversionMixin):
    for _name, _method in vars(_part).items():
        if callable(_method) and not _name.startswith("__"):
            _method.__qualname__, _method.__module__ = f"Module.{_name}", __name__
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
