"""Damaged and hostile `.pt2` files: a sample of `python -m tests.hostile.exported_programs`."""

import copy
import functools
import io
import json
import operator
import pickle
import subprocess
import sys
import tracemalloc

import pytest

import torchlite as torch
from tests.hostile import exported_programs
from tests.hostile import program_bombs as bombs


def test_a_sample_of_damaged_programs():
    """Runs in a subprocess that reports executed code, writes, and memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.exported_programs", "--last", "300"],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1] == "300 files, 0 wrong", done.stderr[-2000:]
    assert [line for line in lines if line.startswith("wrong")] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda j: j["schema_version"].update(major=9), "schema is of version 9"),
        (lambda j: j["graph_module"]["graph"]["nodes"][0].update(target="os.system"), "the op 'os.system' is unknown"),
        (
            lambda j: j["graph_module"]["graph"]["nodes"][0].update(target="torch.ops.aten.add.__class__"),
            "node 0 .*is unknown to torchlite",
        ),
        (lambda j: j["graph_module"]["graph"]["nodes"][0]["outputs"][0]["as_tensor"].update(name="a b"), "cannot be"),
        (lambda j: j["graph_module"]["signature"]["input_specs"].pop(), "its inputs are not those of the signature"),
        (
            lambda j: j["graph_module"]["module_call_graph"][0]["signature"].update(forward_arg_names=["x=exit()"]),
            "cannot be the name of a value",
        ),
    ],
)
def test_errors_name_the_damaged_part(change, said):
    records = exported_programs._records(exported_programs.sample(False))
    name = next(n for n in records if n.endswith("models/model.json"))
    loaded = json.loads(records[name])
    change(loaded)
    records[name] = json.dumps(loaded).encode()
    with pytest.raises(RuntimeError, match=said):
        torch.export.load(io.BytesIO(exported_programs._packed(records)))


@functools.cache
def _plain():
    """The records of a program of two layers and a buffer."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = torch.nn.Linear(4, 4)
            self.a = torch.nn.Parameter(torch.ones(4))
            self.register_buffer("count", torch.zeros(4))

        def forward(self, x):
            self.count.add_(1)
            return self.m(x) + self.a + torch.topk(x, 1, 0)[0].sum() + x.sum(0)

    held = io.BytesIO()
    program = torch.export.export(Net(), (torch.ones(3, 4),)).run_decompositions()
    torch.export.save(program, held)
    return exported_programs._records(held.getvalue())


def _changed(change):
    """The file of those records, which are changed."""
    return io.BytesIO(exported_programs._packed({name: change(data) for name, data in _plain().items()}))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("m.weight", "a.weight", "cannot have both 'a' and 'a.weight'"),
        ("m.weight", "count.b.c", "cannot have both 'count' and 'count.b.c'"),
        ("m.weight", "a", "cannot have both 'a' and 'a'"),
        ("a", "_guards_fn", "cannot have both '_guards_fn' and '_guards_fn'"),
        ("m.weight", "_guards_fn.a", "cannot have both '_guards_fn' and '_guards_fn.a'"),
    ],
)
def test_swapped_tensor_records_are_refused(before, after, said):
    with pytest.raises(RuntimeError, match=said):
        torch.export.load(_changed(lambda data: data.replace(f'"{before}"'.encode(), f'"{after}"'.encode())))


def test_names_that_begin_alike_are_taken():
    program = torch.export.load(_changed(lambda data: data.replace(b'"m.bias"', b'"a-.bias"')))
    assert program.module()(torch.ones(3, 4)).shape == (3, 4)


def test_an_output_is_written_to_an_input():
    def change(data):
        if not data.startswith(b"{") or b"buffer_mutation" not in data:
            return data
        loaded = json.loads(data)
        for spec in loaded["graph_module"]["signature"]["output_specs"]:
            if "buffer_mutation" in spec:
                spec["buffer_mutation"]["buffer_name"] = "nowhere"
        return json.dumps(loaded).encode()

    with pytest.raises(RuntimeError, match="written to 'nowhere', which is no input"):
        torch.export.load(_changed(change))


