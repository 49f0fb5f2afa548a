"""The tensors that the garbage collector knows."""

import weakref

import torchlite as torch
from torchlite._tensor.live_tensors import live_tensors


class Kind(torch.Tensor):
    pass


class Plain:
    pass


def test_live_tensors_are_found_beside_a_dead_proxy():
    x, y = torch.ones(2), Kind([1.0])
    assert {id(x), id(y)} <= {id(found) for found in live_tensors()}
    target = Plain()
    proxy = weakref.proxy(target)
    del target
    assert {id(x), id(y)} <= {id(found) for found in live_tensors()}
    del proxy
