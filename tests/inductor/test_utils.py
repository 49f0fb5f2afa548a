"""The sources of compiled programs."""

import torchlite as torch
from torchlite._dynamo.compiled_function import CompiledFunction
from torchlite._inductor.utils import run_and_get_code


def test_the_source_of_one_call():
    calls = []

    def function(x):
        calls.append(1)
        return (x * 2 + 1).sum()

    result, sources = run_and_get_code(torch.compile(lambda x: (x * 2 + 1).sum()), torch.ones(3))
    assert result.item() == 9.0 and len(sources) == 1 and "sum(" in sources[0]
    run_and_get_code(lambda x: torch.compile(torch.sin)(x) + function(x), torch.ones(3))
    assert len(calls) == 1


def test_what_was_compiled_before_is_compiled_anew():
    compiled = CompiledFunction(lambda x: x.cos() + 1, "cosine")
    for _ in range(4):
        compiled(torch.ones(2))
    assert "cos(" in run_and_get_code(compiled, torch.ones(2))[1][0]
    assert compiled.replays == 0


def test_equal_programs_are_listed_once():
    def run(x):
        return [torch.compile(torch.exp)(x) for _ in range(3)]

    results, sources = run_and_get_code(run, torch.zeros(2))
    assert len(results) == 3 and len(sources) == 1


def test_eager_functions_have_no_source():
    assert run_and_get_code(torch.sin, torch.zeros(1))[1] == []
    assert run_and_get_code(lambda: run_and_get_code(torch.compile(torch.sin), torch.zeros(1)))[1] == []


def test_a_training_step_has_its_program():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    before = model.weight.detach().clone()
    _, sources = run_and_get_code(step, torch.ones(4, 3))
    assert not torch.equal(model.weight, before)
    assert any("step" in source for source in sources)
