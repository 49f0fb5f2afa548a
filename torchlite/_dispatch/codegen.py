"""Public functions made from records: arity-specialised Python whose hot path is one class test, one kernel call and
one small object.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .._types.dtypes import float16, float32, float64, int64
from . import call
from .derivative import compile_source
from .graph import Meta, Node, bump, edge, freed, meta_of, shape_of, version
from .record import (
    ALWAYS_BOOL,
    DEFAULT,
    EMPTY,
    INT_TO_FLOAT,
    KEEPS_DTYPE,
    MAYBE_VIEW,
    NAMESPACES,
    NONDIFF,
    POINTWISE,
    REGISTRY,
    VIEW,
    Op,
)
from .runtime import GLOBALS, MODE
from .slots import SLOTS

_INLINE = (type(None), bool, int, float, str)


# -- public functions --------------------------------------------------------------


def function_for(op: Op):
    """The public function of a record."""
    if op.function is None:
        op.function = _make_function(op)
    return op.function


def signature(op: Op) -> inspect.Signature:
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


def _header(op: Op, name: str, constants: dict) -> tuple[str, str]:
    """The def line and the expression that hands the arguments to the general path."""
    starred = False
    text: list[str] = []
    passed: list[str] = []
    keywords: list[str] = []
    for p in op.params:
        if p.kind == "varargs":
            text.append(f"*{p.name}_")
            passed.append(p.name)
            starred = True
            continue
        if p.kwonly and not starred:
            text.append("*")
            starred = True
        piece = p.name
        if p.default is not EMPTY:
            if type(p.default) in _INLINE and repr(p.default) not in ("inf", "-inf", "nan"):
                piece += f"={p.default!r}"
            else:
                constants[f"{op.name}__{p.name}"] = p.default
                piece += f"={op.name}__{p.name}"
        text.append(piece)
        (keywords if starred else passed).append(f"'{p.name}': {p.name}" if starred else p.name)
    if op.has_out:
        if not starred:
            text.append("*")
        text.append("out=None")
        keywords.append("'out': out")
    more = more_keywords(op)
    if more:
        text += [*([] if "*" in text or starred or op.has_out else ["*"]), *(f"{name}=None" for name in more)]
    numpy_names = [name for name in more if name in ("axis", "keepdims")]
    if numpy_names:
        keywords.append(f"**given({', '.join(f'{name}={name}' for name in numpy_names)})")
    rest = ", ".join(passed) + ("," if passed else "")
    return f"def {name}({', '.join(text)}):", f"general(OP, SELF, ({rest}), {{{', '.join(keywords)}}})"


def direct_for(op: Op):
    """The record's function for an interceptor that has done its part: the hot path though something intercepts, and
    else what lies below.
    """
    if op.direct is None:
        name, source, constants = _source(op)
        op.direct = compile_source(
            op, name, source.replace("not ACTIVE", "True").replace("return general(", "return below("), constants
        )
    return op.direct


def _source(op: Op) -> tuple[str, str, dict]:
    """The function's name, its text and what the text names."""
    name = op.name if op.name.isidentifier() else f"op_{op.name}"
    constants: dict[str, Any] = {f"{op.name}__op": op}
    head, fallback = _header(op, name, constants)
    body = _implicit_body(op, constants) if op.is_implicit else _fast_body(op)
    source = "\n".join([head, *_flatten_varargs(op), *body, f"    return {fallback}"]) + "\n"
    return name, source.replace("OP,", f"{op.name}__op,").replace("SELF", f"{op.name}__function"), constants


def _make_function(op: Op):
    name, source, constants = _source(op)
    function = compile_source(op, name, source, constants)
    GLOBALS[f"{op.name}__function"] = function
    public = op.name
    for space in op.where.split():
        public = next((n for n, o in NAMESPACES[space].items() if o is op), public)
        break
    function.__name__ = function.__qualname__ = public
    function.__module__ = "torchlite"
    function.__doc__ = _docstring(op)
    function.op = op
    if more_keywords(op):
        function.__signature__ = signature(op)
    return function


