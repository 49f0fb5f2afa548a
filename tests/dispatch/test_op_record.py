"""Op records: an op's facts are arguments of `op(...)`, and the core contains no op names."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, Op, op, op_record
from torchlite._dispatch.node_names import default_node_name

DISPATCH = Path(op_record.__file__).parent
# Functions whose arguments are names of attributes.
OF_ATTRIBUTES = {"getattr", "hasattr", "setattr", "attrgetter"}


def _outside(tree: ast.AST):
    """The nodes of a module but f-strings, names of attributes and the names that a module or class lists."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OF_ATTRIBUTES:
            continue
        if isinstance(node, ast.Assign) and {ast.unparse(t) for t in node.targets} & {"__slots__", "__all__"}:
            continue
        yield node
        yield from _outside(node)


def op_names_in(source: str) -> list[str]:
    """String constants of a module that consist of op names only: one name, or a list to split.

    Names of attributes (`F.add`, `table._full`) and of keywords are no strings and do not count.
    """
    found = []
    for node in _outside(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            if words and all(word in REGISTRY or word in torch._dispatch.NAMESPACES["torch"] for word in words):
                found.append(f"{node.lineno}: {node.value}")
    return found


@pytest.mark.parametrize("path", sorted(DISPATCH.rglob("*.py")), ids=lambda path: path.relative_to(DISPATCH).as_posix())
def test_the_core_has_no_name_of_an_op(path):
    assert op_names_in(path.read_text()) == []


def test_names_of_ops_are_found():
    source = 'NAMES = frozenset("add mul".split())\nif op.name == "exp": pass\nx = {"relu": 1}\ny = f(name="log")'
    assert op_names_in(source) == ["1: add mul", "2: exp", "3: relu", "4: log"]
    assert op_names_in('getattr(x, "mean")\n__slots__ = ("mode",)\nf"all {n}"\n"to a tensor"') == []


def test_an_unknown_fact_is_an_error():
    with pytest.raises(TypeError, match=r"op _nonsense: unknown facts \['output'\]"):
        op("_nonsense(Tensor input)", output=("values",))
    assert "_nonsense" not in REGISTRY


VALUES = {
    "promote": {None, "default", "int_to_float", "always_bool"},
    "scalar_rounding": {"always", "cpu", "never"},
    "opaque": {"", "number", "array", "values"},
    "out.dtype": {"same", "castable", "unchecked"},
    "out.resize": {"deprecated", "silent", "rounding"},
    "overlap.internal": {"refused", "allowed", "deprecated", "same_view", "unchecked"},
    "overlap.operands": {"", "identical", "partial", "none", "target"},
}


@pytest.mark.parametrize("fact", VALUES)
def test_facts_have_known_values(fact):
    def value(record: Op):
        for name in fact.split("."):
            record = getattr(record, name)
        return record

    wrong = {record.name: value(record) for record in REGISTRY.values() if value(record) not in VALUES[fact]}
    assert wrong == {}


def test_facts_name_parameters():
    for record in REGISTRY.values():
        names = {p.name for p in record.params}
        given = [*record.numbers, *(record.promote_args or ()), *filter(None, [record.sparse_grad_param])]
        aliases = [meaning for meaning in record.kwarg_aliases.values() if isinstance(meaning, str)]
        assert {*given, *aliases} <= names, record
        assert record.base_op == "" or record.base_op in REGISTRY, record
        assert (record.overlap.internal == "deprecated") is bool(record.overlap.example), record
        messages = record.out.message
        assert isinstance(messages, str) or len(messages) == len(record.outputs), record


# Kernels for which `out_variants.write_out` writes the result of a function that has a parameter `out`.
OUT_OF_KERNELS = {"_arange", "_empty", "_full", "_random_uniform"}


def test_out_is_read():
    for record in REGISTRY.values():
        if record.out is not op_record.OpFacts.out and record.out.supported is None:
            takes_out = record.has_out or any(p.name == "out" for p in record.params)
            assert takes_out or record.name in OUT_OF_KERNELS, record


def test_only_op_sets_facts():
    """No family changes a record after it is declared, its own or another's."""
    facts = set(op_record.OpFacts.__annotations__)
    for path in sorted((DISPATCH.parent / "_ops").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            targets = node.targets if isinstance(node, ast.Assign) else []
            set_ = [t for t in targets if isinstance(t, ast.Attribute) and t.attr in facts]
            assert set_ == [], f"{path.name}:{node.lineno}"


@pytest.mark.parametrize(
    "name,want", [("mul", "MulBackward0"), ("_layer_norm", "LayerNormBackward0"), ("log_normal_", "LogNormalBackward0")]
)
def test_nodes_are_named_after_their_ops(name, want):
    assert default_node_name(REGISTRY[name]) == want


# Records that no public function is: PyTorch's `torch.ops.prims` has the first four, and the method `Tensor.to`, which
# reads its arguments in Python, calls the last.
PRIMS, PYTHON_METHODS = {"add", "sub", "div", "conj"}, {"to"}


def test_an_underscore_means_private():
    names: dict[str, set[str]] = {}
    for space in torch._dispatch.NAMESPACES.values():
        for name, record in space.items():
            names.setdefault(record.name, set()).add(name)
    for record in REGISTRY.values():
        public = names.get(record.name, set())
        if record.name.startswith("_"):  # `torch._conj` is PyTorch's
            assert record.name in public or not any(not name.startswith("_") for name in public), record
        else:
            assert public or record.name in PRIMS | PYTHON_METHODS, record


def test_a_records_place_is_its_own_declaration():
    """Not a line of a helper that declares several ops: `show op` and tracebacks name the place."""
    ours = [record for record in REGISTRY.values() if Path(record.file).parent == DISPATCH.parent / "_ops"]
    assert len(ours) > 800
    assert [record.name for record in ours if record.place[0].co_name != "<module>"] == []
