"""state_dict and load_state_dict of modules."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections import OrderedDict, namedtuple
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite import __future__ as future
from torchlite._dispatch.error_translation import filter_traceback
from torchlite.nn.parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_UNREACHABLE = (
    "Reached a code path in Module.{}() that should never be called. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)


if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NamedTuple

    class _Keys(NamedTuple):
        missing_keys: list[str]
        unexpected_keys: list[str]
else:
    _Keys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


class _IncompatibleKeys(_Keys):
    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _DryRun(threading.local):
    """While `active`, loading only collects errors: a failing load must not change the module."""

    active = False


_dry_run = _DryRun()


def allow_dry_run(load: Any) -> Any:
    """Mark a `_load_from_state_dict` that may run twice: it changes only its `state_dict` argument, and calls its
    super.
    """
    load._repeatable = True
    return load


def _can_dry_run(module):
    return all(
        getattr(type(part)._load_from_state_dict, "_repeatable", False)
        and not part._load_state_dict_pre_hooks
        and not part._load_state_dict_post_hooks
        and type(part).set_extra_state is StateDictMixin.set_extra_state
        for part in module.modules()
    )


class StateDictMixin:
    """Saving and loading parameters and buffers by name."""

    # Of Module.
    _version: int
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]

    def get_extra_state(self) -> Any:
        """Returns an object that ``state_dict`` stores for the module besides tensors; override it with
        `set_extra_state`.

        Returns:
            A picklable object.

        Raises:
            RuntimeError: The class does not override it.
        """
        raise RuntimeError(_UNREACHABLE.format("get_extra_state"))

    def set_extra_state(self, state: Any) -> Any:
        """Restores the object that `get_extra_state` returned; override both.

        Args:
            state: The object from the ``state_dict``.

        Raises:
            RuntimeError: The class does not override it.
        """
        raise RuntimeError(_UNREACHABLE.format("set_extra_state"))

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buf in self._buffers.items():
            if buf is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buf if keep_vars else buf.detach()
        if type(self).get_extra_state is not StateDictMixin.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Returns the parameters and persistent buffers of the module and its submodules by dotted name.

        The tensors share memory with the module's. The dict has the attribute ``_metadata``, with the version of each
        submodule.

        Args:
            args: Deprecated: ``destination``, ``prefix`` and ``keep_vars`` by position.
            destination: Dict to fill. Default: ``None``, a new ``OrderedDict``.
            prefix: Precedes each name. Default: ``""``.
            keep_vars: Whether the values are the parameters and buffers themselves, not detached tensors. Default:
                ``False``.

        Returns:
            The dict, in the order of registration.

        Example:
            >>> list(torch.nn.Linear(2, 3).state_dict())
            ['weight', 'bias']

        See also:
            `load_state_dict`, `torch.save`.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    @allow_dry_run
    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Copy this module's entries of `state_dict` (not its children's), and append problems to the three lists."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        persistent = {name: buf for name, buf in self._buffers.items() if name not in self._non_persistent_buffers_set}
        local_state = {
            name: value
            for name, value in itertools.chain(self._parameters.items(), persistent.items())
            if value is not None
        }
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in local_state.items():
            key = prefix + name
            if key in state_dict:
                _load_tensor(self, name, param, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not StateDictMixin.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            _find_unexpected(self, state_dict, prefix, local_state, extra_key, unexpected_keys)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies the tensors of a ``state_dict`` into the parameters and buffers of the same names.

        A load that fails leaves the module as it was, unless hooks or overridden loading methods change it.

        Args:
            state_dict: Mapping of dotted names to tensors.
            strict: Whether each name must be on both sides. Default: ``True``.
            assign: Whether the module uses the tensors of the dict themselves; they keep their dtype and device.
                Default: ``False``.

        Returns:
            A named tuple of the lists ``missing_keys`` and ``unexpected_keys``.

        Raises:
            RuntimeError: Names are missing or unexpected with ``strict``, or a shape differs. The message lists all
                problems.
            TypeError: ``state_dict`` is not a mapping.

        Example:
            >>> layer = torch.nn.Linear(2, 3)
            >>> layer.load_state_dict(torch.nn.Linear(2, 3).state_dict())
            <All keys matched successfully>
            >>> layer.load_state_dict({"weight": torch.zeros(3, 2)}, strict=False)
            _IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])

        See also:
            `state_dict`, `torch.load`.
        """
        if not hasattr(state_dict, "keys") or not hasattr(state_dict, "__getitem__"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        try:
            if _can_dry_run(self):
                _dry_run.active = True
                try:
                    missing, unexpected, errors = _load_state_dict(self, state_dict, strict, assign)
                finally:
                    _dry_run.active = False
                _raise_load_errors(self, strict, missing, unexpected, errors)
            missing, unexpected, errors = _load_state_dict(self, state_dict, strict, assign)
            _raise_load_errors(self, strict, missing, unexpected, errors)
        except RuntimeError:
            filter_traceback()
            raise
        return _IncompatibleKeys(missing, unexpected)


def _find_unexpected(module, state_dict, prefix, local_state, extra_key, unexpected_keys):
    for key in state_dict:
        if key.startswith(prefix) and key != extra_key:
            first, *rest = key[len(prefix) :].split(".", 1)
            if first not in module._modules if rest else first not in local_state:
                unexpected_keys.append(key)


def _load_tensor(module, name, param, key, value, assign, error_msgs):
    if not isinstance(value, torch.Tensor) and not hasattr(type(value), "__torch_function__"):
        error_msgs.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
            f"checkpoint but received {type(value)}"
        )
        return
    lazy = is_lazy(param)
    if lazy and is_lazy(value):
        return  # both wait for a shape
    # Checkpoints of PyTorch 0.3 store scalars as one-element vectors.
    if not lazy and param.ndim == 0 and value.ndim == 1:
        value = value[0]
    if not lazy and value.shape != param.shape:
        error_msgs.append(
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {param.shape}."
        )
        return
    if _dry_run.active:
        return
    if param.device.type == "meta" and value.device.type != "meta" and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
            "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state "
            "dictionary to their corresponding key in the module instead of copying them in place?)",
            stacklevel=4,
        )
    try:
        with torch.no_grad():
            if future.get_swap_module_params_on_conversion():
                _swap_loaded_tensor(param, value, assign)
                return
            if not assign:
                param.copy_(value)
                return
            if isinstance(param, Parameter):
                if not isinstance(value, Parameter):
                    value = Parameter(value, requires_grad=param.requires_grad)
                else:
                    value.requires_grad_(param.requires_grad)
            setattr(module, name, value)
    except Exception as error:  # all errors of a state dict are raised as one
        error_msgs.append(
            f'While copying the parameter named "{key}", whose dimensions in the model are {param.shape} and '
            f"whose dimensions in the checkpoint are {value.shape}, an exception occurred : {error.args}."
        )


