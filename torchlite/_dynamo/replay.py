"""Replay of a captured call: runs the passes and compiles the function that repeats the call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np

from torchlite._dispatch import call
from torchlite._dispatch.autograd_graph import alias_meta, autograd_meta_of, root_meta_of, view_meta
from torchlite._dispatch.backend import owner_of
from torchlite._dispatch.dispatch_state import LEAF, REQUIRES_GRAD_DETACHED
from torchlite._dispatch.numpy_errors import run_quietly
from torchlite._tensor.conj_neg_views import conj_neg_tensor

from .buffer_reuse import reuse_buffers
from .captured_backward import CapturedPass, make_replay_node
from .cast_elimination import eliminate_integer_casts
from .cat_elimination import eliminate_cat
from .channels_last import end_in_chains, use_channels_last
from .common_subexpression_elimination import eliminate_common_subexpressions
from .compile_source import define_function
from .constant_folding import fold_constants
from .constant_products import bind_constant_products
from .constant_tensors import has_gradients
from .dead_code_elimination import eliminate_dead_code
from .elementwise_chains import bind_chains
from .fold_batch_norms import fold_batch_norms
from .fold_channel_factors import fold_channel_factors
from .fold_padding import fold_padding
from .functionalization import functionalize
from .fuse_conv_bn_act import fuse_conv_bn_act
from .fuse_layer_norms import fuse_layer_norms
from .half_widening import widen_half_precision
from .horizontal_fusion import fuse_horizontally
from .integer_products import find_dequantized, use_integer_products
from .kernel_binding import bind_kernels
from .launch_recording import record_launch_sequences
from .matmul_epilogue_fusion import fuse_matmul_epilogues
from .pointwise_fusion import fuse_adjacent_steps, fuse_pointwise
from .pool_before_activations import pool_before_activations
from .power_reduction import use_squares
from .program_ir import HOST_VALUES, CapturedCall, Program, ResultSpec
from .python_codegen import ReplayMiss, lower_to_python
from .row_major_layouts import drop_stride_rules, infer_layouts, is_free_of_strides
from .saved_derivatives import save_derivatives
from .step_purity import is_pure
from .tensor_guards import TensorSource
from .view_simplification import simplify_views

_NODES = {"leaf": LEAF, "detached": REQUIRES_GRAD_DETACHED}  # of results that no backward pass of the call reaches


def _assign_grads(owners: tuple, grads: tuple) -> None:
    """Assign gradients to outside tensors."""
    for i, raw in grads:
        tensor = owners[i]
        autograd_meta_of(tensor).grad = None if raw is None else call.wrap_array(tensor._tl_kernels, raw, tensor.dtype)


def _release_grads(owners: tuple, places: tuple) -> None:
    """Release gradients that will be replaced, so new ones can reuse their memory."""
    for i in places:
        autograd_meta_of(owners[i]).grad = None


def _find_overwritten_grads(program: Program, grads: dict[int, int | None]) -> tuple[int, ...]:
    """Return the outside tensors whose gradients are replaced before any read. Return None if the program reads
    elements, as it may branch.
    """
    if any(step.kind == "read" for step in program.steps):
        return ()
    steps = [step for step in program.steps if step.kind == "object"]
    new = dict(steps[0].grads) if steps else grads
    return tuple([i for i, slot in new.items() if slot is not None and -1 - i not in program.inputs])


def run_passes(
    program: Program,
    captured: CapturedCall,
    table: Any,
    mode: str,
    arrays: list[Any] | None = None,
    keeps_sizes: bool = False,
) -> Program:
    """Return the optimized program. arrays: the inputs of a captured call, for a trial run. keeps_sizes: leave out
    passes that make kernels or constants for one size.
    """
    layouts, memory = captured.layouts, captured.memory
    program, layouts, memory = functionalize(program, layouts, memory, table)
    dequantized = {} if arrays is None else find_dequantized(program)
    if not keeps_sizes:
        program = fold_constants(program, memory, table)
    only_computes = arrays is not None and is_free_of_strides(program)
    if only_computes and _widens_half(table):
        program = widen_half_precision(program, layouts, memory, table)
    if only_computes:
        program = fuse_layer_norms(use_squares(program, layouts, table), layouts, memory, table)
    is_free = only_computes and table.array is np.ndarray
    if is_free:
        plain = drop_stride_rules(program)
        is_free = run_quietly(infer_layouts, plain, arrays, layouts, memory, table)
    if is_free:
        program = fold_constants(plain, memory, table)
        program = use_integer_products(program, dequantized, layouts, memory, table)
    if only_computes:
        program = fold_padding(program, layouts, memory)
    program = fold_batch_norms(program, layouts, memory, table)
    if only_computes:
        program = fold_channel_factors(program, layouts, memory, table)
    program = eliminate_common_subexpressions(program, memory)
    program = eliminate_dead_code(simplify_views(program, layouts, memory, table.reshape))
    if hasattr(table.backend, "fused_matmul"):
        program = fuse_matmul_epilogues(program, layouts, memory, table)
    if hasattr(table.backend, "can_record") and table.backend.can_record(mode):
        return record_launch_sequences(fuse_adjacent_steps(program, layouts, table.backend), table, mode)
    if not hasattr(table.backend, "blockwise"):
        return program
    program = fuse_conv_bn_act(program, layouts, memory, table)
    if only_computes and table.backend.engine() == "numpy":
        program = pool_before_activations(program, layouts, memory)
    if arrays is not None:
        if is_free:
            program = use_channels_last(program, arrays, layouts, memory, table)
            program = bind_constant_products(program, layouts, table.backend)
        program = bind_chains(eliminate_integer_casts(program, layouts, table), layouts, table.backend)
        program = end_in_chains(program, layouts)
    program, layouts = save_derivatives(program, layouts, memory, table)
    if not keeps_sizes:
        program = eliminate_cat(program, layouts, memory, table.backend)
        program = fuse_pointwise(program, layouts, table.backend)
    program = fuse_horizontally(reuse_buffers(program, layouts, memory), layouts, table.backend)
    return program if arrays is None else bind_kernels(program, layouts, table.backend)


def _widens_half(table: Any) -> bool:
    widens_half = getattr(table.backend, "widens_half", None)
    return widens_half is not None and widens_half(table.device.index or 0)


def compile_replay(
    name: str,
    captured: CapturedCall,
    sources: list[TensorSource],
    arguments: int,
    table: Any,
    mode: str = "default",
    constants: Collection[int] = (),
    trial: list | None = None,
    optimized: list[Program] | None = None,
) -> Any:
    """Return a function of (function, args, kwargs) and the argument tensors that replays the captured call and returns
    its result. constants: places of sources whose tensors are constants. trial: the tensors from outside of a call
    without gradients, for a trial run. optimized: the programs of the call and of its backward passes, if passes have
    run.
    """
    program, backward = captured.program, captured.backward
    inputs = [n for n in program.inputs if n not in constants]
    held = {n: sources[n].held._tl_array for n in constants}
    arrays = None if trial is None else [trial[n]._tl_array for n in inputs]
    if optimized is None:
        program = run_passes(replace(program, inputs=inputs, held=held), captured, table, mode, arrays)
    else:
        program = optimized[0]
    forward = lower_to_python(name, program, table, captured.scalars, _assign_grads)
    space: dict[str, Any] = {"forward": forward, "run_quietly": run_quietly, "finish": ReplayEpilogue(captured, table)}
    for k, source in enumerate(sources):
        if source.held is not None and k not in constants:
            space[f"held{k}"] = source.held
    if backward is not None and backward.together is not None:

        def lower_backward(one: CapturedPass, place: int) -> Any:
            if optimized is None:
                program = run_passes(one.program, captured, table, mode)
            else:
                program = optimized[place]
            return lower_to_python(f"{name}_backward", program, table, captured.scalars)

        backward.together.run = lower_backward(backward.together, 1)
        for place, one in enumerate(backward.apart, 2):
            one.run = _compile_lazily(functools.partial(lower_backward, one, place))
    names = "".join(f"{'None' if k in constants else source.text(k)}, " for k, source in enumerate(sources))
    given = [f"{source.text(k)}._tl_array, " for k, source in enumerate(sources) if k not in constants]
    given += [f"{sources[-1 - n].text(-1 - n)}.grad._tl_array, " for n in program.inputs if n < 0]
    parameters = ", ".join(["again", *(f"t{i}" for i in range(arguments))])
    space["forget"], dropped = _release_grads, _find_overwritten_grads(captured.program, captured.grads)
    before = f"    forget(outside, {dropped})\n" if dropped else ""
    text = (
        f"def replay({parameters}):\n"
        f"    outside = ({names})\n"
        f"{before}"
        f"    return finish(again, outside, run_quietly(forward, {''.join(given)}outside))\n"
    )
    run = define_function("replay", text, space)
    run.forward, run.captured = forward, captured  # type: ignore[attr-defined]
    run.on_arrays = functools.cache(  # type: ignore[attr-defined]
        functools.partial(_make_array_replay, captured, sources, arguments, program, forward, table)
    )
    return run


class ArrayReplay:
    """A replay of the arrays of the argument tensors, which are as captured and of which no two are one. It returns the
    tensors of the result, and None if elements differ from the captured ones.
    """

    def __init__(self, run: Callable[..., tuple], dtypes: list, table: Any) -> None:
        self.run, self.dtypes, self.table = run, dtypes, table

    def __call__(self, *arrays: Any) -> tuple | None:
        try:
            made = run_quietly(self.run, *arrays)
        except ReplayMiss:
            return None
        return tuple([call.wrap_array(self.table, *pair) for pair in zip(made, self.dtypes, strict=True)])


def _make_array_replay(
    captured: CapturedCall, sources: list[TensorSource], arguments: int, program: Program, forward: Any, table: Any
) -> ArrayReplay | None:
    """Return None if a call has effects, or other results than tensors that arrays make."""
    if captured.logs:
        return None
    order = captured.rebuild(list(range(len(captured.results))))
    if order.__class__ is not tuple or not all(place.__class__ is int for place in order):
        return None
    if captured.bumps or has_gradients(captured) or {s.argument for s in sources} - {-1} != set(range(arguments)):
        return None
    texts, dtypes, count = [], [], 0
    for result in captured.results:
        source = sources[result.outside] if result.outside >= 0 else None
        if source is not None and source.argument < 0 or result.signs or result.grad or result.is_inference:
            return None
        if result.kind in HOST_VALUES or result.table is not None:
            return None
        texts.append(f"made[{count}]" if source is None else source.text(result.outside))
        dtypes.append(result.dtype)
        count += source is None
    space = {f"held{k}": source.held._tl_array for k, source in enumerate(sources) if source.argument < 0}
    given = "".join(f"{sources[n].text(n)}, " for n in program.inputs)
    text = (
        f"def replay_arrays({', '.join(f't{i}' for i in range(arguments))}):\n"
        f"    made = forward({given}())\n"
        f"    return ({''.join(f'{texts[place]}, ' for place in order)})\n"
    )
    run = define_function("replay_arrays", text, {**space, "forward": forward})
    return ArrayReplay(run, [dtypes[place] for place in order], table)


def _compile_lazily(write: Callable[[], Any]) -> Any:
    """Return a function that is compiled at its first call: most results never need gradients."""
    written = functools.cache(write)

    def run(given: list) -> Any:
        return written()(given)

    run.written = written  # type: ignore[attr-defined]
    return run


def _is_fresh_result(result: ResultSpec) -> bool:
    """True if a result is a new tensor without aliases."""
    return not (
        result.outside >= 0
        or result.shares >= 0
        or result.group >= 0
        or result.grad in _NODES
        or result.kind in HOST_VALUES
        or result.is_inference
        or result.signs
        or result.table is not None
    )


class ReplayEpilogue:
    """Work after the kernels of a replay: tensors over the arrays, version counters, gradients, autograd node."""

    def __init__(self, captured: CapturedCall, table: Any) -> None:
        self.captured, self.table = captured, table
        self.plain = [r.dtype if _is_fresh_result(r) else None for r in captured.results]
        self.set = [(i, n is not None) for i, n in captured.grads.items()]
        # A call that writes, appends or draws random numbers cannot be repeated for second derivatives.
        self.is_single = bool(captured.logs) or not all(
            is_pure(step) for step in captured.program.steps if step.kind == "kernel"
        )
        self.saved = 0 if captured.backward is None else len(captured.backward.saved)

    def __call__(self, again: tuple, outside: tuple, raws: tuple) -> Any:
        captured, table = self.captured, self.table
        for i, count in captured.bumps.items():
            root_meta_of(outside[i] if i >= 0 else outside[-1 - i].grad).n += count
        values: list[Any] = []
        groups: dict[int, Any] = {}
        place = 0
        for result, dtype in zip(captured.results, self.plain, strict=True):
            if result.outside >= 0:
                values.append(outside[result.outside])
                continue
            if dtype is not None:
                values.append(call.wrap_array(table, raws[place], dtype))
            elif result.kind in HOST_VALUES:
                host = table.to_numpy(raws[place])
                values.append(host.item() if result.kind == "item" else host.tolist())
            else:
                values.append(self._make_alias_or_leaf(result, raws[place], outside, groups))
            place += 1
        for i, has in self.set:
            tensor = outside[i]
            if has:
                autograd_meta_of(tensor).grad = call.wrap_array(table, raws[place], tensor.dtype)
                place += 1
            else:
                autograd_meta_of(tensor).grad = None
        if captured.backward is not None:
            node = make_replay_node(captured.backward, table, outside, raws[place : place + self.saved], values)
            node._again = None if self.is_single else (*again, outside)
        if not captured.logs:
            return captured.rebuild(values)
        result, more = captured.rebuild(values)
        for log, items in zip(captured.logs, more, strict=True):
            log.extend(items)
        return result

    def _make_alias_or_leaf(self, result: ResultSpec, raw: Any, outside: tuple, groups: dict) -> Any:
        """Return a tensor that aliases another one, or a leaf."""
        tensor = conj_neg_tensor(result.signs, result.table or self.table, raw, result.dtype)
        tensor._tl_node = _NODES.get(result.grad)
        if result.is_inference:
            autograd_meta_of(tensor).inference = True
        if result.shares >= 0:
            source = outside[result.shares]
            tensor._tl_meta = view_meta(source, result.kind) if result.is_view else alias_meta(source)
        elif result.group >= 0:
            base = groups.get(result.group)
            if base is None:
                base = groups[result.group] = call.wrap_array(self.table, owner_of(raw))
            tensor._tl_meta = view_meta(base, result.kind)
        return tensor
