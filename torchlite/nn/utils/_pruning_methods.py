"""The classes of pruning methods, which `prune` exports."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torchlite as torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlite import Tensor
    from torchlite.nn.modules.module import Module


class BasePruningMethod(ABC):
    """The base class of pruning methods.

    Pruning replaces the parameter ``name`` by the parameter ``{name}_orig`` and the buffer ``{name}_mask``. Before each
    forward pass ``name`` is set to their product. A subclass defines `compute_mask`. Its ``PRUNING_TYPE`` says how
    methods of one parameter combine: ``"unstructured"`` chooses among the elements that are not pruned,
    ``"structured"`` among the slices, and ``"global"`` gets the whole tensor.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> class Threshold(prune.BasePruningMethod):
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t.abs() > 1)
        >>> layer = torch.nn.Linear(3, 1)
        >>> _ = torch.nn.utils.vector_to_parameters(torch.tensor([0.5, -2.0, 3.0, 0.0]), layer.parameters())
        >>> _ = Threshold.apply(layer, "weight")
        >>> layer.weight.detach()
        tensor([[ 0., -2.,  3.]])

    See also:
        `l1_unstructured`, `PruningContainer`.
    """

    _tensor_name = ""
    PRUNING_TYPE = "unstructured"

    def __call__(self, module: Module, inputs: Any) -> Any:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Returns the new mask of a tensor.

        Args:
            t: The tensor.
            default_mask: Its present mask.

        Returns:
            The mask: 0 where an element is pruned, else 1.
        """

    def apply_mask(self, module: Module) -> Any:
        """Returns the pruned tensor: the original times the mask.

        Args:
            module: The module with the parameter.

        Raises:
            AssertionError: No parameter is pruned yet.
        """
        if not self._tensor_name:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prunes a parameter of a module, in addition to earlier pruning.

        Args:
            module: The module, which is changed.
            name: Name of the parameter.
            args: Positional arguments of the class.
            importance_scores: A tensor of the parameter's shape whose least magnitudes are pruned. Default: the
                parameter itself.
            kwargs: Keyword arguments of the class.

        Returns:
            The pruning method, or the `PruningContainer` of all methods of the parameter.

        Raises:
            AssertionError: ``importance_scores`` has another shape.
        """
        old = None
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                old = hook
                del module._forward_pre_hooks[key]
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if old is not None:
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        fresh = not isinstance(method, PruningContainer)
        if fresh:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = torch.ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone(memory_format=torch.contiguous_format)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if fresh:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Returns the pruned form of a tensor that belongs to no module.

        Args:
            t: The tensor.
            default_mask: Its present mask. Default: ones.
            importance_scores: A tensor of the same shape from which the mask is computed. Default: ``t``.

        Raises:
            AssertionError: ``importance_scores`` has another shape.
        """
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        default_mask = torch.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> Any:
        """Makes the pruned tensor a parameter again. Pruned elements stay 0.

        Args:
            module: The module, which is changed.
        """
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters[self._tensor_name + "_orig"]
        original.data = weight.data
        del module._parameters[self._tensor_name + "_orig"]
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods of one parameter, applied one after the other.

    `BasePruningMethod.apply` creates it when a parameter is pruned again. It has a length, and can be indexed and
    iterated over.

    Args:
        args: The methods, or one iterable of them.

    Raises:
        TypeError: One is not a pruning method.
        ValueError: They are of several parameters.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = torch.nn.Linear(4, 1)
        >>> _ = prune.l1_unstructured(layer, "weight", amount=1)
        >>> container = prune.RandomUnstructured.apply(layer, "weight", amount=2)
        >>> [type(method).__name__ for method in container]
        ['L1Unstructured', 'RandomUnstructured']
        >>> layer.weight_mask.sum()
        tensor(1.)
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if isinstance(args[0] if args else None, Iterable):
            args = tuple(args[0])
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
            self._pruning_methods += (args[0],)
        else:
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> Any:
        """Adds a method of the same parameter.

        Args:
            method: The method.

        Raises:
            TypeError: It is not a pruning method.
            ValueError: It is of another parameter.
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Returns the mask after the last method, which chooses among what is not pruned yet.

        Args:
            t: The tensor.
            default_mask: Its present mask.

        Returns:
            The mask: 0 where an element is pruned, else 1.

        Raises:
            ValueError: The method's ``PRUNING_TYPE`` is unknown.
        """
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            part = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            kept = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
            part = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            part = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = mask.clone()
        new[part] = method.compute_mask(t[part], default_mask=mask[part]).to(new.dtype)
        return new


class Identity(BasePruningMethod):
    """A pruning method that prunes nothing and adds the mask of ones.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> layer = torch.nn.Linear(2, 1)
        >>> _ = prune.Identity.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[1., 1.]])

    See also:
        `identity`.
    """

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:  # type: ignore[override]
        """Adds a mask of ones to a parameter.

        Args:
            module: The module, which is changed.
            name: Name of the parameter.

        Returns:
            The pruning method, or the `PruningContainer` of all methods of the parameter.
        """
        return super().apply(module, name)


def _validate_pruning_amount_init(amount):
    """An amount is a share, a float between 0 and 1, or a number of elements."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size):
    """Check that the amount is at most the number of elements."""
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_structured_pruning(t):
    """Check that the tensor has more than one dimension: others have no channels to prune."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t, dim):
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount, tensor_size):
    """Return the number of elements to prune: `amount` if it is an int, else that fraction of `tensor_size`."""
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _compute_norm(t, n, dim):
    """The n-norm over all dimensions but `dim`."""
    return torch.norm(t, p=n, dim=[d for d in range(t.dim()) if d != dim % t.dim()])


