"""Launches that are recorded and started again: what they are, where their memory lies, and what cannot be recorded."""

from __future__ import annotations

import weakref

import pytest

import torchlite as torch
from torchlite._dispatch.kernel_recorder import UnrecordableError

pytestmark = pytest.mark.usefixtures("opencl", "on_device")


class Function:
    """Function of arrays that calls a function of tensors."""

    touched = ()

    def __init__(self, function):
        self.function = function

    def __call__(self, *given):
        from torchlite._dispatch import call

        result = self.function(*[call.wrap_array(TABLE[0], raw) for raw in given])
        return tuple(t._tl_array for t in (result if isinstance(result, tuple) else (result,)))


TABLE = []


@pytest.fixture
def recorded():
    """Records a function over tensors."""

    def record(function, *tensors):
        TABLE[:] = [tensors[0]._tl_kernels]
        given = tuple(t._tl_array for t in tensors)
        return TABLE[0].backend.record_launches(TABLE[0].device.index or 0, Function(function), given, "default"), given

    return record


def elements(raw):
    return TABLE[0].to_numpy(raw)


def test_elementwise_ops_share_a_launch_without_intermediate_memory(recorded):
    x, y, scale = torch.randn(64, 128), torch.randn(64, 128), torch.randn(128)
    launches, given = recorded(lambda a, b, c: ((a * c + b).tanh() * a - b).relu(), x, y, scale)
    assert len(launches.launches) == 1 and not launches._kept
    found = elements(launches.run(given)[0])
    assert (found == ((x * scale + y).tanh() * x - y).relu().cpu().numpy()).all()


def test_recording_runs_nothing(recorded):
    x = torch.zeros(300)
    launches, given = recorded(lambda a: a.add_(1), x)
    assert x.sum().item() == 0
    assert launches.run(given)[0] is x._tl_array and x.sum().item() == 300


def test_memory_is_reused_and_results_are_separate(recorded):
    x = torch.randn(40, 40)

    def powers(a):
        b = a
        for _ in range(6):
            b = b @ a
        return b

    launches, given = recorded(powers, x)
    assert len(launches._kept) == 2  # each product reads the one before
    first = launches.run(given)[0]
    kept = elements(first).copy()
    second = launches.run((torch.zeros(40, 40)._tl_array,))[0]
    assert second.buffer is not first.buffer and (elements(second) == 0).all() and (elements(first) == kept).all()
    where = second.buffer.int_ptr
    del second
    assert launches.run(given)[0].buffer.int_ptr == where  # no reference is left


def test_results_do_not_live_on(recorded):
    x = torch.randn(40, 40)
    launches, given = recorded(lambda a: (a.exp() + 1)[1:], x)
    found = launches.run(given)[0]
    base = weakref.ref(found.base)
    assert found.base.buffer is found.buffer and found.shape == (39, 40)
    del found
    first = weakref.ref(launches.run(given)[0])
    assert base() is not None and first() is None  # the owner waits for the next run, its view does not


def test_arrays_that_lie_otherwise_are_refused(recorded):
    x = torch.randn(40, 40)
    launches, _ = recorded(lambda a: a.exp() + 1, x)
    memory = torch.randn(3, 40, 40)
    assert launches.run((memory[1]._tl_array,)) is None
    assert launches.run((torch.randn(40, 41)._tl_array,)) is None
    assert (elements(launches.run((memory[0]._tl_array,))[0]) == (memory[0].exp() + 1).cpu().numpy()).all()


def test_host_reads_are_refused_and_state_is_restored(recorded):
    x = torch.randn(300)
    device = x._tl_array.device
    before = {name: getattr(device, name) for name in ("allocate", "draws")}
    for function in (lambda a: a * a.sum().item(), lambda a: a[a > 0] * 2):
        with pytest.raises(UnrecordableError):
            recorded(function, x)
    assert {name: getattr(device, name) for name in before} == before
    assert not device.capturing and not device.waiting.takes_rows and not device.waiting.steps
    assert torch.equal(x * 2, x + x) and torch.rand(5).unique().numel() == 5


def test_numbers_that_are_drawn_are_new_ones(recorded):
    x = torch.zeros(300)
    launches, given = recorded(lambda a: a + torch.rand(300) + torch.rand(300), x)
    torch.manual_seed(3)
    found = [elements(launches.run(given)[0]).tolist() for _ in range(3)]
    torch.manual_seed(3)
    assert found == [(x + torch.rand(300) + torch.rand(300)).tolist() for _ in range(3)]


def test_memory_that_was_given_back_is_not_taken_for_another(recorded):
    launches, _ = recorded(lambda a: a.exp() + 1, torch.randn(1000))
    for k in range(4):
        x = torch.full((1000,), float(k))
        assert elements(launches.run((x._tl_array,))[0])[0] == (x.exp() + 1)[0].item()
        del x
        torch.opencl.empty_cache()
