"""Text becomes Python code in `torchlite/_types/python_source.py` alone, and names enter it checked or as literals."""

from __future__ import annotations

import ast
import gc
import io
import json
import linecache
import pathlib
import subprocess
import sys
import threading
import time
import traceback

import pytest

import torchlite as torch
from tests.hostile import injected_names
from torchlite._types import python_source
from torchlite._types.python_source import (
    compile_code,
    compile_function,
    compile_source,
    identifier,
    is_identifier,
    literal,
    parse,
    quote,
)

ROOT = pathlib.Path(__file__).parents[2]
HOME = ROOT / "torchlite" / "_types" / "python_source.py"
FILES = [p for folder in ("torchlite", "backends") for p in sorted((ROOT / folder).rglob("*.py"))]
ALLOWED = {
    # Makers of functions from code objects that exist.
    ("backends/torchlite_backends/array/__init__.py", "FunctionType"), ("torchlite/fx/_symbolic_trace.py",
    "FunctionType"),
    ("torchlite/_dispatch/op_functions.py", "FunctionType"), ("torchlite/_dynamo/parted_function.py", "FunctionType"),
    ("torchlite/_dynamo/shared_program.py", "FunctionType"),
    ("torchlite/fx/experimental/rewriter.py", "FunctionType"), ("torchlite/jit/_python_translator.py", "FunctionType"),
    # Programs that the user names: a launcher's, a repository's `hubconf.py`, modules of a package that the user
    # trusts, and a served model's code with --allow-code. The benchmark's own package.
    ("torchlite/package/_trusted_modules.py", "exec_module"), ("torchlite/serve/_code.py", "exec_module"),
    ("torchlite/distributed/_launch/run_program.py", "run_path"), ("torchlite/hub.py", "exec_module"),
    ("torchlite/_cli/bench/workloads/__main__.py", "exec_module"),
    # `compile` is PyTorch's there.
    ("torchlite/_dynamo/__init__.py", "compile"), ("torchlite/_dynamo/eval_frame.py", "compile"),
    ("torchlite/_inductor/__init__.py", "compile"), ("torchlite/_inductor/compile_fx.py", "compile"),
}  # fmt: skip


def runs_text(tree: ast.AST) -> list[tuple[str, int]]:
    """Uses of what makes code of text: the builtins by any name, and constructors of code and functions."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in ("exec", "eval", "compile"):
            if isinstance(node.ctx, ast.Load):
                found.append((node.id, node.lineno))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("builtins", "__builtins__") and node.attr in ("exec", "eval", "compile"):
                found.append((node.attr, node.lineno))
        elif isinstance(node, ast.ImportFrom) and node.module == "builtins":
            found += [(alias.name, node.lineno) for alias in node.names if alias.name in ("exec", "eval", "compile")]
        elif isinstance(node, ast.Import):  # under another name it would be missed above
            found += [("builtins", node.lineno) for a in node.names if a.name == "builtins" and a.asname]
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("FunctionType", "CodeType", "execfile", "runsource", "run_path", "exec_module", "interact"):
                found.append((name, node.lineno))
    return found


@pytest.mark.parametrize("path", [path for path in FILES if path != HOME], ids=lambda p: str(p.relative_to(ROOT)))
def test_text_becomes_code_in_one_module(path):
    where = path.relative_to(ROOT).as_posix()
    assert not [found for found in runs_text(ast.parse(path.read_text())) if (where, found[0]) not in ALLOWED]


_TREES = ("parse", "literal_eval", "PyCF_ONLY_AST")


def makes_trees(tree: ast.AST) -> list[tuple[str, int]]:
    """Uses of what makes syntax trees of text."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("ast", "_ast"):
            found += [(node.attr, node.lineno)] * (node.attr in _TREES)
        elif isinstance(node, ast.ImportFrom) and node.module in ("ast", "_ast"):
            found += [(alias.name, node.lineno) for alias in node.names if alias.name in _TREES]
        elif isinstance(node, ast.Import):
            found += [(a.name, node.lineno) for a in node.names if a.name in ("ast", "_ast") and a.asname]
    return found


