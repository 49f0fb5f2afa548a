"""Tracebacks of errors: they point at the user's line, without torchlite's generated code and dispatch."""

import traceback

import numpy as np
import pytest

import torchlite as torch

F = torch.nn.functional

MISTAKES = {
    "mm": lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)),
    "operator": lambda: torch.ones(2, 3) @ torch.ones(2, 3),
    "sum of shapes": lambda: torch.ones(3) + torch.ones(4),
    "reflected operator": lambda: "text" + torch.ones(3),
    "label": lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 7])),
    "convolution": lambda: F.conv2d(torch.ones(1, 2, 8, 8), torch.ones(4, 3, 3, 3)),
    "view": lambda: torch.ones(4).view(3),
    "reshape": lambda: torch.ones(4).reshape(3, -1),
    "ragged list": lambda: torch.tensor([[1, 2], [3]]),
    "index": lambda: torch.ones(3)[5],
    "index tensor": lambda: torch.ones(3)[torch.tensor([5])],
    "assignment": lambda: torch.ones(3).__setitem__(5, 1.0),
    "keyword": lambda: torch.sum(torch.ones(3), dims=1),
    "in place": lambda: torch.ones(3, requires_grad=True).add_(1),
    "in-place operator": lambda: torch.ones(3).__iadd__(torch.ones(4)),
    "dimension": lambda: torch.ones(3).sum(4),
    "out": lambda: torch.add(torch.ones(3), 1, out=torch.ones(3, dtype=torch.int64)),
    "solve": lambda: torch.linalg.inv(torch.zeros(2, 2)),
}


def files(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def caught(call) -> Exception:
    with pytest.raises(Exception) as found:
        call()
    return found.value


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("use", ["first", "second"])
def test_a_traceback_ends_at_the_users_line(mistake, use):
    if use == "second":
        caught(MISTAKES[mistake])
    error = caught(MISTAKES[mistake])
    assert files(error)[-1] == __file__
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def test_all_frames_are_kept_on_request(monkeypatch):
    monkeypatch.setenv("TORCHLITE_TRACEBACK_FILTERING", "0")
    assert "<torchlite op mm" in files(caught(MISTAKES["mm"]))[-1]


def test_frames_of_a_users_function_that_an_op_calls_stay():
    class Failing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return np.zeros(3).reshape(2)

    x = torch.ones(3).as_subclass(Failing)
    error = caught(lambda: torch.sin(x))
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-1] == "__torch_function__"
    assert not any("torchlite" in file and "tests" not in file for file in files(error))


def test_a_layers_frames_stay():
    error = caught(lambda: torch.nn.Linear(3, 4)(torch.ones(2, 5)))
    assert files(error)[-1].endswith("linear.py")


def test_gradients_after_an_error():
    x = torch.ones(3, requires_grad=True)
    caught(lambda: x + torch.ones(4))
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
