"""Creates an op's functions from its record, each at first use. The first one imports `codegen`, which generates their
source. `python -m torchlite show op add` prints it.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from .._settings import fork_locks
from .._types.dtypes import int64
from . import autograd_graph, call, error_translation, in_place_calls
from .autograd_graph import (
    AutogradMeta,
    Node,
    autograd_meta_of,
    bump_version,
    edge_shape,
    gradient_edge,
    raise_freed_error,
    version_of,
    view_meta,
)
from .callbacks import CALLBACKS
from .dispatch_state import GLOBALS, OVERRIDES
from .interceptors import find_torch_function_override
from .memory_overlap import has_partial_overlap, is_unsafe_target
from .node_names import REFLECTED, edges_of, facts_of, mark_reflected, show_composite
from .op_record import ABSENT, NAMESPACES, NUMPY_NAMES, REGISTRY, Op

_function_lock = fork_locks.acquire_before_fork(threading.RLock())  # of functions

# -- public functions --------------------------------------------------------------


def function_for(op: Op):
    """The public function of a record."""
    if op.function is None:
        with _function_lock:  # threads that race for the first use get one function
            if op.function is None:
                made = _make_function(op)
                if op.function is None:  # no handler of a signal was first
                    op.function = made
    return op.function


def method_for(op: Op, name: str):
    """`Tensor.<name>`: where there is a function of the op too, another object with the same code, since programs tell
    `torch.add` from `torch.Tensor.add`. Each name of an op has its own.
    """
    if "torch" not in op.where.split() and "torch." not in op.alias:
        return function_for(op)
    method = _copy_function(op, f"Tensor.{name}", f"method_{name}", _package_name())
    method.__qualname__ = f"Tensor.{name}"
    return method


def _copy_function(op: Op, public: str, kind: str, module: str):
    """The op's function as another object, which is itself what it passes on to interceptors and to the parser."""
    function = function_for(op)
    own, name = f"{op.name}__{kind}", f"{op.name}__function"
    code = function.__code__.replace(co_names=tuple(own if n == name else n for n in function.__code__.co_names))
    copy: Any = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, module
    copy.__dict__.update(function.__dict__)
    copy.public = public
    copy.__doc__, copy.__annotations__ = function.__doc__, function.__annotations__
    GLOBALS[own] = copy
    return copy


def signature_of(op: Op) -> inspect.Signature:
    """PyTorch's signature of the op's public function."""
    kinds = inspect.Parameter
    out, varargs = [], False
    for p in op.params:
        if p.kind == "varargs":
            out.append(kinds(p.name, kinds.VAR_POSITIONAL))
            varargs = True
        else:
            out.append(
                kinds(
                    p.name,
                    kinds.KEYWORD_ONLY if p.kwonly or varargs else kinds.POSITIONAL_OR_KEYWORD,
                    default=p.default,
                )
            )
    if op.has_out:
        out.append(kinds("out", kinds.KEYWORD_ONLY, default=None))
    return inspect.Signature(out)


def _full_signature(op: Op) -> inspect.Signature:
    """The signature with the Array API's names appended. Such a name that must be positional takes its parameter's
    place, and PyTorch's name becomes a keyword.
    """
    kinds = inspect.Parameter
    given = list(signature_of(op).parameters.values())
    names = [name for name in op.argument_names if name in ("axis", "keepdims")]
    others = dict(zip(("dim", "keepdim"), ("axis", "keepdims"), strict=True)) if names else {}
    others |= {meaning: name for name, meaning in op.kwarg_aliases.items() if isinstance(meaning, str)}
    more = []
    for i, p in enumerate(given):
        if op.array_api_first and (p.name in others or p.kind is kinds.VAR_POSITIONAL):
            default = kinds.empty if p.kind is kinds.VAR_POSITIONAL else p.default
            given[i] = kinds(others.get(p.name, p.name), kinds.POSITIONAL_OR_KEYWORD, default=default)
            more += [p.name] * (p.name in others)
    shown = {p.name for p in given}
    more += [name for name in (*names, *op.kwarg_aliases) if name not in shown]
    return inspect.Signature([*given, *(kinds(name, kinds.KEYWORD_ONLY, default=None) for name in more)])


