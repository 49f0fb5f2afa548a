"""`torch.onnx.load`: files of PyTorch's exporter, training, devices, control flow, versions of ops, errors."""

import copy
import io
import pathlib
import tarfile
import zipfile

import numpy as np
import pytest

import torchlite as torch
from tests.graph_models import MODELS
from tests.hostile.onnx_files import info, model, node, weight
from torchlite.onnx import OnnxFileError
from torchlite.onnx._export.graph_builder import make_tensor
from torchlite.onnx._protobuf import Message, encode_message, parse_message

FILES = pathlib.Path(__file__).parent / "files"
NAMES = sorted(path.stem for path in FILES.glob("*.onnx"))
DYNAMIC = ("lenet", "detection", "recsys", "gru")


def outputs(found):
    return found if isinstance(found, (tuple, list)) else (found,)


@pytest.mark.parametrize("name", NAMES)
def test_files_of_pytorch(device, name):
    made = MODELS[name]
    module, net = torch.onnx.load(FILES / f"{name}.onnx").to(device), made.make(torch)  # some make tensors on the CPU
    for batch in (2, 5) if name in DYNAMIC else (2,):
        inputs = made.inputs(torch, batch)
        with torch.no_grad():
            wanted = outputs(net(*inputs))
        found = outputs(module(*[x.to(device) for x in inputs]))
        tolerance = 1e-5 if device == "cpu" else 1e-4
        for got, want in zip(found, wanted, strict=True):
            assert got.device.type == torch.device(device).type
            torch.testing.assert_close(got.cpu(), want, rtol=tolerance, atol=tolerance)
        module.zero_grad()
        sum(got.sum() for got in found if got.requires_grad).backward()
    trained = [name for name, p in module.named_parameters() if p.grad is not None and bool(p.grad.abs().sum() > 0)]
    assert len(trained) >= len(list(net.parameters())) // 2


def test_weights_keep_their_names_and_train():
    module = torch.onnx.load(FILES / "mlp.onnx")
    net = MODELS["mlp"].make(torch)
    names = {name: p.shape for name, p in module.named_parameters()}
    assert {name: p.shape for name, p in net.named_parameters()} == names
    x = MODELS["mlp"].inputs(torch)[0]
    optimizer = torch.optim.SGD(module.parameters(), 1e-3)
    before = module(x).square().sum()
    before.backward()
    optimizer.step()
    assert module(x).square().sum() < before
    again = copy.deepcopy(module)
    assert torch.equal(again(x), module(x)) and again.state_dict().keys() == module.state_dict().keys()


def test_which_tensors_are_parameters():
    data = (FILES / "mlp.onnx").read_bytes()
    frozen = torch.onnx.load(io.BytesIO(data), parameters=lambda name: name.endswith("bias"))
    assert all(name.endswith("bias") for name, _ in frozen.named_parameters()) and list(frozen.buffers())


def test_messages_are_written_as_they_were_read():
    data = (FILES / "recsys.onnx").read_bytes()
    again = b"".join(bytes(piece) for piece in encode_message(parse_message(data)))
    assert b"".join(bytes(piece) for piece in encode_message(parse_message(again))) == again and len(again) == len(data)


def test_unknown_fields_are_skipped():
    data = model([node("Relu", ["x"], ["y"])], [info("x", 2)], ["y"])
    unknown = b"\x9a\x3e\x03abc" + b"\x98\x3e\x05" + b"\x9d\x3e1234" + b"\x9b\x3e\x08\x01\x9c\x3e"
    assert torch.onnx.load(unknown + data + unknown)(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]


@pytest.mark.parametrize("version, wanted", [(11, [[0.25] * 4]), (13, [[0.5, 0.5], [0.5, 0.5]])])
def test_softmax_means_something_else_before_version_13(version, wanted):
    data = model([node("Softmax", ["x"], ["y"])], [info("x", 1, 2, 2)], ["y"], version=version)
    found = torch.onnx.load(data)(torch.ones(1, 2, 2))
    assert found.reshape(len(wanted), -1).tolist() == wanted


