"""Bounds of loaded models: results that a small file may not ask for, and the same results as before for all others."""

import pickle
import re

import numpy as np
import pytest

import torchlite as torch
from tests.hostile.onnx_files import info, model, node
from torchlite.onnx import OnnxFileError, _loading
from torchlite.onnx._ops.images import roi_align
from torchlite.onnx._ops.patterns import Pattern
from torchlite.onnx._ops.shapes import split
from torchlite.onnx._ops.strings import regex_full_match, tf_idf
from torchlite.onnx._protobuf import Message
from torchlite.onnx._writing.writer import tensor


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


def test_patterns_match_what_they_say():
    """As Python's module does for patterns that both have, on all short texts of an alphabet."""
    words = [""]
    for letter in ("ab", "abc-A", "ab1_.\n", "bc ", "ab]"):
        words += [word + c for word in words for c in letter]
    for text in _PATTERNS:
        found, known = Pattern(text), re.compile(text.replace("[[:alpha:]]", "[A-Za-z]"), re.ASCII)
        for word in words:
            if "$" in text and word.endswith("\n"):
                continue  # Python's $ also stands before a last line feed
            assert found.matches(word) == (known.fullmatch(word) is not None), (text, word)
    assert Pattern(r"\pL+").matches("äß") and not Pattern(r"\p{Lu}").matches("a") and Pattern(r"\Qa+\E").matches("a+")


def test_classes_of_many_letters():
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 20_000)))
    assert Pattern(f"[{letters}]+").matches(letters[::-1]) and not Pattern(f"[^{letters}]*").matches("a" + letters[7])
    assert (
        Pattern(r"[\d\D]").matches("x") and Pattern("[a-fc-hz]+").matches("ahz") and not Pattern("[a-fh-]").matches("g")
    )


@pytest.mark.parametrize(
    "text", ["(", ")", "a{1001}", "*a", "a**", "[a", r"(a)\1", "(?=a)", r"\pX", r"\p{Lu", r"[\P{L", "[b-a]", "a\\"]
)
def test_patterns_that_re2_refuses(text):
    with pytest.raises(ValueError, match="RegexFullMatch: the pattern"):
        Pattern(text)


def test_limits_are_an_option():
    data = model(
        [node("ConstantOfShape", ["s"], ["y"])], [info("s", 1, kind=7)], ["y"],
    )  # fmt: skip
    module, narrow = torch.onnx.load(data), torch.onnx.load(data, max_elements=1000)
    assert module(torch.tensor([1001])).shape == (1001,) and narrow(torch.tensor([1000])).shape == (1000,)
    with pytest.raises(OnnxFileError, match=r"ConstantOfShape: 1001 elements, where a file may ask for 1000"):
        narrow(torch.tensor([1001]))
    assert narrow(torch.tensor([1000])).shape == (1000,)  # as it was after the error
    with pytest.raises(OnnxFileError, match="1001 elements, where a file may ask for 1000"):
        pickle.loads(pickle.dumps(narrow))(torch.tensor([1001]))


def test_large_inputs_let_results_be_larger(monkeypatch):
    data = model([node("Tile", ["x", "r"], ["y"])], [info("x", "n"), info("r", 1, kind=7)], ["y"])
    monkeypatch.setattr(_loading, "MOST", 1000)
    module = torch.onnx.load(data)
    assert module(torch.ones(100), torch.tensor([50])).shape == (5000,)
    with pytest.raises(OnnxFileError, match="Tile: 5200 elements, where a file may ask for 5050"):
        module(torch.ones(100), torch.tensor([52]))


def test_loops_count_their_steps_and_what_they_keep():
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")],
        node=[node("Add", ["s", "s"], ["s2"])], output=[info("c"), info("s2"), info("s2")],
    )  # fmt: skip
    data = model(
        [node("Loop", ["m", "", "x"], ["y", "z"], body=body)], [info("x", 4), info("m", kind=7)], ["y", "z"]
    )  # fmt: skip
    y, z = torch.onnx.load(data)(torch.ones(4), torch.tensor(5))
    assert y.tolist() == [32.0] * 4 and z[:, 0].tolist() == [2.0, 4.0, 8.0, 16.0, 32.0]
    with pytest.raises(OnnxFileError, match="Loop: more than 8 steps"):
        torch.onnx.load(data, max_elements=1 << 13)(torch.ones(4), torch.tensor(9))


def test_a_loop_ends_where_its_state_is_too_large():
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")],
        node=[node("Concat", ["s", "s"], ["s2"], axis=0)], output=[info("c"), info("s2")],
    )  # fmt: skip
    data = model([node("Loop", ["m", "", "x"], ["y"], body=body)], [info("x", 4), info("m", kind=7)], ["y"])
    module = torch.onnx.load(data, max_elements=1 << 16)
    assert module(torch.ones(4), torch.tensor(12)).shape == (1 << 14,)
    with pytest.raises(OnnxFileError, match="Loop: 32768 elements, where a file may ask for 16384"):
        module(torch.ones(4), torch.tensor(62))


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
    inner = tensor("", np.ones(100, np.float32), "float32")
    body = [node("Constant", [], ["c"], value=inner), node("Add", ["a", "c"], ["b"])]
    twice = Message(
        "Function", name="f", domain="own", input=["a"], output=["b"], node=body, opset_import=imports
    )  # fmt: skip
    calls = [Message("Node", op_type="f", domain="own", input=[a], output=[b]) for a, b in ("xh", "hy")]
    module = torch.onnx.load(model(calls, [info("x", 100)], ["y"], functions=[twice]))
    assert module(torch.zeros(100)).tolist() == [2.0] * 100
    assert len(list(module.buffers())) + len(list(module.parameters())) == 1
