"""Auto-wrap policies: which submodules of a model are wrapped, and the recursion that applies them."""

from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, ClassVar

from torchlite import nn
from torchlite._settings.module_dir import make_module_dir

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Returns ``True``: wraps every module.

    Args:
        args: Have no effect.
        kwargs: Have no effect.

    Example:
        >>> torch.distributed.fsdp.wrap.always_wrap_policy()
        True
    """
    return True


class _Policy(ABC):
    """Policy that decides for all modules of a model which are wrapped, and with what arguments."""

    @abstractmethod
    def _run_policy(
        self, root_module: nn.Module, ignored_modules: Collection[nn.Module], root_kwargs: dict[str, Any]
    ) -> dict[nn.Module, dict[str, Any]]:
        """Return the modules and their arguments."""


class ModuleWrapPolicy(_Policy):
    """Policy that wraps modules of some classes.

    Args:
        module_classes: The classes.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> from torchlite.distributed.fsdp.wrap import ModuleWrapPolicy
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
        >>> model = FSDP(model, auto_wrap_policy=ModuleWrapPolicy({torch.nn.Linear}))
        >>> len(FSDP.fsdp_modules(model))
        3
        >>> dist.destroy_process_group()
    """

    def __init__(self, module_classes: Iterable[type[nn.Module]]) -> None:
        self._module_classes = set(module_classes)

    def _run_policy(
        self, root_module: nn.Module, ignored_modules: Collection[nn.Module], root_kwargs: dict[str, Any]
    ) -> dict[nn.Module, dict[str, Any]]:
        classes = tuple(self._module_classes)
        return {
            module: dict(root_kwargs)
            for module in root_module.modules()
            if module not in ignored_modules and isinstance(module, classes)
        }

    def __call__(self, module: nn.Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes})"


class CustomPolicy(_Policy):
    """Policy that asks a function which modules to wrap.

    Args:
        lambda_fn: Returns for a module whether to wrap it, or a dictionary of arguments in place of the root's.

    Example:
        >>> from torchlite.distributed.fsdp.wrap import CustomPolicy
        >>> policy = CustomPolicy(lambda module: isinstance(module, torch.nn.Linear))
    """

    def __init__(self, lambda_fn: Callable[[nn.Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(
        self, root_module: nn.Module, ignored_modules: Collection[nn.Module], root_kwargs: dict[str, Any]
    ) -> dict[nn.Module, dict[str, Any]]:
        found = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, dict | bool):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                    f"{answer}"
                )
            if answer is not False:
                found[module] = {**root_kwargs, **(answer if isinstance(answer, dict) else {})}
        return found


def lambda_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[nn.Module], bool]
) -> bool:
    """Returns whether a function says that a module is to be wrapped.

    Args:
        module: The module.
        recurse: ``True`` asks whether to go into the module; the result is then ``True``.
        nonwrapped_numel: Has no effect.
        lambda_fn: The function.

    Example:
        >>> from torchlite.distributed.fsdp.wrap import lambda_auto_wrap_policy
        >>> lambda_auto_wrap_policy(torch.nn.ReLU(), False, 0, lambda module: isinstance(module, torch.nn.Linear))
        False
    """
    return recurse or lambda_fn(module)


def _module_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, module_classes: Collection[type[nn.Module]]
) -> bool:
    """True for modules of some classes."""
    return recurse or isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Collection[type[nn.Module]]
) -> bool:
    """Returns whether a module is a layer of a transformer.

    Args:
        module: The module.
        recurse: ``True`` asks whether to go into the module; the result is then ``True``.
        nonwrapped_numel: Has no effect.
        transformer_layer_cls: The classes of the layers.

    Example:
        >>> from torchlite.distributed.fsdp.wrap import transformer_auto_wrap_policy
        >>> layer = torch.nn.TransformerEncoderLayer(4, 2, 8)
        >>> transformer_auto_wrap_policy(layer, False, 0, {torch.nn.TransformerEncoderLayer})
        True
    """
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _or_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]
) -> bool:
    """True for modules that any of several policies selects."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: Collection[type[nn.Module]] | None = None,
    exclude_wrap_modules: Collection[type[nn.Module]] | None = None,
) -> bool:
    """Returns whether a module has enough parameters outside of wrapped submodules.

    Args:
        module: The module.
        recurse: ``True`` asks whether to go into the module.
        nonwrapped_numel: The number of elements of these parameters.
        min_num_params: The least number. Default: 100000000.
        force_leaf_modules: Classes whose submodules are not wrapped. Default: a set of the library's.
        exclude_wrap_modules: Classes that are not wrapped. Default: a set of the library's.

    Example:
        >>> from torchlite.distributed.fsdp.wrap import size_based_auto_wrap_policy
        >>> size_based_auto_wrap_policy(torch.nn.Linear(2, 1), False, 3, min_num_params=3)
        True
    """
    leaves = _default_module_classes("FORCE_LEAF_MODULES") if force_leaf_modules is None else force_leaf_modules
    excluded = _default_module_classes("EXCLUDE_WRAP_MODULES") if exclude_wrap_modules is None else exclude_wrap_modules
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