@pytest.mark.parametrize("path", [path for path in FILES if path != HOME], ids=lambda p: str(p.relative_to(ROOT)))
def test_text_becomes_a_tree_in_one_module(path):
    assert path == HOME or not makes_trees(ast.parse(path.read_text()))


def test_the_scan_finds_parser_calls():
    text = "ast.parse(x)\nfrom ast import literal_eval as l\nimport ast as a\nf = ast.parse\nast.dump(x)"
    assert sorted(name for name, _ in makes_trees(ast.parse(text))) == ["ast", "literal_eval", "parse", "parse"]


class Circle:
    """An object whose finalizer lets other threads run."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        time.sleep(0)


def test_threads_parse_at_once():
    """The collector runs finalizers during parsing; CPython 3.11 has one recursion depth for all threads."""
    text, wrong = "a = [1, 2, (3, x + y * z)]\nb = 'c'\n" * 3, []

    def work(depth: int) -> None:
        if depth:
            return work(depth - 1)
        try:
            for _ in range(200):
                Circle()
                parse(text)
                assert literal("[1, (2, 'a')]") == [1, (2, "a")]
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(10 * i,)) for i in range(4)]
    before = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)
    assert wrong == []


def test_the_scan_detects_planted_calls():
    text = "exec(x)\nf = eval\nbuiltins.compile('', '', 'exec')\ntypes.FunctionType(code, {})"
    assert sorted(name for name, _ in runs_text(ast.parse(text))) == ["FunctionType", "compile", "eval", "exec"]
    text = "from builtins import exec as run\nimport builtins as b"
    assert [name for name, _ in runs_text(ast.parse(text))] == ["exec", "builtins"]


def test_tracebacks_and_lines():
    function = compile_function("f", "def f(x):\n    return 1 / x\n", "<a test's function>", {})
    with pytest.raises(ZeroDivisionError) as caught:
        function(0)
    assert "return 1 / x" in "".join(traceback.format_exception(caught.value))
    del caught
    function = None
    assert "<a test's function>" not in names_with_lines()


def names_with_lines() -> set[str]:
    """The file names in `linecache`, after the next source is compiled."""
    compile_code("x = 1", "<the next source>")
    return set(linecache.cache)


def test_the_collector_may_run_while_linecache_checks_its_entries(monkeypatch):
    function = compile_function("f", "def f(x):\n    return x\n", "<a function collected meanwhile>", {})
    names = []

    class Entries(dict):
        def __getitem__(self, name):
            nonlocal function
            function = None  # collects the function at the first entry that is read
            names.append(name)
            return super().__getitem__(name)

    monkeypatch.setattr(linecache, "cache", Entries(linecache.cache))
    linecache.checkcache()
    assert "<a function collected meanwhile>" in names and linecache.getlines("<a function collected meanwhile>") == []
    assert "<a function collected meanwhile>" not in names_with_lines()


def test_loaded_programs_leave_no_lines():
    net, x = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), torch.ones(1, 3)
    held = io.BytesIO()
    torch.export.save(torch.export.export(net, (x,)), held)

    def used() -> None:
        program = torch.export.load(io.BytesIO(held.getvalue()))
        program.module()(x)
        torch.export.unflatten(program)(x)
        torch.fx.symbolic_trace(net)(x)

    used()
    gc.collect()
    before = names_with_lines()
    for _ in range(3):
        used()
    gc.collect()
    assert not [name for name in names_with_lines() - before if not name.endswith(".py")]


def test_a_later_source_keeps_its_lines_under_one_name():
    first = compile_function("f", "def f(): return 1\n", "<a shared name>", {})
    second = compile_function("f", "def f(): return 2\n", "<a shared name>", {})
    del first
    gc.collect()
    assert linecache.getline("<a shared name>", 1) == "def f(): return 2\n" and second() == 2


def test_an_op_whose_name_is_a_keyword_is_an_argument():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(_first, (x, getattr(torch.ops.aten.random_, "from"))))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    assert 'getattr(torch.ops.aten.random_, "from")' in module.code and module(3) == 3


def _first(x, *_):
    return x


@pytest.mark.parametrize("name", ["", "1", "a b", "a.b", "class", "ＨＩＴ", "a\n", "f(", "ﬁx", None, 3])
def test_invalid_identifiers_raise(name):
    assert not is_identifier(name)
    with pytest.raises(ValueError, match="is no Python identifier"):
        identifier(name)


def test_literals_are_read_back():
    for payload in injected_names.PAYLOADS:
        assert compile_source(f"x = {quote(payload)}", "<literal>", {})["x"] == payload


def test_attacks_on_names():
    """A sample of `python -m tests.hostile.injected_names`, in a subprocess that observes what is compiled and
    opened.
    """
    command = [sys.executable, "-m", "tests.hostile.injected_names", "--stride", "397"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("0 wrong\n"), done.stdout[-3000:] + done.stderr[-2000:]


def _stacked(text: str) -> bytes:
    """A program one of whose nodes has this stack of modules."""
    held = io.BytesIO()
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),)), held)
    records = injected_names._zipped(held.getvalue())
    name = next(n for n in records if n.endswith("models/model.json"))
    data = json.loads(records[name])
    data["graph_module"]["graph"]["nodes"][0]["metadata"]["nn_module_stack"] = text
    return injected_names._archive({**records, name: json.dumps(data).encode()})


def test_a_module_stack_is_no_source():
    held = _stacked('L__self__,,a.M;k,l")(exec("1/0"))or(",torch.nn.Linear')
    module = torch.export.unflatten(torch.export.load(io.BytesIO(held)))
    assert module(torch.ones(1, 3)).shape == (1, 2) and [*module._modules] == ['l")(exec("1/0"))or("']
    for text in ("L__self__,,a;k,forward,b", "k,_modules,c", "k,__class__,c", "k,a..b,c"):
        with pytest.raises(RuntimeError, match="unflatten: "):
            torch.export.unflatten(torch.export.load(io.BytesIO(_stacked(text))))


class Holder(torch.nn.Module):
    """One layer under a name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.add_module(name, torch.nn.Linear(2, 2))

    def forward(self, x):
        return self._modules[self.name](x)


