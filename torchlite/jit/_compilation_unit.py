"""ScriptProgram and ScriptClass: classes and functions of one program, compiled on demand from text by file."""

from __future__ import annotations

import ast
import enum
import keyword
from collections.abc import Callable
from typing import Any

from .._types.devices import PYTORCH_ONLY_TYPES
from .._types.python_source import attach_source, one_line
from . import _builtin_ops, _inline_cache, _runtime, _type_text
from ._lazy_definitions import DefinitionTable, LazyDefinition, parse_definitions
from ._non_literal_argument import PLACEHOLDER
from ._python_translator import ProgramError, PythonTranslator, dotted_name

# Device types that `map_location` does not replace in code.
_NEVER_MOVED = frozenset(("meta", *PYTORCH_ONLY_TYPES))


class ScriptClass:
    """Class of a program: attributes and methods of its objects."""

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind  # kind: Module, class or interface
        self.types: dict[str, str] = {}
        self.constants: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.methods: dict[str, Any] = {}
        self.properties: dict[str, tuple[str | None, str | None]] = {}
        self.texts: dict[str, str] = {}  # method texts; the definitions likewise
        self.nodes = DefinitionTable()
        self.program: ScriptProgram | None = None
        self._tensors: dict[str, tuple | None] = {}
        self._members: dict[tuple[str, str], Any] = {}
        self._read_name_list: dict[str, tuple[list[str], frozenset[str]]] = {}
        self.by_python = False  # methods are the user's Python functions
        self.of_file = False  # text comes from a file

    @property
    def original_name(self) -> str:
        """Return the name of the original class."""
        return self.name.rpartition(".")[2]

    def text(self, name: str) -> str:
        """Return the text of a method or function. Raise RuntimeError if Python alone can run it."""
        path = self.name if self.kind == "function" else f"{self.name}.{name}"
        why = self.program.unknown.get(path) if self.program is not None else None
        if why is not None:
            raise RuntimeError(f"torchlite has no TorchScript for {path} ({why})")
        return self.texts.get(name, "")

    def tensors_of(self, name: str) -> tuple | None:
        """Return the argument classes of a function with tensor parameters only, None for others."""
        if name not in self._tensors:
            self._tensors[name] = self._all_tensors(name)
        return self._tensors[name]

    def members_of(self, name: str, parameter: ast.arg) -> Any:
        """Return the converter of a method argument to the program's enum members, None for types without enums."""
        key = (name, parameter.arg)
        if key not in self._members:
            find = self.program.find if self.program is not None and not self.by_python else None
            self._members[key] = find and _type_text.make_enum_member_converter(parameter.annotation, find)
        return self._members[key]

    def _all_tensors(self, name: str) -> tuple | None:
        node = self.nodes.get(name)
        if node is None or node.args.kwonlyargs:
            return None
        given = node.args.args[0 if self.kind == "function" else 1 :]
        plain = all(a.annotation is None or dotted_name(a.annotation) == "Tensor" for a in given)
        return (_runtime.Tensor,) * len(given) if plain else None

    def listed(self, what: str) -> frozenset[str]:
        """Return the names of parameters or buffers."""
        names = getattr(self, what)
        known = self._read_name_list.get(what)
        if known is None or known[0] is not names:
            known = self._read_name_list[what] = (names, frozenset(names))
        return known[1]

    def is_module(self, type_text: str) -> bool:
        """True if a type text names a module class."""
        if not type_text.startswith("__torch__.") or self.program is None:
            return False
        found = self.program.find(type_text)
        return isinstance(found, ScriptClass) and found.kind in ("Module", "interface")


# Operators that create a device constant.
_DEVICES = ("torch.device", "ops.aten.device")


