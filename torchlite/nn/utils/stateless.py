"""Functional calls of a module with other parameters."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

if TYPE_CHECKING:
    from torchlite.nn.modules.module import Module


__all__ = ["functional_call"]

_MISSING = object()


def _iterate_named_tensors(module):
    """Yield (dotted name, tensor) of all parameters and buffers; shared tensors come under each name."""
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _tie_weights(module, given):
    """Return `given` with all names of tensors that the module shares under several names."""
    names: dict[int, list[str]] = {}
    for name, value in _iterate_named_tensors(module):
        names.setdefault(id(value), []).append(name)
    groups = {name: group for group in names.values() if len(group) > 1 for name in group}
    result = dict(given)
    for name, value in given.items():
        for other in groups.get(name, ()):
            if other in given and given[other] is not value:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(set(groups[name]) & set(given))}, which "
                    "are tied. Consider using tie_weights=False"
                )
            result[other] = value
    return result


def _check_names(module, given):
    known = {name for name, _ in _iterate_named_tensors(module)}
    parts = [
        f"{kind} key(s): {', '.join(map(repr, sorted(names)))}."
        for kind, names in (("Unexpected", set(given) - known), ("Missing", known - set(given)))
        if names
    ]
    if parts:
        raise RuntimeError(
            "Error(s) in reparametrizing for {}:\n\t{}".format(type(module).__name__, "\n\t".join(parts))
        )


def _find_submodule(module, path):
    """The submodule of a dotted name."""
    for name in path.split(".") if path else ():
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        found = getattr(module, name)
        if not isinstance(found, torch.nn.Module):
            raise TypeError(f"submodule `{name}`: {found} is not an instance of torch.nn.Module")
        module = found
    return module


def _swap_tensor(module, name, tensor):
    """Replace a tensor of the module (None, or `_MISSING` to delete it) and return the old value."""
    path, _, leaf = name.rpartition(".")
    owner = _find_submodule(module, path)
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if leaf == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for table in (owner._parameters, owner._buffers):
        if leaf in table:
            old = table[leaf]
            if tensor is _MISSING:
                del table[leaf]
            else:
                table[leaf] = tensor
            return old
    old = getattr(owner, leaf, _MISSING)
    if old is not _MISSING and not isinstance(old, torch.Tensor):
        raise TypeError(f"attribute `{leaf}`: {old} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(owner, leaf, tensor)
    elif old is not _MISSING:
        delattr(owner, leaf)
    return old


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    """Context manager: the module uses these tensors; afterwards the dict has the values that the module assigned
    instead.
    """
    given = _tie_weights(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        _check_names(module, given)
    before: dict[str, Any] = {}
    try:
        for name, value in given.items():
            before[name] = _swap_tensor(module, name, value)
        yield
    finally:
        after = {name: _swap_tensor(module, name, before[name]) for name in reversed(before)}
        parameters_and_buffers.update({name: after[name] for name in parameters_and_buffers if name in after})


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    if isinstance(module, torch.nn.DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    if getattr(type(module), "_tl_is_scripted", False):
        raise RuntimeError("The stateless API can't be used with Jitted modules")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers; deprecated, use `torch.func.functional_call`.

    The module has its own tensors again afterwards. Tensors that it assigned to a name of the dict are in the dict.

    Args:
        module: The module.
        parameters_and_buffers: A dict from dotted names to the tensors to use; others stay.
        args: Positional arguments of the module: a tuple, or one value. Default: none.
        kwargs: Keyword arguments of the module, a dict. Default: none.
        tie_weights: Whether a tensor replaces all names that share one in the module. Default: ``True``.
        strict: Whether the dict must have exactly the names of the module. Default: ``False``.

    Returns:
        The result of the module.

    Raises:
        RuntimeError: Names are missing or unknown and ``strict``, or the module is a `DataParallel`.
        ValueError: Names that share a tensor have different ones.
        TypeError: A value is not a tensor.

    Example:
        >>> import warnings
        >>> from torchlite.nn.utils.stateless import functional_call
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> with warnings.catch_warnings(action="ignore"):
        ...     y = functional_call(layer, {"weight": torch.ones(1, 2)}, torch.tensor([3.0, 4.0]))
        >>> y
        tensor([7.])

    See also:
        `torch.func.functional_call`.
    """
    import warnings

    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


__dir__ = make_module_dir(globals())