def test_modules_with_any_name_are_traced_and_run():
    for name in ('l")(1/0)or("', "l'", "a b", "a/b", "0", "x\ny", "ｅｘｅｃ"):
        net = Holder(name)
        made = torch.fx.symbolic_trace(net)
        assert made(torch.ones(1, 2)).shape == (1, 2)
        program = torch.export.export(net, (torch.ones(1, 2),))
        held = io.BytesIO()
        if not name.isprintable():
            with pytest.raises(RuntimeError, match="cannot be the name of an attribute"):
                torch.export.save(program, held)
        else:
            torch.export.save(program, held)
            module = torch.export.unflatten(torch.export.load(io.BytesIO(held.getvalue())))
            assert torch.equal(module(torch.ones(1, 2)), net(torch.ones(1, 2)))


@pytest.mark.parametrize("names_", [("v1", "v0"), ("c0", "torch"), ("args", "kwargs"), ("device", "getattr")])
def test_inputs_may_have_the_names_of_generated_code(names_):
    first, second = names_
    space = compile_source(f"def forward(self, {first}, {second}):\n    return {first} * 2 - {second}\n", "<net>", {})
    net = type("Net", (torch.nn.Module,), {"forward": space["forward"]})()
    program = torch.export.export(net, (torch.ones(3), torch.full((3,), 5.0)))
    held = io.BytesIO()
    torch.export.save(program, held)
    loaded = torch.export.load(io.BytesIO(held.getvalue()))
    for module in (program.module(), loaded.module(), torch.export.unflatten(loaded)):
        assert module(torch.ones(3), torch.full((3,), 5.0)).tolist() == [-3.0] * 3


