"""Generates an op's public function: its parameters, the guard that lets plain tensors through to the kernel, and the
slow-path call for all other arguments.

Local variables of the generated text end in an underscore, which the names of an op's parameters do not (but for
Python's keywords: `from_`).
"""

from __future__ import annotations

from collections.abc import Sequence
from keyword import iskeyword
from typing import Any

from ..interceptors import TENSOR_VARARGS
from ..op_record import DEFAULT, EMPTY, INT_TO_FLOAT, NAMESPACES, POINTWISE, Op, Param
from ..signature_table import names_of_forms, positional_count
from .graph_node import FastPathCase
from .kernel_call import write_call, write_error, write_finish, write_kernel
from .source_builder import INT64_END, INT64_MIN, Listing, Piece, Source, tuple_literal

_LITERALS = (type(None), bool, int, float, str)


def function_constants(op: Op) -> dict[str, Any]:
    """The values that the source of the public function refers to: the record, the composite, defaults."""
    constants: dict[str, Any] = {f"{op.name}__op": op}
    if op.is_implicit:
        composite: Any = op.composite
        constants[f"{op.name}__composite"] = composite.__wrapped__ if op.creation_options else composite
    constants.update(
        {f"{op.name}__{p.name}": p.default for p in op.params if p.default is not EMPTY and not _is_literal(p.default)}
    )
    return constants


def function_text(op: Op, name: str, intercepted: bool = True) -> str:
    """The source of the public function. The function that an interceptor calls is generated with `intercepted` false,
    so it is not intercepted again.
    """
    source = Source()
    source.write(Listing(f"def {name}(", _def_line_parameters(op), "):"))
    with source:
        for p in op.params:
            if p.kind == "varargs":
                _write_varargs(source, op, p.name)
        for given in _keyword_params(op):
            with source.block("if keywords_:"):
                source.line(f"{given} = named_by_keyword({op.name}__op, {given!r}, {given}, keywords_)")
        if op.keyword_aliases:
            _write_alias_call(source, op)
        free = (["not INTERCEPTORS"] if intercepted else []) + _presence_conditions(op)
        write_hot_path(source, op, free, _non_kernel_keywords(op))
        _write_slow_path(source, op, "slow_path" if intercepted else "without_interceptors")
    return source.text()


# -- parameters ---------------------------------------------------------------------

# The dimensions of a method that takes them as separate arguments, `x.squeeze(0, 1)`.
_SEPARATE_DIMENSIONS = 15


def surplus_names(op: Op) -> list[str]:
    """Parameters for arguments beyond those of the record: of longer forms, one by mistake, and separate dimensions."""
    several = op.name in NAMESPACES["Tensor"] and any(
        [kind for kind, _ in form] == ["ints"] for n in op.parsed_names for form in names_of_forms(n)
    )
    own = sum(not p.kwonly for p in op.params)
    longest = max((positional_count(public) for public in op.parsed_names), default=0)
    count = _SEPARATE_DIMENSIONS if several else max(2, longest - own + 1)
    return ["surplus", *(f"surplus{i}" for i in range(2, count + 1))]


def needs_arg_parser(op: Op) -> bool:
    """True if the function accepts all of PyTorch's signatures (deprecated ones, NumPy's names, missing arguments) and
    lets the slow path parse them: public ops that PyTorch's parser parses, and others with `out=`, `dim` or `keepdim`.
    """
    names = {p.name for p in op.params}
    return (
        bool(op.where or op.alias)
        and all(p.kind != "varargs" for p in op.params)
        and (op.has_out or not names.isdisjoint(("dim", "keepdim")) or bool(op.parsed_names))
    )