def _docstring(op: Op) -> str:
    place = f"{op.file.rpartition('/torchlite/')[2]}:{op.line}"
    text = inspect.cleandoc(op.doc) if op.doc else f"PyTorch's `{op.name}`."
    return f"{op.name}{signature(op)}\n\n{text}\n\nDeclared at torchlite/{place}."


def _is_plain(name: str) -> str:
    return f"((c_ := {name}.__class__) is Tensor or c_ is Parameter)"


def more_keywords(op: Op) -> list[str]:
    """Keywords beyond the schema's: a varargs parameter by its name, and NumPy's `axis` and `keepdims` for `dim` and
    `keepdim`.
    """
    if not (op.where or op.alias):
        return [p.name for p in op.params if p.kind == "varargs"]
    taken = {p.name for p in op.params}
    names = [p.name if p.kind == "varargs" else {"dim": "axis", "keepdim": "keepdims"}.get(p.name) for p in op.params]
    return [
        name
        for name, p in zip(names, op.params, strict=True)
        if name is not None and (name not in taken or p.kind == "varargs")
    ]


def given(**keywords) -> dict:
    """The keywords that were given a value."""
    return {name: value for name, value in keywords.items() if value is not None}


def _no_more(op: Op) -> list[str]:
    """The hot path's conditions on the keywords beyond the schema's."""
    return [f"{name} is None" for name in more_keywords(op) if name in ("axis", "keepdims")]


def _flatten_varargs(op: Op) -> list[str]:
    """f(2, 3), f((2, 3)) and f(shape=(2, 3)) alike: one tuple under the parameter's name."""
    lines = []
    for p in op.params:
        if p.kind == "varargs":
            name = p.name
            lines += [
                f"    if {name} is None:",
                f"        {name} = {name}_",
                f"        if len({name}_) == 1 and ((c_ := {name}_[0].__class__) is tuple or c_ is list or c_ is "
                f"Size): {name} = tuple({name}_[0])",
                f"    elif {name}.__class__ is not tuple: {name} = tuple({name})",
            ]
    return lines


def _implicit_body(op: Op, constants: dict) -> list[str]:
    constants[f"{op.name}__composite"] = op.composite
    conditions = ["not ACTIVE"]
    first = op.params[0] if op.params else None
    if first is not None and first.kind in ("tensor", "number"):
        conditions.append(_is_plain(first.name))
    elif first is not None and first.is_tensor:
        return []
    if op.has_out:
        conditions.append("out is None")
    conditions += _no_more(op)
    arguments = ", ".join(p.name for p in op.params)
    return [f"    if {' and '.join(conditions)}:", f"        return {op.name}__composite(F, {arguments})"]


def _fast_body(op: Op) -> list[str]:
    """The hot path, for ops whose tensor arguments are single tensors."""
    tensors = op.tensor_params
    if len(tensors) == 1 and tensors[0].kind == "list" and op.params[0] is tensors[0] and op.promote in (None, DEFAULT):
        return _list_body(op)
    if not tensors or any(p.kind == "list" for p in tensors):
        return []
    first = tensors[0]
    if first.kind == "optional" or op.params[0] is not first:
        return []
    taking_part = [p for p in tensors if op.promote and (op.promote_args is None or p.name in op.promote_args)]
    if taking_part and taking_part[0] is not first:
        return []
    lines: list[str] = []
    conditions = ["not ACTIVE", _is_plain(first.name)]
    if op.has_out:
        conditions.append("out is None")
    conditions += _no_more(op)
    if op.promote == INT_TO_FLOAT:
        conditions.append(f"{first.name}.dtype.category >= 2")
    lines.append(f"    if {' and '.join(conditions)}:")
    lines.append(f"        t_ = {first.name}._table")
    lines.append(f"        d_ = {first.name}.dtype")
    fits = []
    for p in tensors[1:]:
        same = f" and {p.name}.dtype is d_" if p in taking_part else ""
        test = f"{_is_plain(p.name)} and {p.name}._table is t_{same}"
        if p.kind == "optional" or p.default is None:
            test = f"({p.name} is None or {test})"
        fits.append(test)
    indent = "        "
    if fits:
        lines.append(f"{indent}if {' and '.join(fits)}:")
        indent += "    "
    lines += [indent + line for line in _kernel_and_node(op, tensors)]
    if len(tensors) > 1 and _takes_number(op, tensors[1]) and taking_part == tensors[:2]:
        lines += ["    " + line for line in _number_body(op, first, tensors[1], "elif", tensors[2:])]
    return lines


