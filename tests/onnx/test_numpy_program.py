"""Models as programs of NumPy: networks in an interpreter that has NumPy alone, ONNX's own cases, names as attacks."""

import ast
import builtins
import dis
import io
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import torchlite as torch
from tests.graph_models import MODELS
from tests.graph_models.model_case import Model, filled
from tests.hostile.injected_names import PAYLOADS
from torchlite import __main__ as program
from torchlite._types.python_source import compile_source
from torchlite.onnx._export.graph_builder import make_attribute, make_tensor
from torchlite.onnx._numpy_program import UnwritableError, write_program
from torchlite.onnx._numpy_program.expressions import docstring, wrap
from torchlite.onnx._numpy_program.module_writer import functions_by_name, needed_functions
from torchlite.onnx._protobuf import Message, parse_message

TOLERANCE = 1e-6  # of the largest element
TWELVE = ("mlp", "lenet", "resnet", "mobilenet", "unet", "lstm", "gru", "encoder", "gpt", "bert", "vad", "squeeze")
RUNNER = """
import importlib.util, sys
sys.path[:0] = sys.argv[1:3]
assert not any(importlib.util.find_spec(name) for name in ("torchlite", "torch", "scipy", "onnx", "pytest"))
import numpy as np
module = __import__(sys.argv[3])
for inputs, outputs in zip(sys.argv[4::2], sys.argv[5::2]):
    with np.load(inputs, allow_pickle=False) as given:
        found = module.forward(*(given[f"arr_{i}"] for i in range(len(given.files))))
    np.savez(outputs, *(found if isinstance(found, tuple) else (found,)))
"""


class Vad(torch.nn.Module):
    """A detector of speech: a spectrum by convolution, convolutions, an LSTM with a state that the caller keeps."""

    def __init__(self):
        super().__init__()
        self.spectrum = torch.nn.Conv1d(1, 18, 16, 8, bias=False)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv1d(9, 12, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv1d(12, 8, 3, 2, 1), torch.nn.ReLU()
        )
        self.rnn, self.head = torch.nn.LSTM(8, 8, batch_first=True), torch.nn.Linear(8, 1)

    def forward(self, sound, h, c):
        parts = self.spectrum(torch.nn.functional.pad(sound.unsqueeze(1), (4, 4), mode="reflect"))
        power = (parts[:, :9] ** 2 + parts[:, 9:] ** 2).sqrt()
        out, (h, c) = self.rnn(self.layers(power).transpose(1, 2), (h, c))
        return torch.sigmoid(self.head(out)).mean(1), h, c


