"""AtenOverload and AtenPacket: callable ATen overloads that look up their implementation at the first call."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._dispatch import call
from .._dispatch.arg_parser import accepts_scalars
from .._dispatch.dispatch_state import GLOBALS, MODE
from .._dispatch.interceptors import stack, torch_dispatch_classes
from .._dispatch.tracing import TRACES, trace_function
from .._library.function_schema import FunctionSchema, SchemaType
from .._library.op_overload import OpOverload, OpOverloadPacket
from .._library.tags import Tag
from .._settings.cached_property import cached_property
from .recorded_schemas import SchemaEntry, schema_entries

# The classes that no argument of a type takes, beside None, and the other classes of its values.
_COMPLEX = (complex, np.complex128, np.complex64)
_REFUSED: dict[str, tuple] = {
    "int": (str, float, np.float64, *_COMPLEX), "SymInt": (str, float, np.float64, *_COMPLEX),
    "float": (str, *_COMPLEX),
    "bool": (str, float, np.float64, *_COMPLEX), "str": (int, float, bool, complex), "Scalar": (str,),
}  # fmt: skip
_USUAL: dict[str, tuple] = {
    "int": (int, bool), "SymInt": (int, bool), "float": (float, int), "bool": (bool,), "str": (str,),
    "Scalar": (int, float, bool, complex),
}  # fmt: skip
_TAGS = {chr(ord("a") + tag.value): tag for tag in Tag}  # type: ignore[attr-defined]


@functools.cache
def _refused_classes(kind: SchemaType) -> frozenset:
    """The classes of values, and of items of lists, that no argument of a type takes."""
    return frozenset(_REFUSED[kind.base]) | (frozenset() if "?" in kind.suffixes else {type(None)})


@functools.cache
def _usual_classes(kind: SchemaType) -> frozenset:
    """The classes that the values of arguments of a type have as a rule."""
    return frozenset(_USUAL[kind.base]) | ({type(None)} if "?" in kind.suffixes else frozenset())


class AtenOverload(OpOverload):
    """Overload of PyTorch's library, for example `torch.ops.aten.add.Tensor`."""

    def __init__(self, packet: AtenPacket, name: str, entry: SchemaEntry) -> None:
        super().__init__(packet, name)
        self.entry = entry
        self.is_implicit = entry.is_implicit
        self._run: Any = None  # the implementation, after the first call
        self._plain: Any = None  # the same for plain tensors, without `__torch_dispatch__`
        self._by_position = False  # True if positional arguments cannot be passed by keyword
        # After the first call: the arguments that are no tensors with the usual classes of their values, and the place
        # of the first.
        self._plain_arguments: list[tuple[int, frozenset]] = []
        self._first_plain = 0

    @cached_property
    def _schema(self) -> FunctionSchema:
        """Return the overload's schema."""
        return FunctionSchema(self.name() + self.entry.text)

    @cached_property
    def tags(self) -> list:
        """Return the overload's `torch.Tag`s."""
        return [_TAGS[letter] for letter in self.entry.flags if letter in _TAGS]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if TRACES and (found := trace_function(self, *args, **kwargs)) is not NotImplemented:
            return found
        if GLOBALS["INTERCEPTORS"] and stack.items and not self.is_implicit:
            top = stack.items[-1]
            if top.intercepts_overloads:
                return top.overload(self, args, kwargs)
        run = self._run or self._find_run()
        if (len(args) > self._first_plain or kwargs) and self._is_unusual(args, kwargs):
            args, kwargs = self._schema.call_form(self._schema.bind(args, kwargs, self.accepts_scalars))
        try:
            if kwargs and self._by_position:
                args, kwargs = self._schema.place_by_position(args, kwargs)
            return run(*args, **kwargs)
        except (TypeError, AttributeError, ValueError, IndexError):
            self._schema.bind(args, kwargs, self.accepts_scalars)  # raises for arguments that do not match
            raise

    def _is_unusual(self, args: tuple, kwargs: dict) -> bool:
        """True if an argument has a class that its type does not take as it is. Functions of records may take it: they
        round numbers, for example.
        """
        count = len(args)
        for place, usual in self._plain_arguments:
            if place >= count:
                break
            given = args[place]
            kind = given.__class__
            if kind in usual:
                continue
            if kind is list or kind is tuple:
                for item in given:
                    if item.__class__ not in usual:
                        return self._is_refused(args, kwargs)
            else:
                return self._is_refused(args, kwargs)
        return bool(kwargs) and self._is_refused((), kwargs)

    def _is_refused(self, args: tuple, kwargs: dict) -> bool:
        """`_is_unusual` of arguments of classes that need a closer look."""
        for position, argument in enumerate(self._schema.arguments):
            if argument.type.base not in _REFUSED or not (position < len(args) or argument.name in kwargs):
                continue
            given = args[position] if position < len(args) else kwargs[argument.name]
            refused = _refused_classes(argument.type)
            items = given if given.__class__ in (list, tuple) else (given,)
            if any(item.__class__ in refused for item in items):
                return True
            if argument.type.text in ("Scalar", "Scalar?") and isinstance(given, call.Tensor):
                return True
        return False

    @property
    def accepts_scalars(self) -> bool:
        """True if a Python number is accepted for a tensor."""
        return accepts_scalars(self._opname)

    @property
    def _op(self) -> Any:
        return self.__call__

    op = _op

    def redispatch(self, keys: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call the op; there are no dispatch keys to exclude."""
        return self(*args, **kwargs)

    def _find_run(self) -> Any:
        from .overload_impl import find_implementation

        run, self._by_position = find_implementation(self)
        arguments = self._schema.arguments
        self._plain_arguments = [
            (i, _usual_classes(a.type)) for i, a in enumerate(arguments) if a.type.base in _REFUSED
        ]
        self._first_plain = self._plain_arguments[0][0] if self._plain_arguments else len(arguments)
        self._plain = run
        if not self.is_implicit:
            record = getattr(run, "op", None)
            run = (
                run
                if record is not None and not record.is_implicit
                else self._make_dispatching_run(run, record is not None)
            )
        self._run = run
        return run

    def _make_dispatching_run(self, run: Any, has_record: bool) -> Any:
        """Return the op's implementation below `__torch_dispatch__`. A record that needs a gradient runs as usual, so
        its parts reach the subclass and record their own history.
        """

        @functools.wraps(run)
        def run_with_torch_dispatch(*args: Any, **kwargs: Any) -> Any:
            values = (*args, *kwargs.values())
            classes = tuple(cls for cls in torch_dispatch_classes(values) if not cls._takes_records)
            if classes and not (has_record and MODE.grad and call.any_requires_grad(values)):
                return classes[0].__torch_dispatch__(self, classes, args, kwargs)
            return run(*args, **kwargs)

        return run_with_torch_dispatch


class AtenPacket(OpOverloadPacket):
    """Packet of PyTorch's library with its overloads, for example `torch.ops.aten.add`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, None)
        self._entries = schema_entries(name)
        self._schema_of = lambda overload: getattr(self, overload)._schema

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__") or name not in self._entries:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        # All threads get the object of the first one.
        made = self._overloads.setdefault(name, AtenOverload(self, name, self._entries[name]))
        return self.__dict__.setdefault(name, made)

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return list(self._entries)

    def __iter__(self) -> Any:
        return iter(self._entries)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._entries]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if TRACES and (found := trace_function(self, *args, **kwargs)) is not NotImplemented:
            return found
        return self.resolve_overload(args, kwargs)(*args, **kwargs)

    def resolve_overload(self, args: tuple, kwargs: dict) -> AtenOverload:
        """Return the first overload whose schema matches a call. Raise RuntimeError with each mismatch if none does."""
        found: list[AtenOverload] = [getattr(self, name) for name in self._entries]
        if len(found) == 1:
            return found[0]
        words: list[str] = []
        for overload, exact in [(overload, exact) for exact in (True, False) for overload in found]:
            try:
                overload._schema.bind(args, kwargs, overload.accepts_scalars, exact)
            except RuntimeError as error:
                words.append(str(error))
                continue
            return overload
        reasons = "\n\n".join(words[len(found) :])
        raise RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{reasons}")