def _takes_number(op: Op, param) -> bool:
    return (
        param.kind == "number"
        and param.default is EMPTY
        and bool(op.tags & POINTWISE)
        and op.promote is not None
        and op.outputs is None
    )


def _number_body(op: Op, tensor, number, branch: str, more=()) -> list[str]:
    """The hot path for a tensor and a Python number that does not change its dtype (and `more` tensors that take no
    part in promotion).
    """
    n = number.name
    others = "".join(f" and {_is_plain(p.name)} and {p.name}._table is t_" for p in more)
    integers = "" if op.promote == INT_TO_FLOAT else f" or {n}.__class__ is int and d_ is int64"
    return [
        f"    {branch} (d_ in REAL and ({n}.__class__ is float or {n}.__class__ is int){integers}){others}:",
        f"        if d_ is not int64: {n} = float({n})",
        *("        " + line for line in _kernel_and_node(op, [tensor, *more], n)),
    ]


def _reflected_operator(op: Op):
    """`number op tensor`: the hot path, with the Python number first."""
    function = function_for(op)
    first, second = op.params[:2]

    def operator(self, other):
        if other.__class__ not in _OPERANDS and not _is_operand(other):
            return NotImplemented
        return function(other, self)

    if op.is_implicit or not _takes_number(op, first) or second.kind != "number":
        return operator
    condition = f"not ACTIVE and {_is_plain(second.name)}" + (
        f" and {second.name}.dtype.category >= 2" if op.promote == INT_TO_FLOAT else ""
    )
    lines = [
        f"def operator({second.name}, {first.name}):",
        f"    if {condition}:",
        f"        t_ = {second.name}._table",
        f"        d_ = {second.name}.dtype",
        *("    " + line for line in _number_body(op, second, first, "if")),
        f"    if {first.name}.__class__ not in OPERANDS and not is_operand({first.name}): return NotImplemented",
        f"    return {op.name}__function({first.name}, {second.name})",
    ]
    made = compile_source(
        op, "operator", ("\n".join(lines) + "\n").replace("OP,", f"{op.name}__op,"), {f"{op.name}__op": op}
    )
    made.op = op
    return made


def _list_body(op: Op) -> list[str]:
    """The hot path, for ops of one list of tensors which all have the same dtype."""
    items = op.params[0].name
    arguments = ", ".join(
        (f"{p.name}=" if p.kwonly else "") + ("raw_" if p.name == items else p.name) for p in op.params
    )
    every = ", ".join(p.name for p in op.params)
    plain = f"not ACTIVE{' and out is None' if op.has_out else ''}{''.join(f' and {test}' for test in _no_more(op))}"
    return [
        f"    if {plain} and ({items}.__class__ is list or {items}.__class__ is tuple) and {items}:",
        f"        raw_ = raw_of_alike({items})",
        "        if raw_ is not None:",
        f"            t_, {items} = {items}[0]._table, tuple({items})",
        "            try:",
        f"                data_ = t_.{op.name}({arguments})",
        "            except Exception as e_:",
        f"                raise explained(OP, e_, [{every}]) from e_.__cause__",
        f"            return finish(OP, t_, [{every}], data_)",
    ]