def _def_line_parameters(op: Op) -> list[str]:
    """The parameters of the def line. Keyword-only parameters are placed among the positional ones, after those they
    could be mistaken for, because such calls are faster; `signature` shows them as keyword-only.
    """
    any_form = needs_arg_parser(op)
    lax = any_form or bool(_aliased_required_params(op))
    written: list[str] = []
    only_keywords = any_form
    for p in op.params:
        if p.kwonly and any_form:
            continue
        if p.kwonly and not only_keywords:
            written.append("*")
        only_keywords = only_keywords or p.kwonly or p.kind == "varargs"
        default = "=ABSENT" if lax and p.default is EMPTY else _default_text(op, p)
        written.append(f"*{p.name}_" if p.kind == "varargs" else p.name + default)
    if any_form:
        written += [f"{name}=None" for name in surplus_names(op)]
        written += [p.name + ("=ABSENT" if p.default is EMPTY else _default_text(op, p)) for p in op.params if p.kwonly]
    more = ["out"] * op.has_out + [*more_keywords(op), *op.keyword_aliases]
    if more and not only_keywords:
        written.append("*")
    return written + [f"{name}=None" for name in more] + ["**keywords_"] * bool(_keyword_params(op))


def _keyword_params(op: Op) -> list[str]:
    """The parameters that have keywords of Python for names, without the underscore that follows here: `from_`."""
    return [p.name for p in op.params if iskeyword(p.name.removesuffix("_"))]


def _default_text(op: Op, p: Param) -> str:
    """The text after a parameter's name: empty, or its default."""
    if p.default is EMPTY:
        return ""
    return f"={p.default!r}" if _is_literal(p.default) else f"={op.name}__{p.name}"


def _is_literal(value: Any) -> bool:
    """Whether a default is written as it is; others are constants."""
    return type(value) in _LITERALS and repr(value) not in ("inf", "-inf", "nan")


def more_keywords(op: Op) -> list[str]:
    """Keywords beyond the schema's: a varargs parameter by its name, and NumPy's names, such as `axis` for `dim`."""
    if not needs_arg_parser(op):
        return [p.name for p in op.params if p.kind == "varargs"]
    return list(op.argument_names)


def _non_kernel_keywords(op: Op) -> list[str]:
    """The keywords that the kernel does not take; the hot path requires their absence."""
    if not needs_arg_parser(op):
        return ["out"] * op.has_out
    return ["surplus", *["out"] * op.has_out, *more_keywords(op)]


def _presence_conditions(op: Op) -> list[str]:
    """Tests that no argument is absent, for arguments whose class the hot path does not test."""
    if not needs_arg_parser(op):
        return []
    return [
        f"{p.name} is not ABSENT"
        for i, p in enumerate(op.params)
        if p.default is EMPTY and not (p.kind == "tensor" or p.is_tensor and (not i or not op.is_implicit))
    ]


def _write_varargs(source: Source, op: Op, name: str) -> None:
    given = f"{name}_"
    source.comment(f"f(2, 3), f((2, 3)) and f({name}=(2, 3)) alike: one tuple.")
    with source.block(f"if {name} is None:"):
        source.line(f"{name} = {given}")
        with source.block(f"if len({given}) == 1:"):
            source.line(f"class_ = {given}[0].__class__")
            lists = f"class_ is not int and isinstance({given}[0], (tuple, list))"
            with source.block(f"if class_ is tuple or class_ is list or {lists}:"):
                source.line(f"{name} = tuple({given}[0])")
        if op.varargs_required:
            # Nothing at all is a wrong call, but for the other keywords that give the sizes or another meaning.
            others = "".join(f" and {other} is None" for other in _other_keywords(op, name))
            with source.block(f"elif not {given}{others}:"):
                source.line(f"raise missing_argument_error({op.name}__op, {name!r})")
    with source.block(f"elif {name}.__class__ is not tuple:"):
        source.line(f"{name} = tuple({name})")


def _other_keywords(op: Op, name: str) -> list[str]:
    """The keywords that may stand for the arguments `*name`: its aliases, and those that the record names."""
    aliases = [other for other, meaning in op.keyword_aliases.items() if meaning == name]
    return [*aliases, *(op.varargs_required if isinstance(op.varargs_required, tuple) else ())]


def _aliased_required_params(op: Op) -> list[str]:
    """The required arguments that have an alias."""
    return [p.name for p in op.params if p.default is EMPTY and p.name in op.keyword_aliases.values()]


