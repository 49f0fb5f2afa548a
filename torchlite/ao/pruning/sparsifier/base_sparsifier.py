"""The base class of sparsifiers."""

from __future__ import annotations

import abc
import copy
from collections import defaultdict
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.nn.utils import parametrize
from torchlite.nn.utils.parametrize import type_before_parametrizations

from .utils import FakeSparsity, get_arg_info_from_tensor_fqn, module_contains_param, module_to_fqn, swap_module

__all__ = ["BaseSparsifier"]
SUPPORTED_MODULES: set[Any] = {nn.Linear}
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]


class BaseSparsifier(abc.ABC):
    """The base class of sparsifiers. `prepare` gives the weights of a model masks, which `step` chooses by
    `update_mask`, and `squash_mask` makes the zeros a part of the weights.

    Args:
        defaults: Arguments of `update_mask` that all weights have. Default: none.

    Example:
        >>> class First(torch.ao.pruning.BaseSparsifier):
        ...     def update_mask(self, module, tensor_name, **kwargs):
        ...         module.parametrizations[tensor_name][0].mask[1:] = 0
        >>> model, sparsifier = torch.nn.Sequential(torch.nn.Linear(2, 2)), First()
        >>> sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
        >>> sparsifier.step()
        >>> model[0].weight[1].count_nonzero()
        tensor(0)
    """

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.defaults: dict[str, Any] = defaults or {}
        self.state: dict[str, dict] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("defaults", "state", "groups")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.groups):
            lines += [f"\tGroup {number}", f"\t    module: {group['module']}"]
            lines += [f"\t    {key}: {group[key]}" for key in sorted(group) if key != "module"]
        return "\n".join(lines) + ("\n)" if self.groups else ")")

    def state_dict(self) -> dict[str, Any]:
        """The masks by the names of tensors, ``"state"``, and the arguments of each tensor, ``"groups"``."""
        groups = [
            {key: value for key, value in group.items() if key not in KEYS_NOT_IN_STATE_DICT} for group in self.groups
        ]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Takes masks and arguments. A tensor without a mask gets one.

        Args:
            state_dict: What `state_dict` returned.
            strict: Whether all tensors must be in the model. Default: ``True``.

        Raises:
            RuntimeError: A tensor is not in the model.
        """
        groups, states = copy.deepcopy(state_dict["groups"]), state_dict["state"]
        for name, state in states.items():
            found = get_arg_info_from_tensor_fqn(self.model, name)
            module, tensor_name = found["module"], found["tensor_name"]
            if strict and module is None:
                raise RuntimeError(f"Error loading {name} into the model")
            chain = module.parametrizations[tensor_name] if parametrize.is_parametrized(module, tensor_name) else ()
            sparsity = next((one for one in chain if isinstance(one, FakeSparsity)), None)
            if sparsity is None:
                sparsity = FakeSparsity(torch.ones(getattr(module, tensor_name).shape))
                parametrize.register_parametrization(module, tensor_name, sparsity)
            if state.get("mask") is not None:
                sparsity.mask = state.pop("mask")
            for group in groups:
                if group["tensor_fqn"] == name:
                    group.update(found)
        self.__setstate__({"state": states, "groups": groups})

    def make_config_from_model(self, model: Any, SUPPORTED_MODULES: set[Any] = SUPPORTED_MODULES) -> None:
        """Sets ``config`` to the weights of a model's layers.

        Args:
            model: The model.
            SUPPORTED_MODULES: The classes of layers. Default: `torch.nn.Linear`.
        """
        self.config: Any = []
        open_modules = [model]
        while open_modules:
            for child in open_modules.pop().children():
                if type(child) in SUPPORTED_MODULES:
                    self.config.append({"tensor_fqn": f"{module_to_fqn(model, child)}.weight"})
                else:
                    open_modules.append(child)

    def prepare(self, model: Any, config: Any) -> None:
        """Gives the weights of a model masks.

        Args:
            model: The model, which is changed.
            config: A list of dictionaries with ``"tensor_fqn"``, the name of a tensor, and arguments of
                `update_mask`; or ``None``, all weights of linear layers.

        Raises:
            AssertionError: An entry is no dictionary, has no name, or contradicts it.
        """
        self.model, self.config = model, config
        if config is None:
            self.make_config_from_model(model)
        for entry in self.config:
            self.groups.append(self._group_of(entry))
        self._prepare()

    def _group_of(self, entry: Any) -> dict[str, Any]:
        """Return the arguments of one entry of a configuration."""
        if not isinstance(entry, dict):
            raise AssertionError(
                "config elements should be dicts not modules i.e.:"
                "[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]"
            )
        if not isinstance(self.defaults, dict):
            raise AssertionError("defaults must be a dict")
        group = {**copy.deepcopy(self.defaults), **entry}
        name = group.get("tensor_fqn")
        if name is None:
            raise AssertionError(
                "tensor_fqn is a required argument in the sparsity config which "
                "replaces previous `module` and [module]`fqn` arguments"
            )
        found = get_arg_info_from_tensor_fqn(self.model, name)
        for key, value in found.items():
            given = group.get(key, value)
            # A leading dot of a name has no meaning.
            if given is not value and given != value and not (key == "tensor_fqn" and given.lstrip(".") == value):
                raise AssertionError(
                    f"Given both `{key}` and `tensor_fqn` in the config, it is expected them to agree!"
                )
        return {**group, **found}

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        """Register a mask for each group."""
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask")
            if mask is None:
                mask = torch.ones_like(getattr(module, name))
            self.state[group["tensor_fqn"]]["mask"] = mask
            make = group.get("parametrization", FakeSparsity)
            parametrize.register_parametrization(module, name, make(mask))

    def squash_mask(
        self, params_to_keep: Any = None, params_to_keep_per_layer: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        """Makes the zeros a part of the weights, which have no masks any more.

        Args:
            params_to_keep: Names of arguments that each module keeps in its attribute ``sparse_params``. Default:
                none.
            params_to_keep_per_layer: The same by names of modules. Default: none.
            *args: No effect.
            **kwargs: No effect.

        Example:
            >>> model, sparsifier = torch.nn.Sequential(torch.nn.Linear(4, 2)), torch.ao.pruning.WeightNormSparsifier()
            >>> sparsifier.prepare(model, None)
            >>> sparsifier.squash_mask(params_to_keep=("sparse_block_shape",))
            >>> model[0].sparse_params
            {'sparse_block_shape': (1, 4)}
        """
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], leave_parametrized=True)
            of_layer = (params_to_keep_per_layer or {}).get(group["module_fqn"])
            kept = {name: group[name] for name in (*(params_to_keep or ()), *(of_layer or ()))}
            if kept:
                module.sparse_params = kept

    def convert(
        self, module: Any, mapping: Any = None, inplace: bool = False, parameterization: Any = FakeSparsity
    ) -> Any:
        """Replaces the modules of a model that have a mask.

        Args:
            module: The model.
            mapping: The classes by those that they replace; each has ``from_dense``.
            inplace: Whether the model is changed, not a copy. Default: ``False``.
            parameterization: The class of masks. Default: `FakeSparsity`.

        Returns:
            The model.

        Raises:
            NotImplementedError: There is no `mapping`.
        """
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        if not inplace:
            module = copy.deepcopy(module)
        for name, child in [*module.named_children()]:
            if module_contains_param(child, parameterization) and type_before_parametrizations(child) in mapping:
                module._modules[name] = swap_module(child, mapping)
            else:
                self.convert(child, mapping, inplace=True, parameterization=parameterization)
        return module

    def step(self, use_path: bool = True) -> None:
        """Chooses all masks, if a scheduler allows it.

        Args:
            use_path: No effect.
        """
        if self.enable_mask_update:
            with torch.no_grad():
                for group in self.groups:
                    self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module: Any, tensor_name: str, **kwargs: Any) -> None:
        """Chooses the mask of a tensor.

        Args:
            module: The module, whose ``parametrizations`` have the mask.
            tensor_name: The name of the tensor.
            **kwargs: The other arguments of the tensor.
        """
