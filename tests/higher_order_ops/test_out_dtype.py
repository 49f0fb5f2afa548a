"""`out_dtype` is one node of a graph, in exported programs, their files and decompositions."""

from __future__ import annotations

import io

import pytest

import torchlite as torch
from torchlite._higher_order_ops.out_dtype import out_dtype
from torchlite.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


class Product(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.arange(12).reshape(4, 3).to(torch.int8))

    def forward(self, x):
        return out_dtype(aten.mm.default, torch.int32, x * 2, self.weight) + 1


X = torch.full((2, 4), 60, dtype=torch.int8)
VALUES = [[2161, 2641, 3121]] * 2


def call_of(graph):
    (node,) = [n for n in graph.nodes if n.target is torch.ops.higher_order.out_dtype]
    return node


def test_exported_node():
    program = torch.export.export(Product(), (X,))
    node = call_of(program.graph)
    assert node.name == "out_dtype" and node.args[:2] == (aten.mm.default, torch.int32)
    assert node.meta["val"].dtype is torch.int32 and tuple(node.meta["val"].shape) == (2, 3)
    assert program.module()(X).tolist() == VALUES
    assert "torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, " in program.graph_module.code


def test_file():
    file = io.BytesIO()
    torch.export.save(torch.export.export(Product(), (X,)), file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert call_of(loaded.graph).args[:2] == (aten.mm.default, torch.int32)
    assert loaded.module()(X).tolist() == VALUES


def test_decompositions_and_a_second_export_keep_the_node():
    program = torch.export.export(Product(), (X,)).run_decompositions()
    assert call_of(program.graph).args[0] is aten.mm.default
    again = torch.export.export(program.module(), (X,))
    assert call_of(again.graph).args[0] is aten.mm.default
    assert again.module()(X).tolist() == VALUES


def test_make_fx():
    traced = make_fx(lambda x: out_dtype(aten.mul.Scalar, torch.int32, x, 300))(X)
    assert call_of(traced.graph).args[2:] == (next(iter(traced.graph.nodes)), 300)
    assert traced(X)[0, 0].item() == 18000


def test_refused_ops():
    with pytest.raises(ValueError, match="only allows the following operators"):
        out_dtype(aten.add.Tensor, torch.int32, X, X)
