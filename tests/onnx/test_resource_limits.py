"""Bounds of loaded models: results that a small file may not ask for, and the same results as before for all others."""

import contextlib
import copy
import itertools
import math
import pickle
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import torchlite as torch
from tests.hostile.onnx_files import info, model, node
from torchlite._settings.build_time import building
from torchlite.onnx import OnnxFileError
from torchlite.onnx._export.graph_builder import make_tensor
from torchlite.onnx._import import resource_limits
from torchlite.onnx._import.re2_regex import RE2Pattern
from torchlite.onnx._import.shape_ops import split
from torchlite.onnx._import.strings import regex_full_match, tf_idf
from torchlite.onnx._import.vision import roi_align
from torchlite.onnx._protobuf import Message
from torchlite.onnx._torch_equivalents import _bound_conv_growth

ROOT = Path(__file__).parents[2]


# The recorded values are those of onnxruntime 1.32.
def test_roi_align_as_before():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    rois, images = torch.tensor([[0.0, 0.0, 3.0, 3.0]]), torch.tensor([0])
    out = roi_align(x, rois, images, output_height=2, output_width=2)
    assert out.tolist() == [[[[1.5625, 3.0], [7.3125, 8.75]]]]


@pytest.mark.parametrize(("outputs", "expected"), [(2, [[0, 1, 2], [3, 4]]), (3, [[0, 1], [2, 3], [4]])])
def test_split_by_number(outputs, expected):
    found = split(torch.arange(5), num_outputs=outputs, outputs=outputs)
    assert [part.tolist() for part in found] == expected
    with pytest.raises(ValueError, match="into 2147483647 parts"):
        split(torch.arange(5), num_outputs=2**31 - 1, outputs=2)


def test_tf_idf_skips_no_more_than_the_row_has():
    given = {
        "ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "mode": "TF",
        "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7], "max_gram_length": 2, "min_gram_length": 2,
    }  # fmt: skip
    x = torch.tensor([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8])  # ONNX's example: skips of up to 5
    expected = [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 1.0]
    assert tf_idf(x, max_skip_count=5, **given).tolist() == expected
    assert tf_idf(x, max_skip_count=2**62, **given).tolist() == tf_idf(x, max_skip_count=11, **given).tolist()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a*b", "1110000"), ("(a+)+$", "0000000"), (r"[A-Z]\d\w", "0000010"), ("(?i)AB", "1000000"),
        ("a{2,}b?", "0100000"), (".*", "1111110"), ("(?s).*", "1111111"),
    ],
)  # fmt: skip
def test_regular_expressions_as_before(pattern, expected):
    words = np.array(["ab", "aab", "b", "", "aaa!", "A1_", "ab\n"], object)
    assert regex_full_match(words, pattern=pattern).tolist() == [c == "1" for c in expected]


_PATTERNS = [
    "a*b", "(a|b)+c?", "[a-c]{2,3}", "[^a]b", "a.c", r"\d+-\w*", "(?i)Ab", "a(?:b|)c", "^ab$", r"\bab\b", "a{2}", "x*",
    "(a*)*b", "(a+)+", "a??b+?", "[]a]b", "[a-]+", "(?s).+", r"\x41b", r"a\.b", "(?P<n>ab)|c", r"[\d_]+", "a|b|ab", "",
    r"\W\s", r"(?:a{0,2}b){2}", "[[:alpha:]]+" , "(?i:a)b",
]  # fmt: skip


def test_patterns_match_as_pythons_re():
    """As Python's module does for patterns that both have, on all short texts of an alphabet."""
    words = [""]
    for letter in ("ab", "abc-A", "ab1_.\n", "bc ", "ab]"):
        words += [word + c for word in words for c in letter]
    for text in _PATTERNS:
        found, known = RE2Pattern(text), re.compile(text.replace("[[:alpha:]]", "[A-Za-z]"), re.ASCII)
        for word in words:
            if "$" in text and word.endswith("\n"):
                continue  # Python's $ also stands before a last line feed
            assert found.matches(word) == (known.fullmatch(word) is not None), (text, word)
    assert (
        RE2Pattern(r"\pL+").matches("äß")
        and not RE2Pattern(r"\p{Lu}").matches("a")
        and RE2Pattern(r"\Qa+\E").matches("a+")
    )


