"""Kernels for large arrays: which calls use them, and which table has them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import register_backend
from torchlite._dispatch.backend_registry import backend_of, table_of
from torchlite._dispatch.dispatch_state import GLOBALS
from torchlite._types.devices import REGISTERED

LARGE = 1 << 15


class Recording:
    """NumPy's backend under another name, whose kernels for large arrays tell that they were called."""

    name = "recording"

    def __init__(self):
        self.asked: list[str] = []

    def __getattr__(self, name):
        return getattr(backend_of("cpu"), name)

    def large_kernels(self, index):
        def told(name):
            kernel = self.kernels(index)[name]

            def large(*args, **kwargs):
                self.asked.append(name)
                return kernel(*args, **kwargs)

            return large

        names = "add add_ mul sum tanh exp cat _cross_entropy_backward _lstm_layer_backward"
        return {name: told(name) for name in names.split()}


@pytest.fixture
def recording(monkeypatch):
    monkeypatch.setitem(GLOBALS, "LARGE", LARGE)  # with --large all arrays are
    backend = Recording()
    register_backend("recording", backend)
    yield backend
    del REGISTERED["recording"]
    from torchlite._dispatch import backend_registry

    for where in [w for w in backend_registry._tables if w.type == "recording"]:
        del backend_registry._tables[where]


def values(count):
    return torch.from_numpy(np.linspace(-1, 1, count, dtype=np.float32)).to("recording")


def test_the_first_tensor_decides(recording):
    small, large = values(LARGE - 1), values(LARGE)
    recording.asked.clear()
    small + small, small.sum(), small * 2, small.exp()
    assert recording.asked == []
    large + large, large.sum(), large * 2, 2 * large, torch.add(large, large, alpha=2)
    assert recording.asked == ["add", "sum", "mul", "mul", "mul", "add"]


_OUT = {
    "add": lambda x, y, **out: torch.add(x, y, **out),
    "a number": lambda x, y, **out: torch.sub(x, 3, **out),
    "scaled": lambda x, y, **out: torch.add(x, y, alpha=0.5, **out),
    "div": lambda x, y, **out: torch.div(x, y, **out),
    "floor": lambda x, y, **out: torch.div(x, y, rounding_mode="floor", **out),
    "maximum": torch.maximum,
    "exp": lambda x, y, **out: torch.exp(x, **out),
    "sigmoid": lambda x, y, **out: torch.sigmoid(x, **out),
}


@pytest.mark.parametrize("name", _OUT)
@pytest.mark.parametrize("layout", ["rows", "columns", "part", "operand"])
def test_results_that_are_written_at_once(device, name, layout):
    x, y = torch.randn(256, 192, device=device), torch.randn(256, 192, device=device)
    want = _OUT[name](x, y)
    out = {
        "rows": lambda: torch.zeros(256, 192, device=device),
        "columns": lambda: torch.zeros(192, 256, device=device).t(),
        "part": lambda: torch.zeros(256, 200, device=device)[:, 4:196],
        "operand": lambda: x,
    }[layout]()
    place, version = out.data_ptr(), out._version
    assert _OUT[name](x, y, out=out) is out
    assert out._version == version + 1 and out.data_ptr() == place
    assert torch.equal(out, want)
    if layout == "part":
        assert not out._base[:, :4].any() and not out._base[:, 196:].any()


def test_a_result_asks_for_no_other_array():
    torch.empty(1, 1, 1, 1, memory_format=torch.channels_last)  # from here on results are laid out by rules
    x, y, out = torch.randn(3, 1 << 20)
    torch.exp(x + y, out=out)  # what is loaded by the first call is no array
    tracemalloc.start()
    torch.add(x, y, out=out)
    torch.exp(x, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes / 2


def test_large_out_arguments_are_checked_and_cast(device):
    x, out = torch.randn(256, 192, device=device), torch.zeros(256, 192, device=device)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.exp(x.clone().requires_grad_(), out=out)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.add(x[1:], x[1:], out=x[:-1])
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.exp(x, out=torch.zeros(256, 192, dtype=torch.int64, device=device))
    wide = torch.zeros(256, 192, dtype=torch.float64, device=device)
    assert torch.equal(torch.add(x, x, out=wide), (x + x).double())
    assert torch.equal(torch.add(x, x[:1], out=out), x + x[:1])
    with pytest.warns(UserWarning, match="was resized"):
        torch.add(x[:1], x[:1], out=out)
    assert out.shape == (1, 192)
    with torch.inference_mode(), pytest.raises(RuntimeError, match="can't be cast"):
        torch.exp(x, out=torch.zeros(256, 192, dtype=torch.bool, device=device))


def test_the_general_path_and_writes_in_place(recording):
    large = values(LARGE)
    recording.asked.clear()
    torch.mul(input=large, other=np.float32(2))
    large.add_(1)
    assert recording.asked == ["mul", "add_"]


def test_backward_asks_by_the_gradients_size(recording):
    x = values(LARGE).requires_grad_()
    y = (x * x).tanh()
    recording.asked.clear()
    y.sum().backward()
    assert recording.asked.count("mul") >= 3  # of tanh, and of both factors
    assert "add" in recording.asked  # the factors' gradients come to one leaf
    assert x.grad.device.type == "recording"


def test_tensors_have_the_common_kernel_table(recording):
    large = values(LARGE)
    table = table_of(torch.device("recording", 0))
    results = [large + 1, large.sum(), large.exp(), torch.logaddexp(large, large)]
    assert all(r._tl_kernels is table for r in results)
    assert table.large is not table
    assert table.large.large is table.large


def test_composites_of_the_large_table_call_its_kernels(recording):
    table = table_of(torch.device("recording", 0))
    raw = values(4)._tl_array
    recording.asked.clear()
    table.tanhshrink(raw)
    assert recording.asked == []
    table.large.tanhshrink(raw)
    assert recording.asked == ["tanh"]
    assert table.large.matmul is table.matmul  # what has no other kernel for large arrays


def test_devices_without_them_have_one_table():
    table = table_of(torch.device("meta"))
    assert table.large is table
    x = torch.empty(2 * LARGE, device="meta")
    assert (x + x).shape == x.shape


def test_of_a_list_the_first_array_decides(recording):
    small, large = values(LARGE - 1), values(LARGE)
    recording.asked.clear()
    torch.cat([small, large])
    assert recording.asked == []
    torch.cat([large, small])
    torch.cat((large, small), 0, out=values(0))  # the general way
    assert recording.asked == ["cat", "cat"]


def test_scalar_gradients_select_kernels_by_the_saved_tensors(recording):
    for count in (LARGE // 8 - 1, LARGE // 8):
        scores = values(8 * count).reshape(-1, 8).requires_grad_()
        loss = torch.nn.functional.cross_entropy(scores, torch.zeros(count, dtype=torch.int64).to("recording"))
        recording.asked.clear()
        loss.backward()
        assert ("_cross_entropy_backward" in recording.asked) == (8 * count >= LARGE)


def test_of_several_gradients_the_largest_decides(recording):
    layer = torch.nn.LSTM(8, 8).to("recording")
    for steps in (4, LARGE // 64):
        output, (h, _) = layer(values(steps * 64).reshape(steps, 8, 8))
        recording.asked.clear()
        (h.sum() + output[0].sum()).backward()
        assert ("_lstm_layer_backward" in recording.asked) == (steps > 4)