class Squeeze(torch.nn.Module):
    """A block with weights of channels, and hard activations."""

    def __init__(self):
        super().__init__()
        self.enter, self.norm = torch.nn.Conv2d(3, 8, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(8)
        self.depth = torch.nn.Conv2d(8, 8, 5, padding=2, groups=8)
        self.down, self.up = torch.nn.Conv2d(8, 2, 1), torch.nn.Conv2d(2, 8, 1)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        x = torch.nn.functional.hardswish(self.norm(self.enter(x)))
        y = torch.nn.functional.relu6(self.depth(x))
        weight = torch.nn.functional.adaptive_avg_pool2d(y, 1)
        weight = torch.nn.functional.hardsigmoid(self.up(torch.relu(self.down(weight))))
        return self.head((x + y * weight).mean((2, 3)))


def _vad_inputs(batch):
    rng = np.random.default_rng(batch)
    return tuple(a.astype("f") for a in (rng.standard_normal((batch, 64)), *np.zeros((2, 1, batch, 8))))


OWN = {
    "vad": Model("vad", lambda torch: Vad(), _vad_inputs, None),
    "squeeze": Model("squeeze", lambda torch: Squeeze(), lambda batch: MODELS["resnet"].given(batch)),
}


def network(name):
    return OWN[name] if name in OWN else MODELS[name]


def save(case, net, kind, folder):
    """Write a network in a format."""
    path, given, dynamic = folder / f"net.{kind}", case.inputs(torch), case.dynamic(torch)
    if case.name == "vad":
        rows = torch.export.Dim("rows", min=2, max=64)
        dynamic = ({0: rows}, {1: rows}, {1: rows})
    if kind == "pt2":
        torch.export.save(torch.export.export(net, given, dynamic_shapes=dynamic), path)
    elif kind == "onnx":
        torch.onnx.export(net, given, path, dynamic_shapes=dynamic, dynamo=True)
    else:
        torch.jit.save(torch.jit.trace(net, given), path)
    return path


@pytest.fixture(scope="module")
def numpy_alone(tmp_path_factory):
    """A folder of packages that has NumPy and nothing else."""
    folder = tmp_path_factory.mktemp("packages")
    home = pathlib.Path(np.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (home.parent / name).exists():
            os.symlink(home.parent / name, folder / name)
    return folder


def converted(case, kind, folder, capsys):
    """The network, and the program that the command writes of its file."""
    net = filled(torch, case.build(torch)).eval()
    path = save(case, net, kind, folder)
    words = []
    for i, array in enumerate(case.given(2)):
        np.save(folder / f"given_{i}.npy", array)
        words += ["--input", str(folder / f"given_{i}.npy")]
    assert program.main(["convert", str(path), str(folder / "net_program.py"), *words]) == 0
    out, err = capsys.readouterr()
    assert "largest difference" in out and not err
    return net


def check_alone(case, net, folder, packages, batches):
    """Compare the results of a program, run with NumPy alone, with those of the network."""
    files = []
    for batch in batches:
        np.savez(folder / f"inputs_{batch}.npz", *case.given(batch))
        files += [folder / f"inputs_{batch}.npz", folder / f"outputs_{batch}.npz"]
    words = [sys.executable, "-I", "-S", "-c", RUNNER, packages, folder, "net_program", *files]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    for batch, found in zip(batches, files[1::2], strict=True):
        with torch.no_grad():
            wanted = torch.utils._pytree.tree_leaves(net(*case.inputs(torch, batch)))
        with np.load(found, allow_pickle=False) as got:
            assert len(got.files) == len(wanted)
            for i, want in enumerate(wanted):
                array, want = got[f"arr_{i}"], want.numpy()
                assert array.dtype == want.dtype and array.shape == want.shape
                assert np.abs(array - want).max() <= TOLERANCE * np.abs(want).max()


@pytest.mark.parametrize("kind", ["onnx", "pt2"])
@pytest.mark.parametrize("name", TWELVE)
def test_networks_with_numpy_alone(name, kind, tmp_path, capsys, numpy_alone):
    case = network(name)
    net = converted(case, kind, tmp_path, capsys)
    check_alone(case, net, tmp_path, numpy_alone, (2, 3))


@pytest.mark.parametrize("name", ["lenet", "lstm", "bert"])
def test_scripts_with_numpy_alone(name, tmp_path, capsys, numpy_alone):
    case = network(name)
    net = converted(case, "pt", tmp_path, capsys)
    check_alone(case, net, tmp_path, numpy_alone, (2, 3))


def all_files():
    """Every network in each format, but scripts of those that branch and of `diffusion`, whose sizes are fixed."""
    names = sorted({*MODELS, *OWN})
    return [(name, kind) for name in names for kind in ("onnx", "pt2")] + [
        (name, "pt") for name in names if network(name).scripts and name != "diffusion"
    ]


@pytest.mark.night
@pytest.mark.parametrize(("name", "kind"), all_files())
def test_all_networks_with_numpy_alone(name, kind, tmp_path, capsys, numpy_alone):
    case = network(name)
    net = converted(case, kind, tmp_path, capsys)
    check_alone(case, net, tmp_path, numpy_alone, (2, 3, 5) if case.batch is not None else (2,))


@pytest.mark.parametrize("name", ["resnet", "gpt", "lstm"])
def test_the_source_is_laid_out_and_has_functions_of_blocks(name, tmp_path, capsys):
    converted(network(name), "pt2", tmp_path, capsys)
    text = (tmp_path / "net_program.py").read_text()
    tree = ast.parse(text)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "forward" in functions
    blocks = {"resnet": {"block_4", "block_5"}, "gpt": {"blocks_0", "blocks_1"}, "lstm": set()}[name]
    assert blocks <= set(functions)
    assert not re.search(r"\b(exec|eval|pickle|__import__)\b", text)
    assert all(ast.get_docstring(node) for node in tree.body if isinstance(node, ast.FunctionDef))
    assert max(map(len, text.splitlines())) <= 120
    called = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert {name for name in functions if name not in called} == {"forward"}


# -- ONNX's own cases of its operators

ARCHIVE = pathlib.Path(__file__).parent / "files" / "nodes.zip"


def node_names():
    with zipfile.ZipFile(ARCHIVE) as archive:
        return sorted(name.removesuffix(".onnx") for name in archive.namelist() if name.endswith(".onnx"))


def run(written, *inputs):
    """Results of a written program."""
    space = compile_source(written.text, "<program>", {"__name__": "program"})
    found = space["forward"](*inputs, **({"weights": written.weights} if written.weights else {}))
    return found if isinstance(found, tuple) else (found,)


def test_operators_of_onnx_are_right_or_refused():
    refused, wrong = [], []
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in node_names():
            given = np.load(io.BytesIO(archive.read(f"{name}.npz")))
            inputs = [given[f"input_{i}"] for i in range(sum(n.startswith("input") for n in given.files))]
            wanted = [given[f"output_{i}"] for i in range(sum(n.startswith("output") for n in given.files))]
            try:
                written = write_program(parse_message(archive.read(f"{name}.onnx")), None, name, "m", "0")
            except UnwritableError:
                refused.append(name)
                continue
            with np.errstate(all="ignore"):
                found = run(written, *inputs)
            for got, want in zip(found, wanted, strict=True):
                near = (
                    np.allclose(got, want, rtol=1e-3, atol=1e-6, equal_nan=True) if got.shape == want.shape else False
                )
                if got.dtype != want.dtype or not near:
                    wrong.append(name)
    assert not wrong
    assert len(refused) <= 68  # of 236


# -- small models


def value_info(name, shape, kind=1):
    dims = [Message("Dimension", **{"dim_param" if isinstance(n, str) else "dim_value": n}) for n in shape]
    about = Message("TypeOfTensor", elem_type=kind, shape=Message("TensorShape", dim=dims))
    return Message("ValueInfo", name=name, type=Message("Type", tensor_type=about))


def node(kind, inputs, outputs, domain="", name="", **attributes):
    made = [make_attribute(key, value) for key, value in attributes.items()]
    return Message("Node", op_type=kind, input=inputs, output=outputs, attribute=made, domain=domain, name=name)


def graph(nodes, inputs, outputs, tensors=()):
    return Message("Graph", node=nodes, input=inputs, output=outputs, initializer=list(tensors), name="graph")


def model(nodes, inputs, outputs, tensors=(), opset=18, functions=()):
    imports = [Message("OperatorSetId", domain="", version=opset)]
    return Message("Model", ir_version=8, opset_import=imports, functions=list(functions),
                   graph=graph(nodes, inputs, outputs, tensors))  # fmt: skip


def tensor(name, values, dtype="float32"):
    return make_tensor(name, np.asarray(values, dtype), dtype)


def written(*args, **options):
    return write_program(model(*args, **options), None, "model.onnx", "m", "0")


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_all_refused_parts_are_named():
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("RandomNormal", [], ["b"], name="noise", shape=[2]),
        node("Gelu", ["a"], ["c"], domain="com.microsoft", name="first"),
        node("LSTM", ["x", "x", "x"], ["d"], name="rnn", direction="sideways"),
    ]
    with pytest.raises(UnwritableError) as error:
        written(nodes, [value_info("x", [3, 4])], [value_info("c", [3, 4]), value_info("nowhere", [1])])
    text = str(error.value)
    assert "cannot express 4 of its parts" in text
    for part in ('RandomNormal (node "noise")', 'com.microsoft.Gelu (node "first")', "'sideways'", '"nowhere"'):
        assert part in text


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes"),
    [
        ("Transpose", [], {}),
        ("Conv", ["x", "x"], {"pads": [1, 1, 1]}),
        ("Split", ["x"], {"num_outputs": 1 << 40}),
        ("Slice", ["x", "c", "c", "far"], {}),
        ("Expand", ["c", "square"], {}),
        ("Softmax", ["x"], {"beta": 1.0}),
        ("MaxPool", ["x"], {"kernel_shape": [2.5]}),
    ],
    ids=["input", "pads", "parts", "axis", "shape", "attribute", "type"],
)  # fmt: skip
def test_damaged_nodes_are_refused_by_name(kind, inputs, attributes):
    tensors = [tensor("c", [1], "int64"), tensor("far", [1 << 40], "int64"), tensor("square", [[2, 2]], "int64")]
    with pytest.raises(UnwritableError, match=rf'{kind} \(node "it"\)'):
        written([node(kind, inputs, ["y"], name="it", **attributes)], [value_info("x", [3, 4])],
                [value_info("y", [3, 4])], tensors)  # fmt: skip


