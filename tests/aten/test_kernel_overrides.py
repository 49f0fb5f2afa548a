"""Kernels that override built-in ones (`torch.library.Library(..., "IMPL")`), and schemas of `torch._C`."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch
from torchlite.library import Library, _scoped_library


def test_a_kernel_in_an_ops_place():
    seen = []

    def product(a, b):
        seen.append((a.requires_grad, b.shape))
        return torch.mm(a, b)

    x, w = torch.rand(2, 3, requires_grad=True), torch.rand(4, 3)
    plain = torch.nn.functional.linear(x, w)
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("mm", product, "CPU")
        out = torch.nn.functional.linear(x, w)
        assert torch.ops.aten.mm(x, w.t()).shape == (2, 4)
    assert len(seen) == 2 and torch.equal(out, plain)
    out.sum().backward()
    assert torch.allclose(x.grad, w.sum(0).expand(2, 3))
    torch.mm(x, w.t())
    assert len(seen) == 2


def test_an_op_that_is_written_in_others():
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("matmul", lambda a, b: a.new_zeros(()), "CompositeImplicitAutograd")
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).tolist() == 0.0
        assert torch.ones(2).sum().tolist() == 2.0


def test_impl_rejects_unknown_ops_and_keys():
    lib = Library("aten", "IMPL")
    with pytest.raises(RuntimeError, match="which torchlite does not have"):
        lib.impl("nothing", lambda x: x, "CPU")
    with pytest.raises(NotImplementedError, match="dispatch key AutocastCPU"):
        lib.impl("mm", lambda a, b: a, "AutocastCPU")
    assert torch.mm(torch.ones(1, 1), torch.ones(1, 1)).tolist() == [[1.0]]


def test_a_custom_op_that_writes_counts_as_a_write():
    @torch.library.custom_op("aten_tests::sine_", mutates_args={"x"})
    def sine_(x: torch.Tensor) -> None:
        array = x.numpy()
        np.sin(array, out=array)

    x = torch.ones(3)
    before = x._version
    sine_(x)
    assert x._version > before and torch.allclose(x, torch.ones(3).sin())


def test_tensors_by_keyword_have_no_derivative():
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):

        @torch.library.custom_op("aten_tests::keyword", mutates_args=())
        def keyword(x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor:
            return x + y


def test_schemas_that_programs_ask_for():
    found = torch._C._jit_get_schemas_for_operator("aten::pow")
    assert [s.overload_name for s in found][:3] == ["Tensor_Tensor", "Tensor_Scalar", "Scalar"]
    assert torch._C._jit_get_schemas_for_operator("aten::nothing") == []
    assert torch._C._jit_resolve_packet("aten::pow", torch.ones(1), 2) == "Tensor_Scalar"
    call, _, tags = torch._C._get_operation_overload("aten::relu", "")
    assert call(torch.tensor([-1.0])).tolist() == [0.0] and torch.Tag.core in tags
    from torchlite._library.utils import is_functional_schema, is_tensorlist_like_type, lookup_op

    assert is_functional_schema("f(Tensor x) -> Tensor") and not is_functional_schema("f(Tensor(a!) x) -> ()")
    assert not is_functional_schema("f(Tensor x) -> ()") and not is_functional_schema("f(Tensor(a) x) -> Tensor(a)")
    schema = torch._C.parse_schema("f(Tensor[] a, Tensor?[] b, Tensor c) -> Tensor")
    assert [is_tensorlist_like_type(a.type) for a in schema.arguments] == [True, True, False]
    assert lookup_op("aten::add.Tensor") is torch.ops.aten.add.Tensor


def test_a_kernel_gets_the_keywords_of_a_call():
    seen = []

    def largest(a, *, dtype=None):
        seen.append(dtype)
        return torch.zeros(())

    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("sum", largest, "CPU")
        torch.ops.aten.sum(torch.ones(2), dtype=torch.float64)
        torch.sum(torch.ones(2), dtype=torch.float64)
    assert seen == [torch.float64] * 2
