"""Small ONNX files that ask for much work or memory, for `python -m tests.hostile.bombs`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlite.onnx._export.graph_builder import make_tensor
from torchlite.onnx._protobuf import Message, encode_message, parse_message

from .onnx_files import info, model, node

Bomb = Callable[[], tuple[bytes, str]]
BIG, HUGE = 1 << 40, (1 << 62)
_ML = "ai.onnx.ml"
LOAD = "torch.onnx.load(path)"
RUN = "torch.onnx.load(path)()"
SMALL = "torch.onnx.load(path, max_elements=1 << 18)()"  # for what is made in many steps, each within the bound
TEXT = "torch.onnx.load(path)(np.array(['a' * 5000 + '!'], object))"


def ints(name: str, *values: Any) -> Message:
    return make_tensor(name, np.array(values, np.int64), "int64")


def one(name: str, value: Any) -> Message:
    return make_tensor(name, np.array(value, np.int64), "int64")


def floats(name: str, *values: Any) -> Message:
    return make_tensor(name, np.array(values, np.float32), "float32")


def shaped(name: str, *shape: int) -> Message:
    return make_tensor(name, np.ones(shape, np.float32), "float32")


def ran(nodes: list[Message], initializers: Sequence[Message] = (), say: str = RUN, **rest: Any) -> tuple[bytes, str]:
    return model(nodes, rest.pop("inputs", []), rest.pop("outputs", ["y"]), list(initializers), **rest), say


def simple(kind: str, *initializers: Message, outputs: tuple[str, ...] = ("y",), **attributes: Any) -> Bomb:
    """A node whose inputs are initializers."""
    names = [item.name for item in initializers]

    def made() -> tuple[bytes, str]:
        return ran([node(kind, names, list(outputs), **attributes)], list(initializers), outputs=[outputs[0]])

    return made


def of_domain(kind: str, domain: str, inputs: list[Message], **attributes: Any) -> Bomb:
    def made() -> tuple[bytes, str]:
        item = node(kind, [part.name for part in inputs], ["y"], **attributes)
        item.domain = domain
        whole = parse_message(model([item], [], ["y"], inputs))
        whole.opset_import.append(Message("OperatorSetId", domain=domain, version=3))
        return b"".join(encode_message(whole)), RUN

    return made


def grown(
    count: int, kind: str, inputs: Callable[[str], list[str]], *initializers: Message, say: str = RUN, **attributes: Any
) -> Bomb:
    """A chain of nodes, each of which takes what the one before gives."""

    def made() -> tuple[bytes, str]:
        nodes = [node(kind, inputs(f"v{i}"), [f"v{i + 1}"], **attributes) for i in range(count)]
        nodes.append(node("Identity", [f"v{count}"], ["y"]))
        return ran(nodes, [shaped("v0", 4), *initializers], say)

    return made


def looped(body: list[Message], *, scanned: bool = False, trips: int = HUGE, say: str = RUN,
           also: Sequence[Message] = (), inside: Sequence[Message] = ()) -> Bomb:  # fmt: skip
    """A loop over `s`, which its body, with initializers inside, makes `s2`."""

    def made() -> tuple[bytes, str]:
        results = ["c", "s2", "s2"] if scanned else ["c", "s2"]
        graph = Message(
            "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")], node=body,
            output=[info(name) for name in results], initializer=list(inside),
        )  # fmt: skip
        out = ["y", "z"] if scanned else ["y"]
        return ran([node("Loop", ["m", "", "x"], out, body=graph)], [one("m", trips), shaped("x", 4), *also], say)

    return made


def nested_loops() -> tuple[bytes, str]:
    def graph(level: int) -> Message:
        inner = [node("Identity", [f"s{level}"], [f"t{level}"])]
        if level:
            inner = [node("Loop", ["m", "", f"s{level}"], [f"t{level}"], body=graph(level - 1))]
        return Message(
            "Graph", name=f"b{level}", node=inner, output=[info(f"c{level}"), info(f"t{level}")],
            input=[info(f"i{level}", kind=7), info(f"c{level}", kind=9), info(f"s{level}")],
        )  # fmt: skip

    return ran([node("Loop", ["m", "", "x"], ["y"], body=graph(4))], [one("m", 1000), shaped("x", 4)])


def branches(depth: int) -> Bomb:
    def made() -> tuple[bytes, str]:
        def graph(level: int) -> Message:
            nodes = [node("Identity", ["x"], [f"b{level}"])]
            if level:
                inner = graph(level - 1)
                nodes = [node("If", ["k"], [f"b{level}"], then_branch=inner, else_branch=leaf)]
            return Message("Graph", name=f"g{level}", node=nodes, output=[info(f"b{level}")])

        leaf = Message("Graph", name="leaf", node=[node("Identity", ["x"], ["l"])], output=[info("l")])
        yes = make_tensor("k", np.array(True), "bool")
        return ran([node("If", ["k"], ["y"], then_branch=graph(depth), else_branch=leaf)], [yes, shaped("x", 4)])

    return made


def of_branch(count: int) -> Message:
    """A node of a loop's body that runs one of two graphs, of many nodes."""
    names = ["s", *(f"b{i}" for i in range(count))]
    nodes = [node("Neg", [before], [name]) for before, name in itertools.pairwise(names)]
    long = Message("Graph", name="long", node=nodes, output=[info(names[-1])])
    short = Message("Graph", name="short", node=[node("Identity", ["s"], ["i"])], output=[info("i")])
    return node("If", ["c"], ["s2"], then_branch=long, else_branch=short)


def unread(kind: str, count: int = 1, shape: tuple[int, ...] = (1 << 19,), *initializers: Message,
           inputs: Sequence[str] = ("x",), **attributes: Any) -> Bomb:  # fmt: skip
    """A loop whose body has ops on a large value from outside. Nobody reads their results."""

    def made() -> tuple[bytes, str]:
        nodes = [node(kind, list(inputs), [f"u{i}"], **attributes) for i in range(count)]
        body = Message(
            "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")],
            output=[info("c"), info("s2")], node=[*nodes, node("Identity", ["s"], ["s2"])],
        )  # fmt: skip
        loop = node("Loop", ["m", "", "d"], ["y"], body=body)
        held = [ints("n", *shape), one("m", HUGE), shaped("d", 1), *initializers]
        return ran([node("ConstantOfShape", ["n"], ["x"]), loop], held)

    return made


def over_texts(nodes: list[Message], count: int = 1 << 14) -> Bomb:
    """A loop whose body has ops on many texts `t` from outside."""

    def made() -> tuple[bytes, str]:
        body = Message(
            "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")],
            output=[info("c"), info("s2")], node=[*nodes, node("Identity", ["s"], ["s2"])],
        )  # fmt: skip
        first = [node("ConstantOfShape", ["n"], ["x"]), node("Cast", ["x"], ["t"], to=8)]
        loop = node("Loop", ["m", "", "d"], ["y"], body=body)
        return ran([*first, loop], [ints("n", count), one("m", HUGE), shaped("d", 1)])

    return made


