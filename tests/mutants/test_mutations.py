"""What a mutation is, which tests are chosen for it, and what is known to be equivalent."""

import contextlib
import json
import pathlib
from types import SimpleNamespace

import pytest

from tests.mutants.__main__ import EQUIVALENT, ROOT, Run, Verdict, part_of, read_equivalent, room_of, survivors_of
from tests.mutants.covering_tests import Covering
from tests.mutants.mutations import compiles, mutations_of


def edits(source):
    return {m.changed_lines(source)[1] for m in mutations_of("torchlite/x.py", source) if compiles(m.apply(source))}


@pytest.mark.parametrize(
    "source,wanted",
    [
        ("f = lambda a, b: a < b", {"f = lambda a, b: a <= b"}),
        ("f = lambda a, b: a is not b", {"f = lambda a, b: a is b"}),
        (
            "f = lambda a, b: a and b",
            {"f = lambda a, b: a or b", "f = lambda a, b: True and b", "f = lambda a, b: a and True"},
        ),
        ("f = lambda a, b: g(a, b)", {"f = lambda a, b: g(b, a)"}),
        ("def f(flag=True): return flag", {"def f(flag=False): return flag"}),
        ("def f(x):\n    bump(x)\n    return x", {"pass"}),
        ("def f(x):\n    x.y = x", {"pass"}),
        ("def f():\n    raise ValueError('no')", {"pass"}),
        ("def f(é, b): return 'é', é - b", {"def f(é, b): return 'é', é + b"}),
        ("def f():\n    'text'\n    x: int = y", set()),
        ("f(zip(a, b, strict=True), stacklevel=2)", {"f(zip(b, a, strict=True), stacklevel=2)"}),
    ],
)
def test_edits(source, wanted):
    assert edits(source) == wanted


def test_a_lock():
    source = "def f(self):\n    with self._lock:\n        g()"
    assert {'with __import__("contextlib").nullcontext():', "pass"} == edits(source)


def test_an_op_and_a_function_are_known():
    source = "@composite('name(Tensor x, scale=1.0)', tags=1 + TWO)\ndef name(F, x, scale):\n    return F.mul(x, 2)"
    found = mutations_of("torchlite/_ops/x.py", source)
    assert {m.op for m in found if not m.in_function} == {"name"}
    assert {m.kind for m in found if m.in_function} == {"constant"}


def test_tests_of_a_line(tmp_path):
    part = {"tests": [["tests/nn/test_a.py::test_x[1]", 0.5], ["tests/optim/test_b.py::test_y", 0.1]]}
    part["files"] = {"torchlite/nn/modules/linear.py": {"7": [1, 0]}}
    (tmp_path / "1.json").write_text(json.dumps(part))
    covering = Covering(tmp_path, ROOT)
    source = "\n" * 6 + "f = lambda: 1 + x\n"
    mutation = next(m for m in mutations_of("torchlite/nn/modules/linear.py", source) if m.in_function)
    assert covering.folder(mutation.path) == "tests/nn"
    assert covering.quick(mutation) == ["tests/nn/test_a.py::test_x[1]", "tests/optim/test_b.py::test_y"]
    assert covering.functions(mutation) == ["tests/nn/test_a.py::test_x", "tests/optim/test_b.py::test_y"]
    assert Covering(None, ROOT).functions(mutation) == ["tests/nn"]
    assert room_of("backends/torchlite_backends/numpy/blas.py") == "numpy" and room_of("torchlite/hub.py") == "root"


def test_equivalent_ones_are_there():
    assert EQUIVALENT.exists()
    for (path, before, after), reason in read_equivalent().items():
        text = " ".join(pathlib.Path(ROOT, path).read_text(encoding="utf-8").split())
        assert before in text and before != after and len(reason) > 20, before


def test_survivors_are_found_again_on_another_line(tmp_path):
    path = "tests/mutants/mutations.py"
    source = pathlib.Path(ROOT, path).read_text(encoding="utf-8")
    mutation = mutations_of(path, source)[0]
    before, after = mutation.changed_lines(source)
    outcomes = ["survivor", "killed", "equivalent"]
    verdicts = [
        {"mutation": {"path": path, "line": mutation.line + 9}, "before": before, "after": after, "outcome": outcome}
        for outcome in outcomes
    ]
    verdicts.append({**verdicts[0], "before": "a line that is gone"})
    (tmp_path / "verdicts.json").write_text(json.dumps(verdicts))
    assert survivors_of(tmp_path / "verdicts.json") == [(mutation, source)]


def test_parts_of_the_map():
    assert part_of("tests/ops/test_ops.py") == "tests-ops-test_ops" and part_of("tests/ops/") == "tests-ops"


@pytest.mark.parametrize("without, outcome, by", [(0, "killed", "the tests do not end"), (1, "slow", "time limit")])
def test_tests_that_do_not_end_count_if_they_do_without_the_mutation(without, outcome, by):
    class Copy:
        @contextlib.contextmanager
        def mutated(self, mutation, source):
            self.status = None
            yield
            self.status = without

        def run(self, tests, limit):
            assert tests == ["tests/a.py::test"] and limit <= (8 if self.status is None else 2)
            return self.status, ""

    run = Run.__new__(Run)
    run.arguments, run.clean, run.rounds = SimpleNamespace(limit=8), {}, lambda mutation: [["tests/a.py::test"]]
    verdict = Verdict(mutations_of("a.py", "x = 1\n")[0], "", "", "survivor")
    run.try_rounds(verdict, verdict.mutation, "", Copy())
    assert (verdict.outcome, verdict.by) == (outcome, by)