class ScriptProgram:
    """Texts of a program by module name (`__torch__.a.b`), and constants. Raise RuntimeError for invalid text."""

    def __init__(self, sources: dict[str, str], constants: tuple = (), version: int = 10, file: str = ""):
        self.sources, self.constants, self.version, self.file = sources, constants, version, file
        self.module = "torchlite.jit"
        self.device: Any = None
        self.ignored: list[str] = []  # functions that only Python can run
        self.unknown: dict[str, str] = {}  # names without text, with the reason
        self.longest: int | None = None  # maximum length of a definition
        self.of_file = False
        self.counts = False  # True if functions are also compiled with counting, for methods that run during loading
        self.counted: list[tuple[Any, Any]] = []  # functions and their counting code
        self.budget: Any = None  # the budget of counting code
        # Call sites by global name: operator, positional and keyword arguments.
        self.named_places: dict[str, tuple[str, list, list]] = {}
        self.by_python = False  # True if Python runs the program; untranslatable parts raise on saving only
        self.globals: dict[str, Any] = {"__builtins__": {}, "__name__": self.module, **_runtime.GLOBALS}
        self._pieces: dict[str, dict[str, LazyDefinition]] = {}
        self._lines: dict[str, list[str]] = {}  # of the records, for tracebacks
        self._found: dict[str, Any] = {}
        self._tables_of: dict[str, dict[str, str]] = {}
        self._waiting: list[tuple[str, Any]] = []
        self._places = 0
        self._parts: dict[str, list] = {}  # parts of a tensor that indexing sites take
        self._devices: dict[str, tuple] = {}  # device constants of the program, by global name
        self._busy = False

    # -- interface for the translator --------------------------------------------------------

    def operator(self, path: str, wrong: Any = None, node: Any = None) -> str:
        """Return the global name of an operator. Raise RuntimeError if there is none."""
        if path not in self.globals:
            found = _builtin_ops.find_operator(path, self.version)
            if found is None:
                said = f"Unknown builtin op: aten::{path.removeprefix('torch.').removeprefix('ops.')[:100]}"
                raise wrong(node, said) if wrong else ProgramError(said)
            self.globals[path] = self._make_device if path in _DEVICES else found
        return path

    def place(self, name: str, items: list, keywords: list, method: bool) -> str:
        """Return the global name of a call site of an operator or method."""
        operator = None if method else self.globals[name]
        if isinstance(operator, _builtin_ops.BuiltinOperator):
            name = operator.name
        made = self._add_call_site(_inline_cache.make_call_site(name, operator, items, keywords, method))
        if self.counts:
            self.named_places[made] = (name, items, keywords)
        part = None if method else _inline_cache.find_item_getter(name, items, keywords)
        if part is not None:
            self._parts[made] = [part]
        return made

    def _add_call_site(self, run: Any) -> str:
        self._places += 1
        made = f"place.{self._places}"
        self.globals[made] = run
        return made

    def joined(self, outer: str, inner: str) -> str | None:
        """Return the global name of a site that combines two indexing sites, None for others."""
        if outer not in self._parts or inner not in self._parts:
            return None
        parts = self._parts[inner] + self._parts[outer]
        run = _inline_cache.make_item_site(parts, lambda name: self.globals[self.operator(f"torch.{name}")])
        if run is None:
            return None
        made = self._add_call_site(run)
        self._parts[made] = parts
        if self.counts:
            self.named_places[made] = ("select", [PLACEHOLDER], [])
        return made

    def known(self, name: str, args: list) -> str | None:
        """Return the global name of a constant operator result: a device, until the program moves."""
        if name not in _DEVICES or not all(isinstance(a, ast.Constant) for a in args):
            return None
        given = tuple(a.value for a in args)
        made = f"device.{given!r}"
        if made not in self.globals:
            try:
                self.globals[made] = self._make_device(*given)
            except (TypeError, ValueError, RuntimeError):
                return None  # raises at run time
            self._devices[made] = given
        return made

    def changes(self, name: str) -> bool:
        """True if an operator may keep or mutate a list argument."""
        found = self.globals[name]
        return not isinstance(found, _builtin_ops.BuiltinOperator) or found.name in _builtin_ops.NONTENSOR_OPS

    def has_method(self, owner: ScriptClass, name: str) -> bool:
        """True if a module class has a method, which then has a global name."""
        path = f"{owner.name}.{name}"
        if path not in self.globals:
            piece = self._take_definition(owner.name)
            if piece is None or all(method.name != name for method in piece.methods):
                return False
            self.globals[path] = _runtime.DeferredFunction(self.globals, path)
        return True

    def attribute(self, path: str, wrong: Any, node: Any) -> str:
        """Return the global name of a torch constant, such as `torch.float32`."""
        if path not in self.globals:
            found = _builtin_ops.find_constant(path)
            if found is None:
                raise wrong(node, f"there is no {path[:100]} in TorchScript")
            self.globals[path] = found
        return path

    def constant(self, path: str) -> Any:
        """Return the value of `CONSTANTS.cN`."""
        number = path.removeprefix("CONSTANTS.c")
        if not number.isdecimal() or len(number) > 9 or int(number) >= len(self.constants):
            raise ProgramError(f"the file has no constant {path[:60]} (in the record constants.pkl)")
        self.globals[path] = self.constants[int(number)]
        return self.globals[path]

    def value(self, path: str, wrong: Any, node: Any) -> str:
        """Return the global name of a function, constructor or enum member."""
        if path not in self.globals:
            found = self.find(path)
            if found is None:
                found = self.member(path)
            if found is None:
                raise wrong(node, f"Unknown type name or function '{path[:200]}'")
            if isinstance(found, ScriptClass):
                found = _runtime.ClassConstructor(found)
            self.globals[path] = found
        return path

    def cls(self, path: str, wrong: Any, node: Any) -> str:
        """Return the global name of a class."""
        found = self.find(path)
        if not isinstance(found, ScriptClass):
            raise wrong(node, f"Unknown class '{path[:200]}'")
        self.globals[f"{path}.__new__"] = found
        return f"{path}.__new__"

    def tables(self, owner: ScriptClass) -> dict[str, str]:
        """Return the storage dictionary of each attribute of a class, where known."""
        if owner.name not in self._tables_of:
            self._tables_of[owner.name] = _attribute_storage(owner)
        return self._tables_of[owner.name]

    def module_class(self, owner: ScriptClass, name: Any) -> ScriptClass | None:
        """Return the class of a declared submodule, None for other attributes and interfaces."""
        kind = owner.types.get(name, "")
        found = self.find(kind) if kind.startswith("__torch__.") else None
        return found if isinstance(found, ScriptClass) and found.kind == "Module" else None

    def member(self, path: str) -> Any:
        """Return an enum member, None if there is none."""
        owner, _, name = path.rpartition(".")
        kind = self.find(owner) if owner.startswith("__torch__.") else None
        return kind.__members__.get(name) if isinstance(kind, enum.EnumMeta) else None

    def types(self, node: ast.AST, wrong: Any) -> str:
        """Return the global name of the types that `isinstance` tests."""
        name = f"type.{ast.unparse(node)}"
        if name not in self.globals:
            try:
                self.globals[name] = _type_text.make_type_checker(node, self.find)
            except ValueError as error:
                raise wrong(node, str(error)) from None
        return name

    def move(self, where: Any, tensors: bool = True) -> None:
        """Move the program's constants and device constants to a device."""
        self.device = where
        self.globals.update({name: self._make_device(*given) for name, given in self._devices.items()})
        if tensors:
            moved: dict[int, Any] = {}
            for constant in self.constants:
                _move_constant(constant, where, moved)
            self.globals.update({n: moved[id(v)] for n, v in self.globals.items() if n.startswith("CONSTANTS.")})
            self.constants = tuple(moved[id(c)] for c in self.constants)

    def _make_device(self, name: Any, index: Any = None) -> Any:
        found = _runtime.device_type(name) if index is None else _runtime.device_type(name, index)
        return self.device if self.device is not None and found.type not in _NEVER_MOVED else found

    # -- lookup -------------------------------------------------------------------------------

    def find(self, path: str) -> Any:
        """Return a class, function, enum or named tuple by qualified name, None if there is none."""
        if path in self._found:
            return self._found[path]
        piece = self._take_definition(path)
        if piece is None:
            return None
        if piece.is_class:
            self._make_class(path, piece)
        else:
            self._found[path] = _runtime.DeferredFunction(self.globals, path)
            self._waiting.append((path, piece))
        self._compile_pending()
        return self._found[path]

    def defined(self) -> list[str]:
        """Return the qualified names of all classes and functions."""
        return [f"{module}.{name}" for module in self.sources for name in self._load_definitions(module)]

    def _load_definitions(self, module: str) -> dict[str, LazyDefinition]:
        if module not in self._pieces:
            text = self.sources.get(module)
            record = "code/" + module.replace(".", "/") + ".py"
            self._pieces[module] = {} if text is None else parse_definitions(text, f"the record {record}", self.longest)
        return self._pieces[module]

    def _take_definition(self, path: str) -> LazyDefinition | None:
        module, _, name = path.rpartition(".")
        return self._load_definitions(module).get(name)

    def _compile_pending(self) -> None:
        if self._busy:  # recursive request during compilation
            return
        self._busy = True
        try:
            while self._waiting:
                path, piece = self._waiting.pop()
                if isinstance(piece, LazyDefinition):
                    function = self._translate(
                        path, PythonTranslator(self, self._describe_location(path)), piece.parsed()
                    )
                    self._found[path] = self.globals[path] = function
                    function.__qualname__ = path
                else:
                    self._add_method(*piece)
        except BaseException:
            self._waiting.clear()
            raise
        finally:
            self._busy = False

    def _lines_of(self, path: str, method: bool) -> list[str]:
        """The lines of the record that has a function, for tracebacks: a file's text is shown without escapes."""
        module = path.rpartition(".")[0]
        module = module.rpartition(".")[0] if method else module
        if module not in self._lines:
            self._lines[module] = [one_line(line) + "\n" for line in self.sources.get(module, "").split("\n")]
        return self._lines[module]

    def _translate(self, path: str, translator: PythonTranslator, node: ast.FunctionDef, method: bool = False) -> Any:
        try:
            made = translator.function(node, method)
            attach_source(made, self._lines_of(path, method))
            return made
        except ProgramError as error:
            if not self.by_python:
                raise
            self.unknown.setdefault(path, str(error))
            return _runtime.DeferredFunction(self.globals, path)

    def translated(self, function: Any, tree: ast.AST, compiled: Callable[[], Any]) -> None:
        """Store the counting code of a function, generated from its tree."""
        if self.counts:
            from ._setstate_budget import instrument

            instrument(tree)
            self.counted.append((function, compiled()))

    def _describe_location(self, path: str) -> str:
        module, _, name = path.rpartition(".")
        return f"{name} in the record code/{module.replace('.', '/')}.py"

    def definition(self, path: str) -> Any:
        """Return the syntax tree of a function or class."""
        piece = self._take_definition(path)
        return None if piece is None else piece.parsed()

    def text_of(self, path: str, node: ast.AST) -> str:
        """Return the source lines of a definition."""
        piece = self._take_definition(path)
        return "" if piece is None else piece.lines(node)

    # -- classes ------------------------------------------------------------------------------

    def _make_class(self, path: str, piece: LazyDefinition) -> None:
        node = piece.header()
        bases = [dotted_name(base) for base in node.bases]
        place = self._describe_location(path)
        if node.decorator_list or node.keywords or len(bases) > 1:
            raise ProgramError(f"a class has one base and no decorator: {place}")
        base = bases[0] if bases else None
        if base == "NamedTuple":
            self._found[path] = _make_namedtuple(path, node, PythonTranslator(self, place))
        elif base == "Enum":
            self._found[path] = _make_enum(path, node, PythonTranslator(self, place))
        elif base in (None, "Module", "Interface", "ModuleInterface", "Exception"):
            kind = {None: "class", "Module": "Module", "Exception": "class"}.get(base, "interface")
            script_class = ScriptClass(path, kind)
            script_class.program, script_class.of_file = self, self.of_file
            self._found[path] = script_class
            self._read_fields(script_class, node, place, piece.methods)
        else:
            raise ProgramError(f"Unknown base {str(base)[:100]} of a class: {place}")

    def _read_fields(self, made: ScriptClass, node: ast.ClassDef, place: str, methods: list[LazyDefinition]) -> None:
        reader = PythonTranslator(self, place)
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                kind = ast.unparse(part.annotation)
                if part.value is not None:
                    made.constants[part.target.id] = reader.constant(part.value)
                    kind = kind.removeprefix("Final[").removesuffix("]")
                made.types[part.target.id] = kind
            elif isinstance(part, ast.Assign) and len(part.targets) == 1:
                self._read_name_list(made, part, reader)
            elif not isinstance(part, ast.Pass):
                raise ProgramError(f"there is no {type(part).__name__} in a class of TorchScript: {place}")
        if made.kind != "interface":
            self._waiting += [(f"{made.name}.{method.name}", (made, method)) for method in methods]

    def _read_name_list(self, made: ScriptClass, part: ast.Assign, reader: PythonTranslator) -> None:
        target = part.targets[0]
        if isinstance(target, ast.Name) and target.id in ("__parameters__", "__buffers__"):
            names = reader.constant(part.value)
            if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                raise reader.wrong(part, "parameters and buffers are listed by name")
            setattr(made, target.id.strip("_"), names)
        elif isinstance(target, ast.Name) and target.id in ("__forward_hooks__", "__forward_pre_hooks__"):
            made.constants[target.id] = reader.constant(part.value)
        elif isinstance(target, ast.Subscript) and dotted_name(target.value) == "__annotations__":
            made.types[str(reader.constant(target.slice))] = ast.unparse(part.value)
        elif isinstance(target, ast.Name):
            made.constants[target.id] = reader.constant(part.value)
        else:
            raise reader.wrong(part, "there is no such assignment in a class of TorchScript")

    def _add_method(self, made: ScriptClass, piece: LazyDefinition) -> None:
        path, node = f"{made.name}.{piece.name}", piece.parsed()
        translator = PythonTranslator(self, self._describe_location(made.name) + f", {node.name}", made)
        function = self._translate(path, translator, node, True)
        function.__qualname__ = path
        made.methods[node.name] = self.globals[path] = function
        made.texts[node.name] = piece.lines(node)
        made.nodes[node.name] = piece
        for suffix, place in (("_getter", 0), ("_setter", 1)):
            if node.name.startswith("__") and node.name.endswith(suffix):
                name = node.name[2 : -len(suffix)]
                both = list(made.properties.get(name, (None, None)))
                both[place] = node.name
                made.properties[name] = (both[0], both[1])


