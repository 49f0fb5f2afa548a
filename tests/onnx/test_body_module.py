"""Control flow bodies of loaded ONNX models get their code when they are called first."""

import copy
import inspect
import pickle
import threading

import pytest

import torchlite as torch
from tests.hostile.onnx_files import info, model, node
from torchlite.fx import GraphModule
from torchlite.onnx import _body_module
from torchlite.onnx._body_module import BodyModule
from torchlite.onnx._protobuf import Message


def branching(depth: int = 0) -> torch.fx.GraphModule:
    """A model that negates or exponentiates its input, by a condition; with more such nodes inside the branches."""

    def branch(kind: str, level: int) -> Message:
        name = f"{kind}{level}"
        nodes = [node(kind, ["x"], [f"{name}_y"])]
        if level:
            nodes = [node("If", ["c"], [f"{name}_y"], then_branch=branch("Neg", level - 1),
                          else_branch=branch("Exp", level - 1))]  # fmt: skip
        return Message("Graph", name=name, node=nodes, output=[info(f"{name}_y")])

    top = node("If", ["c"], ["y"], then_branch=branch("Neg", depth), else_branch=branch("Exp", depth))
    return torch.onnx.load(model([top], [info("x", 1), info("c", kind=9)], ["y"]))


def bodies(module: torch.fx.GraphModule) -> list[BodyModule]:
    return [m for m in module.modules() if isinstance(m, BodyModule)]


def has_code(body: BodyModule) -> bool:
    return type(body).forward is not _body_module._compile_and_call


X, YES, NO = torch.zeros(1), torch.tensor(True), torch.tensor(False)


def test_a_branch_that_is_not_taken_has_no_code():
    module = branching()
    assert not any(map(has_code, bodies(module)))
    assert module(X, YES).tolist() == [0]
    assert sorted(map(has_code, bodies(module))) == [False, True]
    assert module(X, NO).tolist() == [1] and all(map(has_code, bodies(module)))
    assert module(X, YES).tolist() == [0]


def test_each_body_is_compiled_once(monkeypatch):
    counted = []
    whole = GraphModule.recompile
    monkeypatch.setattr(GraphModule, "recompile", lambda self: counted.append(self) or whole(self))
    module = branching(4)
    assert len(bodies(module)) == 62 and len(counted) == 1
    for _ in range(2):
        assert module(X, YES).tolist() == [0]
        assert len(counted) == 6  # the model, and the way through the branches


def test_the_code_can_be_read_before_a_call():
    first, second = bodies(branching())
    assert first.code.lstrip().startswith("def forward(self") and has_code(first) and not has_code(second)
    assert "def forward" in str(second) and has_code(second)


def test_a_changed_graph_is_called():
    module = branching()
    calls = {n: body for body in bodies(module) for n in body.graph.nodes if n.op == "call_function"}
    ((negation, then),) = [(n, body) for n, body in calls.items() if n.target.__name__.lower() == "neg"]
    assert module(X + 2, YES).tolist() == [-2]
    negation.target = torch.square
    assert module(X + 2, YES).tolist() == [-2]
    then.recompile()
    assert not has_code(then) and module(X + 2, YES).tolist() == [4]
    module.recompile()
    assert module(X + 2, YES).tolist() == [4]


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("make", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies(called, make):
    module = branching(1)
    if called:
        module(X, YES)
    again = make(module)
    assert again(X, YES).tolist() == [0] and again(X, NO).tolist() == [1] == module(X, NO).tolist()


def test_threads_that_call_at_once():
    for _ in range(20):
        module = branching(2)
        start, results = threading.Barrier(4), []

        def work(module=module, start=start, results=results):
            start.wait()
            results.append(module(X, NO).item())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [1] * 4


def test_a_gradient_flows_through_a_branch():
    module, x = branching(1), torch.ones(1, requires_grad=True)
    module(x, NO).sum().backward()
    assert x.grad.tolist() == pytest.approx([2.718281], rel=1e-6)


def test_bodies_are_captured():
    """A later call may take another branch than the one that made the program; it is optimized too."""
    module = branching(1)
    calls = inspect.getclosurevars(type(module).forward).nonlocals["calls"]
    with torch.no_grad():
        for condition, want in ((YES, 0), (YES, 0), (NO, 1), (NO, 1), (YES, 0), (NO, 1)):
            assert module(X, condition).tolist() == [want]
    assert calls.function.replays and not calls.function.reasons
    compiled = torch.compile(branching(1), fullgraph=True)
    for condition, want in ((YES, 0), (YES, 0), (NO, 1), (NO, 1)):
        assert compiled(X, condition).tolist() == [want]