def _num_to_prune(amount, size):
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


class RandomUnstructured(BasePruningMethod):
    """A pruning method that prunes elements at random.

    Args:
        amount: Share of the elements to prune, a float in [0, 1]; or their number, an int.

    Raises:
        TypeError: ``amount`` is not a number.
        ValueError: ``amount`` is out of range.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> prune.RandomUnstructured(amount=3).prune(torch.ones(2, 4)).sum()
        tensor(5.)

    See also:
        `random_unstructured`.
    """

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _num_to_prune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if count != 0:
            mask.view(-1)[torch.topk(torch.rand_like(t).view(-1), k=count).indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> Any:  # type: ignore[override]
        """Prunes random elements of a parameter.

        Args:
            module: The module, which is changed.
            name: Name of the parameter.
            amount: Share of the elements to prune, a float in [0, 1]; or their number, an int.

        Returns:
            The pruning method, or the `PruningContainer` of all methods of the parameter.
        """
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """A pruning method that prunes the elements of least magnitude.

    Args:
        amount: Share of the elements to prune, a float in [0, 1]; or their number, an int.

    Raises:
        TypeError: ``amount`` is not a number.
        ValueError: ``amount`` is out of range.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> prune.L1Unstructured(amount=0.5).prune(torch.tensor([1.0, -4.0, 2.0, 3.0]))
        tensor([ 0., -4.,  0.,  3.])

    See also:
        `l1_unstructured`.
    """

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        count = _num_to_prune(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=torch.contiguous_format)
        if count != 0:
            mask.view(-1)[torch.topk(torch.abs(t).reshape(-1), k=count, largest=False).indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, importance_scores: Any = None) -> Any:  # type: ignore[override]
        """Prunes the elements of a parameter with the least magnitude.

        Args:
            module: The module, which is changed.
            name: Name of the parameter.
            amount: Share of the elements to prune, a float in [0, 1]; or their number, an int.
            importance_scores: A tensor of the parameter's shape whose least magnitudes are pruned. Default: the
                parameter itself.

        Returns:
            The pruning method, or the `PruningContainer` of all methods of the parameter.
        """
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"
    dim: int
    amount: float

    def _channel_scores(self, t):
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _num_to_prune(self.amount, size)
        if count == 0:
            return default_mask
        kept = torch.topk(self._channel_scores(t), k=size - count).indices
        mask = torch.zeros_like(t)
        mask[(slice(None),) * (self.dim % t.dim()) + (kept,)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """A pruning method that prunes slices along a dimension at random.

    Args:
        amount: Share of the slices to prune, a float in [0, 1]; or their number, an int.
        dim: The dimension of the slices. Default: -1.

    Raises:
        TypeError: ``amount`` is not a number.
        ValueError: ``amount`` is out of range.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> prune.RandomStructured(amount=1, dim=0).prune(torch.ones(3, 4)).sum()
        tensor(8.)

    See also:
        `random_structured`.
    """

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def _channel_scores(self, t):
        return torch.rand(t.shape[self.dim])

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        """Prunes random slices of a parameter.

        Args:
            module: The module, which is changed.
            name: Name of the parameter.
            amount: Share of the slices to prune, a float in [0, 1]; or their number, an int.
            dim: The dimension of the slices. Default: -1.

        Returns:
            The pruning method, or the `PruningContainer` of all methods of the parameter.
        """
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """A pruning method that prunes the slices of least norm along a dimension.

    Args:
        amount: Share of the slices to prune, a float in [0, 1]; or their number, an int.
        n: Order of the norm, as of `torch.norm`.
        dim: The dimension of the slices. Default: -1.

    Raises:
        TypeError: ``amount`` is not a number.
        ValueError: ``amount`` is out of range.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> prune.LnStructured(amount=1, n=2, dim=0).prune(torch.tensor([[3.0, 4.0], [1.0, 1.0]]))
        tensor([[3., 4.],
                [0., 0.]])

    See also:
        `ln_structured`.
    """

    def __init__(self, amount: Any, n: int, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def _channel_scores(self, t):
        return _compute_norm(t, self.n, self.dim)

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:  # type: ignore[override]
        """Prunes the slices of a parameter with the least norm.

        Args:
            module: The module, which is changed.
            name: Name of the parameter.
            amount: Share of the slices to prune, a float in [0, 1]; or their number, an int.
            n: Order of the norm, as of `torch.norm`.
            dim: The dimension of the slices.
            importance_scores: A tensor of the parameter's shape whose norms count. Default: the parameter itself.

        Returns:
            The pruning method, or the `PruningContainer` of all methods of the parameter.
        """
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """A pruning method with a given mask.

    Args:
        mask: The mask, of the parameter's shape: 0 where an element is pruned, else 1.

    Example:
        >>> from torchlite.nn.utils import prune
        >>> prune.CustomFromMask(torch.tensor([1, 0, 1])).prune(torch.tensor([1.0, 2.0, 3.0]))
        tensor([1., 0., 3.])

    See also:
        `custom_from_mask`.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and mask must have the same shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Any) -> Any:  # type: ignore[override]
        """Prunes a parameter by a mask.

        Args:
            module: The module, which is changed.
            name: Name of the parameter.
            mask: The mask, of the parameter's shape: 0 where an element is pruned, else 1.

        Returns:
            The pruning method, or the `PruningContainer` of all methods of the parameter.
        """
        return super().apply(module, name, mask=mask)