def test_classes_of_many_letters():
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000)))
    assert RE2Pattern(f"[{letters}]+").matches(letters[::-1]) and not RE2Pattern(f"[^{letters}]*").matches(
        "a" + letters[7]
    )
    assert (
        RE2Pattern(r"[\d\D]").matches("x")
        and RE2Pattern("[a-fc-hz]+").matches("ahz")
        and not RE2Pattern("[a-fh-]").matches("g")
    )


@pytest.mark.parametrize(
    "text", ["(", ")", "a{1001}", "*a", "a**", "[a", r"(a)\1", "(?=a)", r"\pX", r"\p{Lu", r"[\P{L", "[b-a]", "a\\"]
)
def test_patterns_that_re2_refuses(text):
    with pytest.raises(ValueError, match="RegexFullMatch: the pattern"):
        RE2Pattern(text)


def test_limits_are_an_option():
    data = model(
        [node("ConstantOfShape", ["s"], ["y"])], [info("s", 1, kind=7)], ["y"],
    )  # fmt: skip
    module, narrow = torch.onnx.load(data), torch.onnx.load(data, max_elements=1000)
    assert module(torch.tensor([1001])).shape == (1001,) and narrow(torch.tensor([1000])).shape == (1000,)
    with pytest.raises(OnnxFileError, match=r"ConstantOfShape: 1001 elements, where a run may hold 1000"):
        narrow(torch.tensor([1001]))
    assert narrow(torch.tensor([1000])).shape == (1000,)  # as it was after the error
    with pytest.raises(OnnxFileError, match="1001 elements, where a run may hold 1000"):
        pickle.loads(pickle.dumps(narrow))(torch.tensor([1001]))


def test_inputs_and_the_file_pay_for_results():
    assert resource_limits.element_budget(0, 0) == resource_limits.MAX_ELEMENTS
    assert (
        resource_limits.element_budget(100, 0)
        == resource_limits.MAX_ELEMENTS + 100 * resource_limits.ELEMENTS_PER_FILE_ELEMENT
    )
    assert resource_limits.element_budget(100, 10) - resource_limits.element_budget(
        100, 0
    ) == 10 * resource_limits.ELEMENTS_PER_INPUT_ELEMENT + 10 * (10 + 100)
    data = model([node("Tile", ["x", "r"], ["y"])], [info("x", "n"), info("r", 1, kind=7)], ["y"])
    module = torch.onnx.load(data)
    assert module(torch.ones(1 << 16), torch.tensor([40])).shape == (40 << 16,)
    with pytest.raises(OnnxFileError, match=r"Tile: 2621634 elements with 194 that are alive, where a run may hold 10"):
        module(torch.ones(1 << 6), torch.tensor([40 << 10]))


def _doubling_loop(*extra, results=("c", "s2")):
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")], node=list(extra),
        output=[info(name) for name in results],
    )  # fmt: skip
    names = ["y", "z"][: len(results) - 1]
    return model([node("Loop", ["m", "", "x"], names, body=body)], [info("x", 4), info("m", kind=7)], names)


def test_loops_return_scan_outputs():
    data = _doubling_loop(node("Add", ["s", "s"], ["s2"]), results=("c", "s2", "s2"))
    y, z = torch.onnx.load(data)(torch.ones(4), torch.tensor(5))
    assert y.tolist() == [32.0] * 4 and z[:, 0].tolist() == [2.0, 4.0, 8.0, 16.0, 32.0]
    assert torch.onnx.load(data, max_elements=1 << 10)(torch.ones(4), torch.tensor(12))[0][0] == 4096