@pytest.mark.parametrize("version", [1, 11, 13, 20])
def test_attributes_became_inputs(version):
    axes = {"axes": [1]} if version < 13 else {}
    inputs = ["x"] if version < 13 else ["x", "axes"]
    weights = [] if version < 13 else [make_tensor("axes", np.array([1]), "int64")]
    data = model([node("ReduceSum", inputs, ["y"], keepdims=0, **axes)], [info("x", 2, 3)], ["y"], weights, (), version)
    assert torch.onnx.load(data)(torch.ones(2, 3)).tolist() == [3, 3]


def loop(trips):
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s", "n")],
        node=[node("Mul", ["s", "w"], ["s2"]), node("Identity", ["c"], ["c2"])],
        output=[info("c2", kind=9), info("s2", "n"), info("s2", "n")],
    )  # fmt: skip
    count = make_tensor("m", np.array(trips), "int64")
    two = make_tensor("w", np.array([2.0], "float32"), "float32")
    names = ["last", "all"]
    return model([node("Loop", ["m", "", "x"], names, body=body)], [info("x", 2)], names, [count, two])


def test_loops_read_outer_values(device):
    module = torch.onnx.load(loop(3)).to(device)
    last, every = module(torch.ones(2).to(device))
    assert last.tolist() == [8, 8] and every.tolist() == [[2, 2], [4, 4], [8, 8]]
    last.sum().backward()
    assert module.w.grad.tolist() == [24]


def test_branches():
    graphs = [
        Message("Graph", name=kind, node=[node(kind, ["x"], [f"{kind}_y"])], output=[info(f"{kind}_y")])
        for kind in ("Neg", "Exp")
    ]
    data = model([node("If", ["c"], ["y"], then_branch=graphs[0], else_branch=graphs[1])],
                 [info("x", 1), info("c", kind=9)], ["y"])  # fmt: skip
    module = torch.onnx.load(data)
    assert module(torch.zeros(1), torch.tensor(True)).tolist() == [0]
    assert module(torch.zeros(1), torch.tensor(False)).tolist() == [1]


def test_functions_of_the_file():
    attribute = Message("Attribute", name="alpha", ref_attr_name="slope", type=1)
    leaky = Message("Node", op_type="LeakyRelu", input=["a"], output=["b"], attribute=[attribute])
    function = Message(
        "Function", name="Leaky", domain="own", input=["a"], output=["b"], attribute=["slope"], node=[leaky],
        opset_import=[Message("OperatorSetId", version=20)],
    )  # fmt: skip
    call = node("Leaky", ["x"], ["y"], slope=0.5)
    call.domain = "own"
    found = torch.onnx.load(model([call], [info("x", 2)], ["y"], functions=[function]))(torch.tensor([-2.0, 2.0]))
    assert found.tolist() == [-1, 2]


def test_ops_of_the_program():
    call = node("Scaled", ["x"], ["y"], by=3.0)
    call.domain = "own"
    data = model([call], [info("x", 2)], ["y"])
    with pytest.raises(OnnxFileError, match=r"does not have the op Scaled of own, version 1"):
        torch.onnx.load(data)
    module = torch.onnx.load(data, custom_ops={("own", "Scaled"): lambda x, by: x * by})
    assert module(torch.ones(2)).tolist() == [3, 3]


@pytest.mark.parametrize(
    "inputs, kind, words",
    [
        ((torch.ones(2, 3),), ValueError, r"the input 'x' has the shape \[\?, 2\], but got \[2, 3\]"),
        ((torch.ones(2),), ValueError, r"has the shape \[\?, 2\], but got \[2\]"),
        ((torch.ones(2, 2, dtype=torch.int64),), TypeError, r"a tensor of float32, but got one of torch\.int64"),
        ((3,), TypeError, "a tensor of float32, but got int"),
        ((), TypeError, "x"),
    ],
)
def test_inputs_are_checked(inputs, kind, words):
    module = torch.onnx.load(model([node("Relu", ["x"], ["y"])], [info("x", "n", 2)], ["y"]))
    assert module.meta["onnx"]["inputs"] == ["x"] and module(np.ones((1, 2), "float32")).tolist() == [[1, 1]]
    with pytest.raises(kind, match=words):
        module(*inputs)


