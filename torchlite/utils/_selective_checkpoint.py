"""Selective activation checkpointing: chosen ops save their results, which the recomputation reuses."""

from __future__ import annotations

import enum
import functools
from collections import defaultdict, deque
from typing import Any

from .._aten import OpOverload, OpOverloadPacket, ops, torchlite_overload
from .._aten.record_to_overload import match_overload
from .._dispatch import call
from .._dispatch.interceptors import Interceptor
from .._dispatch.op_replay import CachedResult, replay_op
from .._library.library_op import LibraryOp
from .._tensor import Tensor
from ._pytree import tree_leaves, tree_map_only

# Ops whose results are never saved, regardless of the policy.
SAC_IGNORED_OPS = {"alias", "detach"}


# Matrix products, by the dimensions of their arguments, under the names that policies use.
_PRODUCTS = {(2, 2): "mm", (3, 3): "bmm", (2, 1): "mv", (1, 1): "dot"}


def _aten_overload(op: Any, args: Any, kwargs: Any) -> OpOverload:
    """The library's overload for a record's call."""
    values = call.bind(op, args, {key: value for key, value in kwargs.items() if key != "out"})
    name = "addmm" if op.name == "linear" else None
    if op.name == "matmul":
        name = _PRODUCTS.get((values[0].ndim, values[1].ndim))
    if name is not None:
        return getattr(ops.aten, name).default
    found = match_overload(op, values)
    return torchlite_overload(op) if found is None else found[0]


class CheckpointPolicy(enum.Enum):
    """What becomes of an op's result in selective checkpointing.

    `MUST_SAVE` and `PREFER_SAVE` save it; `MUST_RECOMPUTE` and `PREFER_RECOMPUTE` recompute it.

    Example:
        >>> from torchlite.utils.checkpoint import CheckpointPolicy
        >>> CheckpointPolicy.MUST_SAVE.name
        'MUST_SAVE'
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class SelectiveCheckpointContext:
    """The first argument of a policy of selective checkpointing.

    Args:
        is_recompute: Whether the op runs in the recomputation.

    Example:
        >>> from torchlite.utils.checkpoint import SelectiveCheckpointContext
        >>> SelectiveCheckpointContext(is_recompute=True).is_recompute
        True
    """

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


class _SelectiveCheckpointMode(Interceptor):
    """Base of both runs: the policy is called for each op, then for the ops that a composite op consists of.

    `in_saved_composite` is True inside a composite op whose result is saved.
    """

    is_recompute = False
    is_dispatch_mode = True

    def __init__(self, policy: Any, storage: Any, may_change: bool) -> None:
        self.policy, self.storage, self.may_change = policy, storage, may_change
        self.in_saved_composite = False

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(op, LibraryOp):
            if not self.keeps(op.overload, args, kwargs):
                return function(*args, **kwargs)
            with op.around(functools.partial(self.around, op.overload)):
                return function(*args, **kwargs)
        if getattr(function, "op", None) != op or op.name in SAC_IGNORED_OPS:
            return function(*args, **kwargs)  # it writes in place, or is a factory
        kwargs = {key: value for key, value in kwargs.items() if key != "out" or value is not None}
        name = _aten_overload(op, args, kwargs)
        saves = self.in_saved_composite or self.keeps(name, args, kwargs)
        if op.is_implicit:
            before, self.in_saved_composite = self.in_saved_composite, saves
            try:
                with self:
                    return call.without_interceptors(op, function, args, kwargs)
            finally:
                self.in_saved_composite = before
        if not saves or op.aux_outputs:
            return function(*args, **kwargs)
        return self.run_kept_op(op, name, function, args, kwargs)

    def keeps(self, name: OpOverload, args: Any, kwargs: Any) -> bool:
        answer = self.policy(SelectiveCheckpointContext(is_recompute=self.is_recompute), name, *args, **kwargs)
        if isinstance(answer, bool):
            return answer
        return answer in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)

    def run_kept_op(self, op: Any, name: OpOverload, function: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    def around(self, name: OpOverload, kernel: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a custom op in place of its kernel."""
        raise NotImplementedError

    def pop_saved(self, name: OpOverload) -> Any:
        """Return a saved result, once."""
        if not self.storage[name]:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        found = self.storage[name].popleft()
        if found.is_changed and not self.may_change:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return found


class _CachedOutput:
    """The output of a custom op: tensors in any nesting, and other values."""

    def __init__(self, result: Any) -> None:
        self.val = tree_map_only(Tensor, Tensor.detach, result)
        self.tensors = [t for t in tree_leaves(self.val) if isinstance(t, Tensor)]
        self.versions = [t._version for t in self.tensors]

    @property
    def is_changed(self) -> bool:
        return any(t._version != before for t, before in zip(self.tensors, self.versions, strict=True))


class _CachingTorchDispatchMode(_SelectiveCheckpointMode):
    """The first run: saves results."""

    def run_kept_op(self, op: Any, name: OpOverload, function: Any, args: Any, kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        self.storage[name].append(CachedResult(result))
        return result

    def around(self, name: OpOverload, kernel: Any, *args: Any, **kwargs: Any) -> Any:
        result = kernel(*args, **kwargs)
        self.storage[name].append(_CachedOutput(result))
        return result


class _CachedTorchDispatchMode(_SelectiveCheckpointMode):
    """The recomputation: reuses saved results."""

    is_recompute = True

    def run_kept_op(self, op: Any, name: OpOverload, function: Any, args: Any, kwargs: Any) -> Any:
        return replay_op(op, args, kwargs, self.pop_saved(name))

    def around(self, name: OpOverload, kernel: Any, *args: Any, **kwargs: Any) -> Any:
        return tree_map_only(Tensor, Tensor.detach, self.pop_saved(name).val)


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> Any:
    """Returns two context managers for `checkpoint`'s `context_fn`, which save the results of chosen ops.

    Args:
        policy_fn_or_list: A list of overloads of ``torch.ops.aten`` to save, or a function
            ``(ctx, op, *args, **kwargs)``
            that returns a `CheckpointPolicy` or a bool. ``ctx.is_recompute`` is true in the recomputation.
        allow_cache_entry_mutation: Whether saved results may be written to. Default: ``False``.

    Returns:
        Context managers for the first run and for the recomputation. Backward raises RuntimeError where a saved result
        was written to, and where it runs a second time.

    Raises:
        ValueError: The list has something else than overloads.
        TypeError: The policy is neither a list nor a function.

    Example:
        >>> import functools
        >>> import torchlite as torch
        >>> from torchlite.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        >>> context = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
        >>> x = torch.ones(2, 2, requires_grad=True)
        >>> checkpoint(lambda x: (x @ x).exp().sum(), x, use_reentrant=False, context_fn=context).backward()
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                extra = (
                    "Please update the OpOverloadPacket to a specific OpOverload. For example, if you have "
                    "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    if isinstance(op, OpOverloadPacket)
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {extra}"
                )
        chosen = set(policy_fn_or_list)

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Any = defaultdict(deque)
    return (
        _CachingTorchDispatchMode(policy, storage, allow_cache_entry_mutation),
        _CachedTorchDispatchMode(policy, storage, allow_cache_entry_mutation),
    )
