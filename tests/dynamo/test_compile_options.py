"""Options of `torch.compile`: custom backends, `explain`, logs, marks."""

from __future__ import annotations

import importlib
import sys
import warnings

import pytest

import torchlite as torch
from torchlite import nn
from torchlite._dynamo.compile_options import compile_mode_of
from torchlite._dynamo.exc import BackendCompilerFailed, InvalidBackend, Unsupported
from torchlite._dynamo.testing import CompileCounter, EagerAndRecordGraphs, same


def test_a_compiler_gets_graphs():
    given = []

    def multiplying(graph, inputs):
        given.append(inputs)
        for node in graph.graph.nodes:
            if node.target is torch.ops.aten.add.Tensor:
                node.target = torch.ops.aten.mul.Tensor
        graph.recompile()
        return graph.forward

    f = torch.compile(lambda x, d, k=2: {"a": x + d["b"], "n": k}, backend=multiplying, fullgraph=True)
    x, y = torch.full((2,), 3.0), torch.full((2,), 4.0)
    for _ in range(3):
        found = f(x, {"b": y})
        assert found["a"].tolist() == [12.0, 12.0] and found["n"] == 2
    assert len(given) == 1 and given[0][0] is x and given[0][1] is y
    assert f(x.double(), {"b": y.double()})["a"].dtype is torch.float64 and len(given) == 2


def test_graphs_of_modules_train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5))
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    for i in range(3):
        outcomes = []
        for function in (compiled, model):
            torch.manual_seed(i)
            x = torch.randn(5, 4)
            found = function(x)
            model.zero_grad()
            found.sum().backward()
            outcomes.append((found.tolist(), model[0].weight.grad.tolist(), torch.rand(1).item()))
        assert outcomes[0] == outcomes[1]
    assert counter.frame_count == 1 and counter.op_count >= 3
    model.eval()
    compiled(torch.randn(5, 4))
    assert counter.frame_count == 2


def test_parts_of_functions_have_graphs():
    recorder, weight = EagerAndRecordGraphs(), torch.ones(2, requires_grad=True)

    def f(x):
        (x * weight).sum().backward()
        return x + 1

    compiled = torch.compile(f, backend=recorder)
    with pytest.warns(UserWarning, match="a part of .*f runs eagerly, because a backward pass runs"):
        assert compiled(torch.ones(2)).tolist() == [2, 2]
    compiled(torch.ones(2))
    targets = [[n.target for n in g.graph.nodes if n.op == "call_function"] for g in recorder.graphs]
    aten = torch.ops.aten
    assert weight.grad.tolist() == [2, 2] and targets == [[aten.mul.Tensor, aten.sum.default], [aten.add.Tensor]]
    with pytest.warns(UserWarning, match="elements are read by item"):
        assert torch.compile(lambda x: x * x.item(), backend=recorder)(torch.full((1,), 3.0)).item() == 9


def test_compilers_have_names():
    @torch._dynamo.register_backend(name="a_compiler_of_tests")
    def compiler(graph, inputs, mode=None):
        assert mode in (None, "default")
        return lambda *given: [t + 1 for t in graph(*given)]

    try:
        assert "a_compiler_of_tests" in torch._dynamo.list_backends()
        assert torch._dynamo.lookup_backend("a_compiler_of_tests") is compiler
        assert torch.compile(lambda x: x * 2, backend="a_compiler_of_tests")(torch.ones(1)).item() == 3
        assert torch.compile(lambda x: x * 2, backend="a_compiler_of_tests", mode="default")(torch.ones(1)).item() == 3
        with pytest.raises(AssertionError, match="duplicate name"):
            torch._dynamo.register_backend(compiler, "a_compiler_of_tests")
    finally:
        from torchlite._dynamo import backends

        del backends._TAGS["a_compiler_of_tests"], backends._FUNCTIONS["a_compiler_of_tests"]
    assert torch._dynamo.list_backends() == ["inductor"]
    assert set(torch._dynamo.list_backends(None)) >= {"aot_eager", "eager", "inductor"}
    with pytest.raises(InvalidBackend, match="Invalid backend: 'a_compiler_of_tests'"):
        torch._dynamo.lookup_backend("a_compiler_of_tests")
    assert torch._dynamo.lookup_backend("eager")(torch.fx.symbolic_trace(lambda x: x + 1), [])(1) == 2
    assert same({"a": [torch.ones(1)]}, {"a": [torch.ones(1)]}) and not same(torch.ones(1), torch.zeros(1))


def test_explain_of_what_is_compiled_already():
    def f(x):
        return torch.ones(int(x.exp().sum())) if x.add_(1).sum() > 0 else x

    for compiled in (torch.compile(f), torch.compile(torch.compile(f))):
        found = torch._dynamo.explain(compiled)(torch.ones(2))
        assert found.graph_count == 3 and found.graph_break_count == 2
        assert ["condition" in found.break_reasons[0].reason, "elements are read" in found.break_reasons[1].reason] == [
            True,
            True,
        ]
    module = torch.compile(torch.nn.ReLU())
    assert torch._dynamo.explain(module)(torch.ones(2)).op_count == 1