def _move_constant(value: Any, where: Any, known: dict[int, Any]) -> Any:
    """Return a constant on a device. known: moved constants by id."""
    if id(value) not in known:
        made = value
        if isinstance(value, (list, tuple)):
            items = [_move_constant(item, where, known) for item in value]
            made = tuple.__new__(type(value), items) if isinstance(value, tuple) else items
        elif isinstance(value, _runtime.Tensor):
            made = value.to(where)
        known[id(value)] = made
    return known[id(value)]


# Attributes stored outside the object's dictionaries.
_SPECIAL_ATTRIBUTES = frozenset(("training", "_is_full_backward_hook"))


def _attribute_storage(made: ScriptClass) -> dict[str, str]:
    """Return the storage dictionary of each attribute of a class, where known."""
    found: dict[str, str] = {}
    if made.kind != "Module":
        return found
    for name, kind in made.types.items():
        if name in made.constants:
            if made.constants[name].__class__ in (int, float, bool, str, type(None)):
                found[name] = "constants"
        elif kind == "Tensor" and name in made.listed("parameters"):
            found[name] = "_parameters"
        elif kind == "Tensor" and name in made.listed("buffers"):
            found[name] = "_buffers"
        elif made.is_module(kind):
            found[name] = "_modules"
        elif kind in ("int", "float", "bool", "str", "Tensor") and name not in _SPECIAL_ATTRIBUTES:
            found[name] = "_attributes"
    return found