def _write_alias_call(source: Source, op: Op) -> None:
    """The Array API's keywords: the call once more, under PyTorch's."""
    tests = [f"{name} is not None" for name in op.keyword_aliases]
    if _aliased_required_params(op) and not needs_arg_parser(op):
        tests += [f"{p.name} is ABSENT" for p in op.params if p.default is EMPTY]
    source.comment("Other libraries' names of arguments.")
    with source.block(f"if {' or '.join(tests)}:"):
        names = [p.name for p in op.params] + ["out"] * op.has_out + more_keywords(op) * needs_arg_parser(op)
        given = Listing("{", [f"'{name}': {name}" for name in names], "}")
        also = Listing("{", [f"'{name}': {name}" for name in op.keyword_aliases], "}")
        source.write(Listing("return call_with_aliases(", [f"{op.name}__op", f"{op.name}__function", given, also]))


# -- the generic path -----------------------------------------------------------------


def _write_slow_path(source: Source, op: Op, function: str) -> None:
    positional, keywords = _forwarded_arguments(op)
    arguments: list[Piece] = [
        f"{op.name}__op",
        f"{op.name}__function",
        tuple_literal(positional),
        Listing("{", keywords, "}"),
    ]
    if needs_arg_parser(op):
        arguments.append(tuple_literal([*surplus_names(op), *more_keywords(op)]))
    source.comment("Everything else takes the general path, which does the same for any arguments.")
    source.write(Listing(f"return {function}(", arguments))


def _forwarded_arguments(op: Op) -> tuple[list[str], list[str]]:
    """The arguments as the caller gave them: positional ones, and entries of a dict of keywords."""
    positional: list[str] = []
    keywords: list[str] = []
    only_keywords = False
    for p in op.params:
        only_keywords = only_keywords or p.kwonly
        if only_keywords:
            keywords.append(f"'{p.name}': {p.name}")
        else:
            positional.append(p.name)
        only_keywords = only_keywords or p.kind == "varargs"
    if op.has_out:
        keywords.append("'out': out")
    return positional, keywords


# -- the hot path -----------------------------------------------------------------------


def write_hot_path(source: Source, op: Op, free: Sequence[str], unset: Sequence[str] = ()) -> None:
    """The hot path of an op that has one: `free` are tests that nothing intercepts and nothing is absent, `unset` are
    keywords that must be None.
    """
    tensors = op.tensor_params
    if op.is_implicit:
        _write_composite(source, op, free, unset)
    elif len(tensors) == 1 and tensors[0].kind == "list":
        if op.params[0] is tensors[0] and op.promote in (None, DEFAULT):
            _write_for_list(source, op, free, unset)
    elif _begins_with_tensor(op):
        _write_for_tensors(source, op, free, unset)


def _begins_with_tensor(op: Op) -> bool:
    """True if the first argument is a tensor that determines device and dtype, and no argument is a list."""
    tensors, promoted = op.tensor_params, _promoted_params(op)
    return (
        bool(tensors)
        and tensors[0] is op.params[0]
        and tensors[0].kind != "optional"
        and not any(p.kind == "list" for p in tensors)
        and (not promoted or promoted[0] is tensors[0])
    )


def _promoted_params(op: Op) -> list[Param]:
    """The tensor arguments that promotion brings to one dtype."""
    return [p for p in op.tensor_params if op.promote and (op.promote_args is None or p.name in op.promote_args)]


def plain_tensor_test(name: str) -> str:
    """The test for a Tensor or Parameter itself: subclasses may override what ops do."""
    return f"((class_ := {name}.__class__) is Tensor or class_ is Parameter)"


def _number_tests(op: Op) -> list[str]:
    """Tests that no number is a tensor, which the slow path takes or refuses."""
    names = [op.params[position].name for position in op.real_positions]
    return [
        f"(class_ := {name}.__class__) is not Tensor and class_ is not Parameter"
        for name in names
        if name not in op.numbers or op.is_implicit
    ]


def _bool_tests(op: Op) -> list[str]:
    """Tests that the arguments for bools are bools, which the slow path refuses otherwise."""
    tests = []
    for p in (op.params[position] for position in op.bool_positions):
        if p.name not in op.creation_options:  # these are tested to be unset
            tests.append(f"({p.name} is False or {p.name} is True{f' or {p.name} is None' * (p.default is None)})")
    return tests


def _none_tests(names: Sequence[str]) -> list[str]:
    return [f"{name} is None" for name in names]