@pytest.mark.parametrize(
    "nodes, words",
    [
        ([node("Relu", ["z"], ["y"])], "there is no value 'z' before it"),
        ([node("Relu", ["x"], ["x"])], "there are two values 'x'"),
        ([node("Relu", ["x"], ["y"], slope=1)], "the op has no attribute 'slope'"),
        ([node("Relu", ["x", "x"], ["y"])], "it has 2 inputs, and the op 1"),
        ([node("Transpose", [], ["y"], perm=[0])], "the input 'x' of the op is missing"),
        ([node("Relu", ["x"], ["y", "z"])], "it has 2 outputs, and the op 1"),
        ([node("Nothing", ["x"], ["y"])], "does not have the op Nothing of ai.onnx, version 20"),
        ([node("If", ["x"], ["y"])], "the graph of then_branch is missing"),
    ],
)
def test_invalid_graphs_raise(nodes, words):
    with pytest.raises(OnnxFileError, match=words):
        torch.onnx.load(model(nodes, [info("x", 2)], ["y"]))


def test_tensors_in_a_file_beside_the_models(tmp_path):
    net = torch.nn.Linear(40, 30)
    program = torch.onnx.export(net, (torch.ones(2, 40),))
    program.save(tmp_path / "net.onnx", external_data=True)
    assert (tmp_path / "net.onnx.data").stat().st_size == 4800 and (tmp_path / "net.onnx").stat().st_size < 1500
    module = torch.onnx.load(tmp_path / "net.onnx")
    x = torch.ones(2, 40)
    torch.testing.assert_close(module(x), net(x))
    with open(tmp_path / "net.onnx", "rb") as stream, pytest.raises(OnnxFileError, match="no folder"):
        torch.onnx.load(stream.read())
    (tmp_path / "net.onnx.data").write_bytes(bytes(100))
    with pytest.raises(OnnxFileError, match="which has 100"):
        torch.onnx.load(tmp_path / "net.onnx")


