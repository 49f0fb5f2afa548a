"""`run_decompositions`: to the library's core, by a table that a program changes, and without writes."""

import pytest

import torchlite as torch
from tests.export.pytorch_files import leaves
from tests.graph_models import MODELS
from torchlite._aten.decompositions import is_core

aten = torch.ops.aten
# Ops outside the core set in PyTorch's programs too: the buffers that batch norm writes are results.
BESIDE = {"aten._native_batch_norm_legit_functional.default"}


def calls(program):
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema")]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)

    def forward(self, x):
        return torch.nn.functional.silu(self.norm(self.linear(x)).transpose(0, 1).reshape(-1)).add_(1)


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", list(MODELS))
def test_programs_decompose_to_core_aten(name, train):
    model = MODELS[name]
    program = torch.export.export(model.make(torch, train), model.inputs(torch)).run_decompositions()
    for node in program.graph.nodes:
        if getattr(node.target, "namespace", "") == "aten":
            assert is_core(node.target) or str(node.target) in BESIDE, node
    inputs = model.inputs(torch)
    with torch.no_grad():
        found, expected = leaves(program.module()(*inputs)), leaves(model.make(torch, train)(*inputs))
    for ours, eager in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, eager, rtol=0, atol=1e-5 * max(1.0, eager.abs().max().item()))


def test_ops_outside_the_table_are_not_decomposed():
    program = torch.export.export(Net(), (torch.ones(4, 3),))
    assert calls(program.run_decompositions({})) == [
        "aten.linear.default", "aten.add.Tensor", "aten._native_batch_norm_legit_functional.default",
        "aten.transpose.int", "aten.clone.default", "aten._unsafe_view.default", "aten.silu.default", "aten.add.Tensor",
    ]  # fmt: skip
    table = torch.export.default_decompositions()
    assert isinstance(table, torch.export.CustomDecompTable) and aten.silu.default in table
    del table[aten.silu.default]
    found = calls(program.run_decompositions(table))
    assert "aten.silu.default" in found and "aten.linear.default" not in found
    assert aten.silu.default in torch.export.default_decompositions()  # each call returns a new table
    with pytest.raises(KeyError):
        table.pop(aten.add.Tensor)


def test_custom_decompositions():
    program = torch.export.export(Net(), (torch.ones(4, 3),))
    table = torch.export.default_decompositions().copy()
    table[aten.silu.default] = lambda x: torch.tanh(x)
    decomposed = program.run_decompositions(table)
    assert "aten.tanh.default" in calls(decomposed) and "aten.sigmoid.default" not in calls(decomposed)
    kept = {aten.linear.default: lambda x, weight, bias=None: x @ weight.t() + bias}
    assert "aten.mm.default" in calls(program.run_decompositions(kept))


def test_batch_norm_buffers_are_mutated_outputs():
    net = Net()
    decomposed = torch.export.export(net, (x := torch.randn(4, 3),)).run_decompositions()
    written = set(decomposed.graph_signature.buffers_to_mutate.values())
    assert written == {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    module = decomposed.module()
    torch.testing.assert_close(module(x), net(x))
    for name, buffer in net.named_buffers():
        torch.testing.assert_close(module.get_buffer(name), buffer)


def test_writes_are_functionalized():
    def f(x):
        y = x * 2
        y[1:, 0] = 5.0
        y[0].zero_()
        torch.nn.functional.silu(y[:, 1], inplace=True)
        return y

    class Writes(torch.nn.Module):
        def forward(self, x):
            return f(x)

    x = torch.arange(6.0).reshape(2, 3)
    decomposed = torch.export.export(Writes(), (x,)).run_decompositions()
    assert "aten.silu.default" not in calls(decomposed) and all(is_core(n.target) for n in decomposed.graph.nodes
                                                                if n.op == "call_function")  # fmt: skip
    torch.testing.assert_close(decomposed.module()(x), f(x))


def test_indices_of_a_copy_and_of_none_dimensions():
    class Indexes(torch.nn.Module):
        def forward(self, x, index):
            scalar = x.sum()
            return (
                x.index_add(1, index, x[:, :2], alpha=2),
                x.index_copy(1, index, x[:, 1:]),
                x.index_fill(0, index[:1], 7.0),
                scalar.index_add(0, index[:1], scalar),
                x.roll((1, -1), (0, 1)),
                x.roll(2),
            )

    args = torch.arange(6.0).reshape(2, 3).t().contiguous().t(), torch.tensor([0, 2])
    decomposed = torch.export.export(Indexes(), args).run_decompositions()
    assert all(is_core(n.target) for n in decomposed.graph.nodes if hasattr(n.target, "_schema"))
    for found, expected in zip(decomposed.module()(*args), Indexes()(*args), strict=True):
        torch.testing.assert_close(found, expected)


def test_parts_of_complex_numbers():
    class Parts(torch.nn.Module):
        def forward(self, x):
            z = torch.fft.rfft(x)
            return z.real + z.imag, torch.real(x), (z * z.conj()).real

    x = torch.arange(8.0).reshape(2, 4).sin()
    decomposed = torch.export.export(Parts(), (x,)).run_decompositions()
    assert "aten.view_as_real.default" in calls(decomposed) and "aten.real.default" not in calls(decomposed)
    for found, expected in zip(decomposed.module()(x), Parts()(x), strict=True):
        torch.testing.assert_close(found, expected)


def test_sizes_that_may_be_one():
    class Squeezes(torch.nn.Module):
        def forward(self, x):
            return x.squeeze(), x[:, :1].squeeze(), x.sum().reshape(1, 1).squeeze()

    rows = {0: torch.export.Dim.DYNAMIC}
    decomposed = torch.export.export(Squeezes(), (torch.ones(4, 3),), dynamic_shapes=(rows,)).run_decompositions()
    assert calls(decomposed).count("aten.squeeze.dims") == 1
    for n in (1, 4, 5):
        x = torch.ones(n, 3)
        for found, expected in zip(decomposed.module()(x), Squeezes()(x), strict=True):
            torch.testing.assert_close(found, expected)


def test_parts_of_a_split_see_writes_between_them():
    class Split(torch.nn.Module):
        def forward(self, x):
            y = x.clone()
            parts = y.split(2)
            before = parts[0] * 2
            y.add_(1)
            return before, parts[1] * 1, y.unbind()[0]

    x = torch.arange(4.0)
    program = torch.export.export(Split(), (x,))
    written, second = (next(n for n in program.graph.nodes if n.name == name) for name in ("add_", "getitem_1"))
    written.append(second)  # the second part is asked for after the write
    found = program.run_decompositions().module()(x)
    assert [part.tolist() for part in found] == [[0.0, 2.0], [3.0, 4.0], 1.0]
