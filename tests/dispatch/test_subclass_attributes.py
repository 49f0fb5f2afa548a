"""Subclasses of Tensor whose attributes have torchlite's internal names, and tensors that wrap others."""

import copy
import io
import pickle

import pytest

import torchlite as torch
from torchlite.utils import _pytree as pytree
from torchlite.utils._python_dispatch import transform_subclass


class Wrapper(torch.Tensor):
    """Stores the wrapped tensor in `_data`, and a header in `_meta`."""

    @staticmethod
    def __new__(cls, data, **meta):
        out = torch.Tensor._make_wrapper_subclass(cls, data.size(), strides=data.stride(), dtype=data.dtype)
        out._data = data
        out._meta = meta
        return out

    @property
    def data(self):
        return self._data

    def __tensor_flatten__(self):
        return ["_data"], self._meta

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Wrapper(inner["_data"], **meta)

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        seen.append(str(func))
        inner = [pytree.tree_map_only(Wrapper, lambda x: x._data, part) for part in (args, kwargs or {})]
        out = func(*inner[0], **inner[1])
        keeps = func in (torch.ops.aten.clone.default, torch.ops.aten.detach.default)
        return Wrapper(out, **args[0]._meta) if keeps else out


seen: list[str] = []


@pytest.fixture
def wrapper():
    seen.clear()
    return Wrapper(torch.tensor([[2, 0, 1], [0, 1, 1]]), name="a")


def test_subclass_attributes_do_not_shadow_internal_slots(wrapper):
    assert type(wrapper._data) is torch.Tensor and wrapper._meta == {"name": "a"}
    assert wrapper.shape == (2, 3) and wrapper.is_contiguous() and wrapper.stride() == (3, 1)
    assert not wrapper.requires_grad and wrapper.grad is None and wrapper._version == 0
    wrapper._meta = None
    assert wrapper._meta is None
    del wrapper._meta
    with pytest.raises(AttributeError, match="'Wrapper' object has no attribute '_meta'"):
        _ = wrapper._meta
    assert torch.equal(wrapper.sum(0), torch.tensor([2, 1, 2]))


def test_a_header_beside_data():
    class Header:
        _meta = "none"

        def __init__(self, *arguments):
            self._table = {}

    class Image(Header, torch.Tensor):
        @staticmethod
        def __new__(cls, x):
            return torch.as_tensor(x).as_subclass(cls)

        @property
        def _node(self):
            return self.__dict__.get("key")

        @_node.setter
        def _node(self, value):
            self.__dict__["key"] = value

        def put(self):
            self._meta = {"spacing": 2}
            self._node = "node"

    image = Image(torch.ones(2, 2, requires_grad=True))
    assert image._meta == "none" and image._table == {} and image._node is None
    image.put()
    assert image._meta == {"spacing": 2} and image._node == "node" and Image._meta == "none"
    (image * 3).sum().backward()
    assert (image + 1).exp().shape == (2, 2) and image.requires_grad
    leaf = Image(torch.ones(2)).requires_grad_()
    leaf.put()
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0] and leaf._meta == {"spacing": 2}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(wrapper, again):
    made = again(wrapper)
    assert type(made) is Wrapper and made._meta == {"name": "a"}
    assert torch.equal(made._data, wrapper._data) and made.shape == (2, 3)


def test_files(wrapper):
    file = io.BytesIO()
    torch.save({"x": wrapper}, file)
    file.seek(0)
    made = torch.load(file, weights_only=False)["x"]
    assert type(made) is Wrapper and made._meta == {"name": "a"} and torch.equal(made._data, wrapper._data)


def test_a_file_without_a_class_for_its_wrapper_is_refused():
    with pytest.raises(TypeError, match="class that does not inherit from Tensor"):
        torch._utils._rebuild_wrapper_subclass(dict, torch.int64, (2,), (1,), 0, torch.strided, "cpu", False)


def test_taken_apart(wrapper):
    made = transform_subclass(wrapper, lambda name, inner: inner + 1)
    assert torch.equal(made._data, wrapper._data + 1) and made._meta == {"name": "a"}


def test_nothing_to_do_is_no_op(wrapper):
    assert wrapper.contiguous() is wrapper and wrapper.cpu() is wrapper and wrapper.to("cpu") is wrapper
    assert seen == []
    assert type(wrapper.T.contiguous()) is torch.Tensor
    wrapper.to("meta")
    assert seen[-1] == "aten._to_copy.default"


def test_wrappers_as_indices(wrapper):
    x = torch.arange(12.0).view(3, 4)
    row = Wrapper(torch.tensor([2, 0]))
    assert torch.equal(x[row], x[[2, 0]])
    assert torch.equal(x[:, row], x[:, [2, 0]])
    assert torch.equal(x.index_select(0, row), x[[2, 0]])
    x[row] = torch.zeros(2, 4)
    assert x.sum() == x[1].sum()
    x[1] = Wrapper(torch.ones(4))
    assert x[1].tolist() == [1.0] * 4
    assert seen == ["aten.index.Tensor"] * 2 + ["aten.index_select.default", "aten.index_put_.default",
                                                "aten.copy_.default"]  # fmt: skip


def test_indices_of_wrappers(wrapper):
    assert wrapper[0, 1].item() == 0 and wrapper[1, 1:].tolist() == [1, 1]
    assert wrapper[:, torch.tensor([True, False, True])].tolist() == [[2, 1], [0, 1]]
    assert wrapper[torch.tensor([1, 0])].tolist() == [[0, 1, 1], [2, 0, 1]]


def test_written_with_wrappers(wrapper):
    row = Wrapper(torch.tensor([2, 0, 2]))
    assert torch.zeros(3).scatter_add_(0, row, torch.ones(3)).tolist() == [1.0, 0.0, 2.0]
    assert torch.zeros(2, 3, dtype=torch.long).add_(wrapper).tolist() == wrapper._data.tolist()
    assert seen == ["aten.scatter_add_.default", "aten.add_.Tensor"]


def test_several_results_are_a_tuple(wrapper):
    assert type(wrapper.unbind(0)) is tuple and type(wrapper.split(1)) is tuple and type(wrapper.chunk(2, 1)) is tuple


def test_a_function_that_is_an_operator_keeps_its_name():
    assert (-torch.ones(1)).tolist() == [-1.0] and abs(~torch.tensor(1)).tolist() == 2
    assert [f.__name__ for f in (torch.neg, torch.abs, torch.bitwise_not)] == ["neg", "abs", "bitwise_not"]