def test_small_weights_need_no_second_file(tmp_path):
    torch.onnx.export(torch.nn.Linear(2, 1).eval(), (torch.ones(1, 2),), tmp_path / "net.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]


def test_text():
    upper = node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER")
    module = torch.onnx.load(model([upper], [info("x", 2, kind=8)], ["y"]))
    assert module(np.array(["a", "bé"], object)).tolist() == ["A", "BE"]


def test_shape_arithmetic_stays_on_the_host(device):
    """Arithmetic on sizes does not read from a device."""
    nodes = [
        node("Shape", ["x"], ["s"]), node("Gather", ["s", "first"], ["n"], axis=0),
        node("Concat", ["n", "rest"], ["t"], axis=0), node("Reshape", ["x", "t"], ["y"]),
    ]  # fmt: skip
    weights = [make_tensor("first", np.array([0]), "int64"), make_tensor("rest", np.array([-1]), "int64")]
    module = torch.onnx.load(model(nodes, [info("x", "n", 2, 2)], ["y", "s"], weights)).to(device)
    y, s = module(torch.ones(3, 2, 2).to(device))
    assert y.shape == (3, 4) and s.tolist() == [3, 2, 2] and not list(module.buffers())
    assert y.device == s.device


def test_weights_that_two_nodes_read_are_one():
    nodes = [node("Mul", ["x", "w"], ["h"]), node("Add", ["h", "w"], ["y"])]
    data = model(nodes, [info("x", 3)], ["y"], [weight("w", 3)])
    module = torch.onnx.load(data)
    module(torch.ones(3)).sum().backward()
    assert module.w.grad.tolist() == [2, 2, 2] and len(list(module.parameters())) == 1


@pytest.mark.parametrize("name", ["mlp", "t5", "detection"])
def test_a_module_in_a_pickle(name):
    """Its weights are those that it has by then; constants of the host and bodies of control flow are there again."""
    made = MODELS[name]
    inputs = made.inputs(torch)
    module = torch.onnx.load(torch.onnx.export(made.make(torch), inputs).to_bytes())
    with torch.no_grad():
        next(module.parameters()).mul_(1.5)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    for again in (torch.load(file, weights_only=False), copy.deepcopy(module)):
        assert again.meta["onnx"] == module.meta["onnx"] and not again.training
        assert list(again.state_dict()) == list(module.state_dict()) and again.code == module.code
        for got, want in zip(outputs(again(*inputs)), outputs(module(*inputs)), strict=True):
            assert torch.equal(got, want)


def test_numbers_in_many_pieces():
    """A field that repeats may come as numbers and as arrays by turns: its cost is that of its bytes."""
    packed, plain = b"\x3a\x02\x01\x02", b"\x38\x03"  # of int64_data
    assert list(parse_message((packed + plain) * 50_000, "Tensor").int64_data) == [1, 2, 3] * 50_000
    halves = parse_message(b"\x22\x04\x00\x00\x00\x3f" * 50_000, "Tensor")  # of float_data
    assert halves.float_data == [0.5] * 50_000
    assert parse_message(packed, "Tensor").int64_data.tolist() == [1, 2]


def test_input_names_may_equal_generated_names():
    """The nodes that check inputs have names too, which inputs after them may have."""
    for name in ("tensor_input", "tensor_input_1", "held", "neg"):
        data = model([node("Neg", ["x"], ["a"]), node("Sub", ["a", name], ["y"])], [info("x", 1), info(name, 1)], ["y"])
        module = torch.onnx.load(data)
        assert module(torch.ones(1), torch.full((1,), 7.0)).tolist() == [-8.0], module.code
        assert torch.fx.Interpreter(module).run(torch.ones(1), torch.full((1,), 7.0)).tolist() == [-8.0]


@pytest.mark.parametrize(
    "name", ["graph", "code", "meta", "max_elements", "recompile", "to_folder", "steps", "forward"]
)
def test_weights_and_bodies_with_names_of_methods(name):
    weights = make_tensor(name, np.array([1, 2, 3], np.float32), "float32")
    assert torch.onnx.load(model([node("Mul", ["x", name], ["y"])], [info("x", 3)], ["y"], [weights]))(
        torch.ones(3)
    ).tolist() == [1, 2, 3]
    body = Message(
        "Graph", name=name, node=[node("Mul", ["x", name], ["z"])], output=[info("z")], initializer=[weights]
    )
    data = model(
        [node("If", ["c"], ["y"], then_branch=body, else_branch=body)], [info("x", 3), info("c", kind=9)], ["y"]
    )
    assert torch.onnx.load(data)(torch.ones(3), torch.tensor(True)).tolist() == [1, 2, 3]


def test_members_of_archives_have_no_folder(tmp_path):
    """Names of archive members contain no folder: no file outside the archive is read."""
    (tmp_path / "key").write_bytes(np.arange(4, dtype="<f4").tobytes())
    entry = Message("StringString", key="location", value="key")
    held = Message("Tensor", name="w", dims=[4], data_type=1, data_location=1, external_data=[entry])
    data = model([node("Mul", ["x", "w"], ["y"])], [info("x", 4)], ["y"], [held])
    path = tmp_path / "x.onnx"
    path.write_bytes(data)
    with open(path, "rb") as stream:
        assert torch.onnx.load(stream)(torch.ones(4)).tolist() == [0, 1, 2, 3]
    archive, tape = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr(str(path), data)
    with tarfile.open(fileobj=tape, mode="w") as out:
        member = tarfile.TarInfo(str(path))
        member.size = len(data)
        out.addfile(member, io.BytesIO(data))
    tape.seek(0)
    with zipfile.ZipFile(archive) as first, tarfile.open(fileobj=tape) as second:
        for stream in (first.open(first.infolist()[0]), second.extractfile(second.getmembers()[0])):
            with pytest.raises(OnnxFileError, match="the model has no folder"):
                torch.onnx.load(stream)


@pytest.mark.parametrize("index", [[0, 5], [1, -5], [0, 99], [3, 0]])
@pytest.mark.parametrize("op", ["GatherND", "ScatterND"])
def test_no_index_reaches_another_row(device, op, index):
    x, i = torch.arange(9.0, device=device).reshape(3, 3), torch.tensor([index], device=device)
    inputs = ["x", "i"] if op == "GatherND" else ["x", "i", "u"]
    given = [info("x", 3, 3), info("i", 1, 2, kind=7), info("u", 1)][: len(inputs)]
    module = torch.onnx.load(model([node(op, inputs, ["y"])], given, ["y"]))
    with pytest.raises((IndexError, RuntimeError)):
        module(x, i, *[torch.ones(1, device=device)] * (len(inputs) - 2)).tolist()
    i = torch.tensor([[2, -1]], device=device)
    found = module(x, i, *[torch.full((1,), 100.0, device=device)] * (len(inputs) - 2))
    assert found.flatten()[-1] == (8 if op == "GatherND" else 100)


def _contradictions():
    x = Message("Tensor", name="x", dims=[1], data_type=1, raw_data=b"\0\0\x80\x3f")
    neg = [node("Neg", ["x"], ["y"])]

    def changed(tensor=x, nodes=neg, **fields):
        found = parse_message(model(nodes, [], ["y"], [tensor]))
        for name, value in fields.items():
            setattr(found, name, value)
        return b"".join(encode_message(found))

    versions = [Message("OperatorSetId", version=20)]
    f = Message("Function", name="f", domain="own", input=["a"], output=["b"], node=[node("Neg", ["a"], ["b"])],
                opset_import=versions)  # fmt: skip
    twice = Message("Function", **{**f._set, "input": ["a", "a"]})
    yield "two versions", changed(opset_import=[*versions, Message("OperatorSetId", version=5)])
    yield "two functions", changed(functions=[f, f])
    yield "an input twice", changed(functions=[twice])
    yield "no place of elements 7", changed(Message("Tensor", **{**x._set, "data_location": 7}))
    yield "in float_data and in raw_data", changed(Message("Tensor", **{**x._set, "float_data": [2.0]}))
    small = Message("Tensor", name="x", dims=[2], data_type=2, int32_data=[300, -1])
    yield "numbers that uint8 does not", changed(small)
    branches = [Message("Graph", name="g", node=[node("Neg", ["x"], ["z"])], output=[info("z")] * n) for n in (1, 2)]
    condition = make_tensor("c", np.array(False), "bool")
    nodes = [node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])]
    yield "1 and 2 outputs", model(nodes, [], ["y"], [x, condition])