def _kernel_and_node(op: Op, tensors, number: str = "") -> list[str]:
    """Call the kernel, wrap its result and record it. `number` names the tensor argument that is a
    Python number here.
    """
    tensor_names = {p.name for p in tensors}
    optional = {p.name for p in tensors[1:] if p.kind == "optional" or p.default is None}
    lines = []
    for name in optional:
        lines.append(f"raw_{name} = None if {name} is None else {name}._data")

    def raw(p):
        return f"raw_{p.name}" if p.name in optional else f"{p.name}._data" if p.name in tensor_names else p.name

    arguments = ", ".join((f"{p.name}=" if p.kwonly else "") + raw(p) for p in op.params)
    every = ", ".join(p.name for p in op.params)
    lines += [
        "try:",
        f"    {'outs_' if op.hidden else 'data_'} = t_.{op.name}({arguments})",
        "except Exception as e_:",
        f"    raise explained(OP, e_, [{every}]) from e_.__cause__",
        *(["data_ = outs_[0]"] if op.hidden else []),
        "if data_.__class__ is not t_.array: data_ = t_.as_array(data_)",
        "r_ = new(Tensor)",
        "r_._data = data_",
        "r_._table = t_",
    ]
    if op.outputs is not None or op.several:
        return [*lines[:-4], f"return finish(OP, t_, [{every}], data_)"]
    source = tensors[0].name
    dtype_text = {DEFAULT: "d_", INT_TO_FLOAT: "d_", ALWAYS_BOOL: "bool_"}.get(op.promote)
    if op.tags & KEEPS_DTYPE:
        dtype_text = "d_"
    if dtype_text and op.tags & (POINTWISE | KEEPS_DTYPE) or op.promote == ALWAYS_BOOL:
        lines.append(f"r_.dtype = {dtype_text}")
    else:
        lines.append(f"r_.dtype = d_ if data_.dtype is {source}._data.dtype else t_.dtype_of(data_)")
    if op.tags & (VIEW | MAYBE_VIEW):
        make = (
            f"r_._meta = ({source} if (m_ := {source}._meta) is None else m_[0] if m_.__class__ is tuple else "
            f"{source} if m_.base is None else m_.base, REBASED)"
        )
        if op.tags & MAYBE_VIEW:
            make += (
                f" if (b_ := data_.base) is not None and (b_ is (o_ := {source}._data) or b_ is o_.base) or data_ is "
                f"{source}._data else None"
            )
        lines.append(make)
    else:
        lines.append("r_._meta = None")
    if op.tags & NONDIFF:
        return [*lines, "r_._node = None", "return r_"]
    return lines + _node_lines(op, tensors, optional, number)


