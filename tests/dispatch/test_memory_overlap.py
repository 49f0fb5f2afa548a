"""Writes to overlapping memory are refused where PyTorch refuses them, with its messages; the results were recorded."""

import warnings

import pytest

import torchlite as torch
from torchlite.nn import functional as F

pytestmark = pytest.mark.usefixtures("on_device")

REPEATS = "more than one element of the written-to tensor refers to a single memory location"
MEETS = "some elements of the input tensor and the written-to tensor refer to a single memory location"


def one(*shape):
    """An element seen as many."""
    return torch.ones(1).expand(shape or (3,))


def x():
    return torch.zeros(5)


def y():
    return torch.ones(3, 3)


def at(*places):
    return torch.tensor(places or (0,))


def item(target, index, value):
    target[index] = value


REPEATED = {
    "copy_": lambda: one().copy_(torch.ones(3)),
    "slice of tensor": lambda: item(one(), slice(0, 2), torch.ones(2)),
    "slice of number": lambda: item(one(), slice(0, 2), 1.0),
    "masked_scatter_": lambda: one().masked_scatter_(torch.tensor([True, False, True]), torch.ones(2)),
    "index_copy_": lambda: one().index_copy_(0, at(), torch.ones(1)),
    "index_add_": lambda: one().index_add_(0, at(), torch.ones(1)),
    "scatter_": lambda: one().scatter_(0, at(), 1.0),
    "scatter_add_": lambda: one().scatter_add_(0, at(), torch.ones(1)),
    "put_": lambda: one().put_(at(), torch.ones(1)),
    "fill_ by tensor": lambda: one().fill_(torch.tensor(2.0)),
    "relu inplace": lambda: F.relu(one(), inplace=True),
    "elu inplace": lambda: F.elu(one(), inplace=True),
    "leaky_relu_": lambda: F.leaky_relu_(one()),
    "silu inplace": lambda: F.silu(one(), inplace=True),
    "addmm_": lambda: one(3, 3).addmm_(y(), y()),
    "lerp_": lambda: one().lerp_(torch.ones(3), 0.5),
    "addcmul_": lambda: one().addcmul_(torch.ones(3), torch.ones(3)),
    "cumsum_": lambda: one().cumsum_(0),
    "iadd": lambda: one().__iadd__(1),
    "real": lambda: one().real.add_(1),
    "detached": lambda: one().detach().neg_(),
    "out of add": lambda: torch.add(torch.ones(3), 1, out=one()),
    "out of mm": lambda: torch.mm(y(), y(), out=torch.zeros(1, 3).expand(3, 3)),
    "out of max": lambda: torch.max(y(), 0, out=(one(), torch.zeros(3, dtype=torch.int64))),
    "bernoulli_ by tensor": lambda: one().bernoulli_(torch.ones(3)),
} | {
    name: lambda name=name, args=args: getattr(one(), name)(*args)
    for name, args in (
        ("random_", ()), ("bernoulli_", ()), ("uniform_", ()), ("normal_", ()), ("exponential_", ()), ("cauchy_", ()),
        ("log_normal_", ()), ("geometric_", (0.5,)), ("clamp_", (0, 1)), ("relu_", ()), ("mul_", (2,)), ("pow_", (2,)),
        ("logit_", ()), ("nan_to_num_", ()), ("round_", ()), ("eq_", (1,)), ("logical_not_", ()), ("sub_", (1,)),
        ("floor_divide_", (1,)), ("clamp_max_", (1,)), ("exp_", ()), ("sigmoid_", ()),
    )
}  # fmt: skip
MEETING = {
    "copy_": lambda v: v[1:].copy_(v[:-1]),
    "slice": lambda v: item(v, slice(1, None), v[:-1]),
    "index": lambda v: item(v, at(0, 1, 2, 3), v[1:]),
    "index_add_": lambda v: v.index_add_(0, at(0, 1), v[:2]),
    "index_copy_": lambda v: v.index_copy_(0, at(0, 1), v[:2]),
    "scatter_": lambda v: v.scatter_(0, at(0, 1), v[:2]),
    "put_": lambda v: v.put_(at(0, 1), v[:2]),
    "index_put_": lambda v: v.index_put_((at(0, 1),), v[:2]),
    "index_fill_ by itself": lambda v: (i := at(2, 1, 0)).index_fill_(0, i, 0),
    "out of cat": lambda v: torch.cat([v[:2], v[3:]], out=v[1:5]),
    "out of cat, the whole": lambda v: torch.cat([v, torch.zeros(0)], out=v),
    "out of stack": lambda v: torch.stack([v[:2], v[2:4]], out=v[:4].view(2, 2)),
    "out of add": lambda v: torch.add(v[1:], 1, out=v[:-1]),
    "out of exp": lambda v: torch.exp(v[:4], out=v[1:]),
    "out of gather": lambda v: torch.gather(v, 0, at(0, 1), out=v[:2]),
    "out of index_select": lambda v: torch.index_select(v, 0, at(0, 1), out=v[:2]),
    "out of take": lambda v: torch.take(v, at(0, 1), out=v[:2]),
    "transpose": lambda v: (m := y()).add_(m.t()),
    "copy of transpose": lambda v: (m := y()).t().copy_(m),
    "row": lambda v: (m := y()).add_(m[0]),
    "element": lambda v: (m := y()).mul_(m[0, 0]),
    "out with a row": lambda v: torch.add(m := y(), m[0], out=m),
}
ALLOWED = {
    "number": lambda: item(one(), 0, 1.0),
    "zero_": lambda: one().zero_(),
    "fill_": lambda: one().fill_(2.0),
    "fill_diagonal_": lambda: one(3, 3).fill_diagonal_(1.0),
    "tril_": lambda: one(3, 3).tril_(),
    "addmv_": lambda: one().addmv_(y(), torch.ones(3)),
    "out of sum": lambda: torch.sum(torch.ones(2, 3), 0, out=one()),
    "out of amax": lambda: torch.amax(torch.ones(2, 3), 0, out=one()),
    "out of zeros": lambda: torch.zeros(3, out=one()),
    "out of ones": lambda: torch.ones(3, out=one()),
    "out of empty": lambda: torch.empty(3, out=one()),
    "out of full": lambda: torch.full((3,), 2.0, out=one()),
    "out of eye": lambda: torch.eye(3, out=one(3, 3)),
    "other half": lambda: (v := x())[:2].add_(v[2:4]),
    "every other": lambda: (v := x())[:4:2].add_(v[1:4:2]),
    "other row": lambda: item(m := y(), 0, m[1]),
    "itself": lambda: (v := x()).add_(v),
    "its own view": lambda: (v := x())[1:3].mul_(v[1:3]),
    "no element": lambda: torch.zeros(1, 1).expand(0, 3).add_(1),
    "out is an operand": lambda: torch.add(v := x(), v, out=v),
    "where": lambda: torch.where((v := x()) > 0, v, v, out=v),
    "cumsum": lambda: torch.cumsum(v := x(), 0, out=v),
    "mean over itself": lambda: torch.mean(m := y(), 0, out=m[0]),
}
DEPRECATED = {
    "index_put_": lambda: one().index_put_((at(),), torch.tensor(1.0)),
    "index": lambda: item(one(), at(), 1.0),
    "index_fill_": lambda: one().index_fill_(0, at(), 1.0),
    "masked_fill_": lambda: one().masked_fill_(torch.tensor([True, False, True]), 1.0),
}


@pytest.mark.parametrize("name", REPEATED)
def test_elements_that_share_places_are_not_written(name):
    with pytest.raises(RuntimeError, match=REPEATS):
        REPEATED[name]()


@pytest.mark.parametrize("name", MEETING)
def test_an_operand_on_a_part_of_the_result_is_refused(name):
    v = torch.arange(5.0)
    with pytest.raises(RuntimeError, match=MEETS):
        MEETING[name](v)
    assert v.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_overlaps(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ALLOWED[name]()


@pytest.mark.parametrize("name", DEPRECATED)
def test_deprecated_overlaps_warn(name):
    with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
        DEPRECATED[name]()