def test_a_value_named_self_is_refused():
    held = io.BytesIO()
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), held)
    records = injected_names._zipped(held.getvalue())
    changed = {n: c.replace(b'"input"', b'"self"').replace(b'"input_1"', b'"self"') for n, c in records.items()}
    with pytest.raises(RuntimeError, match="'self' cannot be the name of a value"):
        torch.export.load(io.BytesIO(injected_names._archive(changed)))


def _with_true_branch(change) -> bytes:
    """A program with a branch, whose node of `cond` is changed."""

    class Net(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    held = io.BytesIO()
    torch.export.save(torch.export.export(Net(), (torch.ones(3),)), held)
    records = injected_names._zipped(held.getvalue())
    name = next(n for n in records if n.endswith("models/model.json"))
    data = json.loads(records[name])
    change(next(n for n in data["graph_module"]["graph"]["nodes"] if n["target"].endswith("higher_order.cond")))
    return injected_names._archive({**records, name: json.dumps(data).encode()})


@pytest.mark.parametrize("name", ["to_folder", "recompile", "print_readable", "forward", "graph", "code", "_modules"])
def test_a_graph_cannot_take_the_place_of_a_method(name):
    def change(node):
        node["inputs"][1]["arg"]["as_graph"]["name"] = name

    with pytest.raises(RuntimeError, match="cannot be the name of an attribute"):
        torch.export.load(io.BytesIO(_with_true_branch(change)))


@pytest.mark.parametrize("given", [{"as_string": "x"}, {"as_tensor": {"name": "x"}}, {"as_none": True}])
def test_only_graphs_are_called(given):
    def change(node):
        node["inputs"][1]["arg"] = given

    with pytest.raises(RuntimeError, match="'true_fn' is no graph"):
        torch.export.load(io.BytesIO(_with_true_branch(change)))


def _loaded(constant: int):
    """A module with one method, saved and loaded: its class has the same name in every file."""
    scripted = torch.jit.script(_Failing(constant))
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    return torch.jit.load(file)


class _Failing(torch.nn.Module):
    def __init__(self, number: int):
        super().__init__()
        self.number = number

    def forward(self, x):
        return torch.mm(x, torch.ones(self.number, 2))


def _lines_of_error(call) -> str:
    with pytest.raises(RuntimeError) as caught:
        call(torch.ones(2, 9))
    return "".join(traceback.format_exception(caught.value))


def test_tracebacks_of_loaded_scripts_have_lines():
    before = names_with_lines()
    module = _loaded(4)
    assert "torch.mm(x, torch.ones(" in _lines_of_error(module)
    del module
    gc.collect()
    assert not [name for name in names_with_lines() - before if "_Failing" in name]


def test_files_of_one_name_keep_their_lines():
    first, second = (attached("<a record of a file>", f"x = {n}\n") for n in (1, 2))
    names = [f.__code__.co_filename for f in (first, second)]
    assert names[0] == "<a record of a file>" and names[1].startswith("<a record of a file #")
    assert [linecache.getline(name, 1) for name in names] == ["x = 1\n", "x = 2\n"]


def attached(filename: str, text: str):
    tree = ast.parse("def f(): pass")
    function = python_source.compile_source(tree, filename, {})["f"]
    python_source.attach_source(function, text.splitlines(True))
    return function


def test_lines_of_a_file_are_shown_without_escapes():
    unit = torch.jit.CompilationUnit("def f(x):\n    return torch.mm(x, x)  # \x1b[31m\n")
    assert "\x1b" not in _lines_of_error(unit.f)


def test_code_has_no_future_of_the_module_that_compiles_it():
    made: dict = {}
    exec(python_source.compile_code("def f(x: int) -> str: ...", "<annotated>"), made)
    assert made["f"].__annotations__ == {"x": int, "return": str}