def _node_lines(op: Op, tensors, optional, number: str = "") -> list[str]:
    lines, wanted = [], []
    for i, p in enumerate(tensors):
        lines.append(
            f"n{i} = None if {p.name} is None else {p.name}._node" if p.name in optional else f"n{i} = {p.name}._node"
        )
        wanted.append(f"n{i} is not None")
    guard = f"({' or '.join(wanted)}) and (not NO_GRAD or MODE.grad)"
    if op.promote is None and not op.tags & (VIEW | KEEPS_DTYPE):
        guard += " and r_.dtype.category >= 2"
    lines.append(f"if {guard}:")
    inner = ["r_._node = node_ = new(Node)", f"node_.op = {op.name}__op"]
    edges = [
        f"{p.name} if n{i} is LEAF else n{i} if {p.name}._meta is None else edge({p.name})"
        for i, p in enumerate(tensors)
    ]
    if len(tensors) > 1:
        edges = [f"None if n{i} is None else {text}" for i, text in enumerate(edges)]
    if number:
        edges.insert(next(i for i, p in enumerate(op.tensor_params) if p.name == number), "None")
    inner.append(f"node_.edges = ({', '.join(edges)},)")
    saved, versions = [], []
    everyone = {p.name for p in tensors}
    for name, kind, users in op.plan.saves:
        if kind == "shape":
            text = f"{name}._data.shape"
            if name in optional:
                text = f"None if {name} is None else {text}"
        elif kind == "dtype":
            text = f"{name}.dtype" if name not in optional else f"None if {name} is None else {name}.dtype"
        else:
            text = name
        used = " or ".join(f"n{i} is not None" for i, p in enumerate(tensors) if p.name in users)
        partial = kind == "value" and users != everyone and used
        if number and (not used or name == number):
            saved.append("None" if not used or kind == "dtype" else "()" if kind == "shape" else name)
            versions.append("0")
            continue
        saved.append(f"{text} if {used} else None" if partial else text)
        if kind == "value":
            versions.append(
                f"0 if {name} is None or {name}._meta is None else version({name})"
                if name in optional
                else f"0 if {name}._meta is None else version({name})"
            )
        else:
            versions.append("0")
    inner.append(f"node_.saved = ({', '.join(saved)}{',' if saved else ''})")
    inner.append(f"node_.versions = ({', '.join(versions)}{',' if versions else ''})")
    if op.plan.keeps and op.hidden:
        kept = [
            ("data_" if i == 0 else f"outs_[{i}]") if i in op.plan.keeps else "None"
            for i in range(max(op.plan.keeps) + 1)
        ]
        inner.append(f"node_.out = ({', '.join(kept)},)")
        if 0 in op.plan.keeps:
            inner += ["r_._meta = new(Meta)", f"node_.counter = ((r_._meta, 0), {'None, ' * (len(kept) - 1)})"]
        else:
            inner.append(f"node_.counter = ({'None, ' * len(kept)})")
    elif op.plan.keeps:
        inner += [
            "node_.out = (data_,)",
            "r_._meta = new(Meta)" if not op.tags & (VIEW | MAYBE_VIEW) else "meta_of(r_)",
            "node_.counter = ((r_._meta, 0),)",
        ]
    else:
        inner.append("node_.out = node_.counter = None")
    inner += [
        "node_.shape = data_.shape",
        "node_.table = t_",
        "node_.hooks = node_.trace = None",
        "node_.seq = next(SEQUENCE)",
        "if NODE_MADE is not None: NODE_MADE(node_)",
    ]
    return lines + ["    " + line for line in inner] + ["else: r_._node = None", "return r_"]


# -- operators and in-place methods ---------------------------------------------------


def fast_in_place(op: Op):
    """`fast(target, *others)` by the backend's in-place kernel where no gradient, cast or override is in the way; it
    returns None where one is.
    """
    tensors = op.tensor_params
    if (
        op.is_implicit
        or len(op.params) != len(tensors)
        or len(tensors) > 2
        or op.promote not in (DEFAULT, INT_TO_FLOAT)
    ):
        return None
    name, whole = op.name + "_", op.promote == DEFAULT

    def unary(self):
        kernel = getattr(self._table, name, None)
        if (
            kernel is None
            or GLOBALS["ACTIVE"]
            or self.__class__ is not call.Tensor
            or self._node is not None
            and MODE.grad
            or not whole
            and self.dtype.category < 2
        ):
            return None
        kernel(self._data)
        bump(self)
        return self

    def binary(self, other):
        kernel, d = getattr(self._table, name, None), self.dtype
        plain = self.__class__ is call.Tensor or self.__class__ is call.Parameter
        if (
            kernel is None
            or GLOBALS["ACTIVE"]
            or not plain
            or self._node is not None
            and MODE.grad
            or not whole
            and d.category < 2
        ):
            return None
        if other.__class__ is call.Tensor:
            if other.dtype is not d or other._table is not self._table or other._node is not None and MODE.grad:
                return None
            raw = other._data
        elif d in _REAL and (other.__class__ is float or other.__class__ is int):
            raw = float(other)
        elif d is int64 and other.__class__ is int:
            raw = other
        else:
            return None
        try:
            kernel(self._data, raw)
        except (TypeError, ValueError, OverflowError):
            return None  # nothing was written: the general path finds the words
        bump(self)
        return self

    return unary if len(tensors) == 1 else binary