@pytest.mark.parametrize("kind", [8, 16, 17, 22])
def test_types_that_numpy_lacks_are_refused(kind):
    with pytest.raises(UnwritableError, match='the input "x" of'):
        written([node("Identity", ["x"], ["y"])], [value_info("x", [3], kind)], [value_info("y", [3], kind)])


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (X.astype(np.float64), TypeError, "x: expected an array of float32, but got float64"),
        (X[0], ValueError, r"x: expected the shape \[rows, 4\], but got \[4\]"),
        (X[:, :3], ValueError, r"x: expected the shape \[rows, 4\], but got \[3, 3\]"),
    ],
    ids=["dtype", "rank", "size"],
)
def test_inputs_are_checked(given, error, text):
    made = written([node("Relu", ["x"], ["y"])], [value_info("x", ["rows", 4])], [value_info("y", ["rows", 4])])
    with pytest.raises(error, match=text):
        run(made, given)


def test_a_named_size_is_one_size():
    made = written(
        [node("Add", ["x", "z"], ["y"])],
        [value_info("x", ["rows", 4]), value_info("z", ["rows", 4])],
        [value_info("y", ["rows", 4])],
    )
    assert (run(made, X, X)[0] == 2 * X).all()
    with pytest.raises(ValueError, match=r"z: expected the shape \[3, 4\]"):
        run(made, X, X[:1])


