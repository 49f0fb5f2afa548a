"""The recorded table of schemas, and the overloads created from it."""

from __future__ import annotations

import copy
import pickle

import pytest

import torchlite as torch
from torchlite._aten.overload_impl import find_implementation
from torchlite._aten.recorded_schemas import all_names, schema_entries

aten = torch.ops.aten


def overloads():
    return [getattr(getattr(aten, name), which) for name in all_names() for which in schema_entries(name)]


def test_schemas_are_written_as_they_were_read():
    assert len(overloads()) > 2700
    for overload in overloads():
        assert str(overload._schema) == overload.name() + overload.entry.text


def test_schema_describes_arguments_and_aliases():
    schema = aten.max_pool2d.default._schema
    stride, padding = schema.arguments[2:4]
    assert (stride.N, stride.default_value, padding.default_value) == (2, [], [0, 0])
    assert [str(a.type) for a in schema.arguments[:2]] == ["Tensor", "List[int]"] and not schema.is_mutable
    written = aten.add_.Tensor._schema.arguments[0]
    assert written.is_write and written.alias_info.before_set == {"a"} and aten.add_.Tensor._schema.is_mutable
    assert aten.chunk.default._schema.arguments[0].alias_info.after_set == {"*"}
    assert aten.add.Tensor._schema.arguments[2].kwarg_only and aten.t.default.is_view
    assert [a.is_out for a in aten.cat.out._schema.arguments] == [False, False, True]
    assert not written.is_out


def test_most_overloads_have_an_implementation():
    lacking = []
    for overload in overloads():
        if not overload.entry.is_script:
            try:
                find_implementation(overload)
            except NotImplementedError:
                lacking.append(str(overload))
    assert len(lacking) < 120, lacking


def test_a_packet_finds_the_overload_that_a_call_fits():
    x = torch.ones(2, 3)
    assert (
        aten.add.resolve_overload((x, 2), {}) is aten.add.Tensor
        and aten.pow.resolve_overload((x, 2), {}) is aten.pow.Tensor_Scalar
    )
    assert aten.sum.resolve_overload((x, [1]), {}) is aten.sum.dim_IntList and aten.max(x, 1)[1].tolist() == [0, 0]
    assert aten.eq.resolve_overload((x, 1), {}) is aten.eq.Scalar and aten.add(x, 2).tolist() == [[3.0] * 3] * 2
    with pytest.raises(RuntimeError, match="Overloaded torch operator invoked from Python failed to match any schema"):
        aten.add(x, "a")


def test_calls_that_do_not_fit():
    x = torch.ones(2, 3)
    for call, words in (
        (lambda: aten.mm.default(x), r"aten::mm\(\) is missing value for argument 'mat2'. Declaration: aten::mm\("),
        (lambda: aten.relu.default(x, 3), "expected at most 1 argument.s. but received 2"),
        (lambda: aten.eq.Tensor(x, "a"), "Expected a value of type 'Tensor' for argument 'other'"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute 'foo'"):
        _ = aten.foo
    with pytest.raises(AttributeError, match="The underlying op of 'aten.add' has no overload name 'foo'"):
        _ = aten.add.foo


def test_out_overloads_write_to_out():
    x, out = torch.arange(6.0).reshape(2, 3), torch.empty(0)
    assert aten.add.out(x, x, out=out) is out and out.tolist() == (x + x).tolist()
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    found = aten.max.dim_max(x, 1, max=values, max_values=indices)
    assert found[0] is values and indices.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="can't be cast"):
        aten.native_layer_norm.out(x, [3], None, None, 1e-5, out0=torch.empty(2, 3, dtype=torch.int64), out1=values,
                                   out2=values)  # fmt: skip
    assert aten.relu_.default(out) is out and aten.expand_copy.default(x[:1], [4, 3]).is_contiguous()


def test_an_overload_is_one_object():
    overload = aten.add.Tensor
    assert copy.deepcopy(overload) is overload and pickle.loads(pickle.dumps(overload)) is overload
    assert overload.name() == "aten::add.Tensor" and str(aten.mm.default) == "aten.mm.default"
    assert aten.add.overloads()[:3] == ["Tensor", "Scalar", "out"] and "add" in dir(aten)
    assert aten.mm.default.name() == "aten::mm"
