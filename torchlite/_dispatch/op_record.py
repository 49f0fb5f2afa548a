"""The op record: all device-independent facts of an op."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from keyword import iskeyword
from types import CodeType
from typing import Any

from .._settings.cached_property import cached_property
from .._types import dtypes, layouts
from .._types.package_name import package_name
from .._types.python_source import literal
from .callbacks import CALLBACKS
from .creation_options import handled_options, with_options
from .saved_variable_analysis import SavedVariables
from .signature_table import lines, names_of_forms, split_at_commas

POINTWISE, VIEW, RANDOM, INPLACE, NONDIFF, MAYBE_VIEW, KEEPS_DTYPE = 1, 2, 4, 8, 16, 32, 64
CAST, UNINITIALIZED = 128, 256  # each element in another dtype; results whose elements are not set
DEFAULT, INT_TO_FLOAT, ALWAYS_BOOL = "default", "int_to_float", "always_bool"
EMPTY: Any = inspect.Parameter.empty
# The namespaces whose functions take out=.
_WITH_OUT = {"torch", "linalg", "fft", "special"}

REGISTRY: dict[str, Op] = {}
# {"torch": {public name: op}, "Tensor": {...}, "nn.functional": {...}, ...}
NAMESPACES: dict[str, dict[str, Op]] = {"torch": {}, "Tensor": {}}


class Param:
    """One parameter of an op: its kind is tensor, optional, number (Tensor or Number), list (of tensors), varargs or
    plain.
    """

    __slots__ = ("name", "kind", "default", "kwonly", "gaps")

    def __init__(self, name: str, kind: str, default: Any, kwonly: bool, gaps: bool = False):
        self.name, self.kind, self.default, self.kwonly = name, kind, default, kwonly
        self.gaps = gaps  # whether a list may have None in a tensor's place

    @property
    def is_tensor(self) -> bool:
        return self.kind not in ("plain", "varargs")


_KINDS = {
    "Tensor": "tensor",
    "Tensor?": "optional",
    "Tensor|Number": "number",
    "Tensor|Number?": "number",
    "Tensor[]": "list",
    "Tensor?[]": "list",
}


_DEFAULT_CONSTANTS = {"None": None, "True": True, "False": False, "()": ()}


def _parse_default(text: str) -> Any:
    """Return the value of a default. Only rare forms are parsed by `ast`, which leaves garbage for the collector."""
    if text in _DEFAULT_CONSTANTS:
        return _DEFAULT_CONSTANTS[text]
    if text[0] in "'\"":
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    try:
        return literal(text)
    except (ValueError, SyntaxError):
        name = text.removeprefix("torch.")
        return getattr(layouts, name, None) or dtypes.BY_NAME[name]


def parse_schema(schema: str) -> list[Param]:
    """The parameters of a schema such as "add(Tensor input, Tensor|Number other, *, alpha=1)"."""
    params, kwonly = [], False
    for part in split_at_commas(schema[schema.index("(") + 1 : schema.rindex(")")]):
        if part == "*":
            kwonly = True
            continue
        head, has_default, default = part.partition("=")
        kind, _, name = head.strip().rpartition(" ")
        value = _parse_default(default.strip()) if has_default else EMPTY
        if name.startswith("*"):
            params.append(Param(name[1:], "varargs", (), False))
            continue
        params.append(Param(name, _KINDS.get(kind.strip(), "plain"), value, kwonly, kind.strip() == "Tensor?[]"))
    return params


class Formula:
    """One derivative formula: the inputs whose gradients it computes and the names of the values that it needs."""

    __slots__ = ("targets", "function", "needs")

    def __init__(self, targets, function: Callable):
        self.targets = targets
        self.function = function
        code = function.__code__
        self.needs = code.co_varnames[2 : code.co_argcount]


# NumPy's names of arguments.
NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
ABSENT = object()  # the default of an argument that has none, in functions that take any form of a call


# Errors of several ops for another dtype of `out=`; `want` and `got` are names such as Float.
FOUND_DTYPE = "Found dtype {got} but expected {want}"
SCALAR_TYPE = "expected scalar type {want} but found {got}"


class Out:
    """Dtypes that an op's `out=` tensors may have."""

    __slots__ = (
        "dtype", "message", "supported", "error", "accepts", "resize", "dtype_param", "complex_to_real",
        "in_place_message",
    )  # fmt: skip

    def __init__(
        self,
        dtype: str = "castable",
        message: str | tuple[str, ...] = "",
        *,
        supported: bool | None = None,
        error: type[Exception] = RuntimeError,
        accepts: tuple[str, ...] = (),
        resize: str = "deprecated",
        dtype_param: bool | str = False,
        complex_to_real: bool = False,
        in_place_message: str = "",
    ):
        # Its dtype: "same" as the result's, one to which that is "castable", or "unchecked"; the names of other dtypes
        # that are allowed; the message of an error of another class than RuntimeError, one per result.
        self.dtype, self.accepts, self.error, self.message = dtype, accepts, error, message
        # Whether the op takes `out=`; None: if the functions of its namespace do.
        self.supported = supported
        # A tensor of another shape is resized: "deprecated" warns, "silent" does not, "rounding" names rounding errors.
        self.resize = resize
        # An argument `dtype=` must be the dtype of `out`, which it is by default: always, or only for "float" dtypes of
        # the input and `out`. "out_dtype": the argument has this name.
        self.dtype_param = dtype_param
        self.complex_to_real = complex_to_real  # for a complex input, `out` may be real, or complex as the input
        self.in_place_message = in_place_message  # the in-place op's message, if the target's dtype must be "same"