def unintercepted_function_for(op: Op):
    """The record's function for an interceptor that is done: the hot path regardless of other interceptors, else the
    interceptors below.
    """
    if op.direct is None:
        function_for(op)  # its text names it
        op.direct = _compile_function(op, intercepted=False)
    return op.direct


def _compile_function(op: Op, intercepted: bool = True) -> Callable:
    from .codegen.public_function import function_constants, function_text
    from .codegen.source_builder import compile_op, with_traceback_filter

    name = op.name if op.name.isidentifier() else f"op_{op.name}"
    variant = "" if intercepted else "below interceptors"

    def write() -> str:
        return with_traceback_filter(function_text(op, name, intercepted))

    return compile_op(op, name, write, function_constants(op), variant)


def _make_function(op: Op):
    from .codegen.public_function import more_keywords, needs_arg_parser

    function: Any = _compile_function(op)
    GLOBALS[f"{op.name}__function"] = function
    function.__name__ = function.__qualname__ = _public_name(op)
    function.__module__ = _public_module(op)
    function.__doc__ = _make_docstring(op)
    function.op = op
    tensors = {p.name: GLOBALS["Tensor"] for p in op.params if p.kind == "tensor"}
    function.__annotations__ = tensors
    if needs_arg_parser(op) or more_keywords(op) or op.keyword_aliases:
        shown = _full_signature(op)
        typed = [p.replace(annotation=tensors.get(p.name, p.annotation)) for p in shown.parameters.values()]
        function.__signature__ = shown.replace(parameters=typed)
    return function


def _public_name(op: Op) -> str:
    """The op's public name, which `__torch_function__` receives."""
    if not op.where and op.alias:
        return op.alias.split()[0].rpartition(".")[2]
    for space in op.where.split()[:1]:
        return next((name for name, record in NAMESPACES[space].items() if record is op), op.name)
    return op.name


def _public_module(op: Op) -> str:
    """The module that contains the function under its name, by which pickle finds it."""
    spaces = op.where.split() or [name.rpartition(".")[0] for name in op.alias.split()]
    if not spaces or "torch" in spaces or spaces[0] == "Tensor":
        return _package_name()
    return f"{_package_name()}.{spaces[0]}"


def _package_name() -> str:
    return __name__.partition(".")[0]  # "torch" under the alias


def _make_docstring(op: Op) -> str:
    from .op_docstrings import with_common_arguments

    place = f"{op.file.rpartition('/torchlite/')[2]}:{op.line}"
    signature = signature_of(op)
    text = with_common_arguments(op.doc or f"PyTorch's `{_public_name(op)}`.", signature.parameters)
    return f"{_public_name(op)}{signature}\n\n{text}\n\nDeclared at torchlite/{place}."


def _in_place_signature(op: Op) -> inspect.Signature:
    of_self, *others = (p for p in signature_of(op).parameters.values() if p.name != "out")
    return inspect.Signature([of_self.replace(name="self"), *others])


def _in_place_docstring(op: Op, signature: inspect.Signature) -> str:
    from .op_docstrings import sections, with_common_arguments

    name = _public_name(op)
    own = sections(inspect.cleandoc(op.doc))
    summary = own[""].partition("\n\n")[0].strip()
    text = f"In-place version of `{name}`: writes the result into the tensor and returns it.\n\n`{name}`: {summary}"
    text += "".join(f"\n\n{title}:\n{own[title].strip(chr(10))}" for title in ("Args", "Example") if title in own)
    return f"{name}_{signature}\n\n{with_common_arguments(text, list(signature.parameters)[1:])}"


# -- operators and in-place methods ---------------------------------------------------


@functools.cache
def in_place_fast_path(op: Op) -> Callable | None:
    """`fast(target, *others)` by the backend's in-place kernel; it returns None if a gradient, a cast or an override
    prevents that.
    """
    from .codegen.in_place_fast_path import has_fast_path, in_place_text
    from .codegen.source_builder import compile_op

    if not has_fast_path(op):
        return None
    return compile_op(op, f"{op.name}_", lambda: in_place_text(op), {}, "in place")