def costly(kind: str, shape: tuple[int, ...], *initializers: Message, count: int = 200, **attributes: Any) -> Bomb:
    """A loop whose body has many ops that take long for few elements."""
    names = ["x", *(item.name for item in initializers)]
    nodes = [node(kind, names, [f"u{i}"], **attributes) for i in range(count)]
    return looped([*nodes, node("Identity", ["s"], ["s2"])], inside=[shaped("x", *shape), *initializers])


def of_nested_branches(depth: int, padding: int) -> Bomb:
    """A loop of branches in branches, in a file of so many other nodes."""

    def graph(level: int) -> Message:
        inner = [node("Identity", ["s"], [f"b{level}"])]
        if level:
            inner = [node("If", ["c"], [f"b{level}"], then_branch=graph(level - 1), else_branch=graph(0))]
        return Message("Graph", name=f"g{level}", node=inner, output=[info(f"b{level}")])

    nodes = [node("Neg", ["x"], [f"p{i}"]) for i in range(padding)]
    body = Message(
        "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")], output=[info("c"), info("s2")],
        node=[node("If", ["c"], ["s2"], then_branch=graph(depth), else_branch=graph(0))],
    )  # fmt: skip
    return lambda: ran([*nodes, node("Loop", ["m", "", "x"], ["y"], body=body)], [one("m", HUGE), shaped("x", 4)])


def functions(count: int, twice: bool) -> Bomb:
    """Functions each of which calls the one before it, once or twice."""

    def made() -> tuple[bytes, str]:
        def call(i: int, name: str, out: str) -> Message:
            return Message("Node", op_type=f"f{i}", domain="own", input=[name], output=[out])

        imports = [Message("OperatorSetId", version=20), Message("OperatorSetId", domain="own", version=1)]
        found = []
        for i in range(count):
            body = [node("Neg", ["a"], ["b"])]
            if i:
                body = [call(i - 1, "a", "t"), call(i - 1, "t", "b")] if twice else [call(i - 1, "a", "b")]
            found.append(
                Message(
                    "Function", name=f"f{i}", domain="own", input=["a"], output=["b"], node=body, opset_import=imports
                )
            )
        return ran([call(count - 1, "x", "y")], [shaped("x", 4)], functions=found)

    return made


def from_nothing(shape: Sequence[int], nodes: list[Message], *initializers: Message, outputs: Sequence[str] = ("y",),
                 kind: str = "float32") -> Bomb:  # fmt: skip
    """Nodes over `x`, which a few bytes of the file make large."""

    def made() -> tuple[bytes, str]:
        value = make_tensor("", np.ones(1, kind), kind)
        first = node("ConstantOfShape", ["s"], ["x"], value=value)
        return ran([first, *nodes], [ints("s", *shape), *initializers], outputs=list(outputs))

    return made


def trained(kind: str, inputs: int, outputs: int, **attributes: Any) -> Bomb:
    """A step of an optimizer over 300 groups that are one tensor."""

    def made() -> tuple[bytes, str]:
        names = [f"y{i}" for i in range(300 * outputs)]
        step = node(kind, ["r", "t", *["x"] * (300 * inputs)], names, **attributes)
        step.domain = "ai.onnx.preview.training"
        data, said = from_nothing((200_000,), [step], floats("r", 0.1), one("t", 1), outputs=names)()
        whole = parse_message(data)
        whole.opset_import.append(Message("OperatorSetId", domain=step.domain, version=1))
        return b"".join(encode_message(whole)), said

    return made


def over(shape: Sequence[int], kind: str, *initializers: Message, of: str = "float32", **attributes: Any) -> Bomb:
    """One node over `x`, and over initializers behind it."""
    names = ["x", *(item.name for item in initializers)]
    return from_nothing(shape, [node(kind, names, ["y"], **attributes)], *initializers, kind=of)


def all_kept(kind: str, count: int, shape: Sequence[int]) -> Bomb:
    """Values of one node after the other that are all results."""
    names = [f"y{i}" for i in range(count)]
    return from_nothing(shape, [node(kind, ["x"], [name]) for name in names], outputs=names)


def chained(kind: str, count: int, shape: Sequence[int], inputs: Callable[[str], list[str]], *initializers: Message,
            **attributes: Any) -> Bomb:  # fmt: skip
    """A chain over `x` whose values are of one size."""
    nodes = [node("Identity", ["x"], ["v0"])]
    nodes += [node(kind, inputs(f"v{i}"), [f"v{i + 1}"], **attributes) for i in range(count)]
    return from_nothing(shape, [*nodes, node("Identity", [f"v{count}"], ["y"])], *initializers)


def inserted(count: int, kept: bool) -> Bomb:
    def made() -> tuple[bytes, str]:
        nodes = [node("SequenceEmpty", [], ["v0"])]
        nodes += [node("SequenceInsert", [f"v{i}", "x"], [f"v{i + 1}"]) for i in range(count)]
        names = [f"v{i + 1}" for i in range(count)] if kept else [f"v{count}"]
        return ran(nodes, [shaped("x", 1)], outputs=names)

    return made


def scanned(levels: int, length: int) -> Bomb:
    """Scans over one tensor, each inside another."""

    def made() -> tuple[bytes, str]:
        def graph(level: int) -> Message:
            inner = [node("Identity", [f"e{level}"], [f"r{level}"])]
            if level:
                inner = [node("Scan", ["w"], [f"r{level}"], body=graph(level - 1), num_scan_inputs=1)]
            return Message("Graph", name=f"g{level}", node=inner, input=[info(f"e{level}")], output=[info(f"r{level}")])

        return ran([node("Scan", ["w"], ["y"], body=graph(levels - 1), num_scan_inputs=1)], [shaped("w", length)])

    return made


def mapped(levels: int, length: int) -> Bomb:
    """Maps over one sequence, each inside another."""

    def made() -> tuple[bytes, str]:
        def graph(level: int) -> Message:
            inner = [node("Identity", [f"e{level}"], [f"r{level}"])]
            if level:
                inner = [node("SequenceMap", ["q"], [f"m{level}"], body=graph(level - 1)),
                         node("Identity", [f"e{level}"], [f"r{level}"])]  # fmt: skip
            return Message("Graph", name=f"g{level}", node=inner, input=[info(f"e{level}")], output=[info(f"r{level}")])

        nodes = [node("SplitToSequence", ["w"], ["q"]), node("SequenceMap", ["q"], ["y"], body=graph(levels - 1))]
        return ran(nodes, [shaped("w", length)])

    return made


