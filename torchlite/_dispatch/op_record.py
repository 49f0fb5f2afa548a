"""The op record: everything that is true of an op whatever the device."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from .._settings.cached import cached_property
from .._types import dtypes, layouts
from .._types.package_name import package_name
from .._types.python_source import literal
from .callbacks import CALLBACKS
from .creation_options import handled_options, with_options
from .saved_variables import SavedVariables

POINTWISE, VIEW, RANDOM, INPLACE, NONDIFF, MAYBE_VIEW, KEEPS_DTYPE = 1, 2, 4, 8, 16, 32, 64
DEFAULT, INT_TO_FLOAT, ALWAYS_BOOL = "default", "int_to_float", "always_bool"
EMPTY: Any = inspect.Parameter.empty
# The namespaces whose functions take out=.
_WITH_OUT = {"torch", "linalg", "fft", "special"}
# What PyTorch writes in Python over other functions, and has no `out=`.
_WITHOUT_OUT = frozenset(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist einsum meshgrid pca_lowrank "
    "split stft svd_lowrank unique unique_consecutive unravel_index".split()
)
_OUT_IN_FUNCTIONAL = {"avg_pool2d", "avg_pool3d", "gelu", "logsigmoid", "softplus", "softshrink"}

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


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


_DEFAULT_CONSTANTS = {"None": None, "True": True, "False": False, "()": ()}


def _default(text: str) -> Any:
    """The value of a default: a word, a number or a string as they are; `ast` for the rest leaves rubbish behind."""
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


def parse(schema: str) -> list[Param]:
    """The parameters of a schema such as "add(Tensor input, Tensor|Number other, *, alpha=1)"."""
    params, kwonly = [], False
    for part in _split(schema[schema.index("(") + 1 : schema.rindex(")")]):
        if part == "*":
            kwonly = True
            continue
        head, has_default, default = part.partition("=")
        kind, _, name = head.strip().rpartition(" ")
        value = _default(default.strip()) if has_default else EMPTY
        if name.startswith("*"):
            params.append(Param(name[1:], "varargs", (), False))
            continue
        params.append(Param(name, _KINDS.get(kind.strip(), "plain"), value, kwonly, kind.strip() == "Tensor?[]"))
    return params


class Formula:
    """One derivative formula: the inputs whose gradients it gives and the names of the values it needs."""

    __slots__ = ("targets", "function", "needs")

    def __init__(self, targets, function: Callable):
        self.targets = targets
        self.function = function
        code = function.__code__
        self.needs = code.co_varnames[2 : code.co_argcount]


# NumPy's names of arguments.
NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
ABSENT = object()  # the default of an argument that has none, in functions that take any form of a call


class Op:
    """An op: PyTorch's name and signature, promotion, derivatives, composite, shape rule and tags."""

    multi_output = False  # the kernel returns a plain tuple or list of results
    # the kernel returns the result and, after it, values that only the formulas see (`out1`, `out2` …)
    aux_outputs = False
    # where the result that a formula needs was written to since, the kernel makes it again; it saves all its arguments
    repeatable = False
    # Of what a formula for several inputs names: the inputs whose gradients alone it is for, where it is not for all.
    saved_for: Mapping[str, tuple[str, ...]] = {}
    saves_arrays = False  # an argument that is no tensor to the schema holds arrays, which a node lets go of
    # The arguments whose numbers must be ones that the dtype holds in which the op computes, and whether one that is
    # too large for half precision is infinite and no error.
    numbers: Mapping[str, bool] = {}
    # Kinds of dtypes that are refused, of the first argument or of `dtype=`, with PyTorch's name of the kernel.
    refuses: Mapping[tuple[str, int], str | Exception] = {}
    check: Callable | None = None  # refuses some arguments: called with them before promotion
    base_op = ""  # the op that it is where its keywords are not given
    sparse_grad_param = ""  # the argument which, where it is true, asks for a sparse gradient
    function: Callable | None = None  # the public function, once made
    direct: Callable | None = None  # the function for interceptors, once made
    # Keywords of the Array API beside the schema's: another name for a parameter, or what makes the call with it; and
    # whether the signature shows these names in the parameters' places.
    kwarg_aliases: dict[str, Any] = {}
    array_api_first = False

    def __init__(
        self,
        schema: str,
        where: str,
        alias: str,
        promote,
        promote_args,
        tags: int,
        vjp,
        composite,
        meta,
        outputs,
        nondiff,
        doc: str,
        layout,
    ):
        self.name = schema[: schema.index("(")].strip()
        self.schema, self.where, self.alias = schema, where, alias
        self.promote, self.promote_args, self.tags = promote, promote_args, tags
        self.composite, self.meta, self.outputs, self.doc = composite, meta, outputs, doc
        self.nondiff = frozenset(nondiff)
        self._vjp = vjp
        # The rule of `layouts` that says how results lie in memory, where kernels do not.
        self.layout = layout
        self.creation_options = handled_options(composite, schema) if composite is not None else ()
        if self.creation_options:
            self.composite = with_options(composite, self)
        if layout is not None and self.is_implicit:
            self.composite = layout.over(self.composite)
        self._backward: Callable | None = None  # made from the formulas at the first backward
        self.place: tuple[CodeType, int]  # the code that declares it, and the instruction

    # Worked out when first asked for, so that importing the op families stays cheap.

    @cached_property
    def params(self) -> list[Param]:
        """The parameters of the schema."""
        return parse(self.schema)

    @cached_property
    def tensor_params(self) -> list[Param]:
        """Those that take tensors."""
        return [p for p in self.params if p.is_tensor]

    @cached_property
    def formulas(self) -> list[Formula]:
        """The derivative formulas."""
        return [
            Formula((key,) if isinstance(key, str) else key, function) for key, function in (self._vjp or {}).items()
        ]

    @cached_property
    def saved_variables(self) -> SavedVariables:
        """What the formulas need saved."""
        return SavedVariables(self)

    @cached_property
    def saves_tensors(self) -> bool:
        """Whether a node of this op holds tensors, which backward frees; one that holds sizes or a
        dtype can run again.
        """
        return (
            self.saves_arrays
            or bool(self.saved_variables.keeps)
            or any(kind == "value" for _, kind, _ in self.saved_variables.saves)
        )

    @cached_property
    def rounds(self) -> bool:
        """Whether its formulas compute rather than move: in half precision they want float32."""
        return bool(self.tags & POINTWISE) or not self.tags & (VIEW | MAYBE_VIEW) and self.name != "to"

    @cached_property
    def result_type(self):
        """The named tuple of several outputs."""
        return _named_tuple_type(self.name, self.outputs) if self.outputs else None

    @property
    def numpy_names(self) -> tuple[str, ...]:
        """NumPy's names of the arguments."""
        taken = {p.name for p in self.params}
        return tuple(name for p in self.params for name in NUMPY_NAMES.get(p.name, ()) if name not in taken)

    @property
    def is_implicit(self) -> bool:
        """A composite without a formula of its own: runs on Tensors, and its parts record themselves."""
        return self.composite is not None and self._vjp is None and not self.tags & NONDIFF

    @property
    def has_out(self) -> bool:
        spaces = {*self.where.split(), *(alias.rpartition(".")[0] for alias in self.alias.split())}
        return (
            (not spaces.isdisjoint(_WITH_OUT) or self.name in _OUT_IN_FUNCTIONAL)
            and not self.tags & VIEW
            and self.name[-1] != "_"
            and self.name not in _WITHOUT_OUT
            and not any(p.name == "out" for p in self.params)
        )

    @property
    def file(self) -> str:
        return self.place[0].co_filename

    @property
    def line(self) -> int:
        # Found when asked: the way from an instruction to its line leads through all lines before.
        code, instruction = self.place
        return next(line for start, end, line in code.co_lines() if start <= instruction < end and line)

    def __repr__(self) -> str:
        return f"<op {self.schema} at {self.file}:{self.line}>"