_HALF = make_tensor("h", np.zeros((1, 1, 1), np.float16), "float16")
_ENDLESS = {
    "nothing": [],
    "a cheap op": [node("Neg", ["s"], ["a"])],
    "many arguments": [node("Sum", ["s"] * 200, ["a"])],
    "texts": [node("Cast", ["x1"], ["a"], to=8)],
    "a costly op": [node("LpNormalization", ["s"], ["a"], axis=0)],
    "a vector's product": [node("MatMul", ["x1", "x1"], ["a"])],
    "a product of halves": [node("Cast", ["x1"], ["b"], to=10), node("MatMul", ["b", "b"], ["a"])],
    "resizing": [node("Resize", ["x3", "", "", "n"], ["a"], mode="cubic")],
    "a chain": [node("Exp", ["x1" if not i else f"a{i}"], [f"a{i + 1}"]) for i in range(50)],
}


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("name", _ENDLESS)
def test_loops_end_by_their_time(name, interpreted, monkeypatch):
    monkeypatch.setattr("torchlite.onnx._import.resource_limits._TIME", 20)
    if interpreted:
        monkeypatch.setattr("torchlite.onnx._graph_to_fx._COMPILED", 1)
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")],
        output=[info("c"), info("s2")], node=[*_ENDLESS[name], node("Identity", ["s"], ["s2"])],
    )  # fmt: skip
    before = [node("Reshape", ["z", "r1"], ["x1"]), node("Reshape", ["z", "r3"], ["x3"])]
    held = [make_tensor("r1", np.array([-1]), "int64"), make_tensor("r3", np.array([1, 1, -1]), "int64"),
            make_tensor("n", np.array([1, 1, 999]), "int64")]  # fmt: skip
    nodes = [*before, node("Loop", ["m", "", "x"], ["y"], body=body)]
    data = model(nodes, [info("z", 1000), info("m", kind=7), info("x", 4)], ["y"], held)
    module, given = torch.onnx.load(data), (torch.zeros(1000), torch.ones(4))
    assert module(given[0], torch.tensor(2), given[1]).tolist() == [1.0] * 4
    with torch.no_grad(), pytest.raises(OnnxFileError, match="more CPU time than a run on .* elements may take"):
        module(given[0], torch.tensor(1 << 60), given[1])


def test_a_loop_ends_where_its_state_is_too_large():
    module = torch.onnx.load(_doubling_loop(node("Concat", ["s", "s"], ["s2"], axis=0)), max_elements=1 << 16)
    assert module(torch.ones(4), torch.tensor(12)).shape == (1 << 14,)
    with pytest.raises(OnnxFileError, match="Concat: 98304 elements with 32768 that are alive, where a run may hold"):
        module(torch.ones(4), torch.tensor(62))


def _chain(kind, count, **attributes):
    nodes = [node(kind, [f"v{i}"], [f"v{i + 1}"], **attributes) for i in range(count)]
    return nodes, [f"v{i + 1}" for i in range(count)]


def _run_op_of_half_a_second(around):
    """Run a model with an op that takes half a second of CPU time, in a context."""

    def slow(x):
        with around():
            end = time.thread_time() + 0.5
            while time.thread_time() < end:
                pass
        return x + 1

    nodes = [Message("Node", op_type="Slow", domain="own", input=["x"], output=["y0"])]
    nodes += [node("Relu", [f"y{i}"], [f"y{i + 1}"]) for i in range(9)]
    return torch.onnx.load(model(nodes, [info("x", 2)], ["y9"]), custom_ops={("own", "Slow"): slow})(torch.ones(2))


def test_time_of_kernel_compilers_does_not_count(monkeypatch):
    """Drivers compile in the thread that calls, and take seconds for a network's kernels."""
    monkeypatch.setattr(resource_limits, "_TIME", 20)

    @contextlib.contextmanager
    def building_twice():
        with building(), building():
            yield

    for around in (building, building_twice):
        assert _run_op_of_half_a_second(around).tolist() == [2, 2]
        with pytest.raises(OnnxFileError, match="more CPU time"):
            _run_op_of_half_a_second(contextlib.nullcontext)


@pytest.mark.parametrize("kind", ["Neg", "Exp", "Sigmoid", "Gelu"])
def test_values_that_are_freed_do_not_count(kind):
    nodes, names = _chain(kind, 40)
    one = torch.onnx.load(model(nodes, [info("v0", 1000)], names[-1:]), max_elements=5000)
    with torch.no_grad():
        assert one(torch.zeros(1000)).shape == (1000,)
    every = torch.onnx.load(model(nodes, [info("v0", 1000)], names), max_elements=5000)
    with pytest.raises(OnnxFileError, match="the values: 6000 elements, where a run may hold 5000"):
        every(torch.zeros(1000))


def test_values_that_gradients_keep_count():
    nodes, names = _chain("Exp", 40)
    module = torch.onnx.load(model(nodes, [info("v0", 1000)], names[-1:]), max_elements=5000)
    with pytest.raises(OnnxFileError, match="the values: 6000 elements"):
        module(torch.zeros(1000, requires_grad=True))


