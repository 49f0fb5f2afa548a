"""`torch.library.opcheck`: tests of a custom op on sample arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch import call
from .._dispatch.dispatch_state import recording
from .library_op import LibraryOp, find_tensors_in


class OpCheckError(Exception):
    """Raised where a test of `opcheck` fails.

    Example:
        >>> from torchlite.library import OpCheckError
        >>> issubclass(OpCheckError, Exception)
        True
    """


def _tree_map(function: Callable, value: Any) -> Any:
    if isinstance(value, call.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_tree_map(function, v) for v in value)
    return {k: _tree_map(function, v) for k, v in value.items()} if isinstance(value, dict) else value


def _copy_tensor(tensor: Any) -> Any:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _flatten_tensors(result: Any) -> list:
    return list(find_tensors_in(result if isinstance(result, (list, tuple)) else [result]))


def _check_schema(op: LibraryOp, args: Any, kwargs: Any, rtol: Any, atol: Any) -> None:
    """Check that the op mutates what its schema says, and that results do not alias arguments."""
    with recording(False):
        args, kwargs = _tree_map(_copy_tensor, args), _tree_map(_copy_tensor, kwargs)
        values = op.schema.bind(args, kwargs)
        before = [copy.deepcopy(value) for value in values]
        result = op(*args, **kwargs)
        for argument, old, new in zip(op.schema.arguments, before, values, strict=True):
            for was, now in zip(find_tensors_in([old]), find_tensors_in([new]), strict=True):
                if not argument.is_write and not was.equal(now) and not was.ne(was).any():
                    raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
        memory = {t.untyped_storage().data_ptr() for t in find_tensors_in(values) if t.numel()}
        if op.schema.is_functional and any(
            t.untyped_storage().data_ptr() in memory for t in _flatten_tensors(result) if t.numel()
        ):
            raise RuntimeError("Argument x is not defined to alias output but was aliasing")


def _check_autograd_registration(op: LibraryOp, args: Any, kwargs: Any, rtol: Any, atol: Any) -> None:
    """Check that the derivative is registered with autograd."""
    wants = any(t.requires_grad for t in find_tensors_in([*args, *kwargs.values()]))
    autograd = op.is_custom or op.backward is not None or any(k.startswith("Autograd") for k in op.kernels)
    if not wants or autograd or "CompositeImplicitAutograd" in op.kernels:
        return
    if any(
        t.requires_grad for t in _flatten_tensors(op(*_tree_map(_copy_tensor, args), **_tree_map(_copy_tensor, kwargs)))
    ):
        raise OpCheckError(
            "autograd_registration_check: in AutogradMode, found at least one output Tensor that requires grad though "
            "no autograd kernel is registered. Please use torch.library.register_autograd."
        )


def _check_fake_tensor(op: LibraryOp, args: Any, kwargs: Any, rtol: Any, atol: Any) -> None:
    """Check that results on the meta device have the shapes, dtypes and strides of real ones."""
    with recording(False):
        real = _flatten_tensors(op(*_tree_map(_copy_tensor, args), **_tree_map(_copy_tensor, kwargs)))

        def to_meta(tensor: Any) -> Any:
            return tensor.detach().to("meta")

        fake = _flatten_tensors(op(*_tree_map(to_meta, args), **_tree_map(to_meta, kwargs)))
    if len(real) != len(fake):
        raise RuntimeError(f"the fake impl returned {len(fake)} tensors, the kernel {len(real)}")
    for one, other in zip(fake, real, strict=True):
        for what in ("shape", "dtype"):
            a, b = getattr(one, what), getattr(other, what)
            if a != b:
                raise RuntimeError(f"{what} mismatch: the fake impl's output has {a}, the kernel's {b}")
        if one.stride() != other.stride() and one.numel() > 1:
            raise RuntimeError(
                f"stride mismatch: the fake impl's output has {one.stride()}, the kernel's {other.stride()}"
            )


def _check_aot_dispatch(op: LibraryOp, args: Any, kwargs: Any, rtol: Any, atol: Any) -> None:
    """Check that a meta kernel exists and that two calls give equal results and gradients. There is no compiled form to
    compare with.
    """
    from ..testing import assert_close

    _check_fake_tensor(op, args, kwargs, rtol, atol)
    answers = []
    for _ in range(2):
        own, keywords = _tree_map(_copy_tensor, args), _tree_map(_copy_tensor, kwargs)
        outs = _flatten_tensors(op(*own, **keywords))
        for out in outs:
            if out.requires_grad:
                out.sum().abs().backward(retain_graph=True)
        leaves = [t.grad for t in find_tensors_in([*own, *keywords.values()]) if t.grad is not None]
        answers.append([t.detach() for t in (*outs, *leaves)])
    assert_close(answers[0], answers[1], rtol=rtol, atol=atol, equal_nan=True)


TESTS: dict[str, Callable] = {
    "test_schema": _check_schema,
    "test_autograd_registration": _check_autograd_registration,
    "test_faketensor": _check_fake_tensor,
    "test_aot_dispatch_static": _check_aot_dispatch,
    "test_aot_dispatch_dynamic": _check_aot_dispatch,
}
DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def opcheck(
    op: Any,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = DEFAULT,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Tests a custom op on arguments: schema, derivative and meta kernel.

    Args:
        op: A `CustomOpDef`, an op of `torch.ops`, or its name.
        args: Tuple of positional arguments.
        kwargs: Dict of keyword arguments. Default: none.
        test_utils: Names of the tests. Default: all.
        raise_exception: Whether a failed test raises an error. Default: ``True``.
        atol: Absolute tolerance of comparisons. Default: by the dtype.
        rtol: Relative tolerance of comparisons. Default: by the dtype.

    Returns:
        Dict from the name of each test to ``"SUCCESS"`` or, with ``raise_exception=False``, its error.

    Raises:
        OpCheckError: A test fails.
        ValueError: A name of a test is unknown.

    Example:
        >>> import torchlite as torch
        >>> @torch.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> _ = twice.register_fake(torch.empty_like)
        >>> torch.library.opcheck(twice, (torch.ones(3),))["test_faketensor"]
        'SUCCESS'
    """
    from .op_lookup import resolve_op

    tests = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(tests) <= set(TESTS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={tests}), expected test_utils to be subset of {tuple(TESTS)} but it was not"
        )
    found = resolve_op(op)
    answers: dict[str, Any] = {}
    for name in tests:
        try:
            TESTS[name](found, args, kwargs or {}, rtol, atol)
            answers[name] = "SUCCESS"
        except Exception as error:  # the op may raise anything; the report contains it
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            answers[name] = error
    return answers