def _named_tuple_type(name: str, fields):
    """A tuple type with PyTorch's field names and repr."""
    from operator import itemgetter

    def show(self) -> str:
        return (
            f"torch.return_types.{name}(\n" + ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True)) + ")"
        )

    body: dict[str, Any] = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    body.update(
        n_fields=len(fields),
        n_sequence_fields=len(fields),
        n_unnamed_fields=0,
        __slots__=(),
        __repr__=show,
        __module__=f"{package_name()}.return_types",
        _fields=tuple(fields),
        __reduce__=lambda self: (type(self), (tuple(self),)),
    )
    return type(name.lstrip("_"), (tuple,), body)


def _register(record: Op, depth: int) -> Op:
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


def op(
    schema: str,
    *,
    where: str = "torch Tensor",
    alias: str = "",
    promote=None,
    promote_args=None,
    tags: int = 0,
    vjp=None,
    composite=None,
    meta=None,
    outputs=None,
    nondiff=(),
    doc: str = "",
    layout=None,
) -> Op:
    """Declare an op. See docs/architecture.md for the schema, the namespaces, and the form of `vjp`, `composite` and
    `meta`; `layout` is a rule of `layouts`.
    """
    return _register(
        Op(schema, where, alias, promote, promote_args, tags, vjp, composite, meta, outputs, nondiff, doc, layout), 2
    )


def composite(
    schema: str,
    *,
    where: str = "torch Tensor",
    alias: str = "",
    promote=None,
    promote_args=None,
    tags: int = 0,
    vjp=None,
    meta=None,
    outputs=None,
    nondiff=(),
    doc: str = "",
    layout=None,
):
    """Declare an op whose composite is the decorated function `(F, *args)`; its docstring is the op's."""

    def decorate(function):
        _register(
            Op(
                schema,
                where,
                alias,
                promote,
                promote_args,
                tags,
                vjp,
                function,
                meta,
                outputs,
                nondiff,
                doc or function.__doc__ or "",
                layout,
            ),
            2,
        )
        return function

    return decorate