@pytest.mark.parametrize(("given", "name"), [(None, "topk_default"), ("topk", "topk"), ("output", "output")])
def test_nodes_without_a_value_are_renamed_for_values(given, name):
    def change(data):
        if not data.startswith(b"{") or b"graph_module" not in data:
            return data
        loaded = json.loads(data.replace(b'"sum_1"', f'"{name}"'.encode()))
        for node in loaded["graph_module"]["graph"]["nodes"]:
            if "topk" in node["target"]:
                node["name"] = given
        return json.dumps(loaded).encode()

    program = torch.export.load(_changed(change))
    names = [node.name for node in program.graph.nodes]
    assert len({*names}) == len(names) and name in names, names
    x = torch.arange(12.0).reshape(3, 4)
    plain = torch.export.load(_changed(lambda data: data))
    assert torch.equal(program.module()(x), plain.module()(x))


@pytest.mark.parametrize("op", ["select.int", "slice.Tensor"])
@pytest.mark.parametrize("dim", [64, 1 << 22, 1 << 40])
def test_dimensions_that_no_tensor_has_take_no_memory(op, dim):
    program = torch.export.load(
        io.BytesIO(bombs.exported([bombs.node(f"torch.ops.aten.{op}", "y", bombs.X, {"as_int": dim}, {"as_int": 0})]))
    )
    tracemalloc.start()
    try:
        module = program.module()
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(IndexError, match="Dimension out of range"):
        module(torch.ones(2))


# -- graphs of files are checked whoever runs them -------------------------------------------------


def _number(name):
    return {"as_sym_int": {"as_name": name}}


def _squares():
    """The size of x, squared sixty times."""
    nodes = [bombs.node("torch.ops.aten.sym_size.int", "n0", bombs.X, {"as_int": 0}, kind="as_sym_int")]
    for i in range(60):
        nodes.append(bombs.node("_operator.mul", f"n{i + 1}", _number(f"n{i}"), _number(f"n{i}"), kind="as_sym_int"))
    sizes = {f"n{i}": {"as_int": 4} for i in range(61)}
    return torch.export.load(io.BytesIO(bombs.exported([*nodes, _RELU], graph={"sym_int_values": sizes})))


def _gammas():
    return torch.export.load(
        io.BytesIO(bombs.exported([bombs.node("torch.ops.aten.mvlgamma.default", "y", bombs.X, {"as_int": 1 << 40})]))
    )


_RELU = bombs.node("torch.ops.aten.relu.default", "y", bombs.X)


def _saved(program):
    held = io.BytesIO()
    torch.export.save(program, held)
    return torch.export.load(io.BytesIO(held.getvalue()))


_RUNNERS = {
    "module": lambda p, x: p.module()(x),
    "a module without checks of sizes": lambda p, x: p.module(check_guards=False)(x),
    "graph_module": lambda p, x: p.graph_module(x),
    "an interpreter": lambda p, x: torch.fx.Interpreter(p.graph_module).run(x),
    "a graph module of the graph": lambda p, x: torch.fx.GraphModule(p.graph_module, p.graph)(x),
    "a deep copy": lambda p, x: copy.deepcopy(p.graph_module)(x),
    "a copied graph": lambda p, x: torch.fx.GraphModule(p.graph_module, copy.deepcopy(p.graph))(x),
    "a transformer": lambda p, x: torch.fx.Transformer(p.graph_module).transform()(x),
    "a trace": lambda p, x: torch.fx.symbolic_trace(p.graph_module)(x),
    "unflatten": lambda p, x: torch.export.unflatten(p)(x),
    "saved again": lambda p, x: _saved(p).graph_module(x),
    "decompositions": lambda p, x: p.run_decompositions().module()(x),
    "decompositions of everything": lambda p, x: p.run_decompositions({}).graph_module(x),
    "a pickled graph module": lambda p, x: pickle.loads(pickle.dumps(p.graph_module))(x),
}


@pytest.mark.parametrize("runner", _RUNNERS)
@pytest.mark.parametrize(("make", "error"), [(_squares, OverflowError), (_gammas, RuntimeError)])
def test_every_runner_of_a_loaded_graph_checks_it(runner, make, error):
    with pytest.raises(error, match="too large for a size|may ask for p="):
        _RUNNERS[runner](make(), torch.ones(2))


