"""Registration and calls of module hooks.

The hook dictionaries are the only state, so code may fill them directly. A call of a module with empty dictionaries,
its own and the global ones, does not run this code.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from torchlite.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite.nn.modules.module import Module


# The global tables are variables of `module`, where programs look for them and replace them.
GLOBAL_HOOKS: dict[str, Any] = {}


def _register_global_hook(table, hook, *, extra=(), marks=(), prepend=False):
    handle = RemovableHandle(table, extra_dict=list(extra) or None)
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a hook that runs before ``forward`` of every module of the process.

    Args:
        hook: Function ``hook(module, args)``. A result other than ``None`` replaces the positional arguments.

    Returns:
        A handle. Its ``remove()`` removes the hook.

    See also:
        `Module.register_forward_pre_hook`.
    """
    return _register_global_hook(GLOBAL_HOOKS["_global_forward_pre_hooks"], hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Registers a hook that runs after ``forward`` of every module of the process.

    Args:
        hook: Function ``hook(module, args, output)``. A result other than ``None`` replaces the output.
        with_kwargs: Whether the hook is ``hook(module, args, kwargs, output)``. Default: ``False``.
        always_call: Whether the hook also runs if ``forward`` raises. Default: ``False``.

    Returns:
        A handle. Its ``remove()`` removes the hook.

    See also:
        `Module.register_forward_hook`.
    """
    extra = [GLOBAL_HOOKS["_global_forward_hooks_with_kwargs"], GLOBAL_HOOKS["_global_forward_hooks_always_called"]]
    marks = [extra[0]] * with_kwargs + [extra[1]] * always_call
    return _register_global_hook(GLOBAL_HOOKS["_global_forward_hooks"], hook, extra=extra, marks=marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a hook that runs before the gradients of the inputs of any module are computed.

    Args:
        hook: Function ``hook(module, grad_output)``. A result other than ``None`` replaces ``grad_output``.

    Returns:
        A handle. Its ``remove()`` removes the hook.

    See also:
        `Module.register_full_backward_pre_hook`.
    """
    return _register_global_hook(GLOBAL_HOOKS["_global_backward_pre_hooks"], hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a hook that runs when the gradients of the inputs of any module are known.

    Args:
        hook: Function ``hook(module, grad_input, grad_output)``. A result other than ``None`` replaces ``grad_input``.

    Returns:
        A handle. Its ``remove()`` removes the hook.

    Raises:
        RuntimeError: A backward hook of the other form is registered.

    See also:
        `Module.register_full_backward_hook`.
    """
    if GLOBAL_HOOKS["_global_is_full_backward_hook"] is False:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    GLOBAL_HOOKS["_global_is_full_backward_hook"] = True
    return _register_global_hook(GLOBAL_HOOKS["_global_backward_hooks"], hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a backward hook of the older form for every module of the process.

    It sees the gradients of the last op of ``forward`` only. Use `register_module_full_backward_hook`.

    Args:
        hook: Function ``hook(module, grad_input, grad_output)``.

    Returns:
        A handle. Its ``remove()`` removes the hook.

    Raises:
        RuntimeError: A backward hook of the other form is registered.
    """
    if GLOBAL_HOOKS["_global_is_full_backward_hook"] is True:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    GLOBAL_HOOKS["_global_is_full_backward_hook"] = False
    return _register_global_hook(GLOBAL_HOOKS["_global_backward_hooks"], hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a hook that runs when any module registers a parameter.

    Args:
        hook: Function ``hook(module, name, parameter)``. A result other than ``None`` is registered in place of the
            parameter.

    Returns:
        A handle. Its ``remove()`` removes the hook.
    """
    return _register_global_hook(GLOBAL_HOOKS["_global_parameter_registration_hooks"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a hook that runs when any module registers a buffer.

    Args:
        hook: Function ``hook(module, name, buffer)``. A result other than ``None`` is registered in place of the
            buffer.

    Returns:
        A handle. Its ``remove()`` removes the hook.
    """
    return _register_global_hook(GLOBAL_HOOKS["_global_buffer_registration_hooks"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers a hook that runs when any module registers a submodule.

    Args:
        hook: Function ``hook(module, name, submodule)``. A result other than ``None`` is registered in place of the
            submodule.

    Returns:
        A handle. Its ``remove()`` removes the hook.
    """
    return _register_global_hook(GLOBAL_HOOKS["_global_module_registration_hooks"], hook)


class _WrappedHook:
    """A picklable state-dict hook, called with its module if `with_module`."""

    def __init__(self, hook: Callable[..., Any], module: Module | None = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> Any:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: Any) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


class HooksMixin:
    """Hook methods of Module, and the call that runs the hooks."""

    # Created by Module's __init__.
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, Any]
    _forward_hooks_always_called: OrderedDict[int, Any]
    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _is_full_backward_hook: bool | None
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]
    _compiled_call_impl: Any
    forward: Callable[..., Any]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Registers a hook that runs before each ``forward``.

        Args:
            hook: Function ``hook(module, args)``. A result other than ``None``, one value or a tuple, replaces the
                positional arguments.
            prepend: Whether the hook runs before those that are registered already. Default: ``False``.
            with_kwargs: Whether the hook is ``hook(module, args, kwargs)`` and returns ``None`` or ``(args, kwargs)``.
                Default: ``False``.

        Returns:
            A handle. Its ``remove()`` removes the hook.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
            >>> layer(torch.tensor([1.0]))
            tensor([2.])
            >>> handle.remove()
            >>> layer(torch.tensor([1.0]))
            tensor([1.])
        """
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _register_global_hook(
            self._forward_pre_hooks, hook, extra=[self._forward_pre_hooks_with_kwargs], marks=marks, prepend=prepend
        )

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Registers a hook that runs after each ``forward``.

        Args:
            hook: Function ``hook(module, args, output)``. A result other than ``None`` replaces the output.
            prepend: Whether the hook runs before those that are registered already. Default: ``False``.
            with_kwargs: Whether the hook is ``hook(module, args, kwargs, output)``. Default: ``False``.
            always_call: Whether the hook also runs if ``forward`` raises. Default: ``False``.

        Returns:
            A handle. Its ``remove()`` removes the hook.

        Example:
            >>> shapes = []
            >>> layer = torch.nn.Linear(2, 3)
            >>> handle = layer.register_forward_hook(lambda module, args, output: shapes.append(tuple(output.shape)))
            >>> output = layer(torch.zeros(4, 2))
            >>> shapes
            [(4, 3)]
        """
        extra = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        marks = [extra[0]] * with_kwargs + [extra[1]] * always_call
        return _register_global_hook(self._forward_hooks, hook, extra=extra, marks=marks, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Registers a hook that runs before the gradients of the inputs of the module are computed.

        Args:
            hook: Function ``hook(module, grad_output)``. A result other than ``None`` replaces ``grad_output``.
            prepend: Whether the hook runs before those that are registered already. Default: ``False``.

        Returns:
            A handle. Its ``remove()`` removes the hook.
        """
        return _register_global_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Registers a hook that runs when the gradients of the inputs of the module are known.

        Args:
            hook: Function ``hook(module, grad_input, grad_output)`` of tuples. A result other than ``None`` replaces
                ``grad_input``.
            prepend: Whether the hook runs before those that are registered already. Default: ``False``.

        Returns:
            A handle. Its ``remove()`` removes the hook.

        Raises:
            RuntimeError: A backward hook of the other form is registered.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
            >>> layer(torch.tensor([-1.0, 1.0], requires_grad=True)).sum().backward()
            (tensor([0., 1.]),)
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = True
        return _register_global_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Registers a backward hook of the older form.

        Its ``grad_input`` is that of the last op of ``forward``. Use `register_full_backward_hook`.

        Args:
            hook: Function ``hook(module, grad_input, grad_output)``.

        Returns:
            A handle. Its ``remove()`` removes the hook.

        Raises:
            RuntimeError: A backward hook of the other form is registered.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = False
        return _register_global_hook(self._backward_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Registers a hook that runs before `state_dict` collects the state of the module.

        Args:
            hook: Function ``hook(module, prefix, keep_vars)``.

        Returns:
            A handle. Its ``remove()`` removes the hook.
        """
        return _register_global_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Registers a hook that runs after `state_dict` has collected the state of the module.

        Args:
            hook: Function ``hook(module, state_dict, prefix, local_metadata)`` that changes ``state_dict`` in place
                and returns ``None``.

        Returns:
            A handle. Its ``remove()`` removes the hook.
        """
        hook._from_public_api = True
        return _register_global_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _register_global_hook(self._state_dict_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        module: Any = self if with_module else None
        return _register_global_hook(self._load_state_dict_pre_hooks, _WrappedHook(hook, module))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Registers a hook that runs before `load_state_dict` loads the state of the module.

        Args:
            hook: Function
                ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``.
                It may change ``state_dict`` and the lists in place.

        Returns:
            A handle. Its ``remove()`` removes the hook.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Registers a hook that runs after `load_state_dict` has loaded the state of the module.

        Args:
            hook: Function ``hook(module, incompatible_keys)`` that returns ``None``. It may change the lists
                ``missing_keys`` and ``unexpected_keys`` in place; `load_state_dict` with ``strict`` then judges them.

        Returns:
            A handle. Its ``remove()`` removes the hook.
        """
        return _register_global_hook(self._load_state_dict_post_hooks, hook)

    def _get_backward_hooks(self):
        """Return (full hooks, non-full hooks) for the present call."""
        full: list[Any] = []
        older: list[Any] = []
        everywhere = full if GLOBAL_HOOKS["_global_is_full_backward_hook"] is True else older
        everywhere.extend(GLOBAL_HOOKS["_global_backward_hooks"].values())
        (full if self._is_full_backward_hook is True else older).extend(self._backward_hooks.values())
        return full, older

    def _get_backward_pre_hooks(self):
        return [*GLOBAL_HOOKS["_global_backward_pre_hooks"].values(), *self._backward_pre_hooks.values()]

    def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn):
        """Warn if the node of the result does not receive all gradients of the module."""
        results, inputs = _as_tensor_tuple(result), _as_tensor_tuple(inputs)
        if results is None:
            what = "s on a Module that does not return a single Tensor or a tuple of Tensors", "some of the grad_output"
        elif inputs is None:
            what = (
                "s on a Module that does not take as input a single Tensor or a tuple of Tensors",
                "some of the grad_input",
            )
        else:
            nodes = {value.grad_fn for value in results if value.grad_fn is not None}
            given = {value.grad_fn for value in inputs if value.grad_fn is not None}
            if not nodes or (len(nodes) == 1 and grad_fn not in nodes):
                what = " when outputs are nested in python data structure", "some grad_output"
            elif len(nodes) > 1:
                what = " when outputs are generated by different autograd Nodes", "some grad_output"
            elif given != {node for node, _ in grad_fn.next_functions}:
                what = " when the forward contains multiple autograd Nodes", "some grad_input"
            else:
                return
        article = "" if what[0].startswith("s ") else "a "
        warnings.warn(
            f"Using {article}non-full backward hook{what[0]} is deprecated and will be removed in future versions. "
            f"This hook will be missing {what[1]}. Please use register_full_backward_hook to get the documented "
            "behavior.",
            FutureWarning,
            stacklevel=6,
        )


def call_with_hooks(module, args, kwargs):
    """The call of a module for which there are hooks."""
    called: set[int] = set()
    taps = result = None
    try:
        before = module._get_backward_pre_hooks()
        full, older = module._get_backward_hooks()
        args, kwargs = _run_forward_pre_hooks(module, args, kwargs)
        if full or before:
            from torchlite.utils.hooks import BackwardHook

            taps = BackwardHook(module, full, before)
            args = taps.setup_input_hook(args)
        result = module.forward(*args, **kwargs)
        result = _run_forward_hooks(module, args, kwargs, result, called)
        if taps is not None:
            result = _attach_backward_hooks(module, taps, result)
        if older:
            _attach_non_full_backward_hooks(module, args, result, older)
    except Exception:
        _run_always_call_hooks(module, args, kwargs, result, called)
        raise
    return result


def _run_forward_hooks(module, args, kwargs, result, called):
    tables = (
        (GLOBAL_HOOKS["_global_forward_hooks"], GLOBAL_HOOKS["_global_forward_hooks_with_kwargs"]),
        (module._forward_hooks, module._forward_hooks_with_kwargs),
    )
    for hooks, with_kwargs in tables:
        for key, hook in list(hooks.items()):
            called.add(key)
            changed = hook(module, args, kwargs, result) if key in with_kwargs else hook(module, args, result)
            if changed is not None:
                result = changed
    return result


def _attach_backward_hooks(module, taps, result):
    from torchlite import Tensor

    if not isinstance(result, (Tensor, tuple)):
        warnings.warn(
            "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
            f"{type(result)}",
            stacklevel=5,
        )
    return taps.setup_output_hook(result)


def _run_forward_pre_hooks(module, args, kwargs):
    for key, hook in [*GLOBAL_HOOKS["_global_forward_pre_hooks"].items(), *module._forward_pre_hooks.items()]:
        if key in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _run_always_call_hooks(module, args, kwargs, result, called):
    """Run the hooks registered with `always_call=True` after an exception, each once."""
    own = (module._forward_hooks, module._forward_hooks_always_called, module._forward_hooks_with_kwargs)
    names = ("_global_forward_hooks", "_global_forward_hooks_always_called", "_global_forward_hooks_with_kwargs")
    tables = (tuple(GLOBAL_HOOKS[name] for name in names), own)
    for hooks, always, with_kwargs in tables:
        for key, hook in list(hooks.items()):
            if key not in always or key in called:
                continue
            try:
                changed = hook(module, args, kwargs, result) if key in with_kwargs else hook(module, args, result)
                if changed is not None:
                    result = changed
            except Exception as error:  # the user's hook may raise anything; the first error is raised
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                    f"another error was raised in forward: {error}",
                    stacklevel=2,
                )


def _attach_non_full_backward_hooks(module, args, result, hooks):
    from torchlite import Tensor

    value = result
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = next(item for item in value.values() if isinstance(item, Tensor))
        else:
            value = value[0]
    node = value.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(_WrappedHook(hook, module))
        module._maybe_warn_non_full_backward_hook(args, result, node)


def _as_tensor_tuple(value):
    """A tensor, or a tuple of tensors, as a tuple; None for anything else."""
    from torchlite import Tensor

    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, tuple) and all(isinstance(item, Tensor) for item in value):
        return value
    return None