def _guard_comment(subject: str, free: Sequence[str], unset: Sequence[str]) -> str:
    """The comment for the guard: all arguments beyond the kernel's are absent."""
    words = ["nothing intercepts"] * ("not INTERCEPTORS" in free) + [subject] * bool(subject)
    words += ["all is given"] * any("ABSENT" in test for test in free)
    words += ["and no more"] * bool(unset)
    return f"The hot path{': ' if words else ''}{', '.join(words)}."


def _write_composite(source: Source, op: Op, free: Sequence[str], unset: Sequence[str]) -> None:
    """An op that is written in other ops: its parts have hot paths, and record themselves."""
    first = op.params[0] if op.params else None
    required: list[str] = []
    subject, tests = "", list(free)
    if first is not None and first.is_tensor:
        if first.kind not in ("tensor", "number", "list"):
            return
        required = [
            p.name for p in op.params if p.kind != "list" and (p is first or p.kind == "tensor" and p.default is EMPTY)
        ]
        named = " and ".join(f"`{name}`" for name in required) if len(required) < 3 else f"all {len(required)}"
        subject = f"{named} {_plain_tensor_comment(len(required))}" if required else ""
        tests += map(plain_tensor_test, required)
        others = [p.name for p in op.tensor_params if p.name not in required]
        if first.kind == "list":
            subject = f"`{first.name}` is a list of plain tensors{f', {subject}' if subject else ''}"
            tests.append(f"are_plain_tensors({first.name})")
            others.remove(first.name)
        tests += [f"({x}.__class__ in PLAIN or find_torch_function_override(({x},)) is None)" for x in others]
    several = next((p.name for p in op.params if p.kind == "varargs" and p.name in TENSOR_VARARGS), None)
    if several is not None:
        subject = f"no class of `{several}` has a say"
        tests.append(f"find_torch_function_override({several}) is None")
    tests += _none_tests(unset)
    tests += [f"{name} is None" if name == "layout" else f"not {name}" for name in op.creation_options]
    tests += [*_number_tests(op), *_bool_tests(op)]
    source.comment(_guard_comment(subject, free, unset))
    with source.condition("if", tests):
        source.comment("The op is written in other ops, which record themselves.")
        with source.block("try:"):
            taken = [p.name for p in op.params if p.name not in op.creation_options]
            if op.node_name:
                source.line("start_ = next(SEQUENCE)")
                source.write(Listing(f"result_ = {op.name}__composite(", ["F", *taken]))
                _write_shown_node(source, op, required)
            else:
                source.write(Listing(f"return {op.name}__composite(", ["F", *taken]))
        write_error(source, op, "translate_composite_error", Listing("[", [p.name for p in op.params], "]"))


def _write_shown_node(source: Source, op: Op, required: Sequence[str]) -> None:
    """Let the result of a composite show the nodes that PyTorch has: those of `node_names.py`. `required` are plain
    tensors.
    """
    edges: list[Piece] = []
    facts: list[Piece] = []
    for p in op.params:
        if p.name in required:
            edges.append(f"None if {p.name}._tl_node is None else gradient_edge({p.name})")
            facts.append(f"({p.name}._tl_array.shape, {p.name}.dtype)")
        elif p.is_tensor or p.default is None:
            edges.append(f"None if {p.name} is None else edges_of({p.name})")
            facts.append(f"None if {p.name} is None else facts_of({p.name})")
        else:
            facts.append(p.name)
    # An argument that is declared as no tensor, and may be one, takes the general path.
    simple = op.name[-1] != "_" and all(p.is_tensor or type(p.default) in _LITERALS for p in op.params)
    source.comment("Its result shows the nodes that PyTorch has.")
    with source.block("if result_.__class__ is Tensor:"):
        source.line("node_ = result_._tl_node")
        with source.block("if node_ is None:"):
            source.line("return result_")
        if simple:
            with source.block("if node_.__class__ is Node and node_._seq > start_:"):
                known = tuple_literal(facts) if callable(op.node_name) else "None"
                source.write(Listing("node_._shown = (", [f"{op.name}__op", tuple_literal(edges), known, "0", "0"]))
                source.line("return result_")
    values = Listing("[", [p.name for p in op.params], "]")
    source.write(Listing("return show_composite(", [f"{op.name}__op", "start_", "result_", values]))


