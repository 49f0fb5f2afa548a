"""The base class of sparsifiers of data that is in no model."""

from __future__ import annotations

import abc
import copy
import warnings
from collections import defaultdict
from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from torchlite.ao.pruning.sparsifier.utils import FakeSparsity
from torchlite.nn.utils import parametrize

__all__ = ["BaseDataSparsifier"]
EMBEDDING_TYPES: set[Any] = {nn.Embedding, nn.EmbeddingBag}
SUPPORTED_TYPES: set[Any] = {torch.Tensor, nn.Parameter, *EMBEDDING_TYPES}


class _Container(nn.Module):
    """Has the data as buffers."""


def _with_masks(states: dict[str, Any], sparse: bool) -> dict[str, Any]:
    """Return a copy of states with masks as sparse tensors, or as dense ones."""
    states = copy.deepcopy(states)
    for state in states.values():
        state["mask"] = state["mask"].to_sparse_coo() if sparse else state["mask"].to_dense()
    return states


class BaseDataSparsifier(BaseSparsifier):
    """The base class of sparsifiers of tensors, parameters and the weights of embeddings, which have names.

    Args:
        data_list: Pairs of names and data. Default: none.
        **defaults: Arguments of `update_mask` that all data has.

    Example:
        >>> from torchlite.ao.pruning._experimental.data_sparsifier import BaseDataSparsifier
        >>> class First(BaseDataSparsifier):
        ...     def update_mask(self, name, data, **kwargs):
        ...         self.get_mask(name)[1:] = 0
        >>> sparsifier = First([("a", torch.ones(3))])
        >>> sparsifier.step()
        >>> sparsifier.get_data("a", return_original=False)
        tensor([1., 0., 0.])
    """

    def __init__(self, data_list: Any = None, **defaults: Any) -> None:
        super().__init__(defaults=defaults)
        self._container = _Container()
        self.data_groups: dict[str, dict] = defaultdict(dict)
        for name, data in data_list or ():
            self.add_data(name, data, **self.defaults)

    def prepare(self, model: Any, config: Any) -> None:
        """Has no meaning here.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("this function is undefined for this class")

    def _extract_weight(self, data: Any) -> Any:
        return data.weight if type(data) in EMBEDDING_TYPES else data

    def add_data(self, name: str, data: Any, reuse_mask: bool = True, **config: Any) -> Tensor:
        """Gives data a name and a mask.

        Args:
            name: The name. Data of the same name is replaced.
            data: A tensor, a parameter or an embedding.
            reuse_mask: Whether new data of the same name keeps the mask. Default: ``True``.
            **config: Arguments of `update_mask`.

        Returns:
            The data with its mask.

        Raises:
            AssertionError: The class of data is another one, or its shape is not that of the mask that it keeps.
        """
        if type(data) not in SUPPORTED_TYPES:
            raise AssertionError(f"specified data type:{type(data)} not supported at the moment")
        weight = self._extract_weight(data)
        group = {**copy.deepcopy(self.defaults), **config}
        mask = group["mask"] if "mask" in group else torch.ones_like(weight)
        make = group.get("parametrization", FakeSparsity)
        if name in self.state:
            warnings.warn("Replacing existing data of the same name. - Did you mean a different name?", stacklevel=2)
            group = {**copy.deepcopy(self.data_groups[name]), **config}
            if reuse_mask:
                if weight.shape != self.get_data(name).shape:
                    raise AssertionError(
                        "to retain the old mask, the shape of the new data must be the same as the previous one"
                    )
                mask = self.get_mask(name)
            self._delete_data(name)
        self._container.register_buffer(name=name, tensor=weight)
        parametrize.register_parametrization(self._container, name, make(mask))
        self.state[name]["mask"] = mask
        self.data_groups[name] = group
        return getattr(self._container, name)

    def get_data(self, name: str, return_original: bool = True) -> Tensor:
        """The data of a name.

        Args:
            name: The name.
            return_original: Whether it is without the mask. Default: ``True``.

        Raises:
            ValueError: There is no such name, or the mask is a part of the data.
        """
        if name not in self.data_groups:
            raise ValueError("data with specified name does not exist")
        if not return_original:
            return getattr(self._container, name)
        if not parametrize.is_parametrized(self._container, name):
            raise ValueError("mask squashed - original mask value does not exist")
        return getattr(self._container.parametrizations, name).original

    def _convert_mask(self, states: dict[str, Any], sparse_coo: bool = True) -> dict[str, Any]:
        return _with_masks(states, sparse_coo)

    def state_dict(self) -> dict[str, Any]:
        """Sparse masks, ``"state"``, arguments, ``"data_groups"``, and data, ``"_container"``."""
        return {
            "state": self._convert_mask(self.state), "data_groups": self.data_groups,
            "_container": self._container.state_dict(),
        }  # fmt: skip

    def _load_container_from_state(self, states: Any, data_groups: Any, container_state_dict: Any) -> None:
        """Put the data of a state into the container, with masks where it has some."""
        for name, state in states.items():
            original = f"parametrizations.{name}.original"
            found = next((key for key in (name, original) if key in container_state_dict), None)
            if data_groups.get(name) is None or found is None:
                raise RuntimeError(f"Error loading {name}")
            data = container_state_dict[found]
            self._container.register_buffer(name=name, tensor=data)
            if found == original:
                mask = state["mask"] if "mask" in state else torch.ones_like(data)
                make = data_groups.get("parametrization", FakeSparsity)
                parametrize.register_parametrization(self._container, name, make(mask))

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Takes masks, arguments and data.

        Args:
            state_dict: What `state_dict` returned.
            strict: Whether data of other names is forgotten. Default: ``True``.

        Raises:
            RuntimeError: A name has no data or no arguments.
        """
        given = copy.deepcopy({key: state_dict[key] for key in ("state", "data_groups", "_container")})
        states, groups = self._convert_mask(given["state"], sparse_coo=False), given["data_groups"]
        if strict:
            self._container = _Container()
        self._load_container_from_state(states, groups, given["_container"])
        if not strict:
            states.update(self.state)
            groups.update(self.data_groups)
        self.__setstate__({"state": states, "data_groups": groups})

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_container" in state:
            data = state.pop("_container")
            self._container = _Container()
            state["state"] = self._convert_mask(state["state"], sparse_coo=False)
            self._load_container_from_state(state["state"], state["data_groups"], data)
        vars(self).update(state)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, **self.state_dict()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name, group in self.data_groups.items():
            lines += ["\tData Group", f"\t    name: {name}"]
            lines += [f"\t    {key}: {group[key]}" for key in sorted(group) if key != "data"]
        return "\n".join(lines) + ("\n)" if self.data_groups else ")")

    def get_mask(self, name: str) -> Tensor:
        """The mask of a name.

        Args:
            name: The name.

        Raises:
            ValueError: There is no such name.
        """
        if name not in self.state:
            raise ValueError("data with specified name does not exist")
        return self.state[name]["mask"]

    def squash_mask(  # type: ignore[override]
        self, *args: Any, leave_parametrized: bool = True, names: list[str] | None = None, **kwargs: Any
    ) -> None:
        """Makes the zeros a part of the data, which has no masks any more.

        Args:
            *args: No effect.
            leave_parametrized: Whether the data has the zeros. Default: ``True``.
            names: The names. Default: all.
            **kwargs: No effect.
        """
        for name in [*self.data_groups] if names is None else names:
            parametrize.remove_parametrizations(self._container, name, leave_parametrized=leave_parametrized)

    def step(self) -> None:  # type: ignore[override]
        """Chooses all masks, if a scheduler allows it."""
        if self.enable_mask_update:
            with torch.no_grad():
                for name, group in self.data_groups.items():
                    self.update_mask(name, self.get_data(name), **group)

    @abc.abstractmethod
    def update_mask(self, name: str, data: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Chooses the mask of a name.

        Args:
            name: The name.
            data: The data.
            **kwargs: The other arguments of the name.
        """

    def _delete_data(self, name: str) -> None:
        self.squash_mask(names=[name], leave_parametrized=False)
        delattr(self._container, name)
        del self.state[name], self.data_groups[name]