def test_a_checked_function_is_like_the_plain_one():
    program = _squares()
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert targets[1] == operator.mul and operator.mul == targets[1] and targets[1] in {operator.mul}
    assert {operator.mul: 1}[targets[1]] == 1 and targets[1] != operator.add
    assert "mul = n0 * n0" in program.graph_module.code.replace("n1 =", "mul =")
    assert "target=operator.mul" in program.graph.find_nodes(op="call_function", target=targets[1])[0].format_node()
    assert pickle.loads(pickle.dumps(targets[1])) is targets[1] is copy.deepcopy(targets[1])
    gammas = next(node.target for node in _gammas().graph.nodes if node.op == "call_function")
    assert gammas == torch.ops.aten.mvlgamma.default and str(gammas) == "aten.mvlgamma.default"
    assert "torch.ops.aten.mvlgamma.default(x, 1099511627776)" in _gammas().graph_module.code
    assert pickle.loads(pickle.dumps(gammas)) is gammas


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([bombs.node("torch.ops.aten.split.Tensor", "y", bombs.X, {"as_int": 1})], "outputs are not those of the op"),
        ([bombs.node("torch.sym_ite", "y", {"as_bool": True}, {"as_tensors": [{"name": "x"}] * 2}, {"as_int": 1})],
         "no number and no tensor"),
        ([bombs.node("_operator.add", "y", {"as_string": "a"}, {"as_string": "a"})], "no number and no tensor"),
        ([bombs.node("torch._functorch.predispatch._vmap_increment_nesting", "y", {"as_int": 2},
                     {"as_string": "error"}, kind="as_sym_int")], "does not end in the graph"),
        ([{**_RELU, "metadata": {"nn_module_stack": ";".join(f"k{i},{'m.' * i}m,M" for i in range(400))}}],
         "more than 100 deep"),
        ([{**_RELU, "metadata": {"nn_module_stack": ";".join(f"k{i},m{i},M" for i in range(400))}}],
         "more than 100 deep"),
    ],
)  # fmt: skip
def test_invalid_graphs_are_refused(nodes, said):
    with pytest.raises(RuntimeError, match=said):
        torch.export.load(io.BytesIO(bombs.exported(nodes, bombs.X)))


@pytest.mark.parametrize(
    ("kind", "context"),
    [
        ("builtins.dict", "[[1]]"), ("builtins.dict", "5"), ("builtins.dict", '["a", "b"]'), ("builtins.dict", '"a"'),
        ("builtins.dict", '[{"a": 1}]'), ("builtins.tuple", '"z"'), ("collections.deque", '"a"'),
        ("collections.deque", "0"), ("collections.deque", "-1"), ("collections.OrderedDict", "null"),
        ("collections.defaultdict", "[]"), ("collections.namedtuple", "M"),
        ("collections.defaultdict",
         '{"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": [[1]]}'),
    ],
)  # fmt: skip
def test_trees_have_the_contexts_of_their_classes(kind, context):
    leaf = {"type": None, "context": None, "children_spec": []}
    tree = {"type": "builtins.tuple", "context": "null", "children_spec": []}
    inner = {"type": kind, "context": context, "children_spec": [leaf]}
    args = {**tree, "children_spec": [inner]}
    whole = {**tree, "children_spec": [args, {**tree, "type": "builtins.dict", "context": "[]"}]}
    with pytest.raises(RuntimeError, match=r"torch\.export\.load: a tree of arguments"):
        torch.export.load(io.BytesIO(bombs.exported(in_spec=json.dumps([1, whole]))))


@pytest.mark.parametrize("name", ["a\nb", "a\x00", "__class__", ".".join("a" * 200)])
def test_no_file_is_written_with_a_name_that_no_file_may_have(name, tmp_path):
    program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    program.state_dict[name] = program.state_dict["bias"]
    path = tmp_path / "p.pt2"
    path.write_bytes(b"before")
    with pytest.raises(RuntimeError, match="cannot be the name of an attribute"):
        torch.export.save(program, path)
    assert path.read_bytes() == b"before" and [p.name for p in tmp_path.iterdir()] == ["p.pt2"]


@pytest.mark.parametrize("run", [torch.chain_matmul, lambda *tensors: torch.linalg.multi_dot(tensors)])
def test_chains_of_matrices_have_a_length(run):
    """The order of their products is found in a time that grows with the cube of their number."""

    class Chain(torch.nn.Module):
        def __init__(self, count):
            super().__init__()
            self.count = count

        def forward(self, x):
            return run(*[x] * self.count)

    found = []
    for count in (20, 201):
        file = io.BytesIO()
        torch.export.save(torch.export.export(Chain(count), (torch.eye(2),)), file)
        found.append(torch.export.load(io.BytesIO(file.getvalue())))
    assert torch.equal(found[0].module()(torch.eye(2)), torch.eye(2))
    for module in (found[1].module(), found[1].graph_module, torch.fx.Interpreter(found[1].graph_module).run):
        with pytest.raises(RuntimeError, match="a program may give 200 (tensors|matrices) at most, but got 201"):
            module(torch.eye(2))