def _write_for_list(source: Source, op: Op, free: Sequence[str], unset: Sequence[str]) -> None:
    """Write the function of an op on one list of tensors."""
    items = op.params[0].name
    tests = [*free, *_none_tests(unset), f"({items}.__class__ is list or {items}.__class__ is tuple)", items]
    source.comment(_guard_comment(f"`{items}` is a list of at least one tensor", free, unset))
    with source.condition("if", tests):
        source.comment("The raw arrays, if all are plain tensors of one device and dtype.")
        source.line(f"raw_ = homogeneous_arrays({items})")
        with source.block("if raw_ is not None:"):
            source.line(f"table_, {items} = {items}[0]._tl_kernels, tuple({items})")
            case = FastPathCase(op, [])
            write_kernel(source, case, {items: "raw_"})
            write_finish(source, case)


def _write_for_tensors(source: Source, op: Op, free: Sequence[str], unset: Sequence[str]) -> None:
    """An op whose tensor arguments are single tensors, or a tensor and a Python number."""
    first, *others = op.tensor_params
    promoted = _promoted_params(op)
    subject, tests = f"`{first.name}` is a plain tensor", [*free, plain_tensor_test(first.name), *_none_tests(unset)]
    if op.promote == INT_TO_FLOAT:
        subject += " of floating point"
        tests.append(f"{first.name}.dtype.category >= 2")
    numbers = [p.name for p in op.params if p.kind == "plain" and p.name in op.numbers]
    if numbers:
        subject += " that holds all numbers"
        tests.append(f"{first.name}.dtype in {first.name}._tl_kernels.exact_scalar_dtypes")
        tests += [_small_number_test(name) for name in numbers]
    if op.sparse_grad_param:
        subject += " without a sparse gradient"
        tests.append(f"not {op.sparse_grad_param}")
    tests += [*_number_tests(op), *_bool_tests(op)]
    source.comment(_guard_comment(subject, free, unset))
    with source.condition("if", tests):
        _write_device_and_dtype(source, first)
        if not others:
            write_call(source, FastPathCase(op, [first]))
            return
        # An op that checks its arguments, and casts none, takes the slow path if dtypes differ.
        alike = op.tensor_params if op.check is not None and not op.promote else promoted
        source.comment(_same_device_comment(others, alike))
        with source.condition("if", [_same_device_test(p, p in alike) for p in others]):
            write_call(source, FastPathCase(op, [first, *others]))
        if takes_scalar(op, others[0]) and promoted == [first, others[0]]:
            write_scalar_branch(source, op, "elif", first, others[0], others[1:])


def _small_number_test(name: str) -> Piece:
    """The test for a number that the hot path can pass to the kernel."""
    return [
        f"({name}.__class__ is float or {name} is None",
        f"or {name}.__class__ is int and {INT64_MIN} <= {name} < {INT64_END})",
    ]


def _write_device_and_dtype(source: Source, p: Param) -> None:
    source.line(f"table_ = {p.name}._tl_kernels")
    source.line(f"dtype_ = {p.name}.dtype")


def _plain_tensor_comment(count: int) -> str:
    return "are plain tensors" if count > 1 else "is a plain tensor"


def _is_optional(p: Param) -> bool:
    return p.kind == "optional" or p.default is None


_MAX_NAMED = 5  # more names do not fit on a comment's line


def _same_device_comment(others: Sequence[Param], promoted: Sequence[Param]) -> str:
    """The comment that describes the tests of `_same_device_test`."""
    *rest, last = (f"`{p.name}`" for p in others)
    names = f"{', '.join(rest)} and {last}" if rest else last
    if len(others) > _MAX_NAMED:
        names = "The other tensor arguments"
    dtype = " and dtype" if any(p in promoted for p in others) else ""
    absent = " (or None)" if any(map(_is_optional, others)) else ""
    return f"{names} {_plain_tensor_comment(len(others))}{absent} of the same device{dtype}."


def _same_device_test(p: Param, same_dtype: bool) -> list[str]:
    tests = [
        plain_tensor_test(p.name),
        f"and {p.name}._tl_kernels is table_",
        *[f"and {p.name}.dtype is dtype_"] * same_dtype,
    ]
    return [f"({p.name} is None or {tests[0]}", *tests[1:-1], f"{tests[-1]})"] if _is_optional(p) else tests