def test_computed_sizes_are_read_from_shapes():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["rows"]),
        node("Unsqueeze", ["rows", "first"], ["r"]),
        node("Concat", ["r", "rest"], ["sizes"], axis=0),
        node("Reshape", ["x", "sizes"], ["y"]),
    ]
    tensors = [tensor("zero", 0, "int64"), tensor("first", [0], "int64"), tensor("rest", [2, -1], "int64")]
    made = written(nodes, [value_info("x", ["rows", 4])], [value_info("y", ["rows", 2, 2])], tensors)
    assert "x.reshape(x.shape[0], 2, -1)" in made.text and made.archive is None
    assert run(made, X[:2])[0].shape == (2, 2, 2)


@pytest.mark.parametrize("start", [0.0, 5.0])
def test_branches_and_loops(start):
    x, y = [value_info("x", [3, 4])], [value_info("y", [3, 4])]
    bigger = graph([node("Mul", ["x", "two"], ["t"])], [], [value_info("t", [3, 4])])
    smaller = graph([node("Neg", ["x"], ["e"])], [], [value_info("e", [3, 4])])
    step = graph(
        [node("Add", ["state", "z"], ["next"]), node("Less", ["sum", "limit"], ["again"]),
         node("ReduceSum", ["next"], ["sum"], keepdims=0)][::2]
        + [node("Less", ["sum", "limit"], ["again"])],
        [value_info("i", [], 7), value_info("go", [], 9), value_info("state", [3, 4])],
        [value_info("again", [], 9), value_info("next", [3, 4]), value_info("sum", [])],
    )  # fmt: skip
    nodes = [
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Greater", ["m", "limit"], ["c"]),
        node("If", ["c"], ["z"], then_branch=bigger, else_branch=smaller),
        node("Loop", ["count", "", "x"], ["y", "sums"], body=step),
    ]
    tensors = [tensor("two", 2.0), tensor("limit", 100.0), tensor("count", 4, "int64")]
    made = written(nodes, x, [*y, value_info("sums", ["n"])], tensors)
    given = X * 10 + start
    wanted, z, sums = given, given * 2 if given.max() > 100 else -given, []
    for _ in range(4):
        wanted = wanted + z
        sums.append(wanted.sum())
        if not sums[-1] < 100:
            break
    found, totals = run(made, given)
    assert np.array_equal(found, wanted) and np.allclose(totals, sums)


