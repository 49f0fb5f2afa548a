"""TraceRecorder: records a run as TorchScript statements.

Tensor methods report sizes and reads of values to the recorder (`_METHODS`), and an interceptor sees each op as the
program called it. `flatten` stays `flatten`, and queried sizes are queried again by the traced program.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import torchlite as torch

from .._aten.torch_dispatch import find_library_call
from .._dispatch import call
from .._dispatch.call import Tensor
from .._dispatch.interceptors import InPlaceCall, Interceptor, ReenabledInterceptor
from .._dispatch.op_record import ABSENT
from .._dispatch.tracing import Trace
from .._library.library_op import LibraryOp
from .._settings.jit_state import STATE
from .._types import dtypes
from .._types.devices import device as device_type
from .._types.layouts import Size, layout, memory_format
from ..utils.weak import WeakIdKeyDictionary
from ._builtin_ops import _matches_type
from ._dtype_codes import to_code
from ._function_modifiers import TracerWarning

Parameter = torch.nn.Parameter
# Schema argument names and their names in records.
_PARAMETER_ALIASES = {
    "self": ("input", "A"),
    "from": ("from_",),
    "input": ("self",),
    "train": ("training",),
    "size": ("shape", "sizes"),
    "sizes": ("size", "shape"),
    "shape": ("size",),
    "split_size": ("split_size_or_sections",),
    "split_sizes": ("split_size_or_sections",),
    "dims": ("dim",),
    "dim": ("dims", "axis"),
    "cudnn_enable": ("cudnn_enabled",),
    "cudnn_enabled": ("cudnn_enable",),
    "other": ("value", "tensor2"),
    "exponent": ("other",),
    "tensors": ("seq",),
    "repeats": ("sizes",),
    "src": ("value",),
}
_MODES = {"sum": 0, "mean": 1, "max": 2}
_REDUCTION = {"none": 0, "mean": 1, "sum": 2}


class TracedSize(int):
    """Integer returned by a size query, with the expression of the query."""

    text: str

    def __deepcopy__(self, memo: dict) -> int:
        return int(self)


def _make_traced_size(value: int, text: str) -> Any:
    made = TracedSize(value)
    made.text = text if len(text) < 120 else STATE.recorder.statement(text)
    return made


def _make_traced_arithmetic(name: str, operator: str, turned: bool = False) -> Any:
    plain = getattr(int, name)

    def run(self: Any, other: Any) -> Any:
        value = plain(self, other)
        if value is NotImplemented or STATE.recorder is None or type(value) is not int:
            return value
        a, b = _format_int(self), _format_int(other)
        return _make_traced_size(value, f"torch.{operator}({b}, {a})" if turned else f"torch.{operator}({a}, {b})")

    return run


def _format_int(value: Any) -> str:
    return value.text if isinstance(value, TracedSize) else repr(int(value))


for _name, _operator in (
    ("add", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("floordiv", "floordiv"),
    ("mod", "remainder"),
):
    setattr(TracedSize, f"__{_name}__", _make_traced_arithmetic(f"__{_name}__", _operator))
    setattr(TracedSize, f"__r{_name}__", _make_traced_arithmetic(f"__r{_name}__", _operator, True))


def _negate_traced_size(self: Any) -> Any:
    return (
        int.__neg__(self) if STATE.recorder is None else _make_traced_size(int.__neg__(self), f"torch.neg({self.text})")
    )


TracedSize.__neg__ = _negate_traced_size  # type: ignore[method-assign]


class TracedMethods(Trace):
    """Trace of Tensor methods that are no ops."""

    def method(self, name: str, args: tuple, kwargs: dict) -> Any:
        """Record a method or property; return its result."""
        recorder, run = STATE.recorder, _METHODS.get(name)
        if run is None or recorder is None or STATE.inside or not recorder.watches(args[0]):
            return super().method(name, args, kwargs)
        return run(recorder, *args, **kwargs)


def _make_reading_method(name: str, kind: str) -> Any:
    """Return a method that reads elements: they become constants, with a warning."""

    def run(recorder: TraceRecorder, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"Converting a tensor to a Python {kind} might cause the trace to be incorrect. We can't record the data "
            "flow of "
            "Python values, so this value will be treated as a constant in the future. This means that the trace might "
            "not generalize to other inputs!",
            TracerWarning,
            stacklevel=5,  # the program's frame, which calls Tensor's method
        )
        with _RecordingPaused():
            return getattr(Tensor, name)(tensor, *args, **kwargs)

    return run


def _make_recorded_method(name: str) -> Any:
    return lambda recorder, *args, **kwargs: recorder.method(name, *args, **kwargs)


def _record_shape(recorder: TraceRecorder, tensor: Any) -> Any:
    name = recorder.name(tensor)
    sizes = [_make_traced_size(n, f"torch.size({name}, {i})") for i, n in enumerate(_run_unrecorded(tensor.size))]
    return tuple.__new__(Size, sizes)


def _record_size(recorder: TraceRecorder, tensor: Any, dim: Any) -> Any:
    shape = _record_shape(recorder, tensor)
    if dim is None:
        return shape
    _run_unrecorded(tensor.size, dim)  # raises its errors
    return shape[dim]


def _record_numel(recorder: TraceRecorder, tensor: Any) -> Any:
    return _make_traced_size(_run_unrecorded(tensor.numel), f"torch.numel({recorder.name(tensor)})")


def _run_unrecorded(function: Any, *args: Any) -> Any:
    """Call a function without recording."""
    with _RecordingPaused():
        return function(*args)


_METHODS: dict[str, Any] = {
    "shape": _record_shape,
    "size": _record_size,
    "numel": _record_numel,
    "__bool__": _make_reading_method("__bool__", "boolean"),
    "__int__": _make_reading_method("__int__", "integer"),
    "__float__": _make_reading_method("__float__", "float"),
    "item": _make_reading_method("item", "number"),
    "tolist": _make_reading_method("tolist", "list"),
    "__index__": _make_reading_method("__index__", "index"),
    "numpy": _make_reading_method("numpy", "NumPy array"),
    **{name: _make_recorded_method(name) for name in ("__getitem__", "__setitem__", "detach", "detach_", "to", "cpu")},
}


class TraceRecorder(Interceptor):
    """Statements of one traced function; `known` has expressions of tensors that exist before."""

    is_scoped = True

    def __init__(self, known: dict[int, str]):
        self.lines: list[str] = []
        self.constants: list[Any] = []
        self._known = known  # of objects that live as long as the program
        self._names = WeakIdKeyDictionary()
        self._constant_names: dict[int, str] = {}
        self._watched = WeakIdKeyDictionary()
        self._count = 0

    # -- the run ------------------------------------------------------------------------------

    def watches(self, tensor: Any) -> bool:
        """True if a tensor is a value of the program; only reads of those are recorded."""
        return tensor in self._watched

    def watch(self, tensor: Any) -> None:
        """Track a tensor."""
        self._watched[tensor] = True

    def statement(self, text: str) -> str:
        """Assign an expression's value to a new name."""
        name = f"_{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {text}")
        return name

    def bind(self, result: Any, text: str) -> Any:
        """Set the expression of a result."""
        if isinstance(result, Tensor):
            self._name_tensor(result, self.statement(text))
        elif isinstance(result, (tuple, list)) and any(isinstance(r, (Tensor, tuple, list)) for r in result):
            names = [f"_{self._count + place}" for place in range(len(result))]
            self._count += len(result)
            self.lines.append(f"{', '.join(names)}, = {text}")
            for one, name in zip(result, names, strict=True):
                if isinstance(one, Tensor):
                    self._name_tensor(one, name)
                elif isinstance(one, (tuple, list)):
                    self.bind(one, name)
        else:
            self.statement(text)
        return result

    def _name_tensor(self, tensor: Any, name: str) -> None:
        self.watch(tensor)
        self._names[tensor] = name

    def name(self, tensor: Any) -> str:
        """Return a tensor's expression: a name, or a constant for an untracked tensor."""
        found = self._names.get(tensor) or self._known.get(id(tensor))
        if found is None:
            found = self._names[tensor] = f"CONSTANTS.c{len(self.constants)}"
            self.constants.append(tensor)
        return found

    def method(self, name: str, owner: Any, *args: Any, **kwargs: Any) -> Any:
        """Record a method that interceptors do not see as called."""
        with _RecordingPaused():
            result = getattr(owner, name)(*_to_plain_ints(args), **kwargs)
        where = self.name(owner)
        if name == "__getitem__":
            self.bind(result, self._index_expression(where, owner, args[0])) if isinstance(result, Tensor) else None
        elif name == "__setitem__":
            self._record_setitem(where, owner, *args)
        elif name in ("detach", "detach_"):
            self.bind(result, f"torch.detach({where})")
        elif result is not owner:
            self._record_to(owner, result, where, args, kwargs)
        return result

    def _record_to(self, owner: Any, result: Any, where: str, args: tuple, kwargs: dict) -> None:
        """Record a `to` that returned another tensor."""
        other = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
        if other is not None:
            text = f"torch.to({where}, {self.name(other)}, False, False)"
        elif result.device != owner.device:
            text = f"torch.to({where}, {self.text(result.device)}, {to_code(result.dtype)}, False, False)"
        else:
            text = f"torch.to({where}, {to_code(result.dtype)}, False, False)"
        self.bind(result, text)

    # -- ops ------------------------------------------------------------------------------------

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Run an op and record it."""
        writes = function.__class__ is InPlaceCall
        found = None
        if not STATE.inside:
            found = self._record_statement(op, args, kwargs, writes)
            if found is None and not writes and op.is_implicit and function is op.function:
                with ReenabledInterceptor(self):
                    return call.without_interceptors(op, function, args, kwargs)
        with _RecordingPaused():
            result = function(*_to_plain_ints(args), **{n: _to_plain_ints((v,))[0] for n, v in kwargs.items()})
        if STATE.inside:
            return result
        if found is None:
            found = self._format_library_call(op, args, kwargs, writes)
        return self.bind(result, found)

    def _record_statement(self, op: Any, args: tuple, kwargs: dict, writes: bool) -> str | None:
        if isinstance(op, LibraryOp):
            return self._record_custom_op(op, args, kwargs)
        if op.name == "_empty":  # of `Tensor.new` and of constructors of classes
            size, kind = args
            where = self.text(device_type(kwargs.get("device") or "cpu"))
            return f"torch.empty({self.text(list(size))}, dtype={to_code(kind)}, layout=None, device={where})"
        try:
            values = call.bind(op, args, {n: v for n, v in kwargs.items() if n != "out"})
        except TypeError:
            return None
        named = {p.name: v for p, v in zip(op.params, values, strict=True) if v is not ABSENT}
        if op.name == "unique_consecutive":  # the library's returns three tensors, whatever is asked for
            return None
        special = _SPECIAL.get(op.name)
        if special is not None and not writes:
            found = special(self, named)
            if found is not None:
                return found
        if op.name == "dropout" and named.pop("inplace", False):
            writes = True
        defaults = {p.name: p.default for p in op.params}
        base = op.function_name if not op.name.startswith("__") else op.name
        for name in dict.fromkeys((op.name + "_" * writes, base + "_" * writes, *_library_aliases(op, writes))):
            packet = getattr(torch.ops.aten, name, None)
            for loose in (False, True):
                for overload in packet.overloads() if packet is not None else ():
                    if overload.endswith("out") or "Dimname" in overload:
                        continue
                    found = self._format_overload_call(name, getattr(packet, overload)._schema, named, defaults, loose)
                    if found is not None:
                        return found
        return None

    def _record_custom_op(self, op: LibraryOp, args: tuple, kwargs: dict) -> str:
        """Record a call of a custom op."""
        texts = [
            f"{a.name}={self.text(value, a.type.base)}" if a.kwarg_only else self.text(value, a.type.base)
            for a, value in zip(op.schema.arguments, op.schema.bind(args, kwargs), strict=True)
        ]
        name = op.name.replace("::", ".")
        return f"{f'torch{name[4:]}' if name.startswith('aten.') else f'ops.{name}'}({', '.join(texts)})"

    def _format_overload_call(self, name: str, schema: Any, named: dict, defaults: dict, loose: bool) -> str | None:
        """Return the call of an overload with a record's values, None if its schema does not match."""
        left = dict(named)
        if schema.arguments and schema.arguments[0].name == "input" and "data" in named:  # a form of its own
            left = dict(zip((a.name for a in schema.arguments), named.values(), strict=False))
        positional: list[tuple[Any, str]] = []
        keywords: list[tuple[Any, str]] = []
        for a in schema.arguments:
            key = next((n for n in (a.name, *_PARAMETER_ALIASES.get(a.name, ())) if n in left), None)
            value = left.pop(key) if key is not None else ABSENT
            if value is ABSENT or value is None and "?" not in a.type.suffixes[:1] and a.has_default:
                if not a.has_default:
                    return None
                value = a.default_value
                text = self._format_default(a)
            else:
                value = _plain_value(value)
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    sizes = [x.strip("[]") for x in a.type.suffixes if x.strip("[]?").isdecimal()]
                    value = [value] * int(sizes[0]) if sizes else value
                if not _matches_type(a.type, value, loose):
                    return None
                text = self.text(value, a.type.base)
            if a.kwarg_only and a.has_default and not isinstance(value, Tensor) and value == a.default_value:
                continue  # omitted: equal to the default
            (keywords if a.kwarg_only else positional).append((a, text))
        for key, value in left.items():
            unset = value is None or value is False or (not isinstance(value, Tensor) and value == defaults.get(key))
            if isinstance(value, Tensor) or not unset:
                return None
        texts = [text for _, text in positional] + [f"{a.name}={text}" for a, text in keywords]
        return f"torch.{name}({', '.join(texts)})"

    def _format_default(self, a: Any) -> str:
        if a.default_value is None:
            return "None"
        if a.type.base in ("MemoryFormat", "Layout", "ScalarType") and isinstance(a.default_value, str):
            return "0"
        return self.text(a.default_value, a.type.base)

    def _format_library_call(self, op: Any, args: tuple, kwargs: dict, writes: bool) -> str:
        values = call.bind(op, args, {n: v for n, v in kwargs.items() if n != "out"})
        overload, given, named = find_library_call(op, values, writes)
        texts = [self.text(v) for v in given] + [f"{n}={self.text(v)}" for n, v in named.items()]
        return f"torch.{overload._opname}({', '.join(texts)})"

    # -- expressions --------------------------------------------------------------------------

    def text(self, value: Any, base: str = "") -> str:
        """Return a value as an expression."""
        if isinstance(value, Tensor):
            return self.name(value)
        if isinstance(value, TracedSize):
            return value.text
        if value is None or isinstance(value, bool):
            return repr(value)
        if hasattr(type(value), "_schema_type"):
            return self._object_expression(value)
        if isinstance(value, int):
            return f"{value}." if base == "float" else repr(value)
        if isinstance(value, float):
            return _format_float(value)
        if isinstance(value, str):
            return self._string_expression(value)
        if isinstance(value, (dtypes.dtype, layout, memory_format)):
            return str(to_code(value))
        if isinstance(value, device_type):
            return f'torch.device("{"cpu" if value.type == "opencl" else value}")'
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self.text(v, base) for v in value) + "]"
        if isinstance(value, slice):
            raise RuntimeError("a slice is valid in an index only")
        if type(value).__name__ == "Generator":
            return "None"
        raise RuntimeError(f"torch.jit.trace: no expression for a value of the class {type(value).__name__}")

    def _object_expression(self, value: Any) -> str:
        """Return an object of a class that the library defines as an attribute of a traced module."""
        if id(value) not in self._known:
            raise RuntimeError(
                f"Tried to trace {value!r} but it is not part of the active trace. Modules that are called during a "
                "trace must be registered as submodules of the thing being traced."
            )
        return self._known[id(value)]

    def _string_expression(self, value: str) -> str:
        if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
            return f'"{value}"'
        self.constants.append(value)
        return f"CONSTANTS.c{len(self.constants) - 1}"

    def _index_expression(self, where: str, owner: Any, index: Any) -> str:
        """Return `owner[index]` as an expression."""
        parts = _index_parts(index, owner.ndim)
        if len(parts) == 1 and isinstance(parts[0], torch.Tensor) and parts[0].dtype is torch.bool:
            return f"torch.index({where}, annotate(List[Optional[Tensor]], [{self.name(parts[0])}]))"
        text, dim = where, 0
        arrays: list[str] = []
        for part in parts:
            if part is None or part is True:
                text, dim = f"torch.unsqueeze({text}, {dim})", dim + 1
                arrays.append("None")
            elif isinstance(part, slice):
                if part != slice(None):
                    end = "9223372036854775807" if part.stop is None else self.text(part.stop)
                    start, step = self.text(part.start or 0), self.text(part.step or 1)
                    text = f"torch.slice({text}, {dim}, {start}, {end}, {step})"
                dim += 1
                arrays.append("None")
            elif isinstance(part, int):
                text = f"torch.select({text}, {dim}, {self.text(part)})"
            else:
                tensor = part if isinstance(part, Tensor) else torch.tensor(part)
                arrays.append(self.name(tensor))
                dim += tensor.ndim if tensor.dtype is torch.bool else 1
        if any(a != "None" for a in arrays):
            text = f"torch.index({text}, annotate(List[Optional[Tensor]], [{', '.join(arrays)}]))"
        return f"torch.alias({text})" if text == where else text

    def _record_setitem(self, where: str, owner: Any, index: Any, value: Any) -> None:
        parts = _index_parts(index, owner.ndim)
        if any(isinstance(p, (Tensor, list)) for p in parts):
            given = (
                self.text(value)
                if isinstance(value, Tensor)
                else f"torch.tensor({self.text(value)}, dtype={to_code(owner.dtype)})"
            )
            plain = all(isinstance(p, (Tensor, list)) or p == slice(None) for p in parts)
            if plain:
                names = [
                    "None" if isinstance(p, slice) else self.name(p if isinstance(p, Tensor) else torch.tensor(p))
                    for p in parts
                ]
                self.statement(
                    f"torch.index_put_({where}, annotate(List[Optional[Tensor]], [{', '.join(names)}]), {given})"
                )
                return
            raise RuntimeError("torch.jit.trace: tensors and slices in one index are not written down yet")
        place = self._index_expression(where, owner, index)
        if isinstance(value, Tensor):
            self.statement(f"torch.copy_({place}, {self.name(value)})")
        else:
            self.statement(f"torch.fill_({place}, {self.text(value)})")


