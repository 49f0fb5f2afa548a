"""The places of loaded programs: what they keep, and what they take at once."""

import pytest

import torchlite as torch
from torchlite.jit._compilation_unit import ScriptProgram


def loaded(body, *names):
    text = f"def f({', '.join(f'{name}: Tensor' for name in names)}):\n  return {body}\n"
    return ScriptProgram({"__torch__": text}).find("__torch__.f")


ALL = slice(None)
E = 9223372036854775807


@pytest.mark.parametrize(
    ("body", "index"),
    [
        (f"torch.slice(torch.slice(x, 1, 0, {E}, 2), 2, 1, {E}, 2)", (ALL, slice(None, None, 2), slice(1, None, 2))),
        ("torch.select(torch.select(x, 0, 1), 1, -1)", (1, ALL, -1)),
        (f"torch.select(torch.slice(x, 1, 1, {E}, 1), 0, 2)", (2, slice(1, None))),
        ("torch.slice(torch.select(x, 1, 2), 1, 0, 3, 1)", (ALL, 2, slice(3))),
        ("torch.unsqueeze(torch.unsqueeze(x, 1), 2)", (ALL, None, None)),
        ("torch.unsqueeze(torch.select(x, 0, 0), 2)", (0, ALL, ALL, None)),
        ("torch.select(torch.unsqueeze(x, 0), 1, 1)", (None, 1)),
        ("torch.select(torch.unsqueeze(x, 1), 1, 0)", ()),
        ("torch.slice(torch.unsqueeze(torch.select(x, 1, 1), 1), 2, 1, 3, 1)", (ALL, 1, None, slice(1, 3))),
    ],
)  # fmt: skip
def test_parts_of_parts(device, body, index):
    x = torch.arange(60.0, device=device).reshape(3, 4, 5)
    for given in (x, x.transpose(0, 2).contiguous().transpose(0, 2)):
        run = loaded(body, "x")
        for _ in range(2):
            found = run(given)
            torch.testing.assert_close(found, given[index], rtol=0, atol=0)
            assert found._base is given or found._base is given._base


def test_a_dimension_that_is_cut_twice():
    x = torch.arange(10)
    run = loaded(f"torch.slice(torch.slice(x, 0, 2, {E}, 1), 0, 1, {E}, 3)", "x")
    assert run(x).tolist() == x[2:][1::3].tolist()
    with pytest.raises(IndexError):
        loaded("torch.select(torch.select(x, 0, 1), 0, 1)", "x")(x)


def test_parts_of_lists_are_taken_as_lists():
    run = loaded("torch.slice(torch.slice([1, 2, 3, 4, 5], 1, 5, 1), 0, 4, 2)")
    assert run() == [2, 4]


def test_list_literals_are_new_in_each_call():
    source = """
def f(n: int):
    kept: List[List[int]] = []
    kept.append([1, 2])
    kept.append([n, 2])
    kept[0].append(3)
    kept[1].append(4)
    return kept
"""
    f = torch.jit.CompilationUnit(source).f
    assert [f(5), f(6)] == [[[1, 2, 3], [5, 2, 4]], [[1, 2, 3], [6, 2, 4]]]


def test_keywords_and_numbers_in_their_places():
    x = torch.arange(6.0).reshape(2, 3)
    for body, want in (
        ("torch.cat([x, x], dim=1)", torch.cat([x, x], 1)),
        ("torch.rsub(x, 1.0, 1)", 1 - x),
        ("torch.add(x, 0.5, alpha=1)", x + 0.5),
        ("torch.add(x, 0.5, alpha=2)", x + 1),
        ("torch.sum(x, [-1], True)", x.sum(-1, keepdim=True)),
        ("torch.index(x, annotate(List[Optional[Tensor]], [torch.gt(torch.sum(x, [1], False), 5)]))", x[1:]),
        ("torch.zeros(2, 3, dtype=6, device=torch.device('cpu'))", torch.zeros(2, 3)),
        ("torch.to(x, torch.device('cpu'), 7, False, False, None)", x.double()),
        ("torch.to(x, 4, False, False)", x.long()),
        ("x[:, :torch.size(x, 0)]", x[:, :2]),
    ):
        run = loaded(body, "x")
        for _ in range(2):
            torch.testing.assert_close(run(x), want, rtol=0, atol=0)


def test_the_devices_of_a_program_move_with_it(device):
    program = ScriptProgram({"__torch__": "def f():\n  return torch.zeros([2], device=torch.device('cpu'))\n"})
    run = program.find("__torch__.f")
    assert run().device.type == "cpu"
    program.move(torch.device(device))
    assert run().device.type == torch.device(device).type
    with pytest.raises(RuntimeError, match="device"):
        loaded("torch.zeros([2], device=torch.device('nowhere'))")()