def test_a_warning_names_the_line_of_the_call():
    g = torch.compile(lambda x: x.add_(1).sum() > 0 and x)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            g(torch.ones(2))
    assert [w.filename for w in seen if "runs eagerly" in str(w.message)] == [__file__]


def test_explain_counts_graphs_and_gives_break_reasons():
    found = torch._dynamo.explain(lambda x: (x * 2).relu())(torch.ones(2))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 2)
    assert found.ops_per_graph == [[torch.ops.aten.mul.Tensor, torch.ops.aten.relu.default]]

    def f(x):
        print("here")
        return x

    found = torch._dynamo.explain(f)(torch.ones(2))
    assert (found.graph_count, found.graph_break_count) == (0, 1)
    (reason,) = found.break_reasons
    assert "it calls print" in reason.reason and reason.user_stack[0].line == 'print("here")'
    assert "Graph Break Count: 1" in str(found)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"mode": "fast"}, r"Unrecognized mode=fast, should be one of: default, lite, reduce-overhead, max-"),
        ({"options": {"faster": True}}, "Unexpected optimization option faster, known options are"),
        ({"options": {"max_autotune": "yes"}}, "Unexpected type of attr max_autotune, got str should be bool"),
        ({"options": {"cpp.threads": True}}, "Unexpected type of attr cpp.threads, got bool should be int"),
        ({"options": {"min_overlap_ratio": 1}}, "Unexpected type of attr min_overlap_ratio, got int should be float"),
        ({"mode": "default", "options": {}}, "Either mode or options can be specified"),
    ],
)
def test_modes_and_options_are_checked(options, message):
    with pytest.raises(RuntimeError, match=message):
        torch.compile(lambda x: x, **options)
    torch.compile(lambda x: x, options={"triton.cudagraphs": True, "epilogue-fusion": False})
    assert (
        compile_mode_of(None, {"triton.cudagraphs": True}) == "reduce-overhead"
        and compile_mode_of("default", None) == "default"
    )
    assert compile_mode_of(None, {"max_autotune": True}) == "max-autotune-no-cudagraphs"
    assert compile_mode_of(None, {"max-autotune": True, "triton.cudagraphs": True}) == "max-autotune"
    with pytest.raises(AssertionError, match="A callable function is expected, but <class 'int'> is provided"):
        torch.compile(3)
    with pytest.raises(AssertionError, match="Expected enable to be a bool, got <class 'int'>"):
        torch.compile(lambda x: x, dynamic=3)


def test_disabled_functions_break_the_graph():
    calls = []

    @torch.compiler.disable
    def apart(x):
        return x + 1

    def f(x):
        return apart(x) * 2

    with pytest.raises(Unsupported, match="it calls apart, which torch.compiler.disable keeps from it"):
        torch.compile(f, fullgraph=True)(torch.ones(1))
    with pytest.warns(UserWarning, match="torch.compiler.disable"):
        assert torch.compile(f)(torch.ones(1)).item() == 4

    @torch.compiler.assume_constant_result
    def settings():
        calls.append(1)
        return 3

    compiled = torch.compile(lambda x: x * settings(), fullgraph=True)
    assert [compiled(torch.ones(1)).item() for _ in range(5)] == [3] * 5 and len(calls) == 2


def test_disable_reason_and_allow_in_graph(capsys):
    @torch.compiler.disable(reason="it is slow")
    def apart(x):
        return x + 1

    with pytest.raises(Unsupported, match="torch.compiler.disable keeps from it: it is slow"):
        torch.compile(lambda x: apart(x), fullgraph=True)(torch.ones(1))

    @torch.compiler.allow_in_graph
    def telling(x):
        print("here")
        return x * 3

    compiled = torch.compile(lambda x: telling(x) + 1, fullgraph=True)
    assert [compiled(torch.full((1,), float(i))).item() for i in range(5)] == [1.0, 4.0, 7.0, 10.0, 13.0]
    assert capsys.readouterr().out == "here\n" * 2

    def original(x, n=2):
        import textwrap

        return x * len(textwrap.dedent("ab")) * n

    @torch.compiler.substitute_in_graph(original)
    def plain(x, n=2):
        return x * 2 * n

    compiled = torch.compile(lambda x: original(x), fullgraph=True)
    assert [compiled(torch.ones(1)).item() for _ in range(4)] == [4.0] * 4
    with pytest.raises(TypeError, match="Signature mismatch between"):
        torch.compiler.substitute_in_graph(original)(lambda x: x)
    for mark in (torch.compiler.allow_in_graph, torch._dynamo.disallow_in_graph):
        with pytest.raises(AssertionError, match="expects a callable"):
            mark(3)
    left = torch._dynamo.decorators.disallow_in_graph(lambda x: x + 1)
    with pytest.raises(Unsupported, match="torch.compiler.disable keeps from it"):
        torch.compile(lambda x: left(x), fullgraph=True)(torch.ones(1))