def test_functions_of_the_file_are_expanded():
    inner = Message(
        "Function", name="twice", domain="own", input=["a"], output=["b"], attribute=["slope"],
        opset_import=[Message("OperatorSetId", domain="", version=18)],
        node=[Message("Node", op_type="LeakyRelu", input=["a"], output=["l"], attribute=[
            Message("Attribute", name="alpha", ref_attr_name="slope", type=1)]), node("Add", ["l", "l"], ["b"])],
    )  # fmt: skip
    made = written([node("twice", ["x"], ["y"], domain="own", slope=0.5)], [value_info("x", [3, 4])],
                   [value_info("y", [3, 4])], functions=[inner])  # fmt: skip
    assert np.array_equal(run(made, X - 5)[0], 2 * np.where(X >= 5, X - 5, (X - 5) / 2))
    circle = Message("Function", name="twice", domain="own", input=["a"], output=["b"],
                     node=[node("twice", ["a"], ["b"], domain="own")])  # fmt: skip
    with pytest.raises(UnwritableError, match="call each other too often"):
        written([node("twice", ["x"], ["y"], domain="own")], [value_info("x", [3, 4])], [value_info("y", [3, 4])],
                functions=[circle])  # fmt: skip


def test_weights_of_one_array_are_written_once_and_are_the_same_bytes():
    nodes = [node("Transpose", ["w"], ["t"], perm=[1, 0]), node("MatMul", ["x", "w"], ["a"]),
             node("MatMul", ["a", "t"], ["y"])]  # fmt: skip
    args = nodes, [value_info("x", [3, 4])], [value_info("y", [3, 4])], [tensor("w", np.ones((4, 5)))]
    first, second = written(*args), written(*args)
    assert (first.text, first.archive) == (second.text, second.archive) and list(first.weights) == ["w"]
    assert 'weights["w"].T' in first.text
    with np.load(io.BytesIO(first.archive), allow_pickle=False) as file:
        assert file["w"].shape == (4, 5)


# -- names as attacks


class _Watched(list):
    """List of the calls that an attack makes."""


@pytest.fixture
def hits():
    builtins.HIT = _Watched()
    yield builtins.HIT
    del builtins.HIT