class Overlap:
    """Memory overlaps that an op allows in its in-place target or `out=`."""

    __slots__ = ("internal", "operands", "example", "read_first")

    def __init__(
        self,
        internal: str = "refused",
        operands: str = "",
        example: str = "",
        read_first: Callable[[list], Any] | None = None,
    ):
        # Elements of the written tensor that share memory: "refused", "allowed", "deprecated" (a warning shows the
        # `example`), "same_view" (allowed if the source is the same view), "unchecked" (the op itself checks).
        self.internal, self.example = internal, example
        # The operands that the result may overlap: "identical" (an operand itself, no part of one), "partial" (parts
        # too), "none", "target" (none but the first, of which the op changes some elements). By default "identical",
        # and "partial" for ops of linalg and fft.
        self.operands = operands
        # Of an in-place call's arguments: the one that is read before the first element is written, if there is one. It
        # may overlap the target in any way.
        self.read_first = read_first


class OpFacts:
    """The facts of an op, with their defaults: each is an argument of `op(...)`."""

    where: str = "torch Tensor"  # the namespaces of the public function
    alias: str = ""  # other public names
    doc: str = ""
    tags: int = 0
    # How dtypes combine (DEFAULT, INT_TO_FLOAT, ALWAYS_BOOL), of all tensor arguments or of some.
    promote: str | None = None
    promote_args: Any = None
    vjp: Mapping[Any, Callable] | None = None  # derivative formulas, by the input or inputs
    nondiff: Any = frozenset()  # the positions of results that have no gradient
    composite: Any = None  # the op by other ops, a function of `F` and the arguments
    shape_fn: Callable | None = None  # returns the shape and dtype of the result; refuses wrong arguments
    layout: Any = None  # the rule of `memory_layout` for the results' strides, if kernels do not follow it
    outputs: Any = None  # names of several results
    multi_output: bool = False  # the kernel returns a plain tuple or list of results
    # The kernel returns the result and, after it, values that only the formulas see (`out1`, `out2` …).
    aux_outputs: bool = False
    # The kernel computes a result that a formula needs once more, if it was written to since; saves all arguments.
    repeatable: bool = False
    # By an input, the inputs on which its gradient depends in PyTorch's graph though it is constant in them: under
    # `create_graph` it requires a gradient where they do. This gradient is zero, or absent. Where arguments decide, the
    # fact is a function of the node.
    zero_derivatives: Mapping[str, tuple[str, ...]] | Callable[[Any], Mapping[str, tuple[str, ...]]] = {}
    absent_derivatives: Mapping[str, tuple[str, ...]] = {}
    # For a joint formula: values needed only for these inputs' gradients.
    saved_for: Mapping[str, tuple[str, ...]] = {}
    # What the kernel writes if no underscore ends its name: its "arguments", or "state" that outlives the call.
    mutates: str = ""
    saves_arrays: bool = False  # a non-tensor argument of the schema contains arrays, which a node frees
    # The arguments whose numbers must be ones that the dtype holds in which the op computes, and whether one that is
    # too large for half precision is infinite and no error.
    numbers: Mapping[str, bool] = {}
    # Where a Python number among half-precision operands is rounded to their dtype: "always", "cpu" (only there) or
    # "never".
    scalar_rounding: str = "cpu"
    # How the op takes dtypes without arithmetic (`OPAQUE`), which others refuse: its kernel takes a Python number among
    # them as a "number" or as an "array" of the dtype; or it tells "values" apart, those of float8_e8m0fnu as float32.
    opaque: str = ""
    accepts_scalars: bool = False  # a Python number may be in the place of each tensor
    # Dtypes, or kinds of them, that are refused, of the first argument or of `dtype=`, with PyTorch's kernel's name.
    refuses: Mapping[tuple[str, Any], str | Exception] = {}
    kernel_name: str = ""  # PyTorch's name of the kernel in errors, if it is not the op's name and "_cpu"
    check: Callable | None = None  # refuses some arguments: called with them before promotion
    base_op: str = ""  # the op that it equals if its keywords are absent
    # The ops that a composite's in-place call is whose other arguments are numbers or None: of integers, and of floats.
    number_ops: tuple[str, str] | None = None
    sparse_grad_param: str = ""  # the argument that, if true, requests a sparse gradient
    # PyTorch's name of the node, or the graph of nodes that it has (`node_names.py`); a function that returns it for a
    # node or a composite's call; or a pair, of which the second is that where the first argument is a number.
    node_name: str | tuple[str, str] | Callable[[Any], str] = ""
    out: Out = Out()
    overlap: Overlap = Overlap()
    # A call without any of the arguments `*dims` is an error; but for a call with one of the keywords named.
    varargs_required: bool | tuple[str, ...] = False
    keywords_from: int | None = None  # PyTorch's function in Python passes arguments by name from this position on
    # Keywords of the Array API in addition to the schema's: another name for a parameter, or the function that handles
    # the call; and whether the signature shows these names instead of the parameters.
    kwarg_aliases: Mapping[str, Any] = {}
    array_api_first: bool = False


