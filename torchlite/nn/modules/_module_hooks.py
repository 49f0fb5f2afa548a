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
    """Call `hook(module, args)` before the forward of every module; its return value, unless None, replaces the
    arguments.
    """
    return _register_global_hook(GLOBAL_HOOKS["_global_forward_pre_hooks"], hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` (or `hook(module, args, kwargs, output)`) after the forward of every module."""
    extra = [GLOBAL_HOOKS["_global_forward_hooks_with_kwargs"], GLOBAL_HOOKS["_global_forward_hooks_always_called"]]
    marks = [extra[0]] * with_kwargs + [extra[1]] * always_call
    return _register_global_hook(GLOBAL_HOOKS["_global_forward_hooks"], hook, extra=extra, marks=marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients of any module's inputs are computed."""
    return _register_global_hook(GLOBAL_HOOKS["_global_backward_pre_hooks"], hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` once the gradients of any module's inputs are known."""
    if GLOBAL_HOOKS["_global_is_full_backward_hook"] is False:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    GLOBAL_HOOKS["_global_is_full_backward_hook"] = True
    return _register_global_hook(GLOBAL_HOOKS["_global_backward_hooks"], hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The older form of `register_module_full_backward_hook`: sees the gradients of the last op of the forward only."""
    if GLOBAL_HOOKS["_global_is_full_backward_hook"] is True:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    GLOBAL_HOOKS["_global_is_full_backward_hook"] = False
    return _register_global_hook(GLOBAL_HOOKS["_global_backward_hooks"], hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever a parameter is registered; its return value, unless None, is
    registered instead.
    """
    return _register_global_hook(GLOBAL_HOOKS["_global_parameter_registration_hooks"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a buffer is registered; its return value, unless None, is registered
    instead.
    """
    return _register_global_hook(GLOBAL_HOOKS["_global_buffer_registration_hooks"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a submodule is registered; its return value, unless None, is
    registered instead.
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
        """Call `hook(module, args)` before every `forward`.

        The hook's return value, unless None, replaces the arguments: one value or a tuple. With `with_kwargs` the hook
        is `hook(module, args, kwargs)` and returns `(args, kwargs)`. Returns a handle whose `remove()` removes the
        hook.
        """
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _register_global_hook(
            self._forward_pre_hooks, hook, extra=[self._forward_pre_hooks_with_kwargs], marks=marks, prepend=prepend
        )

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after every `forward`; its return value, unless None, replaces the
        output.

        With `with_kwargs` the hook is `hook(module, args, kwargs, output)`; with `always_call` it also runs if the
        forward raised.
        """
        extra = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        marks = [extra[0]] * with_kwargs + [extra[1]] * always_call
        return _register_global_hook(self._forward_hooks, hook, extra=extra, marks=marks, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the gradients of the module are computed; a returned value replaces
        `grad_output`.
        """
        return _register_global_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the module's inputs are known; a returned
        value replaces `grad_input`.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = True
        return _register_global_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older form of `register_full_backward_hook`: `grad_input` is that of the last op of the forward."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = False
        return _register_global_hook(self._backward_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` collects."""
        return _register_global_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict` is complete; it changes the dict
        in place.
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
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before loading.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; it may change the two lists in place."""
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