def texts(name: str, *values: str) -> Message:
    return Message("Tensor", name=name, dims=[len(values)], data_type=8, string_data=[v.encode() for v in values])


def doubled_text(steps: int) -> tuple[bytes, str]:
    nodes = [node("StringConcat", [f"v{i}", f"v{i}"], [f"v{i + 1}"]) for i in range(steps)]
    return ran([*nodes, node("Identity", [f"v{steps}"], ["y"])], [texts("v0", "abcd")])


def matched(pattern: str, length: int) -> Bomb:
    """A pattern over a text of the file whose letters lead to ever other states."""

    def made() -> tuple[bytes, str]:
        letters = np.random.default_rng(7).integers(0, 2, length)
        return ran(
            [node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], [texts("x", "".join("ab"[i] for i in letters))]
        )

    return made


def suppressed(boxes: int, classes: int) -> Bomb:
    def made() -> tuple[bytes, str]:
        nodes = [node("ConstantOfShape", [n], [v]) for n, v in (("a", "b"), ("c", "d"))]
        nodes.append(node("NonMaxSuppression", ["b", "d", "n", "o"], ["y"]))
        return ran(nodes, [ints("a", 1, boxes, 4), ints("c", 1, classes, boxes), one("n", HUGE), floats("o", 0.5)])

    return made


def recurrent(kind: str, gates: int, length: int, **attributes: Any) -> Bomb:
    return over((length, 1, 1), kind, shaped("w", 1, gates, 1), shaped("r", 1, gates, 1), **attributes)


def of_learning(kind: str, shape: Sequence[int], **attributes: Any) -> Bomb:
    """An op of ai.onnx.ml over `x`, which a few bytes of the file make large."""

    def made() -> tuple[bytes, str]:
        item = node(kind, ["x"], ["y"], **attributes)
        item.domain = _ML
        whole = parse_message(model([node("ConstantOfShape", ["s"], ["x"]), item], [], ["y"], [ints("s", *shape)]))
        whole.opset_import.append(Message("OperatorSetId", domain=_ML, version=3))
        return b"".join(encode_message(whole)), RUN

    return made


def steps_of_many_nodes(count: int) -> Bomb:
    nodes = [node("Neg", ["s" if not i else f"n{i}"], [f"n{i + 1}"]) for i in range(count)]
    return looped([*nodes, node("Identity", [f"n{count}"], ["s2"])])


def wide_graph(count: int) -> tuple[bytes, str]:
    """Nodes that all read one value, attributes and descriptions of values."""
    nodes = [node("Neg", ["x"], [f"y{i}"]) for i in range(count)]
    whole = parse_message(model(nodes, [], [f"y{i}" for i in range(count)], [shaped("x", 1)]))
    whole.graph.value_info = [info(f"y{i}") for i in range(count)]
    return b"".join(encode_message(whole)), RUN


def tfidf(**changed: Any) -> Bomb:
    given: dict[str, Any] = {
        "max_gram_length": 2, "min_gram_length": 1, "max_skip_count": 0, "mode": "TF", "ngram_counts": [0, 2],
        "ngram_indexes": [0, 1, 2], "pool_int64s": [1, 2, 1, 2],
    }  # fmt: skip
    return simple("TfIdfVectorizer", ints("x", *[1, 2] * 50), **(given | changed))


def regex(pattern: str) -> Bomb:
    def made() -> tuple[bytes, str]:
        return ran([node("RegexFullMatch", ["x"], ["y"], pattern=pattern)], say=TEXT, inputs=[info("x", "n", kind=8)])

    return made