def op_without_alpha(op: Op) -> Op:
    """`add_` and its like are composites for the sake of a keyword; without it they are the op itself."""
    return REGISTRY[op.base_op] if op.base_op else op


def in_place_method(op: Op):
    """`Tensor.<op>_`."""
    simple = op_without_alpha(op)
    fast = in_place_fast_path(simple)
    count = len(simple.params) - 1
    optional = frozenset(p.name for p in simple.params[1:]) if simple.number_ops else frozenset()

    def method(self=ABSENT, *args, **kwargs):
        try:
            try:
                if fast is not None and not kwargs and len(args) == count:
                    done = fast(self, *args)
                    if done is not None:
                        return done
                elif optional and len(args) <= count and optional.issuperset(kwargs):
                    done = fast(self, *args, **kwargs)
                    if done is not None:
                        return done
                if self is ABSENT:
                    self = _named_target(op, kwargs)
                return in_place_calls.run_in_place(op, (self, *args), kwargs)
            except TypeError as error:
                raise (_in_place_refusal(op, args, kwargs) or error) from error.__cause__
        except Exception:
            error_translation.filter_traceback()
            raise

    method.__name__ = method.__qualname__ = _public_name(op) + "_"
    method.__module__ = _package_name()
    method.__signature__ = signature = _in_place_signature(op)  # type: ignore[attr-defined]
    method.__doc__ = _in_place_docstring(op, signature)
    method.op = op  # type: ignore[attr-defined]
    method.__annotations__ = {"self": GLOBALS["Tensor"]}
    return method


def _in_place_refusal(op: Op, args: tuple, kwargs: dict) -> TypeError | None:
    """The parser's error for the arguments of an in-place method; None if it accepts them."""
    from .arg_parser import match_signature

    try:
        match_signature(f"Tensor.{op.function_name}_", args, kwargs)
    except TypeError as error:
        return error.with_traceback(None)
    return None


def _named_target(op: Op, kwargs: dict):
    """Take the tensor that an in-place function writes to from the keywords."""
    first = op.params[0].name
    for name in ("self", first, *NUMPY_NAMES.get(first, ())):
        if name in kwargs:
            return kwargs.pop(name)
    raise _missing_argument_error(op, first, "_")


def binary_operator_for(op: Op, dunder: str, reflected: bool = False):
    """A binary operator: the op's hot path with its keyword arguments at their defaults, and Python numbers taken
    directly. NotImplemented for operands that the op does not take.
    """
    from .codegen.public_function import operator_text, reflected_text
    from .codegen.source_builder import compile_op, with_traceback_filter

    function_for(op)  # the text names it
    if not reflected and len(op.params) != 2:
        raise RuntimeError(f"op {op.name} takes more than two arguments and is no operator")

    def write() -> str:
        return with_traceback_filter((reflected_text if reflected else operator_text)(op, dunder))

    variant = "reflected operator" if reflected else "operator"
    operator: Any = compile_op(op, "operator", write, {f"{op.name}__op": op}, variant, dunder)
    operator.op = op
    return operator


def _missing_argument_error(op: Op, name: str, suffix: str = "") -> TypeError:
    """The error of a call without a required argument: a method's dimensions, an in-place function's tensor."""
    parsed = op.parsed_names[0] if op.parsed_names else ""
    if not suffix and (parsed.startswith("Tensor.") or not op.params[0].is_tensor):
        from .arg_parser import match_signature

        try:
            match_signature(parsed, (), {})
        except TypeError as error:
            return error.with_traceback(None)
    return TypeError(f'{op.name}{suffix}() missing 1 required positional arguments: "{name}"')


def _named_by_keyword(op: Op, name: str, value, keywords: dict):
    """The value of an argument that has one of Python's keywords for a name, `x.random_(**{"from": 1, "to": 5})`."""
    value = keywords.pop(name.removesuffix("_"), value)
    if keywords:
        raise TypeError(f"{op.function_name}() got an unexpected keyword argument '{next(iter(keywords))}'")
    return value