def _default_module_classes(name: str) -> Collection[type[nn.Module]]:
    return getattr(size_based_auto_wrap_policy, name)  # type: ignore[no-any-return]


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}  # type: ignore[attr-defined]


class _ConfigAutoWrap:
    """Arguments of `enable_wrap` for `wrap`."""

    enabled = False
    wrapper: Any = None
    kwargs: ClassVar[dict[str, Any]] = {}


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Makes `wrap` wrap modules in a block.

    Args:
        wrapper_cls: The class of the wrappers.
        wrapper_kwargs: Its arguments.

    Raises:
        NotImplementedError: The block is inside another one.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> from torchlite.distributed.fsdp.wrap import enable_wrap, wrap
        >>> with enable_wrap(wrapper_cls=FSDP):
        ...     layer = wrap(torch.nn.Linear(2, 1))
        >>> isinstance(layer, FSDP)
        True
        >>> dist.destroy_process_group()
    """
    if _ConfigAutoWrap.enabled:
        raise NotImplementedError(
            "You are already within an autowrap context and we currently do not supported nested autowrap."
        )
    _ConfigAutoWrap.enabled, _ConfigAutoWrap.wrapper, _ConfigAutoWrap.kwargs = True, wrapper_cls, wrapper_kwargs
    try:
        yield
    finally:
        _ConfigAutoWrap.enabled, _ConfigAutoWrap.wrapper, _ConfigAutoWrap.kwargs = False, None, {}


def wrap(module: nn.Module, **wrap_overrides: Any) -> nn.Module:
    """Wraps a module inside `enable_wrap`; returns it unchanged outside.

    Args:
        module: The module.
        wrap_overrides: Arguments in place of those of `enable_wrap`.

    Example:
        >>> torch.distributed.fsdp.wrap.wrap(torch.nn.Linear(2, 1))
        Linear(in_features=2, out_features=1, bias=True)
    """
    if not _ConfigAutoWrap.enabled:
        return module
    return _wrap(module, _ConfigAutoWrap.wrapper, **{**_ConfigAutoWrap.kwargs, **wrap_overrides})


def _wrap(module: nn.Module, wrapper_cls: Callable[..., nn.Module], **kwargs: Any) -> nn.Module:
    return wrapper_cls(module, **{**kwargs, **getattr(module, "_wrap_overrides", {})})


def _recursive_wrap(
    module: nn.Module,
    auto_wrap_policy: Callable[..., bool],
    wrapper_cls: Callable[..., nn.Module],
    ignored_modules: Collection[nn.Module],
    ignored_params: Collection[Any],
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> tuple[nn.Module, int]:
    """Wrap modules recursively, innermost first, by a policy function of the number of unwrapped parameters.

    Return the module (wrapped, unless `only_wrap_children`), and the number of wrapped parameters.
    """
    without = {id(parameter) for parameter in ignored_params}
    count = sum(p.numel() for p in module.parameters() if id(p) not in without)
    wrapped = 0
    if auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=count):
        for name, child in list(module.named_children()):
            if child in ignored_modules:
                continue
            wrapped_child, inner = _recursive_wrap(
                child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
            )
            setattr(module, name, wrapped_child)
            wrapped += inner
    left = count - wrapped
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=left):
        return _wrap(module, wrapper_cls, **kwargs), count
    return module, wrapped


def _post_order_apply(
    root: nn.Module, chosen: dict[nn.Module, dict[str, Any]], wrapper: Callable[..., nn.Module]
) -> None:
    """Wrap the modules that a `_Policy` selected below a root, innermost first; a shared module once."""
    replacements: dict[int, nn.Module] = {}

    def visit(module: nn.Module) -> None:
        for name, child in list(module._modules.items()):
            if child is None:
                continue
            if id(child) not in replacements:
                visit(child)
                replacements[id(child)] = wrapper(child, **copy.copy(chosen[child])) if child in chosen else child
            setattr(module, name, replacements[id(child)])

    visit(root)


__dir__ = make_module_dir(globals())