class _RecordingPaused:
    """Context of a running op: its own tensor queries are not recorded."""

    def __enter__(self) -> None:
        self.before = STATE.inside
        STATE.inside = True

    def __exit__(self, *exc: Any) -> None:
        STATE.inside = self.before


def _to_plain_ints(values: Any) -> tuple:
    """Return arguments with traced sizes as plain ints."""
    return tuple(_to_plain_sizes(v) for v in values)


def _to_plain_sizes(value: Any) -> Any:
    if value.__class__ is TracedSize:
        return int(value)
    if value.__class__ in (list, tuple):
        return value.__class__([_to_plain_sizes(v) for v in value])
    if value.__class__ is Size:
        return Size([int(v) for v in value])
    if value.__class__ is slice:
        return slice(_to_plain_sizes(value.start), _to_plain_sizes(value.stop), _to_plain_sizes(value.step))
    return value


def _plain_value(value: Any) -> Any:
    if isinstance(value, (tuple, Size)):
        return list(value)
    return value


def _format_float(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if math.isnan(value):
        return "nan"
    text = repr(value)
    return text if "." in text or "e" in text else text + "."


def _index_parts(index: Any, ndim: int) -> list:
    """Return an index's parts, with `...` expanded to slices."""
    parts = list(index) if isinstance(index, tuple) else [index]
    used = 0
    for p in parts:
        if p is None or p is Ellipsis or p is True:
            continue
        used += p.ndim if isinstance(p, Tensor) and p.dtype is torch.bool else 1
    out: list[Any] = []
    for p in parts:
        if p is Ellipsis:
            out += [slice(None)] * (ndim - used)
        else:
            out.append(p)
    return out


def _library_aliases(op: Any, writes: bool) -> list[str]:
    """Return other ATen names of an op."""
    names = {
        "_max_dim": ["max"],
        "_min_dim": ["min"],
        "_where": ["where"],
        "_var_correction": ["var"],
        "_std_correction": ["std"],
    }
    return [n + "_" * writes for n in names.get(op.name, ())]


def _make_pool_statement(dims: int) -> Any:
    def statement(self: TraceRecorder, v: dict) -> str | None:
        if v.get("return_indices"):
            return None
        listed = [
            _repeat_value(v[n], dims) if v.get(n) is not None else []
            for n in ("kernel_size", "stride", "padding", "dilation")
        ]
        listed[1] = listed[1] or listed[0]
        texts = ", ".join(self.text(x) for x in listed)
        return f"torch.max_pool{dims}d({self.name(v['input'])}, {texts}, {bool(v['ceil_mode'])})"

    return statement


def _repeat_value(value: Any, count: int) -> list:
    return list(value) * (count if len(value) == 1 else 1) if isinstance(value, (list, tuple)) else [value] * count


def _make_avg_pool_statement(dims: int) -> Any:
    def statement(self: TraceRecorder, v: dict) -> str:
        kernel = _repeat_value(v["kernel_size"], dims)
        stride = kernel if v.get("stride") is None else _repeat_value(v["stride"], dims)
        rest = [kernel, stride, _repeat_value(v["padding"], dims), bool(v["ceil_mode"]), bool(v["count_include_pad"])]
        if dims > 1:
            rest.append(v.get("divisor_override"))
        return f"torch.avg_pool{dims}d({self.name(v['input'])}, {', '.join(map(self.text, rest))})"

    return statement


def _arange_statement(self: TraceRecorder, v: dict) -> str:
    start, end, step = v.get("start", 0), v.get("end"), v.get("step", 1)
    if end is None:
        start, end = 0, start
    kind = v.get("dtype")
    texts = (
        [self.text(end)]
        if (start, step) == (0, 1) and not isinstance(start, TracedSize)
        else list(map(self.text, (start, end, step)))
    )
    where = v.get("device")
    made = f"dtype={self.text(kind)}, layout=None, device={self.text(where)}, pin_memory=False"
    return f"torch.arange({', '.join(texts)}, {made})"


def _embedding_bag_statement(self: TraceRecorder, v: dict) -> str:
    mode = v["mode"] if isinstance(v["mode"], int) else _MODES[v["mode"]]
    texts = map(
        self.text,
        (
            v["weight"],
            v["indices"],
            v["offsets"],
            v["scale_grad_by_freq"],
            mode,
            v["sparse"],
            v["per_sample_weights"],
            v["include_last_offset"],
            v["padding_idx"],
        ),
    )
    return f"torch.embedding_bag({', '.join(texts)})"


def _interpolate_statement(self: TraceRecorder, v: dict) -> str | None:
    mode, dims = v["mode"], v["input"].ndim - 2
    names = {
        "nearest": "nearest",
        "nearest-exact": "_nearest_exact",
        "linear": "linear",
        "bilinear": "bilinear",
        "bicubic": "bicubic",
        "trilinear": "trilinear",
    }
    if mode not in names or v.get("antialias") or v.get("recompute_scale_factor"):
        return None
    near = mode.startswith("nearest")
    size, factor = v.get("size"), v.get("scale_factor")
    sizes = "None" if size is None else self.text(_repeat_value(size, dims))
    factors = (
        "None" if factor is None or size is not None else self.text([float(f) for f in _repeat_value(factor, dims)])
    )
    corners = "" if near else f"{bool(v.get('align_corners'))}, "
    name = "_upsample_nearest_exact" if mode == "nearest-exact" else f"upsample_{names[mode]}"
    return f"torch.{name}{dims}d({self.name(v['input'])}, {sizes}, {corners}{factors})"


def _loss_statement(self: TraceRecorder, v: dict) -> str | None:
    reduction = v["reduction"]
    code = reduction if isinstance(reduction, int) else _REDUCTION[reduction]
    weight = self.text(v.get("weight"))
    return (
        f"torch.cross_entropy_loss({self.name(v['input'])}, {self.name(v['target'])}, {weight}, {code}, "
        f"{v['ignore_index']}, 0.)"
    )


def _prelu_statement(self: TraceRecorder, v: dict) -> str:
    return f"torch.prelu({self.name(v['input'])}, {self.name(v['weight'])})"


def _pad_statement(self: TraceRecorder, v: dict) -> str:
    pad = list(v["pad"])
    value = v.get("value")
    return (
        f"torch.pad({self.name(v['input'])}, {self.text(pad)}, {self.text(v['mode'])}, "
        f"{'None' if value is None else self.text(float(value))})"
    )


def _swap_arguments(self: TraceRecorder, v: dict) -> str | None:
    if isinstance(v["input"], Tensor) or not isinstance(v["other"], Tensor):
        return None
    return f"torch.rsub({self.name(v['other'])}, {self.text(v['input'])}, 1)"


def _make_commuted_scalar_statement(name: str) -> Any:
    def statement(self: TraceRecorder, v: dict) -> str | None:
        if isinstance(v["input"], Tensor) or not isinstance(v["other"], Tensor):
            return None
        return f"torch.{name}({self.name(v['other'])}, {self.text(v['input'])})"

    return statement


def _div_statement(self: TraceRecorder, v: dict) -> str | None:
    if isinstance(v["input"], Tensor) or not isinstance(v["other"], Tensor) or v.get("rounding_mode"):
        return None
    return f"torch.mul(torch.reciprocal({self.name(v['other'])}), {self.text(v['input'])})"


def _cast_statement(self: TraceRecorder, v: dict) -> str:
    return f"torch.to({self.name(v['input'])}, {to_code(v['dtype'])}, False, False)"


def _make_new_statement(name: str) -> Any:
    def statement(self: TraceRecorder, v: dict) -> str:
        owner = v["input"]
        size, fill = v.get("size", ()), f", {self.text(v['fill_value'])}" if "fill_value" in v else ""
        kind = to_code(owner.dtype if v.get("dtype") is None else v["dtype"])
        where = self.text(owner.device if v.get("device") is None else device_type(v["device"]))
        listed = self.text(list(size) if isinstance(size, (list, tuple)) else [size])
        return f"torch.{name}({self.name(owner)}, {listed}{fill}, dtype={kind}, layout=None, device={where})"

    return statement


def _make_extremum_statement(name: str) -> Any:
    def statement(self: TraceRecorder, v: dict) -> str | None:
        other = v.get("other") if v.get("other") is not None else v.get("dim")
        return f"torch.{name}({self.name(v['input'])}, {self.name(other)})" if isinstance(other, Tensor) else None

    return statement


def _make_library_statement(name: str, *arguments: Any) -> Any:
    """Return a function that records the call of a library function by the values of a record's arguments.

    arguments: names of the record's arguments, or constants as expressions in parentheses.
    """

    def statement(self: TraceRecorder, v: dict) -> str:
        texts = [a[1:-1] if a[0] == "(" else self.text(v.get(a), "float" * (a == "p")) for a in arguments]
        return f"torch.{name}({', '.join(texts)})"

    return statement


_SPECIAL: dict[str, Any] = {
    "max": _make_extremum_statement("max"),
    "min": _make_extremum_statement("min"),
    "_unique_flat": _make_library_statement("_unique2", "input", "(True)", "return_inverse", "return_counts"),
    "_unique_rows": _make_library_statement("unique_dim", "input", "dim", "(True)", "(True)", "(True)"),
    "_unique_runs": _make_library_statement("unique_consecutive", "input", "(True)", "(True)", "dim"),
    "_triangular_core": lambda self, v: (
        f"torch.linalg_solve_triangular({self.name(v['A'])}, {self.name(v['B'])}, upper={self.text(v['upper'])}, "
        f"unitriangular={self.text(v['unitriangular'])})"
    ),
    "random_": lambda self, v: (
        f"torch.random_({self.name(v['input'])}, {self.text(v['from_'])})"
        if v.get("to", ...) is ... and v.get("from_") is not None
        else None
    ),
    "_with_strides": _make_library_statement("alias", "input"),
    "_with_constant_gradient": _make_library_statement("alias", "input"),
    "_with_absent_gradient": _make_library_statement("alias", "input"),
    "_cdist_core": _make_library_statement("_cdist_forward", "x1", "x2", "p", "(None)"),
    "to": _cast_statement,
    **{name: _make_new_statement(name) for name in ("new_zeros", "new_ones", "new_full", "new_empty")},
    **{f"max_pool{d}d": _make_pool_statement(d) for d in (1, 2, 3)},
    **{f"avg_pool{d}d": _make_avg_pool_statement(d) for d in (1, 2, 3)},
    "arange": _arange_statement,
    "embedding_bag": _embedding_bag_statement,
    "interpolate": _interpolate_statement,
    "_cross_entropy": _loss_statement,
    "prelu": _prelu_statement,
    "pad": _pad_statement,
    "sub": _swap_arguments,
    "sub_alpha": _swap_arguments,
    "add": _make_commuted_scalar_statement("add"),
    "add_alpha": _make_commuted_scalar_statement("add"),
    "mul": _make_commuted_scalar_statement("mul"),
    "div": _div_statement,
    "div_rounded": _div_statement,
}