def test_views_and_inputs_count_once():
    shape = torch.tensor([-1, 10])
    nodes = [node("Reshape", ["x", "s"], [f"y{i}"]) for i in range(20)]
    data = model(nodes, [info("x", 1000), info("s", 2, kind=7)], [f"y{i}" for i in range(20)])
    whole = torch.zeros(1 << 20)
    assert len(torch.onnx.load(data, max_elements=100)(whole[:1000], shape)) == 20


@pytest.mark.parametrize("other", [copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_have_the_same_limits(other):
    data = model([node("ConstantOfShape", ["s"], ["y"])], [info("s", 1, kind=7)], ["y"])
    for made in (torch.onnx.load(data), torch.onnx.load(data, max_elements=1000)):
        again = other(made)
        assert again(torch.tensor([1000])).shape == (1000,)
        with pytest.raises(OnnxFileError, match="where a run may hold"):
            again(torch.tensor([1 << 23]))


def test_each_thread_has_separate_limits():
    data = model([node("ConstantOfShape", ["s"], ["y"])], [info("s", 1, kind=7)], ["y"])
    module, found = torch.onnx.load(data, max_elements=1000), []

    def run():
        for _ in range(50):
            found.append(module(torch.tensor([900])).shape)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(900,)] * 200


def _decoder():
    """Channels 64 to 16 while an image of 128 by 128 becomes one of 1,024 by 1,024."""
    rng, nodes, weights, channels = np.random.default_rng(3), [], [], [4, 64, 32, 16, 16]
    for i, (before, now) in enumerate(itertools.pairwise(channels)):
        weights.append(make_tensor(f"w{i}", rng.normal(0, 0.1, (now, before, 3, 3)).astype(np.float32), "float32"))
        nodes += [node("Conv", [f"v{i}", f"w{i}"], [f"c{i}"], pads=[1] * 4), node("Relu", [f"c{i}"], [f"r{i}"])]
        nodes.append(node("Resize", [f"r{i}", "", "twice" if i else "once"], [f"v{i + 1}"]))
    weights.append(make_tensor("w", rng.normal(0, 0.1, (3, 16, 3, 3)).astype(np.float32), "float32"))
    weights += [make_tensor(n, np.array([1, 1, f, f], np.float32), "float32") for n, f in (("twice", 2), ("once", 1))]
    nodes.append(node("Conv", ["v4", "w"], ["y"], pads=[1] * 4))
    return model(nodes, [info("v0", 1, 4, 128, 128)], ["y"], weights)


def test_large_shapes_need_no_argument():
    """Models without weights, or with few, whose values are far larger than their inputs."""
    assert torch.onnx.load(_decoder())(torch.ones(1, 4, 128, 128)).shape == (1, 3, 1024, 1024)
    product = torch.onnx.load(
        model([node("MatMul", ["a", "b"], ["y"])], [info("a", "n", 64), info("b", 64, "n")], ["y"])
    )
    assert product(torch.ones(4096, 64), torch.ones(64, 4096)).shape == (4096, 4096)
    attends = [node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "t"], ["s"]),
               node("Softmax", ["s"], ["p"]), node("MatMul", ["p", "k"], ["y"])]  # fmt: skip
    attention = torch.onnx.load(model(attends, [info(n, 1, 12, 2048, 8) for n in "qk"], ["y"]))
    assert attention(torch.ones(1, 12, 2048, 8), torch.ones(1, 12, 2048, 8)).shape == (1, 12, 2048, 8)
    mask = [
        node("Unsqueeze", ["x", "zero"], ["r"]), node("Unsqueeze", ["x", "one"], ["c"]),
        node("LessOrEqual", ["r", "c"], ["b"]), node("Cast", ["b"], ["f"], to=1), node("Mul", ["f", "f"], ["y"]),
    ]  # fmt: skip
    places = [make_tensor(n, np.array([v], np.int64), "int64") for n, v in (("zero", 0), ("one", 1))]
    causal = torch.onnx.load(model(mask, [info("x", "n", kind=7)], ["y"], places))
    assert causal(torch.arange(2048)).sum() == 2048 * 2049 / 2


