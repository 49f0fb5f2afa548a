"""Optimizer, the base class of all optimizers."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import torchlite as torch
from torchlite._device.streams import CAPTURES
from torchlite._dispatch.kernel_recorder import RECORDERS, current_recorder
from torchlite._ops import fused_optim as _multi
from torchlite.utils.hooks import RemovableHandle

from ._step_helpers import _default_to_fused_or_foreach as _default_to_fused_or_foreach
from ._step_helpers import _get_capturable_supported_devices as _get_capturable_supported_devices
from ._step_helpers import _get_value as _get_value
from ._step_helpers import _use_grad_for_differentiable as _use_grad_for_differentiable
from ._step_helpers import _view_as_real as _view_as_real

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlite import Tensor


__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

ParamsT: TypeAlias = Iterable[torch.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, torch.Tensor]]

_NO_HOOKS: dict[int, Any] = {}
_global_pre_hooks: OrderedDict = OrderedDict()
_global_post_hooks: OrderedDict = OrderedDict()
GLOBAL_STEP_HOOKS = (_global_pre_hooks, _global_post_hooks)


class _RequiredParameter:
    """The default of an option that every group must state."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Any:
    """Registers a hook that runs before the step of every optimizer.

    Args:
        hook: Called as ``hook(optimizer, args, kwargs)``; ``args`` begins with the optimizer. It returns ``None``, or
            new ``(args, kwargs)`` for the step.

    Returns:
        A handle; its ``remove()`` removes the hook.

    Example:
        >>> from torchlite.optim.optimizer import register_optimizer_step_pre_hook
        >>> names = []
        >>> def note(optimizer, args, kwargs):
        ...     names.append(type(optimizer).__name__)
        >>> handle = register_optimizer_step_pre_hook(note)
        >>> torch.optim.SGD([torch.zeros(1)]).step()
        >>> handle.remove()
        >>> names
        ['SGD']
    """
    handle = RemovableHandle(_global_pre_hooks)
    _global_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Any:
    """Registers a hook that runs after the step of every optimizer.

    Args:
        hook: Called as ``hook(optimizer, args, kwargs)``; ``args`` begins with the optimizer. Its result is ignored.

    Returns:
        A handle; its ``remove()`` removes the hook.

    Example:
        >>> from torchlite.optim.optimizer import register_optimizer_step_post_hook
        >>> names = []
        >>> def note(optimizer, args, kwargs):
        ...     names.append(type(optimizer).__name__)
        >>> handle = register_optimizer_step_post_hook(note)
        >>> torch.optim.SGD([torch.zeros(1)]).step()
        >>> handle.remove()
        >>> names
        ['SGD']
    """
    handle = RemovableHandle(_global_post_hooks)
    _global_post_hooks[handle.id] = hook
    return handle