def _swap_loaded_tensor(param, value, assign):
    """Swap `param` with the result of its `module_load` on a loaded tensor."""
    new = param.module_load(value, assign=assign)
    if new is value or new is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the "
            "inputs in module_load"
        )
    if isinstance(param, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(param.requires_grad)
        else:
            new = Parameter(new, requires_grad=param.requires_grad)
    torch.utils.swap_tensors(param, new)


def _load_state_dict(module, given, strict, assign):
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    metadata = getattr(given, "_metadata", None)
    state_dict: Any = OrderedDict(given)
    if metadata is not None:
        state_dict._metadata = metadata

    _load_tree(module, state_dict, "", metadata, assign, missing, unexpected, errors)
    return missing, unexpected, errors


def _load_tree(module, local_state, prefix, metadata, assign, missing, unexpected, errors):
    """Load this module, with names after `prefix`, and its submodules."""
    local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(local_state, prefix, local_metadata, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            child_prefix = prefix + name + "."
            part = {key: value for key, value in local_state.items() if key.startswith(child_prefix)}
            _load_tree(child, part, child_prefix, metadata, assign, missing, unexpected, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, _IncompatibleKeys(missing, unexpected)) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                "values, if incompatible_keys need to be modified, it should be done inplace."
            )


def _raise_load_errors(module, strict, missing, unexpected, errors):
    if strict:
        for title, keys in (("Unexpected", unexpected), ("Missing", missing)):
            if keys:
                names = ", ".join(f'"{key}"' for key in keys)
                errors.insert(0, f"{title} key(s) in state_dict: {names}. ")
    if errors:
        raise RuntimeError(
            "Error(s) in loading state_dict for {}:\n\t{}".format(type(module).__name__, "\n\t".join(errors))
        )
