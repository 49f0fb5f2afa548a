"""Masks for the inputs of layers, chosen by what the layers got."""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.ao.pruning.sparsifier.utils import fqn_to_module, module_to_fqn

__all__ = ["ActivationSparsifier"]


def _map_mask(function: Callable[[Tensor], Tensor], mask: Any) -> Any:
    if mask is None:
        return None
    return [function(one) for one in mask] if isinstance(mask, list) else function(mask)


class ActivationSparsifier:
    """Masks the inputs of layers. At first hooks collect the inputs by `aggregate_fn`. `step` reduces what they
    collected by `reduce_fn`, and `mask_fn` makes a mask of it. After `squash_mask` hooks multiply by the masks.

    Args:
        model: The model.
        aggregate_fn: The function of what was collected and of an input. Default: each layer's own.
        reduce_fn: The function of what was collected. Default: each layer's own.
        mask_fn: The function that returns a mask of what `reduce_fn` returned. Default: each layer's own.
        features: Indices along `feature_dim` that have a mask each. Default: one mask for all.
        feature_dim: The dimension of features. Default: none.
        **sparse_config: Other arguments of `mask_fn`.

    Example:
        >>> from torchlite.ao.pruning._experimental.activation_sparsifier.activation_sparsifier import (
        ...     ActivationSparsifier)
        >>> model = torch.nn.Sequential(torch.nn.Identity())
        >>> sparsifier = ActivationSparsifier(model, torch.add, lambda data: data, lambda data: data > 1)
        >>> sparsifier.register_layer(model[0])
        >>> _ = model(torch.arange(4.0))
        >>> sparsifier.step()
        >>> sparsifier.squash_mask()
        >>> model(torch.ones(4))
        tensor([0., 0., 1., 1.])
    """

    def __init__(
        self, model: Any, aggregate_fn: Any = None, reduce_fn: Any = None, mask_fn: Any = None, features: Any = None,
        feature_dim: int | None = None, **sparse_config: Any,
    ) -> None:  # fmt: skip
        self.model = model
        self.defaults: dict[str, Any] = defaultdict(
            None, sparse_config=sparse_config, aggregate_fn=aggregate_fn, reduce_fn=reduce_fn, mask_fn=mask_fn,
            features=features, feature_dim=feature_dim,
        )  # fmt: skip
        self.data_groups: dict[str, dict] = defaultdict(dict)
        self.state: dict[str, Any] = defaultdict(dict)

    @staticmethod
    def _safe_rail_checks(args: dict[str, Any]) -> None:
        if args["features"] is not None and args["feature_dim"] is None:
            raise AssertionError("need feature dim to select features")
        for name in ("aggregate_fn", "reduce_fn", "mask_fn"):
            if not callable(args[name]):
                raise AssertionError(f"{args[name]} must be callable")

    def _aggregate_hook(self, name: str) -> Callable[..., None]:
        """Return the hook that collects the inputs of a layer."""

        def hook(module: Any, input: Any) -> None:
            group = self.data_groups[name]
            parts, add, old = self._parts(group, input[0]), group["aggregate_fn"], group.get("data")
            if old is None:
                self.state[name]["mask"] = _map_mask(torch.ones_like, parts)
                old = _map_mask(torch.zeros_like, parts)
            if isinstance(parts, list):
                group["data"] = [add(before, part) for before, part in zip(old, parts, strict=True)]
            else:
                group["data"] = add(old, parts)

        return hook

    @staticmethod
    def _parts(group: dict[str, Any], value: Tensor) -> Any:
        """Return a tensor, or a list of its features."""
        if group["features"] is None:
            return value
        return [
            value.index_select(group["feature_dim"], torch.tensor([feature], device=value.device))
            for feature in group["features"]
        ]

    def register_layer(
        self, layer: Any, aggregate_fn: Any = None, reduce_fn: Any = None, mask_fn: Any = None, features: Any = None,
        feature_dim: int | None = None, **sparse_config: Any,
    ) -> None:  # fmt: skip
        """Begins to collect the inputs of a layer. Arguments are the sparsifier's, if they are absent.

        Args:
            layer: The layer.
            aggregate_fn: The function of what was collected and of an input.
            reduce_fn: The function of what was collected.
            mask_fn: The function that returns a mask.
            features: Indices along `feature_dim` that have a mask each.
            feature_dim: The dimension of features.
            **sparse_config: Other arguments of `mask_fn`.

        Raises:
            AssertionError: The layer is not in the model, a function is absent, or features have no dimension.
        """
        name = module_to_fqn(self.model, layer)
        if name is None:
            raise AssertionError("layer not found in the model")
        given = {
            "aggregate_fn": aggregate_fn, "reduce_fn": reduce_fn, "mask_fn": mask_fn, "features": features,
            "feature_dim": feature_dim, "layer": layer,
        }  # fmt: skip
        group = copy.deepcopy(self.defaults)
        group.update((key, value) for key, value in given.items() if value is not None)
        group["sparse_config"].update(sparse_config)
        self._safe_rail_checks(group)
        if name in self.data_groups:
            warnings.warn(
                "layer already attached to the sparsifier, deregistering the layer and registering with new config",
                stacklevel=2,
            )
            self.unregister_layer(name)
        self.data_groups[name] = group
        self.state[name]["mask"] = None
        group["hook"] = layer.register_forward_pre_hook(self._aggregate_hook(name))
        group["hook_state"] = "aggregate"

    def get_mask(self, name: str | None = None, layer: Any = None) -> Any:
        """The mask of a layer, or a list with one for each feature.

        Args:
            name: The layer's name.
            layer: The layer, if `name` is absent.

        Raises:
            AssertionError: Both are absent, or the layer is not in the model.
            ValueError: The layer is not registered, or got no input.
        """
        if name is None:
            if layer is None:
                raise AssertionError("Need at least name or layer obj to retrieve mask")
            name = module_to_fqn(self.model, layer)
            if name is None:
                raise AssertionError("layer not found in the specified model")
        if name not in self.state:
            raise ValueError("Error: layer with the given name not found")
        mask = self.state[name].get("mask")
        if mask is None:
            raise ValueError("Error: shape unknown, call layer() routine at least once to infer mask")
        return mask

    def unregister_layer(self, name: str) -> None:
        """Forgets a layer.

        Args:
            name: The layer's name.
        """
        self.data_groups[name]["hook"].remove()
        del self.state[name], self.data_groups[name]

    def step(self) -> None:
        """Makes the masks of what was collected, which is forgotten."""
        with torch.no_grad():
            for name, group in self.data_groups.items():
                self.update_mask(name, group["data"], group)
                del group["data"]

    def update_mask(self, name: str, data: Any, configs: dict[str, Any]) -> None:
        """Makes the mask of a layer.

        Args:
            name: The layer's name.
            data: What was collected.
            configs: The arguments of the layer.
        """
        masks, parts = self.get_mask(name), data
        if configs["features"] is None:
            masks, parts = [masks], [data]
        for mask, part in zip(masks, parts, strict=True):
            mask.data = configs["mask_fn"](configs["reduce_fn"](part), **configs["sparse_config"])

    def _sparsify_hook(self, name: str) -> Callable[..., Tensor]:
        """Return the hook that multiplies the inputs of a layer by its mask."""
        mask, group = self.get_mask(name), self.data_groups[name]
        features, dim = group["features"], group["feature_dim"]

        def hook(module: Any, input: Any) -> Tensor:
            value = input[0]
            if features is None:
                return value * mask
            for feature, one in zip(features, mask, strict=True):
                index = torch.tensor([feature], device=value.device)
                value.index_copy_(dim, index, value.index_select(dim, index) * one)
            return value

        return hook

    def squash_mask(self, attach_sparsify_hook: bool = True, **kwargs: Any) -> None:
        """Ends the collection.

        Args:
            attach_sparsify_hook: Whether inputs are multiplied by the masks from now on. Default: ``True``.
            **kwargs: No effect.
        """
        for name, group in self.data_groups.items():
            group.pop("hook").remove()
            group["hook_state"] = "None"
            if attach_sparsify_hook:
                group["hook"] = group["layer"].register_forward_pre_hook(self._sparsify_hook(name))
            group["hook_state"] = "sparsify"

    def _get_serializable_data_groups(self) -> dict[str, Any]:
        """Return the arguments of all layers, without layers and hooks."""
        return defaultdict(
            None,
            {
                name: {key: value for key, value in group.items() if key not in ("hook", "layer")}
                for name, group in self.data_groups.items()
            },
        )

    def _convert_mask(self, states_dict: dict[str, Any], sparse_coo: bool = True) -> dict[str, Any]:
        """Return a copy of states with masks as sparse tensors, or as dense ones."""
        states = copy.deepcopy(states_dict)
        for state in states.values():
            state["mask"] = _map_mask(Tensor.to_sparse_coo if sparse_coo else Tensor.to_dense, state["mask"])
        return states

    def state_dict(self) -> dict[str, Any]:
        """Sparse masks, ``"state"``, the arguments of layers, ``"data_groups"``, and ``"defaults"``."""
        return {
            "state": self._convert_mask(self.state), "data_groups": self._get_serializable_data_groups(),
            "defaults": self.defaults,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes masks and arguments, and gives layers their hooks.

        Args:
            state_dict: What `state_dict` returned.

        Raises:
            AssertionError: The model has no layer of a name.
        """
        self.__set_state__({key: state_dict[key] for key in ("state", "data_groups", "defaults")})

    def __get_state__(self) -> dict[str, Any]:
        return self.state_dict()

    def __set_state__(self, state: dict[str, Any]) -> None:
        layers = {name: fqn_to_module(self.model, name) for name in state["data_groups"]}
        for name, layer in layers.items():
            if layer is None:
                raise AssertionError(f"layer {name} not found in the model")
        state["state"] = self._convert_mask(state["state"], sparse_coo=False)
        vars(self).update(state)
        makers = {"aggregate": self._aggregate_hook, "sparsify": self._sparsify_hook}
        for name, group in self.data_groups.items():
            group["layer"] = layers[name]
            make = makers.get(group.get("hook_state", ""))
            if make is not None:
                group["hook"] = layers[name].register_forward_pre_hook(make(name))

    def __repr__(self) -> str:
        hidden = ("data", "hook", "reduce_fn", "mask_fn", "aggregate_fn")
        lines = [f"{type(self).__name__} ("]
        for name, group in self.data_groups.items():
            lines += ["\tData Group", f"\t    name: {name}"]
            lines += [f"\t    {key}: {group[key]}" for key in sorted(group) if key not in hidden]
        return "\n".join(lines) + ("\n)" if self.data_groups else ")")