def in_place_method(op: Op):
    """`Tensor.<op>_`."""
    # `add_` and its like are composites for the sake of a keyword; without it they are the op itself.
    simple = REGISTRY[op.name[1:]] if op.name in ("_add", "_sub", "_div") else op
    fast = fast_in_place(simple)
    count = len(simple.params) - 1

    def method(self, *args, **kwargs):
        if fast is not None and not kwargs and len(args) == count:
            done = fast(self, *args)
            if done is not None:
                return done
        return call.in_place(op, (self, *args), kwargs)

    method.__name__ = method.__qualname__ = op.name + "_"
    method.__module__ = "torchlite"
    method.__doc__ = f"In-place version of `{op.name}`: writes the result into the tensor and returns it."
    method.op = op  # type: ignore[attr-defined]
    return method


def operator_for(op: Op, reflected: bool = False):
    """A binary operator: NotImplemented for operands that the op does not take."""
    function = function_for(op)
    if reflected:
        return _reflected_operator(op)
    if len(op.params) != 2:
        raise RuntimeError(f"op {op.name} takes more than two arguments and is no operator")
    return _plain_operator(function) if op.is_implicit else _fast_operator(op)


def _plain_operator(function):
    def operator(self, other):
        if other.__class__ not in _OPERANDS and not _is_operand(other):
            return NotImplemented
        return function(self, other)

    return operator


def _fast_operator(op: Op):
    """The op's hot path with its keyword arguments at their defaults, and Python numbers taken directly."""
    constants: dict[str, Any] = {f"{op.name}__op": op}
    function_for(op)
    names = [p.name for p in op.params[:2]]
    head = f"def operator({names[0]}, {names[1]}):"
    body = _fast_body(op)
    body = [line.replace(" and out is None", "") for line in body]
    source = (
        "\n".join(
            [
                head,
                *_flatten_varargs(op),
                *body,
                f"    if {names[1]}.__class__ not in OPERANDS and not is_operand({names[1]}): return NotImplemented",
                f"    return {op.name}__function({names[0]}, {names[1]})",
            ]
        )
        + "\n"
    )
    source = source.replace("OP,", f"{op.name}__op,")
    operator = compile_source(op, "operator", source, constants)
    operator.op = op
    return operator


_OPERANDS: set = {int, float, bool, complex}


def _is_operand(value) -> bool:
    import numpy as np

    return isinstance(value, (call.Tensor, int, float, complex, np.ndarray, np.generic))


class Differentiable:
    """The namespace `F` over Tensors: each op's public function under the op's name."""

    def __getattr__(self, name: str):
        record = REGISTRY.get(name)
        if record is None:
            raise AttributeError(f"there is no op '{name}'")
        function = function_for(record)
        setattr(self, name, function)
        return function

    @staticmethod
    def dtype_of(tensor):
        return tensor.dtype


_REAL = frozenset((float32, float64, float16))
SLOTS.F = F = Differentiable()
GLOBALS.update(
    general=call.general,
    below=call.below,
    finish=call.finish,
    raw_of_alike=call.raw_of_alike,
    explained=call.explained,
    edge=edge,
    version=version,
    meta_of=meta_of,
    shape_of=shape_of,
    Node=Node,
    Meta=Meta,
    F=F,
    given=given,
    NODE_MADE=None,
    REAL=_REAL,
    int64=int64,
    OPERANDS=_OPERANDS,
    is_operand=_is_operand,
    freed=freed,
)


@functools.cache
def namespace_function(space: str, name: str):
    """The public function `torch.<space>.<name>`; AttributeError when there is none."""
    record = NAMESPACES.get(space, {}).get(name)
    if record is None:
        raise AttributeError(name)
    return function_for(record)