def test_long_scans_and_recurrent_layers_need_no_argument():
    body = Message(
        "Graph", name="body", input=[info("s"), info("e")], node=[node("Add", ["s", "e"], ["t"])],
        output=[info("t"), info("t")],
    )  # fmt: skip
    scan = torch.onnx.load(model(
        [node("Scan", ["b", "x"], ["y", "z"], body=body, num_scan_inputs=1)], [info("b", 1), info("x", "n", 1)],
        ["y", "z"]))  # fmt: skip
    y, z = scan(torch.zeros(1), torch.ones(20_000, 1))
    assert y.item() == 20_000 and z.shape == (20_000, 1)


def test_one_file_beside_the_model_is_not_read_for_each_tensor(tmp_path):
    (tmp_path / "big").write_bytes(bytes(4000))
    places = [Message("StringString", key="location", value="big")]
    weights = [
        Message("Tensor", name=f"w{i}", dims=[1000], data_type=1, data_location=1, external_data=places)
        for i in range(5)
    ]
    for count in (4, 5):
        path = tmp_path / "model.onnx"
        path.write_bytes(model([node("Neg", ["w0"], ["y"])], [], ["y"], weights[:count]))
        if count == 4:
            assert torch.onnx.load(path)().shape == (1000,)
        else:
            with pytest.raises(OnnxFileError, match="'big' has 4000 bytes, and tensors name 4 times as many"):
                torch.onnx.load(path)


def test_calls_of_a_function_share_its_constants():
    imports = [Message("OperatorSetId", version=20)]
    inner = make_tensor("", np.ones(100, np.float32), "float32")
    body = [node("Constant", [], ["c"], value=inner), node("Add", ["a", "c"], ["b"])]
    twice = Message(
        "Function", name="f", domain="own", input=["a"], output=["b"], node=body, opset_import=imports
    )  # fmt: skip
    calls = [Message("Node", op_type="f", domain="own", input=[a], output=[b]) for a, b in ("xh", "hy")]
    module = torch.onnx.load(model(calls, [info("x", 100)], ["y"], functions=[twice]))
    assert module(torch.zeros(100)).tolist() == [2.0] * 100
    assert len(list(module.buffers())) + len(list(module.parameters())) == 1


def _empty(*dims):
    return Message("Tensor", name="x", dims=list(dims), data_type=1, raw_data=b"")


@pytest.mark.parametrize(
    ("nodes", "dims"),
    [
        ([node("ReduceSum", ["x"], ["y"])], (0, 1 << 28)),
        ([node("Det", ["x"], ["y"])], (1 << 28, 0, 0)),
        ([node("Concat", ["x"] * 64, ["a"], axis=1), node("Concat", ["a"] * 64, ["b"], axis=1),
          node("Concat", ["b"] * 64, ["y"], axis=1)], (0, 1 << 15)),
        ([node("Transpose", ["x"], ["t"]), node("MatMul", ["t", "x"], ["y"])], (0, 1 << 14)),
    ],
)  # fmt: skip
def test_tensors_without_elements_count(nodes, dims):
    """An op may make large results of them, so each of their dimensions counts."""
    with pytest.raises(OnnxFileError, match="no elements, and its shape|elements.*where a run may hold"):
        torch.onnx.load(model(nodes, [], ["y"], [_empty(*dims)]))()


def test_batches_without_elements_run():
    data = model([node("Conv", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])], [info("x", "n", 3, 256, 256)], ["y"],
                 [make_tensor("w", np.ones((16, 3, 3, 3), np.float32), "float32")])  # fmt: skip
    assert torch.onnx.load(data)(torch.ones(0, 3, 256, 256)).shape == (0, 16, 254, 254)


@pytest.mark.parametrize(
    "nodes", [[node("SequenceConstruct", ["s", "s"], ["y"])], [node("SequenceInsert", ["s", "s"], ["y"])]]
)
def test_sequences_have_no_sequences(nodes):
    """Each of them would double what a walk through them visits."""
    x = make_tensor("x", np.ones(1, np.float32), "float32")
    with pytest.raises(ValueError, match="an element of a sequence is a tensor"):
        torch.onnx.load(model([node("SequenceConstruct", ["x"], ["s"]), *nodes], [], ["y"], [x]))()