def _wrap_with_hooks(step):
    """Returns a step that runs the hooks, once even if a subclass calls the step of its base.

    Args:
        step: The ``step`` method of a class.

    Returns:
        The method with hooks.
    """

    @functools.wraps(step)
    def run(self, *args, **kwargs):
        if CAPTURES and "capturable" in self.defaults:
            self._cuda_graph_capture_health_check()
        if RECORDERS and (recorder := current_recorder()) is not None:
            return recorder.as_one(run, self, args, kwargs)
        # A wrapper may go without Optimizer's __init__.
        before = getattr(self, "_optimizer_step_pre_hooks", _NO_HOOKS)
        after = getattr(self, "_optimizer_step_post_hooks", _NO_HOOKS)
        if not (before or after or _global_pre_hooks or _global_post_hooks) or self.__dict__.get("_inside_step"):
            return step(self, *args, **kwargs)
        args = (self, *args)
        for hook in [*_global_pre_hooks.values(), *before.values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        self.__dict__["_inside_step"] = True
        try:
            result = step(*args, **kwargs)
        finally:
            del self.__dict__["_inside_step"]
        for hook in [*after.values(), *_global_post_hooks.values()]:
            hook(self, args, kwargs)
        return result

    run.hooked = True  # type: ignore[attr-defined]
    return run


def _add_hook(table, hook, prepend=False):
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Optimizer:
    """The base class of all optimizers: it holds parameter groups, their options and the state of each parameter.

    A subclass passes its options' values as ``defaults`` and defines `step`. A parameter group is a dict with
    ``"params"`` and the options that differ from ``defaults``.

    Args:
        params: Parameters to optimize: tensors, ``(name, tensor)`` pairs, or dicts that are parameter groups. Tensors
            must be leaves, unless the default ``differentiable`` is true.
        defaults: Options of groups that do not set them.

    Attributes:
        param_groups (list[dict]): The groups, each with all options. Programs may change the options between steps.
        state (dict): From each parameter to a dict of its state.
        defaults (dict): The options' defaults.

    Raises:
        TypeError: ``params`` is one tensor, or holds something that is neither a tensor nor a group.
        ValueError: ``params`` is empty, a parameter is not a leaf, or two groups share a parameter.

    Example:
        >>> class SignDescent(torch.optim.Optimizer):
        ...     def __init__(self, params, lr=0.1):
        ...         super().__init__(params, {"lr": lr})
        ...     @torch.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for param in group["params"]:
        ...                 param.add_(param.grad.sign(), alpha=-group["lr"])
        >>> weight, bias = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> optimizer = SignDescent([{"params": [weight]}, {"params": [bias], "lr": 0.5}])
        >>> (weight.sum() * 3 - bias.sum()).backward()
        >>> optimizer.step()
        >>> weight.detach(), bias.detach()
        (tensor([0.9000, 0.9000]), tensor([1.5000]))
    """

    _optimizer_step_pre_hooks: OrderedDict[int, Any]
    _optimizer_step_post_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__ and not getattr(cls.__dict__["step"], "hooked", False):
            cls.step = _wrap_with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    profile_hook_step = staticmethod(_wrap_with_hooks)

    def _patch_step_function(self):
        """Wrap the `step` of the class so that it runs hooks, also if a program replaced it."""
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
        if not getattr(type(self).step, "hooked", False):
            type(self).step = _wrap_with_hooks(type(self).step)  # type: ignore[method-assign]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOK_TABLES:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, torch.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + torch.typename(params)
            )
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group) if isinstance(group, dict) else group)
        self._warned_capturable_if_run_uncaptured = True

    def __getstate__(self) -> Any:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.__dict__.pop("_plans", None)
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [""] if number else []
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # Hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """Registers a hook that runs before each step of this optimizer.

        Args:
            hook: Called as ``hook(optimizer, args, kwargs)``; ``args`` begins with the optimizer. It returns ``None``,
                or new ``(args, kwargs)`` for the step.

        Returns:
            A handle; its ``remove()`` removes the hook.
        """
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        """Registers a hook that runs after each step of this optimizer.

        Args:
            hook: Called as ``hook(optimizer, args, kwargs)``; ``args`` begins with the optimizer. Its result is
                ignored.

        Returns:
            A handle; its ``remove()`` removes the hook.
        """
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Registers a hook that runs before `state_dict`.

        Args:
            hook: Called as ``hook(optimizer)``.
            prepend: Whether the hook runs before those registered so far. Default: ``False``.

        Returns:
            A handle; its ``remove()`` removes the hook.
        """
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Registers a hook that runs after `state_dict`.

        Args:
            hook: Called as ``hook(optimizer, state_dict)``. It may change the dict, or return another one.
            prepend: Whether the hook runs before those registered so far. Default: ``False``.

        Returns:
            A handle; its ``remove()`` removes the hook.
        """
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Registers a hook that runs before `load_state_dict`.

        Args:
            hook: Called as ``hook(optimizer, state_dict)`` with a shallow copy of the dict. It may return another one.
            prepend: Whether the hook runs before those registered so far. Default: ``False``.

        Returns:
            A handle; its ``remove()`` removes the hook.
        """
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Registers a hook that runs after `load_state_dict`.

        Args:
            hook: Called as ``hook(optimizer)``.
            prepend: Whether the hook runs before those registered so far. Default: ``False``.

        Returns:
            A handle; its ``remove()`` removes the hook.
        """
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # State

    def state_dict(self) -> dict[str, Any]:
        """Returns the options and the state as a dict, for a checkpoint.

        Returns:
            ``{"state": {number: {...}}, "param_groups": [...]}``. Numbers stand for the parameters, in the order of the
            groups. The tensors are those of the optimizer, not copies.

        See also:
            `load_state_dict`.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, torch.Tensor) else key: value for key, value in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """Return a loaded tensor in the parameter's dtype and on its device. Step counts are unchanged unless fused or
        capturable.
        """
        if key == "step":
            group: dict[str, Any] = next((group for group in param_groups if param_id in group["params"]), {})
            if group.get("fused") or group.get("capturable"):
                return value.to(dtype=torch.float32, device=param.device)
            return value
        return (
            value.to(dtype=param.dtype, device=param.device)
            if param.is_floating_point()
            else value.to(device=param.device)
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the options and the state that `state_dict` returned.

        Tensors of the state are moved to the device of their parameter and cast to its dtype if it is floating point;
        step counts keep theirs, unless the group is ``fused`` or ``capturable``.

        Args:
            state_dict: A result of `state_dict`, of an optimizer with the same groups in the same order.

        Raises:
            ValueError: The number or the sizes of the groups differ from this optimizer's.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved_groups = deepcopy(state_dict["param_groups"])
        groups = self.param_groups
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(mine["params"]) != len(saved["params"]) for mine, saved in zip(groups, saved_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        numbers = chain.from_iterable(group["params"] for group in saved_groups)
        params = dict(zip(numbers, chain.from_iterable(group["params"] for group in groups), strict=True))

        def cast(param, value, number, key=None):
            if isinstance(value, torch.Tensor):
                return Optimizer._process_value_according_to_param_policy(param, value, number, saved_groups, key)
            if isinstance(value, dict):
                return {k: cast(param, v, number, k) for k, v in value.items()}
            if isinstance(value, (list, tuple)):
                return type(value)(cast(param, v, number) for v in value)
            return value

        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = cast(params[key], value, key)
            else:
                state[key] = value
        for mine, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = mine["params"]
            if "param_names" in mine and "param_names" not in saved:
                saved["param_names"] = mine["param_names"]
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters.

        Args:
            set_to_none: Whether to set them to ``None``; ``False`` fills them with zeros. A step skips parameters
                without a gradient. Default: ``True``.
        """
        if set_to_none:
            for group in self.param_groups:
                _multi.forget_gradients(group["params"])
            return
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    if param.grad.grad_fn is not None:
                        param.grad.detach_()
                    else:
                        param.grad.requires_grad_(False)
                    param.grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters from their gradients; subclasses define it.

        Args:
            closure: Computes the loss and its gradients again, and returns the loss. Default: ``None``.

        Returns:
            The result of ``closure``; ``None`` without one.

        Raises:
            NotImplementedError: The subclass does not define it.
        """
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a parameter group, for example of layers that are trained from now on.

        Args:
            param_group: A dict with ``"params"`` (a tensor, or tensors or ``(name, tensor)`` pairs in a sequence) and
                the options that differ from the defaults. The dict itself becomes the group.

        Raises:
            TypeError: ``param_group`` is no dict, its parameters are a set, or one is not a tensor.
            ValueError: A parameter is not a leaf or is in another group, a required option is missing, or only some
                parameters have names.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, torch.Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        _split_names(self, param_group)
        for param in param_group["params"]:
            if not isinstance(param, torch.Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + torch.typename(param)
                )
            if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        seen = {id(param) for param in param_group["params"]}
        if len(param_group["params"]) != len(seen):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an "
                "error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                current = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{current} to the optimizer"
                )
            if any(id(param) in seen for param in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)
        self.__dict__.pop("_plans", None)

    # Common parts of the steps

    def _cuda_graph_capture_health_check(self):
        """RuntimeError if the captured CUDA graph would repeat the same step number in every replay."""
        if torch.cuda.is_current_stream_capturing():
            if not all(group["capturable"] for group in self.param_groups):
                raise RuntimeError(
                    f"Attempting CUDA graph capture of step() for an instance of {type(self).__name__} "
                    "but param_groups' capturable is False."
                )


def _split_names(optimizer, group):
    """(name, tensor) pairs become `params` and `param_names`."""
    named = [isinstance(item, tuple) for item in group["params"]]
    if not any(named):
        return
    if not all(named):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    names, params = zip(*group["params"], strict=True)
    # The names follow the parameters, as in PyTorch's dicts.
    options = {key: value for key, value in group.items() if key != "params"}
    group.clear()
    group.update(params=list(params), param_names=list(names), **options)
