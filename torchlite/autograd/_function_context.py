"""The context of custom functions."""

from __future__ import annotations

import warnings

from .._tensor import Tensor


class FunctionCtx:
    """Context of a custom `Function`: carries values from `forward` to `backward`.

    The context is the node of the graph. Non-tensor values may be set on it as attributes.

    Example:
        >>> class Scale(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, factor):
        ...         ctx.factor = factor
        ...         return x * factor
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * ctx.factor, None
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> Scale.apply(x, 3.0).backward()
        >>> x.grad
        tensor(3.)
    """

    to_save: tuple = ()
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()
    materialize_grads = True
    _materialize_non_diff_grads = True  # zeros also for outputs that are marked as not differentiable
    needs_input_grad: tuple = ()

    def save_for_backward(self, *tensors):
        """Saves tensors for `backward`, which reads them from `ctx.saved_tensors`.

        Call it at most once, in `forward` or `setup_context`; a second call replaces what the first one saved.

        Args:
            tensors: Inputs, outputs or other tensors; ``None`` is allowed.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keeps tensors for `jvp`, which reads them from `ctx.saved_tensors`.

        Args:
            tensors: The tensors; ``None`` is allowed.

        Raises:
            AssertionError: An argument is neither a tensor nor ``None``.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        """Declares the inputs that `forward` changes in place.

        Args:
            tensors: The changed inputs. `forward` must return each of them.
        """
        self.dirty_tensors = tensors

    def mark_shared_storage(self, *pairs):
        """Does nothing but warn: shared storages are tracked without it.

        Args:
            pairs: Has no effect.
        """
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *tensors):
        """Declares outputs that have no gradient; `backward` receives zeros for them.

        Args:
            tensors: The outputs.
        """
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool):
        """Sets what `backward` receives for an output without a gradient.

        Args:
            value: ``True`` for zeros, ``False`` for ``None``. Without a call, zeros.
        """
        self.materialize_grads = value