@pytest.mark.parametrize(("what", "data"), list(_contradictions()))
def test_files_that_contradict_themselves(what, data):
    with pytest.raises(OnnxFileError, match=what):
        torch.onnx.load(data)


def test_constants_and_lists_are_shared_by_their_uses():
    """A constant that many nodes use, and a function's attribute, are in the program once."""
    count = 2_000
    shape = make_tensor("s", np.ones(count, np.int64), "int64")
    nodes = [node("Reshape", ["x", "s"], [f"y{i}"]) for i in range(count)]
    texts = Message("Tensor", name="t", dims=[count], data_type=8, string_data=[b"a"] * count)
    nodes += [node("Identity", ["t"], [f"z{i}"]) for i in range(count)]
    assert len(torch.onnx.load(model(nodes, [info("x", 1)], ["y0"], [shape, texts])).code) < 400 * count
    body = [node("Sum", ["a"] * 500, ["b"])]
    f = Message("Function", name="f", domain="own", input=["a"], output=["b"], node=body,
                opset_import=[Message("OperatorSetId", version=20)])  # fmt: skip
    calls = [Message("Node", op_type="f", domain="own", input=["x"], output=[f"y{i}"]) for i in range(1_000)]
    with pytest.raises(OnnxFileError, match="more inputs and elements of lists"):
        torch.onnx.load(model(calls, [info("x", 1)], ["y0"], functions=[f]))


def _bool(name, *values):
    return make_tensor(name, np.array(values), "bool")


def _floats(name, *values):
    return make_tensor(name, np.array(values, np.float32), "float32")


def _longs(name, *values):
    return make_tensor(name, np.array(values, np.int64), "int64")


_BRANCH = Message("Graph", name="branch", node=[node("Neg", ["x"], ["b"])], output=[info("b")])


