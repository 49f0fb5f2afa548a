"""The tensors that the garbage collector knows."""

import threading
import weakref

import torchlite as torch
from torchlite._tensor.live_tensors import live_tensors

from ..threads import in_threads


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


class WithClassInPython:
    @property
    def __class__(self):
        return sum(range(9)) and Plain


def test_threads_build_tuples_beside_a_search():
    objects = [WithClassInPython() for _ in range(50)]
    searching = threading.Event()

    def body(k: int) -> int:
        if k:
            while not searching.is_set():
                assert tuple(i for i in range(20)) == tuple(range(20))
            return 0
        try:
            return sum(len(live_tensors()) for _ in range(100))
        finally:
            searching.set()

    x = torch.ones(2)
    assert in_threads(body, 4)[0] >= 100 and len(objects) == 50 and len(x) == 2