def _wrong_self_error(dunder: str, value) -> TypeError:
    """The error of an operator's method that is called with no tensor before its operands."""
    cls = type(value).__name__
    return TypeError(f"descriptor '{dunder}' for 'torch._C.TensorBase' objects doesn't apply to a '{cls}' object")


_OPERANDS: set = {int, float, bool, complex}
# Classes of arguments that have no `__torch_function__` of their own.
_PLAIN: set = {*_OPERANDS, type(None), slice, type(...)}


def _is_operand(value) -> bool:
    return isinstance(value, (call.Tensor, int, float, complex, np.ndarray, np.generic)) or hasattr(
        value.__class__, "__torch_function__"
    )


def _is_matmul_operand(value) -> bool:
    """True for what `@` takes as it is. An array, whose dtype it may change, is none."""
    return not isinstance(value, np.ndarray) and _is_operand(value)


def _matmul_foreign(tensor, other):
    """`tensor @ other` for an operand of another library."""
    return CALLBACKS.matmul_foreign(tensor, other)


def _call_with_aliases(op: Op, function, given: dict, also: dict):
    """A call with other libraries' names of arguments."""
    from .arg_parser import call_with_aliases

    return call_with_aliases(op, function, given, also)


class _PublicFunctions(type):
    def __getattr__(cls, name: str):
        record = REGISTRY.get(name)
        if record is None:
            raise AttributeError(f"there is no op '{name}'")
        function = function_for(record)
        setattr(cls, name, function)
        return function


class F(metaclass=_PublicFunctions):
    """The namespace `F` over Tensors: each op's public function under the op's name. A class, because calls of a
    class's functions are faster than of an object's.
    """

    @staticmethod
    def dtype_of(tensor):
        return tensor.dtype


CALLBACKS.F = F
GLOBALS.update(
    slow_path=call.slow_path,
    without_interceptors=call.without_interceptors,
    wrap_and_record=call.wrap_and_record,
    homogeneous_arrays=call.arrays_of_one_dtype,
    are_plain_tensors=call.are_plain_tensors,
    finish_unrecorded=call.finish_unrecorded,
    refuse_gradient=call.refuse_gradient,
    check_before_write=autograd_graph.check_before_write,
    view_meta=view_meta,
    translate_error=error_translation.translate_error,
    gradient_edge=gradient_edge,
    bump_version=bump_version,
    version=version_of,
    autograd_meta_of=autograd_meta_of,
    edge_shape=edge_shape,
    Node=Node,
    AutogradMeta=AutogradMeta,
    F=F,
    OVER_TENSORS=F,
    ABSENT=ABSENT,
    translate_composite_error=error_translation.translate_composite_error,
    filter_traceback=error_translation.filter_traceback,
    coerced_args=error_translation.coerced_args,
    missing_argument_error=_missing_argument_error,
    call_with_aliases=_call_with_aliases,
    NODE_CREATED_HOOK=None,
    int64=int64,
    OPERANDS=_OPERANDS,
    OVERRIDES=OVERRIDES,
    PLAIN=_PLAIN,
    is_operand=_is_operand,
    is_matmul_operand=_is_matmul_operand,
    matmul_foreign=_matmul_foreign,
    wrong_self_error=_wrong_self_error,
    named_by_keyword=_named_by_keyword,
    raise_freed_error=raise_freed_error,
    show_composite=show_composite,
    edges_of=edges_of,
    facts_of=facts_of,
    mark_reflected=mark_reflected,
    REFLECTED=REFLECTED,
    has_partial_overlap=has_partial_overlap,
    find_torch_function_override=find_torch_function_override,
    is_unsafe_target=is_unsafe_target,
)


@functools.cache
def namespace_function(space: str, name: str):
    """The public function `torch.<space>.<name>`; AttributeError if there is none."""
    record = NAMESPACES.get(space, {}).get(name)
    if record is None:
        raise AttributeError(name)
    if space == "nn.functional" and "torch" in record.where.split():
        from .override_calls import python_calls

        if f"{space}.{name}" in python_calls():  # PyTorch has two functions of that name
            return _copy_function(record, f"{space}.{name}", "functional", f"{_package_name()}.{space}")
    return function_for(record)