@pytest.mark.parametrize(
    ("item", "initializers", "words"),
    [
        (node("If", ["a"], ["y"], then_branch=_BRANCH, else_branch=_BRANCH), [_bool("a", True, False)], "one number"),
        (node("If", ["a"], ["y"], then_branch=_BRANCH, else_branch=_BRANCH), [_floats("a", 1)], "one boolean value"),
        (node("TopK", ["x", "a"], ["y", "z"]), [_longs("a", 1, 2)], "one number"),
        (node("CumSum", ["x", "a"], ["y"]), [_longs("a", 0, 1)], "one number"),
        (node("Range", ["a", "b", "b"], ["y"]), [_longs("a", 0, 0), _longs("b", 1)], "one number"),
        (node("OneHot", ["x", "a", "x"], ["y"]), [_longs("a", 3)], "not two"),
        (node("Gemm", ["x", "x", "a"], ["y"], transB=1), [_floats("a", *range(5))], "cannot be broadcast"),
        (node("PRelu", ["x", "a"], ["y"]), [_floats("a", *range(5))], "cannot be broadcast"),
        (node("Squeeze", ["x", "a"], ["y"]), [_longs("a", 0, 0)], "said twice"),
        (node("Slice", ["x", "a", "a", "a"], ["y"]), [_longs("a", 0, 0)], "said twice"),
        (node("ReduceSum", ["x"], ["y"], keepdims="0"), [], "the attribute keepdims is not an integer"),
        (node("LeakyRelu", ["x"], ["y"], alpha="0"), [], "the attribute alpha is not a number"),
        (node("Gelu", ["x"], ["y"], approximate=1), [], "the attribute approximate is not a string"),
    ],
)  # fmt: skip
def test_values_that_onnx_excludes_are_errors(item, initializers, words):
    """onnxruntime refuses them too, but for a larger slope and an axis that Squeeze is given twice."""
    data = model([item], [info("x", 1, 1)], ["y"], initializers)
    with pytest.raises((torch.onnx.OnnxFileError, ValueError), match=words):
        torch.onnx.load(data)(torch.ones(1, 1))


@pytest.mark.parametrize(
    "attributes,dims",
    [({}, (0, 2, 3)), ({"axes": [1]}, (1,)), ({"across_channels": 0}, (2, 3)), ({"across_channels": 1}, (1, 2, 3))],
)
def test_the_dimensions_of_a_mean_variance_normalization(attributes, dims):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2) ** 2
    made = model(
        [node("MeanVarianceNormalization", ["x"], ["y"], **attributes)], [info("x", 2, 3, 2, 2)], ["y"], version=13
    )
    found = torch.onnx.load(made)(torch.from_numpy(x))
    apart = x - x.mean(dims, keepdims=True)
    np.testing.assert_allclose(found.numpy(), apart / np.sqrt((apart**2).mean(dims, keepdims=True)), rtol=1e-4)


def test_a_crop_of_the_same_size_is_resized():
    """The region of the second dimension alone is read, at twice as many places an element."""
    roi = _floats("r", 0, 0, 0, 0.5, 1, 1, 1, 1)
    item = node(
        "Resize", ["x", "r", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="tf_crop_and_resize"
    )
    made = model([item], [info("x", 1, 1, 1, 5)], ["y"], [roi, _longs("s", 1, 1, 1, 5)])
    found = torch.onnx.load(made)(torch.arange(5.0).reshape(1, 1, 1, 5))
    assert found.tolist() == [[[[2.0, 2.5, 3.0, 3.5, 4.0]]]]


@pytest.mark.parametrize("channels", [1, 3])
def test_results_of_permuted_images_of_one_channel_are_row_major(channels):
    """Images of one channel are row-major as they are; more channels come last, as PyTorch has it."""
    nodes = [
        node("Transpose", ["x"], ["y"], perm=[0, 3, 1, 2]),
        node("Conv", ["y", "w"], ["z"]),
        node("Relu", ["z"], ["r"]),
        node("Conv", ["r", "v"], ["out"]),
    ]
    given = info("x", "n", 9, 8, channels)
    file = model(nodes, [given], ["out"], [weight("w", 4, channels, 3, 3), weight("v", 5, 4, 3, 3)])
    module, x = torch.onnx.load(io.BytesIO(file)), torch.rand(2, 9, 8, channels)
    for _ in range(5):
        with torch.no_grad():
            found = module(x)
        y = torch.conv2d(x.permute(0, 3, 1, 2).contiguous(), module.w)
        torch.testing.assert_close(found, torch.conv2d(y.relu(), module.v), rtol=1e-5, atol=1e-5, check_stride=False)
        assert channels > 1 or found.is_contiguous()