def many_nodes(count: int) -> tuple[bytes, str]:
    nodes = [node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    return ran([*nodes, node("Neg", [f"v{count}"], ["y"])], [shaped("v0", 4)], LOAD)


def many_initializers(name: str, count: int) -> tuple[bytes, str]:
    return ran([node("Neg", ["w"], ["y"])], [shaped("w", 4), *(shaped(name.format(i), 1) for i in range(count))], LOAD)


def outer(kind: str, columns: tuple[int, ...], rows: tuple[int, ...], **attributes: Any) -> Bomb:
    return simple(kind, shaped("a", *columns), shaped("b", *rows), **attributes)


def resized(mode: str, *scales: float, **rest: Any) -> Bomb:
    def made() -> tuple[bytes, str]:
        item = node("Resize", ["x", "", "s"], ["y"], mode=mode, **rest)
        return ran([item], [shaped("x", 1, 1, 4, 4), floats("s", *scales)])

    return made


def roi(box: tuple[float, ...], **attributes: Any) -> Bomb:
    return simple("RoiAlign", shaped("x", 1, 1, 4, 4), make_tensor("r", np.array([box], np.float32), "float32"),
                  ints("i", 0), **attributes)  # fmt: skip


_X4, _ROW = shaped("x", 1, 1, 4, 4), shaped("x", 1, 1, 4)
_UP: dict[str, Any] = {"kernel_shape": [1, 1]}

BOMBS: dict[str, Bomb] = {
    "onnx roi align of a large region": roi((0, 0, 2e4, 2e4)),
    "onnx roi align of a huge region": roi((0, 0, 1e30, 1e30)),
    "onnx roi align of nan": roi((0, 0, float("nan"), 4)),
    "onnx roi align of infinity": roi((0, 0, float("inf"), 4), mode="max"),
    "onnx roi align sampling": roi((0, 0, 4, 4), sampling_ratio=1 << 30),
    "onnx roi align output": roi((0, 0, 4, 4), output_height=1 << 30, output_width=1 << 30),
    "onnx roi align scale": roi((0, 0, 4, 4), spatial_scale=1e6),
    "onnx max roi pool": simple("MaxRoiPool", _X4, shaped("r", 1, 5), pooled_shape=[1 << 20, 1 << 20]),
    "onnx split num_outputs": simple("Split", shaped("x", 4), outputs=("y", "z"), num_outputs=(1 << 31) - 1),
    "onnx split of one output": simple("Split", shaped("x", 4), num_outputs=(1 << 31) - 1),
    "onnx tfidf skips": tfidf(max_skip_count=HUGE),
    "onnx tfidf grams": tfidf(max_gram_length=HUGE),
    "onnx tfidf columns": tfidf(ngram_indexes=[0, 1, 1 << 40]),
    "onnx constant of shape": simple("ConstantOfShape", ints("s", BIG)),
    "onnx constant of many dimensions": simple("ConstantOfShape", ints("s", *[4] * 30)),
    "onnx range": simple("Range", one("a", 0), one("b", HUGE), one("c", 1)),
    "onnx range of small steps": simple(
        "Range", *(make_tensor(n, np.array(v, np.float32), "float32") for n, v in (("a", 0), ("b", 1), ("c", 1e-30)))),
    "onnx expand": simple("Expand", shaped("x", 1), ints("s", BIG)),
    "onnx tile": simple("Tile", shaped("x", 4), ints("s", BIG)),
    "onnx pad": simple("Pad", shaped("x", 4), ints("s", 0, BIG)),
    "onnx pad edge": simple("Pad", shaped("x", 4), ints("s", 0, BIG), mode="edge"),
    "onnx pad reflect": simple("Pad", shaped("x", 4), ints("s", BIG, 0), mode="reflect"),
    "onnx pad wrap": simple("Pad", shaped("x", 4), ints("s", 0, BIG), mode="wrap"),
    "onnx center crop pad": simple("CenterCropPad", shaped("x", 4), ints("s", BIG)),
    "onnx one hot": simple("OneHot", ints("x", 1), one("d", BIG), floats("v", 0, 1)),
    "onnx resize nearest": resized("nearest", 1, 1, 1e5, 1e5),
    "onnx resize cubic": resized("cubic", 1, 1, 1e6, 1e6),
    "onnx resize antialias": resized("linear", 1, 1, 1e-12, 1, antialias=1),
    "onnx resize of crops": resized("linear", 1, 1, 1e6, 1e6, coordinate_transformation_mode="tf_crop_and_resize"),
    "onnx random normal": simple("RandomNormal", shape=[1 << 20, 1 << 20]),
    "onnx random uniform": simple("RandomUniform", shape=[BIG]),
    "onnx multinomial": simple("Multinomial", shaped("x", 1, 4), sample_size=1 << 31),
    "onnx hann window": simple("HannWindow", one("n", BIG)),
    "onnx hamming window": simple("HammingWindow", one("n", BIG)),
    "onnx blackman window": simple("BlackmanWindow", one("n", BIG)),
    "onnx mel weights": simple(
        "MelWeightMatrix", one("a", 1 << 30), one("b", 1 << 30), one("c", 8000), floats("d", 0), floats("e", 4000)),
    "onnx dft length": simple("DFT", shaped("x", 1, 4, 1), one("n", BIG)),
    "onnx col2im": simple("Col2Im", shaped("x", 1, 1, 1), ints("a", 1 << 20, 1 << 20), ints("b", 1, 1)),
    "onnx max unpool": simple(
        "MaxUnpool", _X4, make_tensor("i", np.zeros((1, 1, 4, 4), np.int64), "int64"), strides=[1 << 30, 1 << 30],
        **_UP),
    "onnx max unpool output": simple(
        "MaxUnpool", _X4, make_tensor("i", np.zeros((1, 1, 4, 4), np.int64), "int64"), ints("s", 1, 1, BIG, 4), **_UP),
    "onnx conv transpose strides": simple("ConvTranspose", _X4, shaped("w", 1, 1, 2, 2), strides=[1 << 30, 1 << 30]),
    "onnx conv transpose output": simple("ConvTranspose", _ROW, shaped("w", 1, 1, 2), output_shape=[BIG]),
    "onnx conv transpose padding": simple("ConvTranspose", _ROW, shaped("w", 1, 1, 2), output_padding=[BIG]),
    "onnx conv transpose dilations": simple("ConvTranspose", _ROW, shaped("w", 1, 1, 2), dilations=[BIG]),
    "onnx conv pads": simple("Conv", _X4, shaped("w", 1, 1, 1, 1), pads=[1 << 30] * 4),
    "onnx conv uneven pads": simple("Conv", _ROW, shaped("w", 1, 1, 1), pads=[0, BIG]),
    "onnx max pool pads": simple("MaxPool", _X4, kernel_shape=[1, 1], pads=[1 << 30] * 4),
    "onnx average pool pads": simple("AveragePool", _X4, kernel_shape=[1, 1], pads=[1 << 30] * 4),
    "onnx average pool kernel": simple("AveragePool", _X4, kernel_shape=[1 << 30] * 2, pads=[1 << 30] * 4),
    "onnx lp pool pads": simple("LpPool", _X4, kernel_shape=[1, 1], pads=[1 << 30] * 4),
    "onnx lrn size": simple("LRN", _X4, size=BIG),
    "onnx affine grid": simple("AffineGrid", shaped("t", 1, 2, 3), ints("s", 1, 1, 1 << 30, 1 << 30)),
    "onnx split to parts of nothing": simple("SplitToSequence", shaped("x", 4), one("s", 0)),
    "onnx outer sum": outer("Add", (1 << 16, 1), (1, 1 << 16)),
    "onnx outer product": outer("MatMul", (1 << 16, 1), (1, 1 << 16)),
    "onnx outer einsum": outer("Einsum", (1 << 16,), (1 << 16,), equation="i,j->ij"),
    "onnx outer where": simple(
        "Where", make_tensor("c", np.ones((1 << 16, 1), bool), "bool"), shaped("a", 1, 1 << 16), shaped("b", 1)),
    "onnx outer max": outer("Max", (1 << 16, 1), (1, 1 << 16)),
    "onnx outer power": outer("Pow", (1 << 16, 1), (1, 1 << 16)),
    "onnx outer quotient": outer("Div", (1 << 16, 1), (1, 1 << 16)),
    "onnx outer remainder": outer("Mod", (1 << 16, 1), (1, 1 << 16), fmod=1),
    "onnx outer equal": outer("Equal", (1 << 16, 1), (1, 1 << 16)),
    "onnx outer gemm": outer("Gemm", (1 << 16, 1), (1, 1 << 16)),
    "onnx outer gemm of a weight": outer("Gemm", (1 << 16, 1), (1 << 16, 1), transB=1),
    "onnx outer prelu": outer("PRelu", (1 << 16, 1), (1, 1 << 16)),
    "onnx outer sums": outer("Sum", (1 << 16, 1), (1, 1 << 16)),
    "onnx products of weights": grown(
        12, "MatMul", lambda v: ["f", "k"] if v == "v0" else [v, "l"], shaped("f", 1 << 10, 1), shaped("k", 1, 1 << 10),
        shaped("l", 1 << 10, 1 << 10)),
    "onnx channels of weights": lambda: ran(
        [part for i in range(8) for part in (
            node("Conv", [f"c{i}", "w"], [f"d{i}"]), node("Reshape", [f"d{i}", "s"], [f"c{i + 1}"]))]
        + [node("Identity", ["c8"], ["y"])],
        [shaped("c0", 1, 1, 4, 4), shaped("w", 256, 1, 1, 1), ints("s", -1, 1, 4, 4)], SMALL),
    "onnx columns of weights": lambda: ran(
        [part for i in range(8) for part in (
            node("Gemm", [f"c{i}", "w"], [f"d{i}"], transB=1), node("Reshape", [f"d{i}", "s"], [f"c{i + 1}"]))]
        + [node("Identity", ["c8"], ["y"])],
        [shaped("c0", 4, 1), shaped("w", 256, 1), ints("s", -1, 1)], SMALL),
    "onnx sums of dimensions": lambda: ran(
        [node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(40)] + [node("Identity", ["v40"], ["y"])],
        [shaped("v0", 1), *(shaped(f"w{i}", 2, *[1] * i) for i in range(40))], SMALL),
    "onnx norms of weights": lambda: ran(
        [part for i in range(8) for part in (
            node("LayerNormalization", [f"c{i}", "w"], [f"d{i}"]), node("Reshape", [f"d{i}", "s"], [f"c{i + 1}"]))]
        + [node("Identity", ["c8"], ["y"])],
        [shaped("c0", 4, 1), shaped("w", 256), ints("s", -1, 1)], SMALL),
    "onnx gather of places": simple(
        "Gather", shaped("x", 1, 1 << 16), make_tensor("i", np.zeros(1 << 17, np.int8).astype(np.int64), "int64")),
    "onnx doubling by concat": grown(40, "Concat", lambda v: [v, v], axis=0),
    "onnx tile in a chain": grown(40, "Tile", lambda v: [v, "r"], ints("r", 2)),
    "onnx rising by sums": grown(40, "Einsum", lambda v: [v, "v0"], equation="...,i->...i"),
    "onnx loop without an end": looped([node("Identity", ["s"], ["s2"])], say=RUN),
    "onnx loop that doubles": looped([node("Concat", ["s", "s"], ["s2"], axis=0)]),
    "onnx loop that keeps": looped([node("Identity", ["s"], ["s2"])], scanned=True),
    "onnx loop of many inputs": looped([node("Concat", ["s", *["e"] * 10_000], ["s2"], axis=0)], also=[ints("e")]),
    "onnx loop of long lists": looped(
        [node("Slice", ["s", "b", "t", "a"], ["s2"])],
        also=[ints("b", *[0] * 5_000), ints("t", *[4] * 5_000), ints("a", *[0] * 5_000)],
    ),
    "onnx loop of one long list": looped([node("Split", ["s", "n"], ["s2"])], also=[ints("n", 4, *[0] * 5_000)]),
    "onnx loop of values that nobody reads": unread("Erf"),
    "onnx loop of costly values that nobody reads": unread("Acosh", 4),
    "onnx loop over texts, equal": over_texts([node("Equal", ["t", "t"], ["u"])]),
    "onnx loop over texts, cast": over_texts([node("Cast", ["t"], ["u"], to=1)]),
    "onnx loop over texts, split": over_texts([node("StringSplit", ["t"], ["u", "v"])]),
    "onnx loop over texts, normalized": over_texts([node("StringNormalizer", ["t"], ["u"], stopwords=["0"])]),
    "onnx loop over texts, joined": over_texts([node("StringConcat", ["t", "t"], ["u"])]),
    "onnx loop of costly ops, grid": costly("GridSample", (1, 1, 2, 2), shaped("g", 1, 1, 1, 2), mode="cubic"),
    "onnx loop of costly ops, lstm": costly(
        "LSTM", (1, 1, 1), shaped("w", 1, 4, 1), shaped("r", 1, 4, 1), hidden_size=1),
    "onnx loop of costly ops, groups": costly(
        "GroupNormalization", (1, 1, 2, 2), floats("g", 1), floats("b", 1), num_groups=1),
    "onnx loop of costly ops, gelu": costly("Gelu", (1,)),
    "onnx loop of windows": unread("MaxPool", shape=(1, 1, 1 << 19), kernel_shape=[1 << 19]),
    "onnx loop of means": unread("GlobalLpPool", shape=(1, 1, 1 << 19)),
    "onnx loop of places": unread("NonZero"),
    "onnx values that nobody reads": lambda: ran(
        [node("ConstantOfShape", ["n"], ["x"]), *(node("Erf", ["x"], [f"e{i}"]) for i in range(2000)),
         node("Neg", ["x"], ["y"])], [ints("n", 1 << 19)]),
    "onnx branches in branches of a long file": of_nested_branches(28, 5_000),
    "onnx loop of a name with a dot": looped([
        node("Add", ["s", "a.b"], ["n0"]), *(node("Neg", [f"n{i}"], [f"n{i + 1}"]) for i in range(300)),
        node("Identity", ["n300"], ["s2"]),
    ], inside=[shaped("a.b", 4)]),
    "onnx loop of long branches": looped([of_branch(300)]),
    "onnx shape of many sizes": simple("ConstantOfShape", ints("s", *[1 << 61] * 50_000)),
    "onnx loop that keeps doubles": looped([node("Concat", ["s", "s"], ["s2"], axis=0)], scanned=True, trips=40),
    "onnx loops in loops": nested_loops,
    "onnx branches in branches": branches(20),
    "onnx branches in many branches": branches(90),
    "onnx functions twice": functions(40, True),
    "onnx functions in functions": functions(2000, False),
    "onnx regex nested": regex("(a+)+$"),
    "onnx regex alternatives": regex("(a|a|aa)+$"),
    "onnx regex optional": regex("a?" * 30 + "a" * 30),
    "onnx regex repeats": regex("((a{1000}){1000}){1000}"),
    "onnx regex empty repeats": regex("((a*)*)*b"),
    "onnx regex groups": regex("(" * 5000 + "a" + ")" * 5000),
    "onnx regex counts": regex("a{99999999}"),
    "onnx regex of a large machine": regex("(a?){900}(a?){900}(a|b){900}"),
    "onnx regex of many states": regex("(a?){500}(b|a?){300}!"),
    "onnx many nodes": functools.partial(many_nodes, 3000),
    "onnx 30,000 nodes": functools.partial(many_nodes, 30_000),
    "onnx many initializers": functools.partial(many_initializers, "w{}", 3000),
    "onnx initializers of one plain name": functools.partial(many_initializers, "a b{}".replace(" ", "."), 3000),
    "onnx values that are all kept": all_kept("Exp", 400, (1 << 20,)),
    "onnx copies that are all kept": all_kept("Neg", 400, (1 << 20,)),
    "onnx activations that gradients keep": lambda: ran(
        [node("ConstantOfShape", ["s"], ["x"]), node("Mul", ["x", "w"], ["v0"])]
        + [node("Exp", [f"v{i}"], [f"v{i + 1}"]) for i in range(200)] + [node("Identity", ["v200"], ["y"])],
        [ints("s", 1 << 20), shaped("w", 1)]),
    "onnx doubling by sequences": lambda: ran(
        [part for i in range(30) for part in (
            node("SequenceConstruct", [f"v{i}"] * 2, [f"q{i}"]),
            node("ConcatFromSequence", [f"q{i}"], [f"v{i + 1}"], axis=0))]
        + [node("Identity", ["v30"], ["y"])], [shaped("v0", 4)]),
    "onnx doubling by expand": lambda: ran(
        [part for i in range(30) for part in (
            node("Expand", [f"v{i}", "t"], [f"e{i}"]), node("Reshape", [f"e{i}", "s"], [f"v{i + 1}"]))]
        + [node("Identity", ["v30"], ["y"])], [shaped("v0", 1, 4), ints("t", 2, 1), ints("s", 1, -1)]),
    "onnx doubling by resize": lambda: ran(
        [node("Resize", [f"v{i}", "", "f"], [f"v{i + 1}"]) for i in range(20)] + [node("Identity", ["v20"], ["y"])],
        [shaped("v0", 1, 1, 4, 4), floats("f", 1, 1, 2, 2)]),
    "onnx doubling by linear resize": lambda: ran(
        [node("Resize", [f"v{i}", "", "f"], [f"v{i + 1}"], mode="linear") for i in range(20)]
        + [node("Identity", ["v20"], ["y"])], [shaped("v0", 1, 1, 4, 4), floats("f", 1, 1, 2, 2)]),
    "onnx doubling by pads": grown(24, "Pad", lambda v: [v, "p"], ints("p", 0, 1 << 20)),
    "onnx doubling by gather": grown(30, "Gather", lambda v: [v, "p"], ints("p", *[0, 1, 2, 3] * 2)),
    "onnx doubling by transposed convolutions": lambda: ran(
        [node("ConvTranspose", [f"v{i}", "w"], [f"v{i + 1}"], strides=[2, 2]) for i in range(20)]
        + [node("Identity", ["v20"], ["y"])], [shaped("v0", 1, 1, 4, 4), shaped("w", 1, 1, 2, 2)]),
    "onnx doubling by one hot": grown(20, "OneHot", lambda v: [v, "d", "h"], one("d", 4), floats("h", 0, 1)),
    "onnx outer kept": lambda: ran(
        [node("Add", ["a", "b"], [f"y{i}"]) for i in range(100)], [shaped("a", 1 << 10, 1), shaped("b", 1, 1 << 10)],
        outputs=[f"y{i}" for i in range(100)]),
    "onnx cast to double": over((1 << 20,), "Cast", of="int8", to=11),
    "onnx cast to text": over((1 << 20,), "Cast", to=8),
    "onnx steps back": over((1 << 21,), "Slice", ints("a", -1), ints("b", -BIG), ints("c", 0), ints("d", -1)),
    "onnx integers of an input": over((1 << 19,), "ReverseSequence", ints("l", 1), of="int64"),
    "onnx shape of many integers": from_nothing((1 << 21,), [node("Expand", ["o", "x"], ["y"])], shaped("o", 1),
                                                kind="int64"),
    "onnx parts of one element": over((1 << 20,), "SplitToSequence"),
    "onnx parts that are not asked for": over((1 << 21,), "Split", num_outputs=1 << 20),
    "onnx pad and crop": simple("Pad", shaped("x", 1, 1 << 12), ints("p", 1 << 20, 0, 0, 1 - (1 << 12)), mode="edge"),
    "onnx pad and crop of zeros": simple("Pad", shaped("x", 1, 1 << 12), ints("p", 1 << 20, 0, 0, 1 - (1 << 12))),
    "onnx windows of a max pool": over((1, 1, 1400, 1400), "MaxPool", kernel_shape=[700, 700]),
    "onnx windows of an average pool": over((1, 1, 1400, 1400), "AveragePool", kernel_shape=[700, 700]),
    "onnx windows with holes": over((1, 1, 1400, 1400), "AveragePool", kernel_shape=[500, 500], dilations=[2, 2]),
    "onnx windows of an lp pool": over((1, 1, 1400, 1400), "LpPool", kernel_shape=[700, 700]),
    "onnx windows of an lrn": over((1, 1400, 30, 30), "LRN", size=1399),
    "onnx large kernel": over((1, 1, 1400, 1400), "Conv", shaped("w", 1, 1, 400, 400)),
    "onnx large kernel turned": over((1, 1, 1000, 1000), "ConvTranspose", shaped("w", 1, 1, 300, 300)),
    "onnx kernel with holes": over((1, 1, 1400, 1400), "Conv", shaped("w", 1, 1, 50, 50), dilations=[20, 20]),
    "onnx grid sample": from_nothing(
        (1, 1 << 20, 1, 1), [node("ConstantOfShape", ["t"], ["g"]), node("GridSample", ["x", "g"], ["y"])],
        ints("t", 1, 1000, 1000, 2)),
    "onnx deformed convolution": from_nothing(
        (1, 1000, 30, 30), [node("ConstantOfShape", ["t"], ["o"]), node("DeformConv", ["x", "w", "o"], ["y"])],
        ints("t", 1, 18, 200, 200), shaped("w", 1, 1000, 3, 3)),
    "onnx places in many dimensions": over((*[1] * 30, 1 << 20), "NonZero"),
    "onnx unique": over((1 << 21,), "Unique"),
    "onnx top k": over((1 << 20,), "TopK", ints("k", 1 << 20)),
    "onnx lstm of many steps": recurrent("LSTM", 4, 1 << 20),
    "onnx lstm of peepholes": recurrent("LSTM", 4, 1 << 20, clip=1.0),
    "onnx gru of many steps": recurrent("GRU", 3, 1 << 20),
    "onnx rnn of many steps": recurrent("RNN", 1, 1 << 20),
    "onnx rnn of a wide state": from_nothing(
        (1 << 12, 1, 1), [node("ConstantOfShape", ["t"], ["h"]), node("RNN", ["x", "w", "r", "", "", "h"], ["y"])],
        ints("t", 1, 1 << 20, 1), shaped("w", 1, 1, 1), shaped("r", 1, 1, 1)),
    "onnx rnn of wide weights": over((1 << 12, 1, 1), "RNN", shaped("w", 1, 1 << 12, 1), shaped("r", 1, 1 << 12, 1)),
    "onnx boxes": suppressed(1 << 18, 1),
    "onnx classes of boxes": suppressed(1, 1 << 20),
    "onnx many regions": from_nothing(
        (1 << 18, 4), [node("ConstantOfShape", ["t"], ["i"], value=make_tensor("", np.zeros(1, np.int64), "int64")),
                       node("RoiAlign", ["p", "x", "i"], ["y"])], ints("t", 1 << 18), shaped("p", 1, 1, 4, 4)),
    "onnx cells of regions": simple("MaxRoiPool", _X4, shaped("r", 1, 5), pooled_shape=[1 << 10, 1 << 10]),
    "onnx tfidf counts": tfidf(ngram_counts=[0, HUGE]),
    "onnx tfidf negative counts": tfidf(ngram_counts=[-HUGE, 2]),
    "onnx tfidf rows": over((1 << 10, 1 << 10), "TfIdfVectorizer", of="int64", max_gram_length=1 << 10,
                            min_gram_length=1, max_skip_count=HUGE, mode="TF", ngram_counts=[0] * 1000,
                            ngram_indexes=[0], pool_int64s=[1]),
    "onnx doubling of texts": functools.partial(doubled_text, 40),
    "onnx words of a text": simple("StringSplit", texts("x", "a " * 50_000), delimiter=" "),
    "onnx letters of texts": lambda: ran(
        [node("Expand", ["x", "s"], ["e"]), node("StringConcat", ["e", "e"], ["y"])],
        [texts("x", "a" * 10_000), ints("s", 1 << 17)]),
    "onnx texts of a shape": simple("ConstantOfShape", ints("s", 1 << 20), value=texts("", "a" * 1000)),
    "onnx regex of other states": matched("(a|b)*a(a|b){1000}", 100_000),
    "onnx regex of other states and letters": matched("([ab]*[a][ab]{900}){1,2}", 50_000),
    "onnx regex of many texts": lambda: ran(
        [node("Expand", ["x", "s"], ["e"]), node("RegexFullMatch", ["e"], ["y"], pattern="(a|b)*a(a|b){500}")],
        [texts("x", "ab" * 20), ints("s", 1 << 12)]),
    "onnx long sequence": inserted(5_000, False),
    "onnx long sequences": inserted(5_000, True),
    "onnx scans in scans": scanned(5, 100),
    "onnx maps in maps": mapped(5, 100),
    "onnx attention of wide values": from_nothing(
        (1, 1, 1 << 18, 1), [node("ConstantOfShape", ["t"], ["v"]), node("Attention", ["x", "k", "v"], ["y"])],
        ints("t", 1, 1, 1, 1 << 18), shaped("k", 1, 1, 1, 1)),
    "onnx attention of many heads": from_nothing(
        (1, 1 << 18, 1, 1), [node("ConstantOfShape", ["t"], ["k"]), node("Attention", ["x", "k", "k"], ["y"])],
        ints("t", 1, 1, 1 << 18, 1)),
    "onnx attention of a wide mask": from_nothing(
        (1 << 12, 1 << 9, 1, 1), [node("Attention", ["k", "k", "k", "x"], ["y"])], shaped("k", 1, 1, 1 << 9, 1)),
    "onnx linear attention": over((1, 1 << 16, 1), "LinearAttention", shaped("k", 1, 1 << 16, 1),
                                  shaped("v", 1, 1 << 16, 1), q_num_heads=1, kv_num_heads=1),
    "onnx rotary places": from_nothing(
        (1 << 20, 1), [node("ConstantOfShape", ["t"], ["c"]), node("Cast", ["x"], ["p"], to=7),
                       node("RotaryEmbedding", ["q", "c", "c", "p"], ["y"])], ints("t", 2, 1 << 18),
        shaped("q", 1, 1, 1, 4)),
    "onnx bias of a layer norm": over((1 << 18, 1), "LayerNormalization", shaped("g", 1), shaped("h", 1, 1 << 14)),
    "onnx bias of a group norm": over((1, 1, 1 << 20), "GroupNormalization", shaped("g", 1 << 10), shaped("h", 1 << 10),
                                      num_groups=1),
    "onnx zero points": from_nothing(
        (1 << 18, 1), [node("Cast", ["x"], ["a"], to=2), node("MatMulInteger", ["a", "b", "z"], ["y"])],
        make_tensor("b", np.ones((1, 1), np.uint8), "uint8"), make_tensor("z", np.ones((1, 1 << 14), np.uint8),
        "uint8")),
    "onnx sums of an outer einsum": outer("Einsum", (1 << 15,), (1 << 15,), equation="i,j->"),
    "onnx einsum of many": lambda: ran(
        [node("Einsum", ["x"] * 6, ["y"], equation="a,b,c,d,e,f->")], [shaped("x", 64)]),
    "onnx einsum of a path": lambda: ran(
        [node("Einsum", ["x", "x", "x", "x"], ["y"], equation="ab,cd,ef,gh->aceg")], [shaped("x", 64, 4)]),
    "onnx products of nothing": chained("MatMul", 200, (1400, 1400), lambda v: [v, "x"]),
    "onnx integer products": from_nothing((1400, 1400), [node("MatMul", ["x", "x"], ["y"])], kind="int64"),
    "onnx determinants": chained("Det", 1, (1400, 1400), lambda v: [v]),
    "onnx exponentials of nothing": chained("Exp", 2000, (1 << 20,), lambda v: [v]),
    "onnx random chain": lambda: ran(
        [node("RandomNormal", [], [f"r{i}"], shape=[1 << 20]) for i in range(500)] + [node("Neg", ["r0"], ["y"])]),
    "onnx loop of many nodes": steps_of_many_nodes(100),
    "onnx loop of large values": looped(
        [node("ConstantOfShape", ["e"], ["t"]), node("Exp", ["t"], ["u"]), node("ReduceSum", ["u"], ["s2"])],
        also=[ints("e", 1 << 20)]),
    "onnx loop over a sequence": lambda: ran(
        [node("SequenceEmpty", [], ["x"]), node("Loop", ["m", "", "x"], ["y"], body=Message(
            "Graph", name="body", input=[info("i", kind=7), info("c", kind=9), info("s")],
            node=[node("SequenceInsert", ["s", "i"], ["s2"])], output=[info("c"), info("s2")]))], [one("m", HUGE)]),
    "onnx loop of random numbers": looped([node("RandomNormalLike", ["t"], ["s2"])], also=[shaped("t", 1000)]),
    "onnx loop of sorts": looped([node("TopK", ["t", "k"], ["s2", "j"])], also=[shaped("t", 5000), ints("k", 5000)]),
    "onnx loop of products": looped([node("MatMul", ["t", "t"], ["s2"])], also=[shaped("t", 200, 200)]),
    "onnx loop of einsums": looped(
        [node("Einsum", ["t", "t"], ["s2"], equation="ab,bc->ac")], also=[shaped("t", 200, 200)]),
    "onnx loop of convolutions": looped(
        [node("Conv", ["t", "w"], ["s2"])], also=[shaped("t", 1, 16, 40, 40), shaped("w", 16, 16, 5, 5)]),
    "onnx loop of expressions": looped(
        [node("RegexFullMatch", ["t"], ["m2"], pattern="(a|b)*c"), node("Neg", ["s"], ["s2"])],
        also=[texts("t", "ab" * 2000)]),
    "onnx loop of words": looped(
        [node("StringSplit", ["t"], ["q"], delimiter="a"), node("Neg", ["s"], ["s2"])], also=[texts("t", "ab" * 2000)]),
    "onnx loop of boxes": looped(
        [node("NonMaxSuppression", ["b", "d", "n"], ["q"]), node("Neg", ["s"], ["s2"])],
        also=[shaped("b", 1, 100, 4), shaped("d", 1, 5, 100), one("n", 100)]),
    "onnx loop of layers": looped(
        [node("LSTM", ["t", "w", "r"], ["q", "s2", "h"])],
        also=[shaped("t", 50, 1, 1), shaped("w", 1, 4, 1), shaped("r", 1, 4, 1)]),
    "onnx loop of branches": looped([
        node("ReduceSum", ["s"], ["k0"]), node("Cast", ["k0"], ["k"], to=9),
        node("If", ["k"], ["s2"],
             then_branch=Message("Graph", name="t", node=[node("Add", ["s", "s"], ["p"])], output=[info("p")]),
             else_branch=Message("Graph", name="e", node=[node("Neg", ["s"], ["q"])], output=[info("q")]))]),
    "onnx reductions of views": lambda: ran(
        [node("Expand", ["o", "e"], ["q"])] + [node("ReduceLogSumExp", ["q"], [f"y{i}"]) for i in range(1000)],
        [shaped("o", 1), ints("e", 1 << 20)], outputs=[f"y{i}" for i in range(1000)]),
    "onnx long kernel": over((1, 1, 1 << 20), "Conv", shaped("w", 1, 1, 1 << 13)),
    "onnx places of a pool": from_nothing(
        (1, 1, 1000, 1000), [node("MaxPool", ["x"], ["y", "z"], kernel_shape=[15, 15], strides=[1, 1])]),
    "onnx shifts": from_nothing((1 << 20,), [node("BitShift", ["x", "x"], ["y"], direction="RIGHT")], kind="uint64"),
    "onnx draws": over(
        (1, 1400), "Multinomial", sample_size=1 << 19),
    "onnx split and kept": lambda: ran(
        [node("ConstantOfShape", ["s"], ["x"]), node("Split", ["x"], [f"p{i}" for i in range(2000)], axis=0)]
        + [node("Exp", [f"p{i}"], [f"y{i}"]) for i in range(2000)], [ints("s", 2000 * 1000)],
        outputs=[f"y{i}" for i in range(2000)]),
    "onnx columns of blocks": simple("Col2Im", shaped("x", 1, 1, 1), ints("a", 1 << 20), ints("b", 1 << 19)),
    "onnx stft window": from_nothing(
        (1, 1 << 18, 1), [node("STFT", ["x", "t", "w", "l"], ["y"])], one("t", 1), shaped("w", 1 << 14), one("l", 1)),
    "onnx stft frames": over((1, 1 << 18, 1), "STFT", one("t", 1), shaped("w", 1 << 12)),
    "onnx imputer": of_learning("Imputer", (1 << 18, 1), imputed_value_floats=[0.5] * (1 << 13)),
    "onnx scaler": of_learning("Scaler", (1 << 18, 1), offset=[0.5] * (1 << 13)),
    "onnx classes of a classifier": of_learning(
        "LinearClassifier", (1 << 18, 1), coefficients=[1.0] * (1 << 13), classlabels_ints=list(range(1 << 13))),
    "onnx zip map": of_learning("ZipMap", (1 << 20, 1), classlabels_int64s=[1]),
    "onnx labels": of_learning("LabelEncoder", (1 << 21,), keys_floats=[1.0], values_floats=[1.0]),
    "onnx trees": of_learning(
        "TreeEnsembleRegressor", (1 << 16, 1), nodes_treeids=list(range(2000)), nodes_nodeids=[0] * 2000,
        nodes_featureids=[0] * 2000, nodes_modes=["LEAF"] * 2000, nodes_truenodeids=[0] * 2000,
        nodes_falsenodeids=[0] * 2000, nodes_values=[0.0] * 2000, target_ids=[0], target_nodeids=[0],
        target_treeids=[0], target_weights=[1.0]),
    "onnx a deep tree": of_learning(
        "TreeEnsembleRegressor", (1 << 18, 1), nodes_treeids=[0] * 5000, nodes_nodeids=list(range(5000)),
        nodes_featureids=[0] * 5000, nodes_modes=["BRANCH_LEQ"] * 4999 + ["LEAF"],
        nodes_truenodeids=[*range(1, 5000), 0], nodes_falsenodeids=[*range(1, 5000), 0], nodes_values=[0.0] * 5000,
        target_ids=[0], target_nodeids=[4999], target_treeids=[0], target_weights=[1.0]),
    "onnx wide graph": functools.partial(wide_graph, 3000),
    "onnx places of a transposed kernel": from_nothing(
        (1, 1, 640, 640), [node("ConvTranspose", ["o", "x"], ["y"])], shaped("o", 1, 1, 1, 1)),
    "onnx groups of adam": trained("Adam", 4, 3, alpha=0.9, beta=0.9),
    "onnx groups of momentum": trained(
        "Momentum", 3, 2, alpha=0.9, beta=0.9, mode="standard", norm_coefficient=0.1),
    "onnx rois of a whole image": from_nothing(
        (1, 1, 500, 900),
        [node("Expand", ["b", "e"], ["r"]), node("MaxRoiPool", ["x", "r"], ["y"], pooled_shape=[1, 1])],
        floats("b", 0, 0, 0, 900, 500), ints("e", 30_000, 5)),
    "onnx parts of sequences": from_nothing(
        (8000,), [node("SplitToSequence", ["x"], [f"y{i}"]) for i in range(60)], outputs=[f"y{i}" for i in range(60)]),
    "onnx loop of vectors' products": unread("MatMul", 20, inputs=("x", "x")),
    "onnx loop of resizing": unread(
        "Resize", 1, (1, 1, 1 << 17), ints("z", 1, 1, (1 << 17) - 1), inputs=("x", "", "", "z"), mode="cubic"),
    "onnx loop of powers": unread("Pow", 20, inputs=("x", "x")),
}  # fmt: skip
for _name in ("__class__", "__import__", "eval", "op", "_TABLE", "torch.add", "os.system"):
    BOMBS[f"onnx op {_name}"] = simple(_name, shaped("x", 4))
for _domain in ("ai.onnx.contrib", "torch", "aten", "__builtins__", "torch.ops.aten"):
    BOMBS[f"onnx domain {_domain}"] = of_domain("from_file", _domain, [shaped("x", 4)])