def test_einsum_of_several_operands():
    """They are contracted one after the other, and each step's size counts."""
    rng = np.random.default_rng(3)
    arrays = {
        c: rng.standard_normal(shape) for c, shape in zip("abcd", ((2, 3, 4), (2, 4, 5), (5, 3), (3,)), strict=True)
    }
    for equation, names in (("bij,bjk,ki,i->bk", "abcd"), ("...ij,...jk,ki->...i", "abc"), ("bij,bjk,ki,i", "abcd"),
                            ("bij->jb", "a"), ("...i->...", "a"), ("i,i,i->i", "ddd")):  # fmt: skip
        inputs = [f"x{i}" for i in range(len(names))]
        data = model([node("Einsum", inputs, ["y"], equation=equation)],
                     [info(x, *arrays[c].shape, kind=11) for x, c in zip(inputs, names, strict=True)],
                     ["y"])  # fmt: skip
        found = torch.onnx.load(data)(*[torch.from_numpy(arrays[c]) for c in names])
        np.testing.assert_allclose(found, np.einsum(equation, *[arrays[c] for c in names]), rtol=1e-10)
    square = make_tensor("x", np.ones((150, 150), np.float32), "float32")
    for count, equation in ((10, "ab,ac,ad,ae,bc,bd,be,cd,ce,de->"), (2, "...a,...b->...ab")):
        with pytest.raises(OnnxFileError, match="a run may hold|more work"):
            nodes = [node("Einsum", ["x"] * count, ["y"], equation=equation)]
            torch.onnx.load(model(nodes, [], ["y"], [square]), max_elements=1 << 20)()
    wide = [make_tensor(n, np.ones(s, np.float32), "float32") for n, s in (("a", (60_000, 1)), ("b", (1, 60_000)))]
    with pytest.raises(OnnxFileError, match="a run may hold"):
        torch.onnx.load(model([node("Einsum", ["a", "b"], ["y"], equation="...,...->...")], [], ["y"], wide))()
    with pytest.raises(ValueError, match="is no equation of 1 operands"):
        torch.onnx.load(model([node("Einsum", ["x"], ["y"], equation="ab,bc->ac")], [], ["y"], [square]))()


def test_steps_of_a_folded_op_count():
    """Max of many inputs has many results on the way, which gradients may keep."""
    x = make_tensor("x", np.ones(100_000, np.float32), "float32")
    with pytest.raises(OnnxFileError, match="a run may hold|more work"):
        torch.onnx.load(model([node("Max", ["x"] * 400, ["y"])], [], ["y"], [x]))()


def test_graphs_of_many_nodes_are_interpreted(monkeypatch):
    """Python's compiler takes too much memory for these. Values, inputs, limits and copies are the same."""
    nodes, names = _chain("Exp", 40)
    data = model([*nodes, node("Add", [names[-1], "b"], ["y"])], [info("v0", 1000), info("b", 1000)], ["y"])
    compiled = torch.onnx.load(data, max_elements=8000)
    monkeypatch.setattr("torchlite.onnx._graph_to_fx._COMPILED", 64)
    one = torch.onnx.load(data, max_elements=8000)
    assert compiled._is_compiled() and not one._is_compiled() and one.code == compiled.code
    given = torch.full((1000,), -3.0), torch.ones(1000)
    with torch.no_grad():
        expected = compiled(*given)
        for other in (one, copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert not other._is_compiled() and torch.equal(other(*given), expected)
            assert torch.equal(other(b=given[1], v0=given[0]), expected)
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        one(given[0])
    for module in (compiled, one):  # whose gradients keep all values
        with pytest.raises(OnnxFileError, match="where a run may hold 8000"):
            module(given[0].requires_grad_(), given[1])


def test_a_loop_with_a_growing_cache_needs_no_argument():
    """A decoder of 800 steps: each joins a row to the cache and asks all of them."""
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s"), info("k")],
        output=[info("c"), info("s2"), info("k2")],
        node=[
            node("Concat", ["k", "s"], ["k2"], axis=0), node("Transpose", ["k2"], ["kt"], perm=[1, 0]),
            node("MatMul", ["s", "kt"], ["a"]), node("Softmax", ["a"], ["p"], axis=-1),
            node("MatMul", ["p", "k2"], ["r"]), node("Tanh", ["r"], ["s2"]),
        ],
    )  # fmt: skip
    nodes = [node("Loop", ["m", "", "x", "x"], ["y", "keys"], body=body)]
    module = torch.onnx.load(model(nodes, [info("x", 1, 64), info("m", kind=7)], ["y", "keys"]))
    with torch.no_grad():
        y, keys = module(torch.linspace(-1, 1, 64)[None], torch.tensor(800))
    assert keys.shape == (801, 64) and y.shape == (1, 64) and y.isfinite().all()