_FACTS = frozenset(OpFacts.__annotations__)


class Op(OpFacts):
    """An op: PyTorch's name and signature, and its facts."""

    function: Callable | None = None  # the public function, created at first use
    direct: Callable | None = None  # the function for interceptors, created at first use
    creation_options: tuple[str, ...] = ()  # options of the schema that the composite does not take

    def __init__(self, schema: str, **facts: Any):
        self.name = schema[: schema.index("(")].strip()
        if not facts.keys() <= _FACTS:
            raise TypeError(f"op {self.name}: unknown facts {sorted(facts.keys() - _FACTS)}")
        self.schema = schema
        self.__dict__.update(facts)
        if "nondiff" in facts:
            self.nondiff = frozenset(self.nondiff)
        composite = self.composite
        if composite is not None and (" layout=" in schema or " pin_memory=" in schema):
            self.creation_options = handled_options(composite, schema)
            if self.creation_options:
                self.composite = with_options(composite, self)
        if self.layout is not None and self.is_implicit:
            self.composite = self.layout.wrap_composite(self.composite)
        self._backward: Callable | None = None  # generated from the formulas at the first backward
        self.place: tuple[CodeType, int]  # the code that declares it, and the instruction

    # Computed at first use, so that importing the op families stays fast.

    @property
    def function_name(self) -> str:
        """PyTorch's name of the function, in errors."""
        return (self.base_op or self.name).lstrip("_")

    @cached_property
    def params(self) -> list[Param]:
        """The parameters of the schema."""
        return parse_schema(self.schema)

    @cached_property
    def tensor_params(self) -> list[Param]:
        """The parameters that take tensors."""
        return [p for p in self.params if p.is_tensor]

    @cached_property
    def formulas(self) -> list[Formula]:
        """The derivative formulas."""
        return [
            Formula((key,) if isinstance(key, str) else key, function) for key, function in (self.vjp or {}).items()
        ]

    @cached_property
    def inputs_without_formula(self) -> frozenset[str]:
        """The tensor arguments that have no derivative, of an op whose other arguments have one."""
        targets = {name for formula in self.formulas for name in formula.targets}
        return frozenset(p.name for p in self.tensor_params if targets and p.name not in targets)

    @cached_property
    def saved_variables(self) -> SavedVariables:
        """The values that the formulas need saved."""
        return SavedVariables(self)

    @cached_property
    def saves_tensors(self) -> bool:
        """True if a node of this op saves tensors, which backward frees. A node that saves only sizes or a dtype can
        run again.
        """
        return (
            self.saves_arrays
            or bool(self.saved_variables.keeps)
            or any(kind == "value" for _, kind, _ in self.saved_variables.saves)
        )

    @cached_property
    def rounds(self) -> bool:
        """True if the formulas compute new values instead of moving them: in half precision they need float32."""
        return bool(self.tags & POINTWISE) or not self.tags & (VIEW | MAYBE_VIEW)

    @cached_property
    def result_type(self):
        """The named tuple of several outputs."""
        return _named_tuple_type(self.name, self.outputs) if self.outputs else None

    @cached_property
    def parsed_names(self) -> tuple[str, ...]:
        """The public names with recorded signatures: the main one first, methods last. Empty if PyTorch's function is
        written in Python.
        """
        spaces = dict.fromkeys([*self.where.split(), *(alias.rpartition(".")[0] for alias in self.alias.split())])
        found = []
        for space in spaces:
            for name, record in NAMESPACES.get(space, {}).items():
                public = name if space == "torch" else f"{space}.{name}"
                if record is self and public in lines():
                    found.append(public)
        return tuple(sorted(found, key=lambda public: public.startswith("Tensor.")))

    @cached_property
    def real_positions(self) -> tuple[int, ...]:
        """The positions of the plain parameters that PyTorch's parser takes as numbers, whole or not, in every form."""
        return self._positions_of({"Number", "float"})

    @cached_property
    def bool_positions(self) -> tuple[int, ...]:
        """The positions of the plain parameters that PyTorch's parser takes as bools in every form."""
        return self._positions_of({"bool"})

    def _positions_of(self, types: set[str]) -> tuple[int, ...]:
        """The positions of the plain parameters that have one of the types in every recorded form."""
        forms = [form for public in self.parsed_names for form in names_of_forms(public)]
        kinds: dict[str, set[str]] = {}
        for kind, name in (pair for form in forms for pair in form):
            kinds.setdefault(name, set()).add(kind.removesuffix("?"))
        return tuple(
            position
            for position, p in enumerate(self.params)
            if p.kind == "plain" and kinds.get(p.name) and kinds[p.name] <= types
        )

    @cached_property
    def argument_names(self) -> dict[str, str]:
        """Other names that PyTorch's parser takes for the parameters: NumPy's, and those of the signatures. A name
        without a parameter here, such as `out_dtype`, has an empty one.
        """
        if not self.parsed_names:
            return {}
        own = [p.name for p in self.params]
        positional = [p.name for p in self.params if not p.kwonly]
        found = {name: p for p in own for name in NUMPY_NAMES.get(p, ()) if name not in own}
        for public in self.parsed_names:
            for form in names_of_forms(public):
                names = [name for _, name in form]
                rest = iter([p for p in positional[public.startswith("Tensor.") :] if p not in names])
                for name in names:
                    if name not in own and name not in ("out", *self.creation_options) and not iskeyword(name):
                        target = found.setdefault(name, next(rest, ""))
                        for other in NUMPY_NAMES.get(name, ()):
                            if other not in own:
                                found.setdefault(other, target)
        return found

    @cached_property
    def keyword_aliases(self) -> Mapping[str, Any]:
        """Other names of arguments that the function handles before all else: the Array API's, and those of an op with
        varargs, whose calls the parser does not see.
        """
        if any(p.kind == "varargs" for p in self.params):
            return {**self.kwarg_aliases, **{name: p for name, p in self.argument_names.items() if p}}
        return self.kwarg_aliases

    @property
    def is_implicit(self) -> bool:
        """True for a composite without a formula: it runs on Tensors, and the ops that it calls are recorded."""
        return self.composite is not None and self.vjp is None and not self.tags & NONDIFF

    @cached_property
    def has_out(self) -> bool:
        """True if the function takes `out=`: if a recorded signature does, or those of its namespace do."""
        supported = self.out.supported
        if supported is None and self.parsed_names:
            supported = any(name == "out" for n in self.parsed_names for form in names_of_forms(n) for _, name in form)
        if supported is None:
            spaces = {*self.where.split(), *(alias.rpartition(".")[0] for alias in self.alias.split())}
            supported = not spaces.isdisjoint(_WITH_OUT)
        return (
            supported
            and not self.tags & VIEW
            and self.name[-1] != "_"
            and not any(p.name == "out" for p in self.params)
        )

    @cached_property
    def out_list(self) -> str:
        """The type of `out=` if it is a list of tensors in every recorded form that has it, such as "Tensors[2]"; else
        empty.
        """
        forms = [form for public in self.parsed_names for form in names_of_forms(public)]
        kinds = {kind for form in forms for kind, name in form if name == "out"}
        return kinds.pop() if len(kinds) == 1 and next(iter(kinds)).startswith("Tensors") else ""

    @property
    def file(self) -> str:
        return self.place[0].co_filename

    @property
    def line(self) -> int:
        # Computed at first use: mapping an instruction to its line walks all lines before it.
        code, instruction = self.place
        return next(line for start, end, line in code.co_lines() if start <= instruction < end and line)

    def __repr__(self) -> str:
        return f"<op {self.schema} at {self.file}:{self.line}>"