def test_is_compiling_is_true_in_compiled_functions(capsys):
    def f(x):
        if not torch.compiler.is_compiling():
            print("as it is written")
        return x + 1

    compiled = torch.compile(f, fullgraph=True)
    for _ in range(4):
        compiled(torch.ones(2))
    assert not capsys.readouterr().out
    with torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(2))
    assert capsys.readouterr().out == "as it is written\n"
    told = torch.compile(lambda x: (x + 1, torch.compiler.is_dynamo_compiling()))
    assert told(torch.ones(1))[1] and not torch.compiler.is_dynamo_compiling() and not torch.compiler.is_compiling()


def test_stances_before_capture():
    compiled = torch.compile(lambda x: x + 1)
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="Detected recompile"):
        compiled(torch.ones(1))
    told = torch.compile(lambda x: torch.compiler.is_compiling())
    with torch.compiler.set_stance("eager_on_recompile"):
        assert not told(torch.ones(1))
    assert told(torch.ones(1))


def test_error_on_graph_break():
    def f(x):
        torch._dynamo.graph_break()
        return x

    with torch._dynamo.error_on_graph_break(True), pytest.raises(Unsupported, match="graph_break"):
        torch.compile(f)(torch.ones(1))
    with torch._dynamo.error_on_graph_break(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compile(f, fullgraph=True)(torch.ones(1))
    run = torch._dynamo.optimize_assert("inductor")(f)
    with pytest.raises(Unsupported, match="graph_break"):
        run(torch.ones(1))


def test_set_logs_selects_the_logs(capsys):
    def f(x, n):
        return x * n

    torch._logging.set_logs(recompiles=True, output_code=True, graph_breaks=True)
    try:
        compiled = torch.compile(f, dynamic=False)
        for n in (2, 2, 2, 3):
            compiled(torch.ones(1), n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.compile(lambda x: print(x))(torch.ones(1))
        told = capsys.readouterr().err
        assert "[torchlite recompiles] Recompiling function f in " in told and "[torchlite code] def f(" in told
        assert "[torchlite graph_breaks]" in told and "it calls print" in told
        torch._logging.set_logs()
        torch.compile(f)(torch.ones(1), 4)
        assert not capsys.readouterr().err
        with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
            torch._logging.set_logs(nonsense=True)
    finally:
        torch._logging.set_logs()


def test_a_break_before_modules_load_is_one_at_once(monkeypatch):
    def f(x):
        print(x.ndim)
        importlib.import_module("colorsys")
        return x

    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with pytest.warns(UserWarning, match="it calls print"):
        torch.compile(f)(torch.ones(1))
    assert "colorsys" in sys.modules


def test_an_error_of_a_compiler_is_named():
    def failing(graph, inputs):
        raise ValueError("no such op")

    compiled = torch.compile(lambda x: x + 1, backend=failing)
    for _ in range(2):
        with pytest.raises(BackendCompilerFailed, match="backend='failing' raised:\nValueError: no such op") as caught:
            compiled(torch.ones(1))
        assert isinstance(caught.value.__cause__, ValueError) and caught.value.inner_exception is caught.value.__cause__


def test_settings_of_pytorchs_compiler(monkeypatch):
    from torchlite._inductor import config, list_mode_options, list_options

    assert config.epilogue_fusion is True and config.max_autotune is False and config.triton.cudagraph_trees is True
    assert set(list_options()) >= {"max_autotune", "triton.cudagraphs"} and "max-autotune" in list_mode_options()
    assert list_mode_options("reduce-overhead") == {"triton.cudagraphs": True}
    assert compile_mode_of(None, None) is None
    with config.patch(max_autotune=True):
        assert (
            compile_mode_of(None, None) == "max-autotune-no-cudagraphs"
            and compile_mode_of("default", None) == "default"
        )
    monkeypatch.setattr(config.triton, "cudagraphs", True)
    assert (
        compile_mode_of(None, None) == "reduce-overhead" and compile_mode_of(None, {"triton.cudagraphs": False}) is None
    )
    with pytest.raises(AttributeError, match="does not exist"), config.patch(nothing_of_the_kind=True):
        raise AssertionError


def test_settings_change_within_a_context():
    import torchlite._dynamo.config as config

    with config.patch(suppress_errors=True):
        assert config.suppress_errors
    assert not config.suppress_errors and config.patch("verbose", True)(lambda: config.verbose)()
    with pytest.raises(AttributeError, match="torchlite._dynamo.config.nothing does not exist"):
        with config.patch(nothing=1):
            pass
