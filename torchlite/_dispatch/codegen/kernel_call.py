"""Generates the kernel call of the hot path, and the wrapping of its result."""

from __future__ import annotations

from collections.abc import Mapping

from ..op_record import ALWAYS_BOOL, DEFAULT, INT_TO_FLOAT, KEEPS_DTYPE, MAYBE_VIEW, NONDIFF, POINTWISE, VIEW, Op
from .graph_node import FastPathCase, write_node, write_unrecorded
from .source_builder import Listing, Piece, Source


def write_call(source: Source, case: FastPathCase) -> None:
    """From the kernel's call to the return of the result."""
    op = case.op
    for name in case.optional:
        source.line(f"{name}_data_ = None if {name} is None else {name}._tl_array")
    raw = {p.name: f"{p.name}_data_" if p.name in case.optional else f"{p.name}._tl_array" for p in case.tensors}
    write_kernel(source, case, raw)
    if op.outputs is not None or op.multi_output:
        write_finish(source, case)
        return
    _write_result(source, case)
    if op.tags & NONDIFF:
        source.comment("The op has no derivative.")
        source.line("result_._tl_node = None")
        write_unrecorded(source, case)
    else:
        write_node(source, case)
    source.line("return result_")


def write_kernel(source: Source, case: FastPathCase, raw: Mapping[str, str]) -> None:
    """Write the kernel call; `raw` maps arguments to the names of their raw arrays. NumPy is silent in it."""
    op = case.op
    arguments = [(f"{p.name}=" if p.kwonly else "") + raw.get(p.name, p.name) for p in op.params]
    source.comment("The device's kernel computes on the raw arrays; its errors get PyTorch's words.")
    with source.block("try:"):
        source.expression("kernel_ = ", _kernel_expression(case, raw))
        result = "outs_" if op.aux_outputs else "data_"
        if op.tags & VIEW:
            source.write(Listing(f"{result} = kernel_(", arguments))
        else:
            source.write(Listing(f"{result} = quiet_run(", ["kernel_", *arguments]))
    write_error(source, op, "translate_error", _argument_expressions(case))


def _kernel_expression(case: FastPathCase, raw: Mapping[str, str]) -> list[Piece]:
    """The expression of the device's kernel: views cost the same for any size. Of a list the first array's counts."""
    op = case.op
    if op.tags & (VIEW | MAYBE_VIEW):
        return [f"table_.{op.name}"]
    first = f"{case.tensors[0].name}._tl_array" if case.tensors else f"{raw[op.params[0].name]}[0]"
    return [f"table_.{op.name} if {first}.size < LARGE", f"else table_.large.{op.name}"]


def write_error(source: Source, op: Op, explained: str, values: Listing) -> None:
    """Write the `except` clause of a kernel or composite: retry with coerced arguments, or translate the error."""
    with source.block("except Exception as error_:"):
        source.write(Listing("plain_ = coerced_args(", [f"{op.name}__op", "error_", values]))
        with source.block("if plain_ is not None:"):
            source.comment("Once more where NumPy's numbers or Python's types stood for plain ones.")
            source.write(Listing("return without_interceptors(", [f"{op.name}__op", f"{op.name}__function", "*plain_"]))
        error: list[Piece] = [f"{op.name}__op", "error_", values, f"{op.name}__function"]
        source.write(Listing(f"raise {explained}(", error, ") from error_.__cause__"))


def _argument_expressions(case: FastPathCase) -> Listing:
    """The arguments as they came, in the record's order."""
    return Listing("[", [p.name for p in case.op.params], "]")


def write_finish(source: Source, case: FastPathCase) -> None:
    """Pass several results, or the result of an op on a list, to the last function of the slow path."""
    source.comment("Wrap what it returned, and record the op if an input wants a gradient.")
    source.write(
        Listing("return wrap_and_record(", [f"{case.op.name}__op", "table_", _argument_expressions(case), "data_"])
    )


def _write_result(source: Source, case: FastPathCase) -> None:
    """Write the code that wraps the kernel's result in a Tensor."""
    if case.op.aux_outputs:
        source.comment("The values beside the result are for the derivative alone.")
        source.line("data_ = outs_[0]")
    if case.op.tags & MAYBE_VIEW:
        source.comment("The kernel had nothing to do.")
        with source.block(f"if data_ is {case.tensors[0].name}._tl_array:"):
            source.line(f"return {case.tensors[0].name}")
    source.comment("A kernel may return a NumPy scalar.")
    with source.block("if data_.__class__ is not table_.array:"):
        source.line("data_ = table_.as_array(data_)")
    source.comment("The result's tensor.")
    source.line("result_ = new(Tensor)")
    source.line("result_._tl_array = data_")
    source.line("result_._tl_kernels = table_")
    source.line(f"result_.dtype = {_dtype_expression(case)}")
    if case.op.tags & (VIEW | MAYBE_VIEW):
        _write_view(source, case)
    else:
        source.line("result_._tl_meta = None")


def _dtype_expression(case: FastPathCase) -> str:
    """The result's dtype: the input's or the record's, or else the kernel's, which is looked up only if it differs."""
    op = case.op
    if op.promote == ALWAYS_BOOL and not op.tags & KEEPS_DTYPE:
        return "bool_"
    if op.tags & KEEPS_DTYPE or op.tags & POINTWISE and op.promote in (DEFAULT, INT_TO_FLOAT):
        return "dtype_"
    return f"dtype_ if data_.dtype is {case.tensors[0].name}._tl_array.dtype else table_.dtype_of(data_)"


def _write_view(source: Source, case: FastPathCase) -> None:
    """Write a view's metadata: its base, which is never a view, and the time of its history (see `AutogradMeta`)."""
    viewed = case.tensors[0].name
    kept = [
        f"({viewed}, HISTORY_COUNTER) if (meta_ := {viewed}._tl_meta) is None",
        "or meta_.__class__ is AutogradMeta and meta_.base is None",
        f"else view_meta({viewed}) if meta_.__class__ is not tuple",
        "else (meta_[0], HISTORY_COUNTER) if len(meta_) == 2",
        "else (meta_[0], HISTORY_COUNTER, meta_[2])",
    ]
    if not case.op.tags & MAYBE_VIEW:
        source.comment("It is a view: of the input, or of what the input is a view of.")
        source.expression("result_._tl_meta = ", kept)
        return
    source.comment("With the input's memory it is a view: of the input, or of what the input is a view of.")
    shares = [
        f"if (base_ := data_.base) is not None and (base_ is (owner_ := {viewed}._tl_array) or base_ is owner_.base)",
        "else None",
    ]
    source.expression("result_._tl_meta = ", [f"({kept[0]}", *kept[1:-1], f"{kept[-1]})", *shares])