def test_a_loop_of_ten_thousand_steps_needs_no_argument():
    """In a process of its own: one that ran thousands of tests takes twice the CPU time."""
    code = "from tests.onnx import test_resource_limits; test_resource_limits.run_recurrent_layer()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def run_recurrent_layer():
    """Run ten thousand steps of a small recurrent layer, whose state meets a matrix in each step."""
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")],
        output=[info("c"), info("s2"), info("r")],
        node=[
            node("MatMul", ["s", "w"], ["p"]), node("Add", ["p", "x"], ["q"]), node("Tanh", ["q"], ["s2"]),
            node("ReduceSum", ["s2"], ["r"], keepdims=0),
        ],
    )  # fmt: skip
    matrix = make_tensor("w", np.eye(32, dtype=np.float32), "float32")
    nodes = [node("Loop", ["m", "", "x"], ["y", "sums"], body=body)]
    module = torch.onnx.load(model(nodes, [info("x", 4, 32), info("m", kind=7)], ["y", "sums"], [matrix]))
    with torch.no_grad():
        y, sums = module(torch.full((4, 32), 0.5), torch.tensor(10_000))
    assert y.shape == (4, 32) and sums.shape == (10_000,)


def test_errors_name_a_sufficient_limit(monkeypatch):
    monkeypatch.setattr("torchlite.onnx._import.resource_limits._TIME", 2)
    body = _doubling_loop(node("Neg", ["s"], ["s2"]))
    with pytest.raises(OnnxFileError, match="more CPU time") as error:
        torch.onnx.load(body)(torch.zeros(4), torch.tensor(1 << 60))
    told = re.search(r"torch\.onnx\.load\(f, max_elements=(\d+)\) allows more", str(error.value))
    assert int(told.group(1)) >= 4 << 20
    monkeypatch.undo()
    module = torch.onnx.load(body, max_elements=int(told.group(1)))
    assert module(torch.ones(4), torch.tensor(3_000)).tolist() == [1.0] * 4


def test_max_nodes_bounds_local_functions():
    imports = [Message("OperatorSetId", version=20), Message("OperatorSetId", domain="own", version=1)]
    inner = Message(
        "Function",
        name="f",
        domain="own",
        input=["a"],
        output=["b"],
        opset_import=imports,
        node=[node("Neg", ["a" if not i else f"n{i}"], [f"n{i + 1}" if i < 99 else "b"]) for i in range(100)],
    )
    calls = [Message("Node", op_type="f", domain="own", input=[f"v{i}"], output=[f"v{i + 1}"]) for i in range(150)]
    data = model(calls, [info("v0", 4)], ["v150"], functions=[inner])
    with pytest.raises(OnnxFileError, match=r"make more nodes .*; torch\.onnx\.load\(f, max_elements=8388608\)"):
        torch.onnx.load(data)
    assert torch.onnx.load(data, max_elements=8388608)(torch.ones(4)).tolist() == [1.0] * 4


@pytest.mark.parametrize("compiled", [True, False])
def test_forward_counts_as_a_call_does(monkeypatch, compiled):
    if not compiled:
        monkeypatch.setattr("torchlite.onnx._graph_to_fx._COMPILED", 1)
    module = torch.onnx.load(_doubling_loop(node("Concat", ["s", "s"], ["s2"], axis=0)), max_elements=1 << 16)
    assert module._is_compiled() is compiled and module.forward(torch.ones(4), torch.tensor(3)).shape == (32,)
    with pytest.raises(OnnxFileError, match="where a run may hold 65536"):
        module.forward(torch.ones(4), torch.tensor(40))
    assert resource_limits.RUN.limits is None


def test_the_growth_of_a_convolution_is_that_of_its_channels():
    weight = np.ones((6, 2, 3, 3), np.float32)
    assert _bound_conv_growth(weight, {"pads": [1, 1, 1, 1], "group": 2}, 2.0) == 2.0 * 6 / 4
    assert _bound_conv_growth(weight, {"pads": [2, 0, 2, 0]}, 1.0) == math.inf
    assert _bound_conv_growth(None, {}, 1.0) == _bound_conv_growth(weight[0, 0], {}, 1.0) == math.inf