def _make_namedtuple(path: str, node: ast.ClassDef, reader: PythonTranslator) -> type:
    fields: dict[str, Any] = {}
    defaults = []
    for part in node.body:
        if isinstance(part, ast.Pass):
            continue
        if not isinstance(part, ast.AnnAssign) or not isinstance(part.target, ast.Name):
            raise reader.wrong(part, "a named tuple has fields with types")
        name = part.target.id
        if name.startswith("_") or keyword.iskeyword(name) or name in fields or name in ("count", "index"):
            raise reader.wrong(part, f"{name[:100]} is no name of a field")
        fields[name] = ast.unparse(part.annotation)
        if part.value is not None:
            defaults.append(reader.constant(part.value))
    return _runtime.make_namedtuple_class(path, fields, tuple(defaults))


def _make_enum(path: str, node: ast.ClassDef, reader: PythonTranslator) -> Any:
    members = []
    for part in node.body:
        if not isinstance(part, ast.Assign) or len(part.targets) != 1 or not isinstance(part.targets[0], ast.Name):
            raise reader.wrong(part, "an enumeration has names with values")
        if part.targets[0].id.startswith("_") or part.targets[0].id in ("mro", "name", "value"):
            raise reader.wrong(part, f"{part.targets[0].id[:100]} is no name of a member")
        value = reader.constant(part.value)
        if type(value) not in (int, float, str):
            raise reader.wrong(part, "a member's value is a number or text")
        members.append((part.targets[0].id, value))
    if len({name for name, _ in members}) != len(members):
        raise reader.wrong(node, "two members have one name")
    enum_class: Any = enum.Enum(path.rpartition(".")[2], members, module=path.rpartition(".")[0])  # type: ignore[misc]
    enum_class._script_name = path  # type: ignore[attr-defined]
    return enum_class