def _named_tuple_type(name: str, fields):
    """A tuple type with PyTorch's field names and repr."""
    from operator import itemgetter

    def named_tuple_repr(self) -> str:
        return (
            f"torch.return_types.{name}(\n" + ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True)) + ")"
        )

    body: dict[str, Any] = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    body.update(
        n_fields=len(fields),
        n_sequence_fields=len(fields),
        n_unnamed_fields=0,
        __slots__=(),
        __repr__=named_tuple_repr,
        __module__=f"{package_name()}.return_types",
        _fields=tuple(fields),
        __reduce__=lambda self: (type(self), (tuple(self),)),
    )
    return type(name, (tuple,), body)


def _register_op(record: Op, depth: int) -> Op:
    if record.name in REGISTRY:
        raise RuntimeError(f"op {record.name} is declared twice: {REGISTRY[record.name]!r}")
    frame = sys._getframe(depth)
    file = frame.f_code.co_filename
    # Families of ops are declared by a helper: what calls it, in the same file, is the op's own line.
    while frame.f_back is not None and frame.f_back.f_code.co_filename == file:
        frame = frame.f_back
    record.place = frame.f_code, frame.f_lasti
    REGISTRY[record.name] = record
    for space in record.where.split():
        prefix = space.replace("nn.functional", "").replace(".", "_") + "_"
        _add_to_namespace(record, space, record.name.removeprefix(prefix) if prefix != "_" else record.name)
    for alias in record.alias.split():
        space, _, name = alias.rpartition(".")
        for where in [space] if space else record.where.split():
            _add_to_namespace(record, where, name)
    return record


def _add_to_namespace(record: Op, space: str, name: str) -> None:
    NAMESPACES.setdefault(space, {})[name] = record
    if space == "Tensor":
        CALLBACKS.add_tensor_method(name, record)


def op(schema: str, **facts: Any) -> Op:
    """Declare an op by its schema and the facts of `OpFacts`. docs/architecture.md describes the schema, the
    namespaces, and the form of `vjp`, `composite` and `shape_fn`.
    """
    return _register_op(Op(schema, **facts), 2)


def composite(schema: str, **facts: Any) -> Callable[[Callable], Callable]:
    """Declare an op whose composite is the decorated function `(F, *args)`; its docstring is the op's."""

    def decorate(function: Callable) -> Callable:
        facts["doc"] = facts.get("doc") or function.__doc__ or ""
        _register_op(Op(schema, composite=function, **facts), 2)
        return function

    return decorate
