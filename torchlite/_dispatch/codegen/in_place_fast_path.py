"""Generates the fast path of an in-place op: the backend's in-place kernel, if nothing has to be recorded or cast."""

from __future__ import annotations

from ..op_record import DEFAULT, INT_TO_FLOAT, Op
from .source_builder import INT64_END, INT64_MIN, Source


def has_fast_path(op: Op) -> bool:
    """True if an in-place op can run as its kernel alone."""
    if op.number_ops:
        return True
    return not op.is_implicit and len(op.params) == len(op.tensor_params) <= 2 and op.promote in (DEFAULT, INT_TO_FLOAT)


def in_place_text(op: Op) -> str:
    """The source of `add_(self, other)`: it returns None, with nothing written, if the call needs the slow path."""
    others = [p.name for p in op.params[1:]]
    if op.number_ops:
        return _numbers_text(op, f"{op.number_ops[1]}_", others)
    source = Source()
    with source.block(f"def {op.name}_({', '.join(['self', *others])}):"):
        source.line(f"kernel_ = getattr(self._tl_kernels, {op.name + '_'!r}, None)")
        if others:
            source.line("dtype_ = self.dtype")
        _write_guard(source, op, bool(others))
        for other in others:
            _write_other(source, op, other)
        with source.block("if self._tl_array.size >= LARGE:"):
            source.line(f"kernel_ = self._tl_kernels.large.{op.name}_")
        _write_kernel(source, ["raw_"] * len(others))
    return source.text()


def _numbers_text(op: Op, kernel: str, others: list[str]) -> str:
    """The source of `clamp_(self, min=None, max=None)`, of floats and numbers that every float dtype holds."""
    source = Source()
    with source.block(f"def {op.name}_({', '.join(['self', *[f'{name}=None' for name in others]])}):"):
        source.line(f"kernel_ = getattr(self._tl_kernels, {kernel!r}, None)")
        _write_guard(source, op, False)
        source.comment("The numbers leave the dtype as it is, and are not all absent.")
        tests = ["self.dtype not in self._tl_kernels.exact_scalar_dtypes", " and ".join(f"{n} is None" for n in others)]
        for name in others:
            tests.append(f"not ({name} is None or {name}.__class__ is float or {name}.__class__ is int)")
            tests.append(f"{name} is not None and not {INT64_MIN} <= {name} < {INT64_END}")
        with source.condition("if", tests, "or"):
            source.line("return None")
        with source.block("if self._tl_array.size >= LARGE:"):
            source.line(f"kernel_ = self._tl_kernels.large.{kernel}")
        _write_kernel(source, others)
    return source.text()


def _write_guard(source: Source, op: Op, binary: bool) -> None:
    """Without an `other` tensor, Parameters (usually leaves that require a gradient) take the slow path."""
    plain = (
        "not (self.__class__ is Tensor or self.__class__ is Parameter)" if binary else "self.__class__ is not Tensor"
    )
    tests = [
        "kernel_ is None",
        "INTERCEPTORS",
        plain,
        "self._tl_node is not None and MODE.grad",
        "WRITE_CHECKS and check_before_write(self)",
    ]
    if op.promote == INT_TO_FLOAT:
        tests.append(f"{'dtype_' if binary else 'self.dtype'}.category < 2")
    tests.append("self._tl_array.base is not None and is_unsafe_target(self)")
    source.comment(
        "The general path writes where a kernel is absent, something intercepts, or there is history to keep."
    )
    source.comment("It raises where the elements of a view share places.")
    with source.condition("if", tests, "or"):
        source.line("return None")


def _write_other(source: Source, op: Op, other: str) -> None:
    """Write the kernel's argument for the other operand."""
    source.comment(f"`{other}` is a tensor of the same dtype and device that wants no gradient, or a number that fits.")
    with source.block(f"if {other}.__class__ is Tensor:"):
        tests = [f"{other}.dtype is not dtype_", f"{other}._tl_kernels is not self._tl_kernels"]
        with source.condition("if", [*tests, f"{other}._tl_node is not None and MODE.grad"], "or"):
            source.line("return None")
        source.line(f"raw_ = {other}._tl_array")
        source.comment("Not where it lies on a part of what is written.")
        tests = [
            "(raw_.base is not None or self._tl_array.base is not None)",
            "has_partial_overlap(self._tl_kernels, self._tl_array, raw_)",
        ]
        with source.condition("if", tests, "and"):
            source.line("return None")
    dtype_test = f"dtype_ in self._tl_kernels.{'exact_' if op.scalar_rounding == 'always' else ''}scalar_dtypes"
    with source.block(f"elif {other}.__class__ is float and {dtype_test}:"):
        source.line(f"raw_ = {other}")
    with source.block(f"elif {other}.__class__ is int and {INT64_MIN} <= {other} < {INT64_END}:"):
        with source.block("if dtype_ is int64:"):
            source.line(f"raw_ = {other}")
        with source.block(f"elif {dtype_test}:"):
            source.line(f"raw_ = float({other})")
        with source.block("else:"):
            source.line("return None")
    with source.block("else:"):
        source.line("return None")


def _write_kernel(source: Source, others: list[str]) -> None:
    source.comment(
        "The kernel writes; where it refuses, nothing was written, and the general path has PyTorch's words."
    )
    with source.block("try:"):
        source.line(f"quiet_run(kernel_, self._tl_array{''.join(f', {name}' for name in others)})")
    with source.block("except (TypeError, ValueError, OverflowError, RuntimeError):"):
        source.line("return None")
    source.comment("Nodes that saved the tensor notice the change by its version.")
    source.line("bump_version(self)")
    source.line("return self")