def takes_scalar(op: Op, p: Param) -> bool:
    """True if the hot path takes a Python number for this argument."""
    return (
        p.kind == "number"
        and p.default is EMPTY
        and bool(op.tags & POINTWISE)
        and op.promote is not None
        and op.outputs is None
    )


def write_scalar_branch(
    source: Source, op: Op, keyword: str, tensor: Param, number: Param, others: Sequence[Param] = ()
) -> None:
    """The branch for a tensor and a Python number that does not change its dtype. `others` are tensors that take no
    part in promotion.
    """
    name = number.name
    dtype_test = f"dtype_ in table_.{'exact_' if op.scalar_rounding == 'always' else ''}scalar_dtypes"
    integers = dtype_test + " or dtype_ is int64" * (op.promote != INT_TO_FLOAT)
    pieces = [
        f"({name}.__class__ is float and {dtype_test}",
        f"or {name}.__class__ is int and {INT64_MIN} <= {name} < {INT64_END}",
        f"and ({integers}))",
    ]
    pieces += [f"and {plain_tensor_test(p.name)} and {p.name}._tl_kernels is table_" for p in others]
    source.comment(f"`{name}` is a Python number that leaves the dtype as it is.")
    source.expression(f"{keyword} ", pieces, ":")
    with source:
        with source.block(f"if {name}.__class__ is int and dtype_ is not int64:"):
            source.line(f"{name} = float({name})")
        write_call(source, FastPathCase(op, [tensor, *others], name))


# -- operators -----------------------------------------------------------------------


def operator_text(op: Op, dunder: str) -> str:
    """The source of Python's operator `input op other`: the hot path, and NotImplemented for operands that the op does
    not take.
    """
    first, second = (p.name for p in op.params)
    source = Source()
    with source.block(f"def operator({first}, {second}):"):
        if not op.is_implicit:
            write_hot_path(source, op, ["not INTERCEPTORS"])
        _write_operands(source, op, dunder, first, second)
    return source.text()


def reflected_text(op: Op, dunder: str) -> str:
    """`number op tensor`: Python hands over the tensor first."""
    number, tensor = op.params[:2]
    tests = ["not INTERCEPTORS", plain_tensor_test(tensor.name)]
    if op.promote == INT_TO_FLOAT:
        tests.append(f"{tensor.name}.dtype.category >= 2")
    source = Source()
    with source.block(f"def operator({tensor.name}, {number.name}):"):
        if not op.is_implicit and takes_scalar(op, number) and tensor.kind == "number":
            source.comment(_guard_comment(f"`{tensor.name}` is a plain tensor", tests[:1], ()))
            with source.condition("if", tests):
                _write_device_and_dtype(source, tensor)
                write_scalar_branch(source, op, "if", tensor, number)
        _write_operands(source, op, dunder, tensor.name, number.name)
    return source.text()


def _write_operands(source: Source, op: Op, dunder: str, tensor: str, other: str) -> None:
    with source.block(f"if not isinstance({tensor}, Tensor):"):
        source.line(f"raise wrong_self_error({dunder!r}, {tensor})")
    source.comment("Python asks the other operand's class where the op does not take it.")
    takes = "is_matmul_operand" if dunder == "__matmul__" else "is_operand"
    with source.block(f"if {other}.__class__ not in OPERANDS:"):
        with source.block(f"if not {takes}({other}):"):
            foreign = f"matmul_foreign({tensor}, {other})" if dunder == "__matmul__" else "NotImplemented"
            source.line(f"return {foreign}")
        with source.block(
            f"if not isinstance({other}, Tensor) and find_torch_function_override(({other},)) is not None:"
        ):
            source.line(f"return call_override_of_operator({dunder!r}, {tensor}, {other})")
    source.comment("A function mode sees the method that PyTorch's operator is.")
    with source.block("if INTERCEPTORS and mode_sees_operators():"):
        source.line(f"return call_mode_of_operator({dunder!r}, {tensor}, {other})")
    called = f"{op.name}__function({', '.join(p.name for p in op.params[:2])})"
    source.line(
        f"return mark_reflected({called})" if dunder[2] == "r" and tensor != op.params[0].name else f"return {called}"
    )