def attacked(payload):
    """A model with a text in the place of every name, and of texts and lists among the attributes."""
    p, q = payload or "empty", f"{payload}_2"
    nodes = [
        node("Conv", ["x", p], ["conv"], name=f"/{p}/{q}/Conv", pads=[0, 0, 0, 0]),
        node("Add", ["conv", q], [f"{p}_sum"], name=p),
        node("Relu", [f"{p}_sum"], ["y"], name=f"{p}.{q}"),
    ]
    nodes[1].metadata_props = [
        Message(
            "StringString", key="pkg.torch.onnx.name_scopes", value=repr(["", payload, f"{payload}.{payload}", "add"])
        )
    ]
    tensors = [tensor(p, np.ones((2, 1, 1, 1))), tensor(q, np.ones((1, 2, 1, 1)))]
    return model(nodes, [value_info("x", ["n", 1, payload, 2])], [value_info("y", ["n", 2, payload, 2])], tensors)


def calls_hit(text):
    tree = ast.parse(text)
    called = [n.func.value for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return any(isinstance(value, ast.Name) and value.id == "HIT" for value in called)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_names_are_no_source(payload, hits):
    for name in (payload, f"{payload}z"):
        made = write_program(attacked(name), None, name, "m", "0")
        assert not calls_hit(made.text)
        assert np.array_equal(run(made, np.ones((1, 1, 2, 2), "f"))[0], np.full((1, 2, 2, 2), 2))
    assert not hits


@pytest.mark.parametrize("payload", ["HIT.append(1)", '"); HIT.append(1); ("', "0) or HIT.append(1) or (0"])
@pytest.mark.parametrize(
    ("kind", "key"),
    [("Transpose", "perm"), ("Concat", "axis"), ("Conv", "strides"), ("MaxPool", "kernel_shape"), ("Cast", "to"),
     ("Einsum", "equation"), ("Pad", "mode"), ("Resize", "mode"), ("Gelu", "approximate"), ("Conv", "auto_pad"),
     ("LeakyRelu", "alpha"), ("ScatterND", "reduction"), ("ArgMax", "axis"), ("Softmax", "axis")],
)  # fmt: skip
def test_texts_among_the_attributes_are_no_source(kind, key, payload, hits):
    for value in (payload, [payload], [payload, payload]):
        made = model([node(kind, ["x", "x", "x"], ["y"], **{key: value})], [value_info("x", [3, 4])],
                     [value_info("y", [3, 4])])  # fmt: skip
        try:
            text = write_program(made, None, "x", "m", "0").text
        except UnwritableError:
            continue
        assert not calls_hit(text) and "HIT" not in text
    assert not hits


def test_a_docstring_ends_where_it_should():
    for payload in PAYLOADS:
        for lines in ([payload], [payload, payload], [f'{payload}"'], [f"{payload}\\"]):
            text = docstring(lines)
            (only,) = ast.parse(text).body
            assert isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant)


# -- parts of the writer


def test_long_lines_are_broken_at_brackets():
    line = f"result = conv({', '.join(f'argument_{i}' for i in range(20))})"
    text = wrap(line, 4)
    assert max(map(len, text.splitlines())) <= 120
    assert ast.dump(ast.parse(text.strip())) == ast.dump(ast.parse(line))
    subscript = f'x = weights["{"k" * 130}"]'
    assert ast.dump(ast.parse(wrap(subscript, 0))) == ast.dump(ast.parse(subscript))


def global_names(code):
    """Names that a function reads from its module."""
    inner = [constant for constant in code.co_consts if hasattr(constant, "co_code")]
    own = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return own.union(*map(global_names, inner))


def test_functions_of_programs_need_functions_of_programs():
    for name, function in functions_by_name().items():
        assert global_names(function.__code__) - set(dir(builtins)) - {name} <= needed_functions(name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf(dtype):
    import math

    x = np.concatenate([np.linspace(-6, 6, 4001), [0.0, -0.0, 30.0, -30.0]]).astype(dtype)
    wanted = np.array([math.erf(v) for v in x.tolist()])
    assert np.abs(functions_by_name()["erf"](x) - wanted).max() < {4: 3e-7, 8: 1e-16}[x.dtype.itemsize]
